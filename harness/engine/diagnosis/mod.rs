//! Diagnosis: what a component does in place of what the definition says.
//!
//! ```text
//! evidence ─▶ families make hypotheses ─▶ tried on a few wrong cases ─▶ scored on all
//!          ─▶ paired, narrowed to outputs and regions ─▶ taken until all is explained
//! ```
//!
//! A hypothesis is data: parts of which each changes a fault, an option, an input, a term or an
//! output of the reference. A family makes parts of what a contract declares; to add one, write its
//! file in `families/` and name it in the list there.

mod axis;
pub(crate) mod change;
mod count;
pub(crate) mod evidence;
mod families;
pub(crate) mod hypothesis;
mod points;
pub(crate) mod reading;
mod region;
mod relation;
mod score;
pub(crate) mod signature;
pub(crate) mod statistic;
pub(crate) mod text;

use std::collections::BTreeSet;

use ndarray::{ArrayD, Dimension as _};

use crate::diagnosis::change::Change;
use crate::diagnosis::evidence::{Evidence, ExpectedCells, Observed, cells, places};
use crate::diagnosis::families::Family;
pub(crate) use crate::diagnosis::families::options::{OtherOption, other_words};
use crate::diagnosis::hypothesis::{EVERY, Hypothesis, Part, fields};
use crate::diagnosis::region::Feature;
use crate::diagnosis::score::{Bench, First, Fit, Half};
use crate::report::{Diagnosis, Strength};
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::value::record::{Shared, Value};

/// Hypotheses that are compared on all cases, and those that are tried in pairs.
const COMPARED: usize = 40;
const PAIRED: usize = 3;

/// The first parts of pairs besides, which explain nothing by themselves but come nearer than the
/// definition does.
const NEAR: usize = 5;
const NEARER: f64 = 0.95;

/// Hypotheses that are tried in regions.
const NARROWED: usize = 6;

/// A hypothesis must agree with the component in this share of the cells in which it is wrong…
const AGREEMENT: f64 = 0.6;

/// … or explain this share of what is wrong, and agree in this one.
const COVERAGE: f64 = 0.9;
const LEAST: f64 = 0.3;

/// … and explain one hundredth of all that is wrong, or everything in so many cases: small ones
/// have few cells.
const SETTLED: u64 = 3;

/// Diagnoses of one component at the most, and other names that are told beside one.
const TOLD: usize = 3;
const BESIDE: usize = 3;

/// A hypothesis that explains some of what a component does wrong.
pub(crate) struct Explanation {
    pub(crate) hypothesis: Hypothesis,
    /// Where it acts, if not everywhere.
    region: Option<String>,
    pub(crate) diagnosis: Diagnosis,
}

impl Explanation {
    /// For each cell of a case, whether it is wrong, and whether this explains it.
    pub(crate) fn on(
        &self,
        evidence: &Evidence,
        observed: &Observed,
    ) -> Option<(Vec<bool>, Vec<bool>)> {
        let (expected, given) = observed.answered()?;
        let planted = self.hypothesis.cells(evidence, observed);
        let within = self.within(evidence, &observed.case, expected);
        let compared = cells(expected).zip(given.iter().zip(&planted)).zip(within);
        let both = compared.map(|((cell, (given, planted)), within)| {
            let wrong = evidence.wrong(given, &cell);
            let acts = within && evidence.wrong(planted, &cell);
            (wrong, wrong && acts && evidence.alike(given, planted, &cell))
        });
        Some(both.unzip())
    }

    /// Whether it acts in a region only.
    pub(crate) fn is_of_a_region(&self) -> bool {
        self.region.is_some()
    }

    /// For each cell of a case, whether it may act there.
    fn within(&self, evidence: &Evidence, case: &Shared, expected: &ExpectedCells) -> Vec<bool> {
        match &self.region {
            Some(region) => region::holds(region, evidence, case, expected),
            None => vec![true; cells(expected).count()],
        }
    }

