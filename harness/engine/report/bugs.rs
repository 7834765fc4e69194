//! Bugs: the findings of a component that have one cause.
//!
//! One bug breaks many invariants. A reader wants it once: its smallest case, what it is like, and
//! in a line which other invariants it breaks.

use crate::report::{ComponentReport, Diagnosis, Finding};
use shakedown_core::contract::cause::Cause;
use shakedown_core::laws::NOT_OF_OUTPUTS;

/// The findings of one cause.
#[derive(Clone, Copy, Debug)]
pub struct Bug<'a> {
    /// The one to tell.
    pub head: &'a Finding,
    /// Findings of other invariants with the same cause.
    pub also: &'a [Finding],
}

impl<'a> Bug<'a> {
    /// Its findings, the one to tell first.
    pub fn findings(self) -> impl Iterator<Item = &'a Finding> {
        std::iter::once(self.head).chain(self.also)
    }

    /// The other invariants that it breaks, each once, and that of the head where it breaks that in
    /// another way too.
    pub fn breaks_too(self) -> Vec<&'a str> {
        let mut ids: Vec<&str> = Vec::new();
        for finding in self.also {
            if !ids.contains(&&*finding.invariant) {
                ids.push(&finding.invariant);
            }
        }
        ids
    }

    /// Its cause in a word or two, the same in every run that finds it.
    pub fn cause(self) -> String {
        cause(self.head)
    }
}

impl ComponentReport {
    /// Its bugs, in the order of the findings.
    pub fn bugs(&self) -> Vec<Bug<'_>> {
        let same = |a: &Finding, b: &Finding| a.bug != 0 && a.bug == b.bug;
        let groups = self.findings.chunk_by(same);
        groups
            .filter_map(|group| group.split_first())
            .map(|(head, also)| Bug { head, also })
            .collect()
    }

    /// Which bug a finding is of, as the others are told elsewhere: ``bug 1 of 2, told at `oracle`
    /// ``.
    pub fn which_bug(&self, finding: &Finding) -> String {
        let bugs = self.bugs();
        let is_of = |bug: &Bug<'_>| bug.findings().any(|one| std::ptr::eq(one, finding));
        let at = bugs.iter().position(is_of).unwrap_or_default();
        let head = bugs.get(at).map_or(finding, |bug| bug.head);
        format!("bug {} of {}, told at `{}`", at + 1, bugs.len(), head.invariant)
    }

    /// Numbers the findings by cause, and puts those of one cause together, the one to tell first.
    /// Gives the place at which each stood before.
    pub fn number_bugs(&mut self) -> Vec<usize> {
        let flips = self.findings.iter().any(|finding| finding.invariant == "deterministic");
        let mut causes: Vec<String> = Vec::new();
        for finding in &mut self.findings {
            let cause = match cause(finding) {
                // What is not the same twice is wrong now and then.
                cause if flips && cause == OUTPUTS => "deterministic".to_owned(),
                cause => cause,
            };
            let known = causes.iter().position(|known| *known == cause);
            let at = known.unwrap_or_else(|| {
                causes.push(cause);
                causes.len() - 1
            });
            finding.bug = at as u64 + 1;
        }
        let mut placed: Vec<(usize, Finding)> = self.findings.drain(..).enumerate().collect();
        placed.sort_by_key(|(_, finding)| (finding.bug, rank(finding)));
        let before;
        (before, self.findings) = placed.into_iter().unzip();
        self.tell_numbers_once();
        before
    }

    /// Has the numbers that were compared stand with the first finding that names the fault.
    fn tell_numbers_once(&mut self) {
        let mut shown: Vec<Diagnosis> = Vec::new();
        for diagnosis in self.findings.iter_mut().flat_map(|finding| &mut finding.diagnosis) {
            let has_numbers = !diagnosis.points.is_empty() || !diagnosis.texts.is_empty();
            if has_numbers && !shown.iter().any(|one| one.fault == diagnosis.fault) {
                shown.push(diagnosis.clone());
            }
            diagnosis.points.clear();
            diagnosis.texts.clear();
        }
        for one in shown {
            // Two variants of a fault may both be named.
            let is_it = |other: &&mut Diagnosis| {
                (&one.fault, one.matches, one.of, one.explains)
                    == (&other.fault, other.matches, other.of, other.explains)
            };
            let mut all = self.findings.iter_mut().flat_map(|finding| &mut finding.diagnosis);
            if let Some(first) = all.find(is_it) {
                (first.points, first.texts) = (one.points, one.texts);
            }
        }
    }
}

/// The cause of what has no name and is wrong in outputs.
const OUTPUTS: &str = "outputs";

/// Why an invariant breaks: the first diagnosis, else the law, else that outputs are wrong.
pub fn cause(finding: &Finding) -> String {
    match (finding.diagnosis.first(), &*finding.invariant) {
        (Some(diagnosis), _) => whole(diagnosis).to_owned(),
        (None, law) if let Some(exception) = Cause::read(&finding.found).exception() => {
            format!("{law}: {exception}")
        }
        (None, law) if NOT_OF_OUTPUTS.contains(&law) => law.to_owned(),
        (None, _) => OUTPUTS.to_owned(),
    }
}

/// What a component behaves as, wherever it does: the same in two regions, or in two outputs, is
/// one bug.
fn whole(diagnosis: &Diagnosis) -> &str {
    let Diagnosis { fault, told, .. } = diagnosis;
    let cut = |name: &'_ str, word: &str| name.rfind(word).unwrap_or(name.len());
    let (mut name, mut told) = (fault.as_str(), told.as_str());
    if let Some(region) = told.strip_suffix(", and right elsewhere") {
        (name, told) = (&name[..cut(name, " where ")], &told[..cut(region, " where ")]);
    }
    if told.ends_with(" only") {
        name = &name[..cut(name, " in ")];
    }
    name
}

/// Which finding of a bug is told: both numbers stand in that of the oracle, then the smallest.
fn rank(finding: &Finding) -> (u8, usize) {
    (prominence(&finding.invariant), finding.shown.len())
}

/// How late a finding of an invariant is told among those of a bug.
pub fn prominence(invariant: &str) -> u8 {
    match invariant {
        "oracle" => 0,
        law if NOT_OF_OUTPUTS.contains(&law) => 1,
        "gradient" => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_in_another_region_or_output_is_the_same_bug() {
        let of = |fault: &str, told: &str| {
            let diagnosis = Diagnosis {
                fault: fault.to_owned(),
                matches: 1,
                of: 1,
                explains: 1.0,
                summary: String::new(),
                told: told.to_owned(),
                strength: Default::default(),
                alike: Vec::new(),
                by_outcomes: false,
                points: Vec::new(),
                texts: Vec::new(),
            };
            whole(&diagnosis).to_owned()
        };
        let region = "it had the bug `x` where T is 3 or more, and right elsewhere";
        assert_eq!(of("x where T is 3 or more", region), "x");
        let output = "it had the bug `x` in `loss` only where N is 1, and right elsewhere";
        assert_eq!(of("x in loss where N is 1", output), "x");
        assert_eq!(of("x in loss", "it had the bug `x` in `loss` only"), "x");
        let word = "the input `advantages` were 0 where it is negative";
        assert_eq!(
            of("advantages: 0 where it is negative", word),
            "advantages: 0 where it is negative"
        );
    }
}
