//! Shrinking on values: a failing case walks to simpler ones for as long as it fails.

use crate::cut_down::{self, Minimal};
use crate::subject::{Broken, Subject};
use shakedown_core::contract::cause::Found;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::invariant::AnyInvariant;
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::contract::outcome::Stop;
use shakedown_core::generate::measure::Measure;
use shakedown_core::value::place::{Dtype, Place};
use shakedown_core::value::record::Shared;
use shakedown_core::value::text::quoted_texts;

/// Walks from a failing case to a minimal one. `fails` says whether a candidate still fails, or
/// `None` to stop the search. Where one of the contract's own corners or small cases fails and is
/// simpler, the walk goes there first: so the minimum does not depend on where it began. A case
/// as large as a production batch is cut along its axes before its numbers are looked at.
pub fn minimise(
    contract: &dyn AnyContract,
    case: &Shared,
    options: &dyn AnyOptions,
    dtype: Dtype,
    fails: &mut dyn FnMut(&Shared) -> Option<bool>,
) -> Minimal {
    let mut minimal = Minimal { case: Shared::clone(case), tried: 0 };
    let mut candidates = contract.corners(options, dtype);
    candidates.extend(contract.small(options, dtype));
    candidates.sort_by_cached_key(|candidate| contract.measure(&**candidate));
    let mut only_corners_tried = true;
    loop {
        let limit = contract.measure(&*minimal.case);
        let simpler = candidates.into_iter().find_map(|candidate| {
            let simpler = contract.measure(&*candidate) < limit;
            if !simpler || contract.valid(&*candidate, options, dtype).is_err() {
                return None;
            }
            minimal.tried += 1;
            match fails(&candidate) {
                Some(true) => Some(Some(candidate)),
                Some(false) => None,
                None => Some(None),
            }
        });
        match simpler {
            Some(Some(simpler)) => minimal.case = simpler,
            Some(None) => return minimal,
            None if only_corners_tried => {}
            None => return minimal,
        }
        only_corners_tried = false;
        if cut_down::is_large(&*minimal.case) {
            cut_down::cut_down(contract, &mut minimal, options, dtype, fails);
            if cut_down::is_large(&*minimal.case) {
                return minimal;
            }
        }
        candidates = contract.simpler(&*minimal.case, options, dtype);
    }
}

/// Candidates tried for one finding at the most.
const CANDIDATES: u64 = 3000;

/// A finding on its smallest case.
pub struct Shrunk {
    pub(crate) invariant: &'static AnyInvariant,
    /// The smallest case.
    pub case: Shared,
    /// What it breaks there.
    pub found: Found,
    /// The number of the case that it was made of.
    pub at_case: u64,
    /// How many candidates were tried.
    pub tried: u64,
    /// The simplest case on the way that broke the invariant in another way.
    pub other: Option<Broken>,
}

/// Makes a case that breaks an invariant as small as it gets, in the way in which it does.
pub fn shrink(
    subject: &mut Subject,
    invariant: &'static AnyInvariant,
    broken: Broken,
    place: Place,
    calls: &mut u64,
) -> Shrunk {
    shrink_among(subject, invariant, broken, place, calls, |_, _| true)
}

/// The same, among the cases that `wanted` takes: a bug that is known must not be where the way to
/// a smaller case of another one ends.
pub fn shrink_among(
    subject: &mut Subject,
    invariant: &'static AnyInvariant,
    broken: Broken,
    place: Place,
    calls: &mut u64,
    mut wanted: impl FnMut(&mut Subject, &Shared) -> bool,
) -> Shrunk {
    let options = subject.options.clone();
    let Broken { case, mut found, at_case } = broken;
    let cause = found.cause();
    let contract = subject.contract;
    let mut other: Option<(Measure, Broken)> = None;
    let mut tried = 0;
    let mut patience = subject.patience();
    let minimal = minimise(subject.contract, &case, &*options, place.dtype, &mut |candidate| {
        if tried == CANDIDATES || patience.is_over() {
            return None;
        }
        tried += 1;
        let (outcome, failed) = subject.try_case(invariant, candidate, place, calls);
        failed.iter().for_each(|(_, failure)| patience.spend(failure));
        match outcome {
            Err(Stop::Broken(found)) if !found.cause().is_like(&cause) => {
                let measure = contract.measure(&**candidate);
                if other.as_ref().is_none_or(|(simplest, _)| measure < *simplest) {
                    let case = Shared::clone(candidate);
                    other = Some((measure, Broken { case, found, at_case }));
                }
                Some(false)
            }
            Err(Stop::Broken(message)) if wanted(subject, candidate) => {
                found = message;
                Some(true)
            }
            _ => Some(false),
        }
    });
    let other = other.map(|(_, other)| other);
    let mut case = minimal.case;
    // Of a text that the invariant made itself, a case that holds it tells more than an empty one.
    let message = first_line(&found.message).to_owned();
    for text in quoted_texts(&message) {
        let Some(telling) = contract.telling(&*case, &text) else { continue };
        let valid = contract.valid(&*telling, &*options, place.dtype).is_ok();
        if !valid || patience.is_over() {
            continue;
        }
        tried += 1;
        if let (Err(Stop::Broken(again)), _) = subject.try_case(invariant, &telling, place, calls)
            && first_line(&again.message) == message
            && wanted(subject, &telling)
        {
            (case, found) = (telling, again);
            break;
        }
    }
    Shrunk { invariant, case, found, at_case, tried, other }
}

