//! Shrinking on values: a failing case walks to simpler ones for as long as it fails.

use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::contract::Contract;
use crate::value::record::round;
use crate::contract::cuts;
use crate::value::place::Dtype;

/// Walks from a failing case to a minimal one. `fails` says whether a candidate still fails, or
/// `None` to stop the search. Where one of the contract's own corners or small cases fails and is
/// simpler, the walk goes there first: so the minimum does not depend on where it began. A case
/// as large as a production batch is cut along its axes before its numbers are looked at.
pub fn minimise<C: Contract>(
    case: &C::Case,
    options: &C::Options,
    dtype: Dtype,
    mut fails: impl FnMut(&C::Case) -> Option<bool>,
) -> Minimal<C::Case> {
    let mut minimal = Minimal { case: case.clone(), tried: 0 };
    let mut candidates = C::corners(options, dtype);
    candidates.extend(C::small(options, dtype));
    candidates.iter_mut().for_each(|corner| round(corner, dtype));
    candidates.sort_by_cached_key(C::measure);
    let mut only_corners_tried = true;
    loop {
        let limit = C::measure(&minimal.case);
        let simpler = candidates.into_iter().find_map(|candidate| {
            if C::measure(&candidate) >= limit || C::valid(&candidate, options, dtype).is_err() {
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
        if cuts::is_large(&minimal.case) {
            cuts::cut_down::<C>(&mut minimal, options, dtype, &mut fails);
            if cuts::is_large(&minimal.case) {
                return minimal;
            }
        }
        candidates = rounded_simpler::<C>(&minimal.case, options, dtype);
    }
}

/// The simpler cases of a case, rounded to the dtype.
pub fn rounded_simpler<C: Contract>(
    case: &C::Case,
    options: &C::Options,
    dtype: Dtype,
) -> Vec<C::Case> {
    let mut candidates = C::simpler(case, options, dtype);
    candidates.iter_mut().for_each(|candidate| round(candidate, dtype));
    candidates
}

/// Candidates tried for one finding at the most.
const CANDIDATES: u64 = 3000;

/// A finding on its smallest case.
pub(crate) struct Shrunk<C: Contract> {
    pub(crate) invariant: Invariant<C>,
    pub(crate) case: C::Case,
    pub(crate) found: String,
    pub(crate) at_case: u64,
    pub(crate) tried: u64,
}

/// Makes a case that breaks an invariant as small as it gets.
pub(crate) fn shrink<C: Contract>(
    subject: &mut Subject<C>,
    invariant: Invariant<C>,
    broken: Broken<C>,
    place: Place,
    calls: &mut u64,
) -> Shrunk<C> {
    shrink_among(subject, invariant, broken, place, calls, |_, _| true)
}

/// The same, among the cases that `wanted` takes: a bug that is known must not be where the way to
/// a smaller case of another one ends.
pub(crate) fn shrink_among<C: Contract>(
    subject: &mut Subject<C>,
    invariant: Invariant<C>,
    broken: Broken<C>,
    place: Place,
    calls: &mut u64,
    mut wanted: impl FnMut(&mut Subject<C>, &C::Case) -> bool,
) -> Shrunk<C> {
    let options = subject.options.clone();
    let Broken { case, mut found, at_case } = broken;
    let mut tried = 0;
    let mut patience = Patience::default();
    let minimal = minimise::<C>(&case, &options, place.dtype, |candidate| {
        if tried == CANDIDATES || patience.is_over() {
            return None;
        }
        tried += 1;
        let (outcome, failed) = subject.try_case(&invariant, candidate, place, calls);
        failed.iter().for_each(|(_, failure)| patience.spend(failure));
        match outcome {
            Err(Stop::Broken(message)) if wanted(subject, candidate) => {
                found = message;
                Some(true)
            }
            _ => Some(false),
        }
    });
    Shrunk { invariant, case: minimal.case, found, at_case, tried }
}
