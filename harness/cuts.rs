//! Batches of production size cut along their axes, before anything looks at single numbers.
//!
//! A contract's own shrinker makes every simpler case at once, which takes memory of the square of
//! the case's size. Here halves are tried first (delta debugging, Zeller 1999), one at a time.

use crate::contract::{Contract, RowInfluence, SharedOptions};
use crate::grid;
use crate::laws::Rows;
use crate::place::Dtype;
use crate::record::{Record, Value};
use crate::shrink::Minimal;

/// Cases with more numbers, or characters, than this are cut by halves; nothing that is generated
/// is as large.
const LARGE: usize = 1 << 14;

/// A case with what was recorded for it.
pub(crate) type Pair<C> = (<C as Contract>::Case, <C as Contract>::Output);

/// Takes some rows of a case and of an output; `None` where the output has no rows.
type TakePart<C> =
    fn(&<C as Contract>::Case, &<C as Contract>::Output, &[usize]) -> Option<Pair<C>>;

/// How batches of the contract `C` are cut. See [`Contract::cuts`].
pub struct Cuts<C: Contract> {
    axes: fn() -> Vec<char>,
    units: fn(&C::Case, char) -> Vec<Vec<usize>>,
    take: fn(&C::Case, char, &[usize]) -> C::Case,
    independent: fn(&C::Options) -> bool,
    parts: fn(&C::Case) -> Vec<Vec<usize>>,
    part: TakePart<C>,
}

impl<C: Rows> Cuts<C> {
    /// Along the axes that the arrays share, rows first, and those by whole parts.
    pub fn along_axes() -> Self {
        Cuts {
            axes: grid::letters::<C>,
            units: units::<C>,
            take: take::<C>,
            independent: |options| {
                C::independent(options) && options.rows() == RowInfluence::Independent
            },
            parts: C::parts,
            part: part::<C>,
        }
    }
}

impl<C: Contract> Cuts<C> {
    /// The sets of rows that have no influence on each other; `None` where every row may.
    pub(crate) fn parts(&self, case: &C::Case, options: &C::Options) -> Option<Vec<Vec<usize>>> {
        (self.independent)(options).then(|| (self.parts)(case))
    }

    /// Some rows of a case with the same rows of an output; `None` where an output has no rows.
    pub(crate) fn part(
        &self,
        case: &C::Case,
        output: &C::Output,
        rows: &[usize],
    ) -> Option<Pair<C>> {
        (self.part)(case, output, rows)
    }
}

fn units<C: Rows>(case: &C::Case, axis: char) -> Vec<Vec<usize>> {
    match axis == C::ROW {
        true => C::parts(case),
        false => (0..grid::length::<C>(case, axis)).map(|place| vec![place]).collect(),
    }
}

fn take<C: Rows>(case: &C::Case, axis: char, kept: &[usize]) -> C::Case {
    if axis == C::ROW { C::take(case, kept) } else { grid::select::<C, _>(case, axis, kept) }
}

fn part<C: Rows>(case: &C::Case, output: &C::Output, rows: &[usize]) -> Option<Pair<C>> {
    let count = C::rows(case);
    let has_rows = |(name, value): &(&str, Option<Value>)| {
        value.as_ref().is_none_or(|value| {
            let axis = grid::axis_of::<C>(name, C::ROW);
            axis.is_some_and(|axis| value.shape().get(axis.index()) == Some(&count))
        })
    };
    let all = output.values().iter().all(has_rows);
    all.then(|| (C::take(case, rows), grid::select::<C, _>(output, C::ROW, rows)))
}

/// Whether a case is larger than those that are generated.
pub(crate) fn is_large<R: Record>(case: &R) -> bool {
    let size = |value: Value| match value {
        Value::Text(texts) => texts.iter().flatten().map(String::len).sum(),
        value => value.shape().iter().product::<usize>(),
    };
    case.values().into_iter().filter_map(|(_, value)| value).map(size).sum::<usize>() > LARGE
}

/// Cuts a large failing case along each of its axes for as long as that makes it smaller. `fails`
/// says whether a candidate still fails, or `None` to stop.
pub(crate) fn cut_down<C: Contract>(
    minimal: &mut Minimal<C::Case>,
    options: &C::Options,
    dtype: Dtype,
    fails: &mut dyn FnMut(&C::Case) -> Option<bool>,
) {
    let Some(cuts) = C::cuts() else { return };
    let mut smaller = true;
    while smaller && is_large(&minimal.case) {
        smaller = false;
        for axis in (cuts.axes)() {
            let whole = minimal.case.clone();
            let units = (cuts.units)(&whole, axis);
            let count = units.len();
            let kept = fewest(units, &mut |kept| {
                let candidate = (cuts.take)(&whole, axis, kept);
                if C::valid(&candidate, options, dtype).is_err() {
                    return Some(false);
                }
                minimal.tried += 1;
                fails(&candidate)
            });
            if kept.len() < count {
                minimal.case = (cuts.take)(&whole, axis, &places(&kept));
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