    /// What a component gives that does this, where that is not what the hypothesis gives
    /// everywhere: `right` where it does not act.
    pub(crate) fn acting(
        &self,
        evidence: &Evidence,
        case: &Shared,
        right: &Shared,
        planted: &Shared,
    ) -> Shared {
        if self.region.is_none() && self.hypothesis.only.is_none() {
            return Shared::clone(planted);
        }
        let expected = evidence.expected(case, true, None);
        let within = self.within(evidence, case, &expected);
        let only = self.hypothesis.only.as_ref();
        let acting = places(&expected)
            .into_iter()
            .zip(within)
            .filter(|((field, _), within)| *within && only.is_none_or(|only| only.contains(field)));
        let acting: BTreeSet<(&str, Vec<usize>)> = acting.map(|(place, _)| place).collect();
        merged(evidence.contract, right, planted, &acting)
    }
}

/// A record with some of the numbers and texts of another one.
fn merged(
    contract: &dyn AnyContract,
    to: &Shared,
    from: &Shared,
    meant: &BTreeSet<(&str, Vec<usize>)>,
) -> Shared {
    fn mix<T: Clone>(to: &mut ArrayD<T>, from: &ArrayD<T>, is_meant: impl Fn(&[usize]) -> bool) {
        if to.shape() == from.shape() {
            for ((at, to), from) in to.indexed_iter_mut().zip(from) {
                if is_meant(at.slice()) {
                    *to = from.clone();
                }
            }
        }
    }
    let (mut values, from) = (to.values(), from.values());
    for ((name, value), (_, other)) in values.iter_mut().zip(&from) {
        let is_meant = |at: &[usize]| meant.contains(&(*name, at.to_vec()));
        match (value, other) {
            (Some(Value::Float(to)), Some(Value::Float(from))) => mix(to, from, is_meant),
            (Some(Value::Int(to)), Some(Value::Int(from))) => mix(to, from, is_meant),
            (Some(Value::Bool(to)), Some(Value::Bool(from))) => mix(to, from, is_meant),
            (Some(Value::Text(to)), Some(Value::Text(from))) => mix(to, from, is_meant),
            _ => {}
        }
    }
    let made =
        contract.output(&mut |name| values.iter_mut().find(|(other, _)| *other == name)?.1.take());
    made.unwrap_or_else(|_| Shared::clone(to))
}

/// A hypothesis with how it does.
struct Candidate {
    hypothesis: Hypothesis,
    region: Option<String>,
    fit: Fit,
}

/// What explains the wrong outputs of a component, the best first.
pub(crate) fn explain(evidence: &Evidence) -> Vec<Explanation> {
    let bench = Bench::new(evidence);
    let mut open = bench.wrong.clone();
    if !open.contains(&true) {
        return Vec::new();
    }
    let total = count(&open);
    let is_exact = |candidate: &Candidate| candidate.is_exact(&bench, &bench.wrong);
    let (mut singles, mut candidates): (Vec<Tried>, Vec<Candidate>) = Default::default();
    for families in families::asked_about(evidence) {
        let mut any_exact = candidates.iter().any(is_exact);
        if any_exact {
            break;
        }
        let tried = tried(&bench, families);
        for (first, one) in tried.iter().filter(|(first, _)| first.score > 0.0).take(COMPARED) {
            // What is not the same on the first cases is not the same on all.
            if any_exact && first.score < 1.0 {
                break;
            }
            candidates.push(Candidate::of(&bench, one.clone(), None));
            any_exact |= candidates.last().is_some_and(is_exact);
        }
        singles.extend(tried);
    }
    if !evidence.is_open() && !candidates.iter().any(is_exact) {
        scaled(&bench, &singles, &mut candidates);
    }
    if !candidates.iter().any(is_exact) {
        refine(&bench, &singles, &mut candidates, &open);
    }
    let mut features = None;
    let mut explanations: Vec<Explanation> = Vec::new();
    let mut contradicted = false;
    while explanations.len() < TOLD && open.contains(&true) {
        if !candidates.iter().any(|candidate| candidate.is_exact(&bench, &open)) {
            let features = features.get_or_insert_with(|| region::features(&bench));
            narrow(&bench, features, &mut candidates, &open, &explanations);
        }
        let found = best(&bench, &candidates, &open, total, &explanations);
        let Some((best, half)) = found else { break };
        let diagnosis = told(&bench, &candidates, (best, half), &open, total);
        contradicted |= bench.tally(&candidates[best].fit, &open, Half::Both).agreement() < 1.0;
        let Candidate { hypothesis, region, fit } = candidates.remove(best);
        let explained =
            fit.agrees.iter().zip(&bench.wrong).map(|(agrees, wrong)| *agrees && *wrong);
        open.iter_mut().zip(explained).for_each(|(open, explained)| *open &= !explained);
        // What is told beside it is not told again.
        candidates.retain(|other| !diagnosis.alike.contains(&other.name()));
        explanations.push(Explanation { hypothesis, region, diagnosis });
    }
    if evidence.is_open() && (contradicted || open.contains(&true)) {
        // What is not as the reference may be right, unless all of it is as something known.
        explanations.clear();
    }
    explanations
}

