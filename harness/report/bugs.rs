//! Bugs: the findings of a component that have one cause.
//!
//! One bug breaks many invariants. A reader wants it once: its smallest case, what it is like, and
//! in a line which other invariants it breaks.

use crate::laws::NOT_OF_OUTPUTS;
use crate::report::{ComponentReport, Finding};

/// The findings of one cause.
#[derive(Clone, Copy, Debug)]
pub struct Bug<'a> {
    /// The one to tell.
    pub head: &'a Finding,
    /// Findings of other invariants with the same cause.
    pub also: &'a [Finding],
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

    /// Numbers the findings by cause, and puts those of one cause together, the one to tell first.
    /// Gives the place at which each stood before.
    pub(crate) fn number_bugs(&mut self) -> Vec<usize> {
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
        // A number is told with the first finding that has it.
        let mut told: Vec<String> = Vec::new();
        for diagnosis in self.findings.iter_mut().flat_map(|finding| &mut finding.diagnosis) {
            if told.contains(&diagnosis.fault) {
                diagnosis.points.clear();
                diagnosis.texts.clear();
            } else if !diagnosis.points.is_empty() || !diagnosis.texts.is_empty() {
                told.push(diagnosis.fault.clone());
            }
        }
        before
    }
}

/// The cause of what has no name and is wrong in outputs.
const OUTPUTS: &str = "outputs";

/// Why an invariant breaks: the first diagnosis, else the law, else that outputs are wrong.
fn cause(finding: &Finding) -> String {
    match (finding.diagnosis.first(), &*finding.invariant) {
        (Some(diagnosis), _) => diagnosis.fault.clone(),
        (None, law) if NOT_OF_OUTPUTS.contains(&law) => law.to_owned(),
        (None, _) => OUTPUTS.to_owned(),
    }
}

/// Which finding of a bug is told: both numbers stand in that of the oracle, then the smallest.
fn rank(finding: &Finding) -> (u8, usize) {
    let of = match &*finding.invariant {
        "oracle" => 0,
        law if NOT_OF_OUTPUTS.contains(&law) => 1,
        "gradient" => 2,
        _ => 3,
    };
    (of, finding.shown.len())
}
