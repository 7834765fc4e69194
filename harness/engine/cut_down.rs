//! Batches of production size cut along their axes, before anything looks at single numbers.
//!
//! A contract's own shrinker makes every simpler case at once, which takes memory of the square of
//! the case's size. Here halves are tried first (delta debugging, Zeller 1999), one at a time.

use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::{AnyRecord, Shared};

/// Cases with more numbers, or characters, than this are cut by halves; nothing that is generated
/// is as large.
const LARGE: usize = 1 << 14;

/// A minimal case: no simpler candidate fails.
pub struct Minimal {
    /// The case.
    pub case: Shared,
    /// How many candidates were tried.
    pub tried: u64,
}

/// Whether a case is larger than those that are generated.
pub(crate) fn is_large(case: &dyn AnyRecord) -> bool {
    let mut size = 0;
    case.each(&mut |_, value| {
        let Some(value) = value else { return };
        let mut texts = None;
        value.for_texts(|text| *texts.get_or_insert(0) += text.map_or(0, str::len));
        size += texts.unwrap_or_else(|| value.shape().iter().product());
    });
    size > LARGE
}

/// Cuts a large failing case along each of its axes for as long as that makes it smaller. `fails`
/// says whether a candidate still fails, or `None` to stop.
pub(crate) fn cut_down(
    contract: &dyn AnyContract,
    minimal: &mut Minimal,
    options: &dyn AnyOptions,
    dtype: Dtype,
    fails: &mut dyn FnMut(&Shared) -> Option<bool>,
) {
    let Some(cuts) = contract.cuts() else { return };
    let mut smaller = true;
    while smaller && is_large(&*minimal.case) {
        smaller = false;
        for axis in cuts.axes() {
            let whole = minimal.case.clone();
            let units = cuts.units(&*whole, axis);
            let count = units.len();
            let kept = fewest(units, &mut |kept| {
                let candidate = cuts.take(&*whole, axis, kept);
                if contract.valid(&*candidate, options, dtype).is_err() {
                    return Some(false);
                }
                minimal.tried += 1;
                fails(&candidate)
            });
            if kept.len() < count {
                minimal.case = cuts.take(&*whole, axis, &places(&kept));
                smaller = true;
            }
        }
    }
}

/// A small set of units that still fails: none of its chunks can be left out. `None` stops the
/// search at the best set so far.
pub(crate) fn fewest(
    units: Vec<Vec<usize>>,
    fails: &mut dyn FnMut(&[usize]) -> Option<bool>,
) -> Vec<Vec<usize>> {
    let mut kept = units;
    let mut chunk = kept.len().div_ceil(2);
    while kept.len() > 1 {
        let count = kept.len().div_ceil(chunk);
        let of = |index: usize| index * chunk..((index + 1) * chunk).min(kept.len());
        let alone = (0..count).map(|index| kept[of(index)].to_vec());
        // All but one of two is the other one.
        let without = (0..if count > 2 { count } else { 0 })
            .map(|index| [&kept[..of(index).start], &kept[of(index).end..]].concat());
        let mut smaller = None;
        for candidate in alone.chain(without) {
            match fails(&places(&candidate)) {
                Some(true) => {
                    smaller = Some(candidate);
                    break;
                }
                Some(false) => {}
                None => return kept,
            }
        }
        match smaller {
            Some(candidate) => {
                kept = candidate;
                chunk = chunk.min(kept.len().div_ceil(2));
            }
            None if chunk == 1 => break,
            None => chunk = chunk.div_ceil(2),
        }
    }
    kept
}

/// The places of some units, in the order in which they stand.
pub(crate) fn places(units: &[Vec<usize>]) -> Vec<usize> {
    let mut places = units.concat();
    places.sort_unstable();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn singles(count: usize) -> Vec<Vec<usize>> {
        (0..count).map(|place| vec![place]).collect()
    }

    #[test]
    fn one_culprit_among_many_is_found_in_few_calls() {
        let mut calls = 0;
        let kept = fewest(singles(512), &mut |places| {
            calls += 1;
            Some(places.contains(&317))
        });
        assert_eq!(kept, [[317]]);
        assert!(calls <= 20, "{calls} calls");
    }

    #[test]
    fn culprits_far_apart_are_both_kept() {
        let kept = fewest(singles(100), &mut |p| Some(p.contains(&3) && p.contains(&98)));
        assert_eq!(kept, [[3], [98]]);
    }

    #[test]
    fn what_fails_only_as_a_whole_stays_whole() {
        assert_eq!(fewest(singles(9), &mut |places| Some(places.len() == 9)), singles(9));
    }
}