/// Where a component is wrong that nothing explains: in words, with the counts.
pub(crate) fn where_wrong(evidence: &Evidence, explanations: &[Explanation]) -> Option<String> {
    let bench = Bench::new(evidence);
    let mut open = bench.wrong.clone();
    for (observed, range) in bench.cases() {
        for (_, explained) in explanations.iter().filter_map(|one| one.on(evidence, observed)) {
            open[range.clone()].iter_mut().zip(explained).for_each(|(open, told)| *open &= !told);
        }
    }
    let features = region::features(&bench);
    let (told, [wrong, of, all]) = region::separating(&features, &open)?;
    Some(format!(
        "where {told}: {wrong} of {of} such outputs are wrong, {wrong} of {all} wrong ones"
    ))
}

/// On which cases an invariant is broken, of those on which it says something: in words, with the
/// counts.
pub(crate) fn where_broken(evidence: &Evidence, outcomes: &[(&Shared, bool)]) -> Option<String> {
    let (cases, broken): (Vec<&Shared>, Vec<bool>) = outcomes.iter().copied().unzip();
    let features = region::features_of_cases(evidence, &cases);
    let (told, [wrong, of, all]) = region::separating(&features, &broken)?;
    Some(format!(
        "where {told}: it breaks on {wrong} of {of} such cases, {wrong} of {all} that break it"
    ))
}

/// A hypothesis with how it does on the first wrong cases.
type Tried = (First, Hypothesis);

/// The single hypotheses of some families, the best first.
fn tried(bench: &Bench<'_>, families: &[Family]) -> Vec<Tried> {
    let parts = families.iter().flat_map(|family| family(bench));
    let made = parts.filter_map(|part| Hypothesis::of(bench.evidence, part));
    best_first(bench, bench.first(), made)
}

/// Those that do best on some cases come first, of equal ones those that assume less.
fn best_first(
    bench: &Bench<'_>,
    cases: &[usize],
    made: impl Iterator<Item = Hypothesis>,
) -> Vec<Tried> {
    let mut tried: Vec<Tried> = made.map(|one| (bench.score_on(cases, &one), one)).collect();
    tried.sort_by(|(a, one), (b, other)| {
        b.score.total_cmp(&a.score).then_with(|| one.assumes().cmp(&other.assumes()))
    });
    tried
}

/// Adds hypotheses whose outputs are all off by one factor besides.
fn scaled(bench: &Bench<'_>, singles: &[Tried], candidates: &mut Vec<Candidate>) {
    for (_, hypothesis) in singles {
        if matches!(hypothesis.parts[..], [Part::Output { .. } | Part::Divided { .. }]) {
            continue;
        }
        let factor = bench.factor(hypothesis).map(families::outputs::shortest);
        let change =
            factor.map(|factor| Part::Output { field: EVERY, change: Change::Times(factor) });
        let both = change.and_then(|change| hypothesis.and(change));
        candidates.extend(both.map(|both| Candidate::of(bench, both, None)));
    }
}