fn first_line(found: &str) -> &str {
    found.lines().next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ndarray::{Array2, s};

    use super::*;
    use crate::check::run;
    use crate::subject::Budget;
    use shakedown_contracts::returns::{Options, Returns, ReturnsCase};
    use shakedown_contracts::reward_function::RewardFunction;
    use shakedown_contracts::token_log_probs::{self, TokenLogProbs, TokenLogProbsCase};
    use shakedown_core::contract::{erased, stream};
    use shakedown_core::value::record::{AnyRecord, typed};

    #[test]
    fn a_row_and_a_column_go_together_where_both_must_be_as_many() {
        let ones = |shape| ReturnsCase {
            rewards: Array2::from_elem(shape, 1.0),
            mask: Array2::from_elem(shape, true),
        };
        let case: Shared = std::sync::Arc::new(ones((9, 9)));
        let shape = |case: &dyn AnyRecord| case.typed::<ReturnsCase>().mask.dim();
        let returns = erased::of::<Returns>();
        let minimal = minimise(returns, &case, &Options::default(), Dtype::F32, &mut |case| {
            let (rows, tokens) = shape(&**case);
            Some(rows == tokens && rows >= 4)
        });
        assert_eq!(shape(&*minimal.case), (4, 4));
    }

    #[test]
    fn the_minimum_does_not_depend_on_the_start() {
        let is_best = |case: &TokenLogProbsCase, at: (usize, usize), token: i64| {
            let logits: Vec<f64> = case.logits.slice(s![at.0, at.1, ..]).to_vec();
            let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            logits.iter().position(|logit| *logit == most) == Some(token as usize)
        };
        // Stand-ins for bugs: the search must end at the same case wherever it began.
        let bugs: [&dyn Fn(&TokenLogProbsCase) -> bool; 4] = [
            &|case| case.tokens.indexed_iter().any(|(at, token)| !is_best(case, at, *token)),
            &|case| case.logits.iter().any(|logit| logit.abs() > 88.7),
            &|case| case.tokens.nrows() > 1 && case.logits.iter().any(|logit| *logit != 0.0),
            &|case| case.logits.iter().any(|logit| logit.is_infinite()) && case.logits.dim().2 > 2,
        ];
        let contract = erased::of::<TokenLogProbs>();
        let options = token_log_probs::Options::default();
        for bug in bugs {
            let mut minima: Vec<TokenLogProbsCase> = Vec::new();
            let fails = &mut |case: &Shared| Some(bug(case.typed()));
            let any = Arc::new(options.clone()) as _;
            let cases = stream::cases(contract, Vec::new(), 5, &any, Dtype::F32);
            for (_, case) in cases.take(500).skip(120).filter(|(_, case)| bug(case.typed())) {
                let minimal = minimise(contract, &case, &options, Dtype::F32, fails);
                let minimal: TokenLogProbsCase = typed(minimal.case);
                if !minima.contains(&minimal) {
                    minima.push(minimal);
                }
            }
            assert_eq!(minima.len(), 1, "{minima:?}");
        }
    }

    #[test]
    fn of_a_reward_function_the_text_that_fails_is_the_case() {
        let reward = erased::of::<RewardFunction>();
        let mut subject =
            Subject::builtin(reward, "reward-function/fault/prefix-is-enough").unwrap();
        let report = run(&mut subject, Place::CPU_F32, &Budget::default(), &|_| ()).unwrap();
        let finding = report.findings.iter().find(|one| one.invariant == "wrong-scores-less");
        let finding = finding.unwrap();
        let text = finding.case["completions"][0].as_str().unwrap();
        assert!(!text.is_empty(), "{}", finding.shown);
        assert!(
            finding.found.starts_with(&shakedown_core::value::text::quoted(text)),
            "{}",
            finding.found
        );
    }
}