/// Adds hypotheses of some outputs only, and of two parts. Of what is done to a field only the best
/// begins a pair.
fn refine(bench: &Bench<'_>, singles: &[Tried], candidates: &mut Vec<Candidate>, open: &[bool]) {
    sort(bench, candidates, open);
    let outputs = outputs(bench);
    if outputs.len() > 1 {
        let some = leading(candidates.iter(), 2 * NARROWED);
        let narrowed: Vec<Hypothesis> = some
            .into_iter()
            .flat_map(|one| outputs.iter().map(|field| one.hypothesis.only(vec![field])))
            .collect();
        candidates.extend(narrowed.into_iter().map(|one| Candidate::of(bench, one, None)));
        sort(bench, candidates, open);
    }
    let single = |one: &&Candidate| one.hypothesis.parts.len() == 1;
    let begun = leading(candidates.iter().filter(single), PAIRED);
    let begun: Vec<Hypothesis> = begun.into_iter().map(|one| one.hypothesis.clone()).collect();
    let parts = singles.iter().flat_map(|(_, one)| &one.parts);
    let parts: Vec<&Part> = parts.filter(|part| !part.stands_alone()).collect();
    for first in begun.into_iter().chain(nearest(singles)) {
        let pairs = parts.iter().filter_map(|part| first.and((*part).clone()));
        let both = better(bench, &Candidate::of(bench, first.clone(), None), pairs);
        candidates.extend(both.into_iter().map(|pair| Candidate::of(bench, pair, None)));
        // What is known is told rather than what gives the same.
        let is_known =
            |one: &Candidate| one.hypothesis.parts.iter().all(|part| part.field().is_none());
        if candidates.iter().any(|one| one.is_exact(bench, open) && is_known(one)) {
            return;
        }
    }
}

/// The first ones of those that do nothing to a field, and a third as many of those that do: what
/// is known would else be lost among all that can be done. To one field only the best is done.
fn leading<'a>(
    candidates: impl Iterator<Item = &'a Candidate>,
    known: usize,
) -> Vec<&'a Candidate> {
    let (mut of_fields, mut others) = (Vec::new(), 0);
    let mut leads = |one: &&Candidate| {
        let mut done = one.hypothesis.parts.iter().filter_map(Part::field).peekable();
        if done.peek().is_none() {
            others += 1;
            return others <= known;
        }
        let done: Vec<&str> = done.collect();
        let leads = of_fields.len() < known / 3 && !of_fields.contains(&done);
        if leads {
            of_fields.push(done);
        }
        leads
    };
    candidates.filter(|one| leads(one)).collect()
}

/// Hypotheses that explain nothing by themselves, but come nearer than the definition; of one
/// option one number.
fn nearest(singles: &[Tried]) -> Vec<Hypothesis> {
    let mut near: Vec<&Tried> = singles.iter().filter(|(first, _)| first.loss < NEARER).collect();
    near.sort_by(|(a, _), (b, _)| a.loss.total_cmp(&b.loss));
    let mut nearest: Vec<Hypothesis> = Vec::new();
    for (_, one) in near {
        let number = |one: &Hypothesis| one.parts[0].number_of();
        let known = nearest.iter().filter_map(number).any(|known| number(one) == Some(known));
        if nearest.len() < NEAR && !known {
            nearest.push(one.clone());
        }
    }
    nearest
}

/// The pairs that do better than their first part alone where that is not as the component is, with
/// the numbers that fit best.
fn better(
    bench: &Bench<'_>,
    first: &Candidate,
    pairs: impl Iterator<Item = Hypothesis>,
) -> Vec<Hypothesis> {
    let cases = bench.unlike(&first.fit);
    let alone = bench.score_on(&cases, &first.hypothesis);
    let mut tried = best_first(bench, &cases, pairs);
    let score = |(one, _): &&Tried| one.score > alone.score + 0.05;
    let mut better: Vec<Hypothesis> =
        tried.iter().take_while(score).take(PAIRED).map(|(_, pair)| pair.clone()).collect();
    tried.retain(|(one, pair)| {
        one.loss < NEARER * alone.loss && pair.parts.iter().any(|part| part.number_of().is_some())
    });
    tried.sort_by(|(a, _), (b, _)| a.loss.total_cmp(&b.loss));
    let mut fitted: Vec<String> = Vec::new();
    for (_, pair) in &tried {
        let without_numbers = pair.parts.iter().map(|part| match part.number_of() {
            Some(option) => option.to_owned(),
            None => part.id(),
        });
        let both = without_numbers.collect::<Vec<String>>().join(" and ");
        if fitted.len() < PAIRED && !fitted.contains(&both) {
            fitted.push(both);
            better.extend(families::options::fitted_in(bench, pair));
        }
    }
    better
}

/// Adds the hypotheses that do best, and those that explain something already, each in the region
/// in which it is right about everything.
fn narrow(
    bench: &Bench<'_>,
    features: &[Feature],
    candidates: &mut Vec<Candidate>,
    open: &[bool],
    told: &[Explanation],
) {
    sort(bench, candidates, open);
    let mut more = Vec::new();
    let everywhere = || candidates.iter().filter(|one| one.region.is_none());
    let mut tried = leading(everywhere(), NARROWED);
    for one in everywhere().filter(|one| is_told(&one.hypothesis, told)) {
        if !tried.iter().any(|other| std::ptr::eq(*other, one)) {
            tried.push(one);
        }
    }
    for candidate in tried {
        let whole = bench.tally(&candidate.fit, open, Half::Chosen).score();
        let narrowed = features.iter().map(|feature| {
            let fit = region::within(&candidate.fit, feature);
            (bench.tally(&fit, open, Half::Chosen), feature, fit)
        });
        let right = narrowed.filter(|(tally, ..)| tally.acts > 0 && tally.agreement() == 1.0);
        // Of equal ones the first.
        let best =
            right.reduce(|best, one| if one.0.score() > best.0.score() { one } else { best });
        if let Some((tally, Feature { told, .. }, fit)) = best
            && tally.score() > whole
        {
            let hypothesis = candidate.hypothesis.clone();
            more.push(Candidate { hypothesis, region: Some(told.clone()), fit });
        }
    }
    candidates.append(&mut more);
}

/// Those that explain most of what is open come first.
fn sort(bench: &Bench<'_>, candidates: &mut [Candidate], open: &[bool]) {
    candidates.sort_by_cached_key(|candidate| {
        let score = bench.tally(&candidate.fit, open, Half::Chosen).score();
        (std::cmp::Reverse((score * 1e6) as u64), candidate.assumes())
    });
}

/// The outputs that are compared.
fn outputs(bench: &Bench<'_>) -> Vec<&'static str> {
    let mut known: Vec<&'static str> = Vec::new();
    for (observed, _) in bench.cases() {
        for field in fields(&observed.expected) {
            if known.last() != Some(&field) && !known.contains(&field) {
                known.push(field);
            }
        }
    }
    known
}

/// The candidate that explains most of what is open, if any says enough, and the half of the cases
/// that had no part in the choice: where several are the same on the one half, the other one
/// chooses between them.
fn best(
    bench: &Bench<'_>,
    all: &[Candidate],
    open: &[bool],
    total: usize,
    told: &[Explanation],
) -> Option<(usize, Half)> {
    let says_enough = |candidate: &Candidate| {
        let tally = bench.tally(&candidate.fit, open, Half::Both);
        let counted = bench.tally(&candidate.fit, open, Half::Counted);
        // What nobody has seen before must be right nearly everywhere to be told.
        let agrees = match candidate.hypothesis.fault() {
            Some(_) => {
                counted.agreement() >= AGREEMENT
                    || (counted.coverage() >= COVERAGE && counted.agreement() >= LEAST)
            }
            None => counted.agreement() >= COVERAGE && tally.agreement() >= COVERAGE,
        };
        let agrees = agrees || (counted.acts == 0 && tally.agreement() == 1.0);
        agrees
            && (tally.explained * 100 >= total || tally.settled >= SETTLED)
            && tally.explained > 0
            && candidate.says_enough(bench)
    };
    let score = |at: usize, half: Half| {
        let tally = bench.tally(&all[at].fit, open, half);
        // What differs by less than this is the same, but for what is the same everywhere.
        let is_exact = tally.is_exact() && all[at].says_enough(bench);
        (tally.score() * 200.0).round() + f64::from(is_exact)
    };
    let scores: Vec<f64> = (0..all.len()).map(|at| score(at, Half::Chosen)).collect();
    let usable: Vec<usize> = (0..all.len()).filter(|at| says_enough(&all[*at])).collect();
    let most = usable.iter().map(|at| scores[*at]).fold(f64::NEG_INFINITY, f64::max);
    let tied = || usable.iter().copied().filter(|at| scores[*at] == most);
    let others: Vec<f64> = tied().map(|at| score(at, Half::Counted)).collect();
    let most_of_others = others.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let best = tied().zip(&others).filter(|(_, score)| **score == most_of_others);
    // What is wrong with one output is likely what is wrong with the next.
    let (best, _) =
        best.min_by_key(|(at, _)| (!is_told(&all[*at].hypothesis, told), all[*at].assumes()))?;
    let rival = |at: &usize| scores[*at] >= most && all[*at].assumes() <= all[best].assumes();
    let same = |at: usize| score(at, Half::Counted) == most_of_others;
    let is_settled = (0..all.len()).filter(rival).all(same);
    Some((best, if is_settled { Half::Counted } else { Half::Chosen }))
}

/// Whether an explanation has the same parts, of whatever outputs.
fn is_told(hypothesis: &Hypothesis, told: &[Explanation]) -> bool {
    told.iter().any(|one| one.hypothesis.everywhere().id() == hypothesis.everywhere().id())
}

/// What is told of a candidate.
fn told(
    bench: &Bench<'_>,
    all: &[Candidate],
    (chosen, half): (usize, Half),
    open: &[bool],
    total: usize,
) -> Diagnosis {
    let candidate = &all[chosen];
    let whole = bench.tally(&candidate.fit, &bench.wrong, Half::Both);
    let mut counted = bench.tally(&candidate.fit, &bench.wrong, half);
    if counted.cases == 0 {
        counted = whole;
    }
    let is_exact = candidate.is_exact(bench, &bench.wrong);
    let strength = match (&candidate.region, whole.agreement()) {
        (None, 1.0) if is_exact => Strength::Exactly,
        (_, 1.0) => Strength::Region,
        _ => Strength::Partly,
    };
    let equal = |other: &&Candidate| {
        other.name() != candidate.name()
            && other.hypothesis.parts.len() <= candidate.hypothesis.parts.len()
            && bench.tally(&other.fit, open, Half::Both)
                == bench.tally(&candidate.fit, open, Half::Both)
            && other.fit.agrees == candidate.fit.agrees
    };
    let mut beside: Vec<&Candidate> = all.iter().filter(equal).collect();
    beside.sort_by_key(|other| other.assumes());
    // Pairs are equal to many others that split the same change in another way.
    let same = candidate.told();
    beside.retain(|other| other.hypothesis.parts.len() == 1 && other.told() != same);
    let mut alike: Vec<String> = Vec::new();
    // Of one option or term one number is told: its neighbours do the same on what was compared.
    let mut numbers = candidate.hypothesis.numbers_told();
    for other in beside {
        let (name, of_other) = (other.name(), other.hypothesis.numbers_told());
        if alike.len() < BESIDE && !of_other.iter().any(|option| numbers.contains(option)) {
            alike.push(name);
            numbers.extend(of_other);
        }
    }
    let fault = candidate.hypothesis.fault();
    let mut diagnosis = Diagnosis {
        fault: candidate.name(),
        matches: counted.matches,
        of: counted.cases,
        explains: whole.explained as f64 / total.max(1) as f64,
        summary: fault.map_or(String::new(), |(fault, _)| fault.summary.to_owned()),
        told: candidate.told(),
        strength,
        alike,
        by_outcomes: false,
        points: Vec::new(),
        texts: Vec::new(),
    };
    points::fill(bench.evidence, &candidate.hypothesis, &mut diagnosis);
    diagnosis
}

impl Candidate {
    fn of(bench: &Bench<'_>, hypothesis: Hypothesis, region: Option<String>) -> Candidate {
        let fit = bench.fit(&hypothesis);
        Candidate { hypothesis, region, fit }
    }

    /// Whether it is the same as the component on every compared cell.
    fn is_exact(&self, bench: &Bench<'_>, open: &[bool]) -> bool {
        bench.tally(&self.fit, open, Half::Both).is_exact() && self.says_enough(bench)
    }

    /// Whether it explains enough different wrong outputs.
    fn says_enough(&self, bench: &Bench<'_>) -> bool {
        // Errors of rounding are like anything of their size; what is known of them is in the
        // faults.
        let clearly = self.hypothesis.fault().is_none();
        bench.different(&self.fit, clearly) >= self.needs()
    }

    /// How many different wrong outputs it must explain: what assumes more needs more.
    fn needs(&self) -> usize {
        let fitted = |part: &Part| match part {
            Part::Fault { .. } | Part::Compared(_) => 0,
            Part::Read(reading) => reading.fitted(),
            Part::Input { change: Change::Counted(..) | Change::With(..), .. } => 2,
            Part::Option { .. } | Part::Input { .. } => 1,
            Part::Output { change, .. } if change.says_where() => 1,
            Part::Summed { .. }
            | Part::Term { .. }
            | Part::Output { .. }
            | Part::TermDivided { .. }
            | Part::Divided { .. } => 2,
        };
        let parts: usize = self.hypothesis.parts.iter().map(fitted).sum();
        let several = 2 * (self.hypothesis.parts.len() - 1);
        (parts + several + if self.region.is_some() { 2 } else { 0 }).max(1)
    }

    fn assumes(&self) -> usize {
        self.hypothesis.assumes() + if self.region.is_some() { 8 } else { 0 }
    }

    fn name(&self) -> String {
        let region = self.region.as_ref().map(|region| format!(" where {region}"));
        self.hypothesis.id() + &region.unwrap_or_default()
    }

    fn told(&self) -> String {
        let region =
            self.region.as_ref().map(|region| format!(" where {region}, and right elsewhere"));
        self.hypothesis.told() + &region.unwrap_or_default()
    }
}

fn count(flags: &[bool]) -> usize {
    flags.iter().filter(|flag| **flag).count()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ndarray::Array2;

    use super::*;
    use shakedown_contracts::returns::{Returns, ReturnsCase};
    use shakedown_core::contract::component::Returned;
    use shakedown_core::contract::erased;
    use shakedown_core::numeric::tolerance::Tolerance;
    use shakedown_core::value::place::Place;

    /// Rows of rewards, and the returns of others in their place.
    fn observe(evidence: &mut Evidence, rewards: &[f64], others: impl Fn(f64) -> f64) {
        let rewards = Array2::from_shape_vec((1, rewards.len()), rewards.to_vec()).unwrap();
        let case = ReturnsCase { mask: rewards.map(|_| true), rewards };
        let mut other = case.clone();
        other.rewards.mapv_inplace(others);
        let output = evidence.contract.reference(&other, &*evidence.options, evidence.place.dtype);
        let returned = Returned { output, changed: Vec::new(), no_gradient: Vec::new() };
        evidence.observe(Arc::new(case), Ok(returned), false);
    }

    #[test]
    fn what_one_half_of_the_cases_chose_is_counted_on_the_other() {
        let contract = erased::of::<Returns>();
        let options = contract.default_options();
        let place = Place::CPU_F64;
        let tolerance = Tolerance { dtype: place.dtype, factor: 1.0 };
        let mut evidence = Evidence::new(contract, &options, place, tolerance);
        for at in 0..12 {
            // Squared and doubled are the same in each second case.
            observe(&mut evidence, &vec![2.0; 1 + at % 3], |x| x * x);
            observe(&mut evidence, &[3.0, 2.0 + at as f64], |x| x * x);
        }
        observe(&mut evidence, &[2.0; 5], |x| x * x);
        let explanations = explain(&evidence);
        let diagnosis = &explanations[0].diagnosis;
        assert_eq!(diagnosis.told, "the input `rewards` were its square");
        assert_eq!(diagnosis.strength, Strength::Exactly);
        // The 12 others chose between the two, so that the 13 count.
        assert_eq!((diagnosis.matches, diagnosis.of), (13, 13));
    }
}
