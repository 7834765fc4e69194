//! Laws: invariants written once over small capability traits and shared by many contracts.

mod answers;
pub mod deterministic;
pub mod finite;
pub mod gradient;
pub mod in_time;
pub mod masked_poison;
pub mod oracle;
pub mod padding;
pub mod pure;
pub mod refuses;
pub mod row_permutation;
pub mod row_split;
pub mod survives;
pub mod total;
pub mod well_formed;

use ndarray::{Array2, ArrayD, Axis, Slice};

use crate::broken;
use crate::contract::Contract;
use crate::grid::{self, Grid};
use crate::invariant::{Invariant, Outcome, Probe};
use crate::masked::MaskedValues;
use crate::pick::Pick;
use crate::record::{Field, Kind, Record, Value};
use crate::text::{found_for, pair};
use crate::tolerance::apart;

/// The laws that hold of every contract whatsoever, in the order in which they are checked. Only a
/// text cannot be infinite.
pub fn universal<C: Contract>() -> Vec<Invariant<C>> {
    let mut laws = vec![
        total::law().catching(&["raises"]),
        in_time::law().catching(&["hangs"]),
        survives::law().catching(&["dies"]),
        well_formed::law().catching(&["drops-a-row"]),
        finite::law().catching(&["gives-nan"]),
        pure::law().catching(&["changes-its-inputs"]),
        deterministic::law().catching(&["flips"]),
    ];
    laws.retain(|law| law.id != "finite" || C::Output::fields().iter().any(is_float));
    laws
}

/// Whether a field holds floats.
pub(crate) fn is_float(field: &Field) -> bool {
    field.kind == Kind::Float
}

/// Contracts whose rows are batches of independent things: completions, pairs, environments.
pub trait Rows: Grid {
    /// Whether there are rows that have no influence on each other.
    fn independent(_: &Self::Options) -> bool {
        true
    }

    /// The sets of rows that have no influence on each other.
    fn parts(case: &Self::Case) -> Vec<Vec<usize>> {
        (0..Self::rows(case)).map(|row| vec![row]).collect()
    }

    /// An order of the rows that keeps the case valid.
    fn permutation(case: &Self::Case, _: &Self::Options, pick: &mut Pick) -> Vec<usize> {
        pick.shuffled(Self::rows(case))
    }

    /// The number of rows.
    fn rows(case: &Self::Case) -> usize {
        grid::length::<Self>(case, Self::ROW)
    }

    /// The case of some of its rows, in that order.
    fn take(case: &Self::Case, rows: &[usize]) -> Self::Case {
        grid::select::<Self, _>(case, Self::ROW, rows)
    }
}

/// Some rows of an output field; all of a field that has no rows.
fn take_rows<C: Grid>(field: &str, array: &ArrayD<f64>, rows: &[usize]) -> ArrayD<f64> {
    match grid::axis_of::<C>(field, C::ROW) {
        Some(axis) => array.select(axis, rows),
        None => array.clone(),
    }
}

/// Contracts with a mask over rows and tokens.
pub trait Masked: Grid {
    /// Finite numbers that may stand under the mask: all pairs of them are valid.
    const POISON: &'static [f64] = &[0.0, 1.0, -1.0, 0.5, -7.0, 1e3, -1e3];

    /// The mask: true where the token counts.
    fn mask(case: &Self::Case) -> &Array2<bool>;

    /// The same, to be changed.
    fn mask_mut(case: &mut Self::Case) -> &mut Array2<bool>;

    /// What may stand under it.
    fn masked_values(options: &Self::Options) -> MaskedValues;

    /// Whether a mask may have gaps inside a row.
    fn holes(options: &Self::Options) -> bool;

    /// Whether batches without a token are generated.
    fn empty_batches(_: &Self::Options) -> bool {
        true
    }

    /// The case with `columns` more masked columns at its end.
    fn padded(case: &Self::Case, columns: usize) -> Self::Case {
        let tokens = grid::length::<Self>(case, 'T');
        let kept: Vec<usize> = (0..tokens).chain(vec![tokens - 1; columns]).collect();
        let mut padded = grid::select::<Self, _>(case, 'T', &kept);
        Self::mask_mut(&mut padded).slice_axis_mut(Axis(1), Slice::from(tokens..)).fill(false);
        padded
    }

    /// The case with other numbers under the mask.
    fn poisoned(case: &Self::Case, options: &Self::Options, pick: &mut Pick) -> Self::Case {
        let mask = Self::mask(case).clone();
        let any = Self::masked_values(options) == MaskedValues::Any && pick.below(3) > 0;
        let mut poisoned = case.clone();
        let shaped = |(name, value): (_, Option<Value>)| {
            value.filter(|value| value.shape() == mask.shape()).map(|_| name)
        };
        let masked: Vec<&str> = case.values().into_iter().filter_map(shaped).collect();
        poisoned.for_floats(&mut |name, floats| {
            if masked.contains(&name) && grid::axis_of::<Self>(name, 'T').is_some() {
                for (x, kept) in floats.iter_mut().zip(&mask) {
                    let values = if any && pick.below(2) == 0 { &ANY[..] } else { Self::POISON };
                    *x = if *kept { *x } else { *pick.one(values) };
                }
            }
        });
        poisoned
    }
}

/// What stands under a mask where anything may.
const ANY: [f64; 3] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];

/// The first column by which an output at unmasked tokens, or one without tokens, differs.
pub(crate) fn unmasked_difference<C: Masked>(
    probe: &mut Probe<'_, C>,
    changed: &C::Case,
    what: &str,
) -> Outcome {
    let mask = C::mask(probe.case).clone();
    let before = probe.output()?;
    let after = probe.call(changed)?;
    let expected_after = probe.expected_of(changed);
    let after = outputs(&after);
    for (name, before) in outputs(&before.output) {
        let Some((_, after)) = after.iter().find(|(known, _)| *known == name) else { continue };
        let mut allowed = probe.bounds(name);
        let mut after = after.clone();
        let mut allowed_after = probe.bounds_in(&expected_after, name);
        if let Some(axis) = grid::axis_of::<C>(name, 'T') {
            let columns: Vec<usize> = (0..before.shape()[axis.index()]).collect();
            after = after.select(axis, &columns);
            allowed_after = allowed_after.select(axis, &columns);
            for (allowed, kept) in allowed.iter_mut().zip(&mask) {
                *allowed = if *kept { *allowed } else { f64::INFINITY };
            }
        }
        allowed += &allowed_after;
        allowed.zip_mut_with(&before, |allowed, x| {
            *allowed = if x.is_finite() { *allowed } else { f64::INFINITY };
        });
        if let Some(found) = difference(&after, &before, &allowed) {
            let [left, right] = pair(found.left, found.right);
            broken!(
                "{what} {name}{} is {left}, before it was {right}; allowed difference {:.1e}",
                found.index,
                found.allowed
            );
        }
    }
    Ok(())
}

/// The float fields of a record that are present, by name.
pub(crate) fn floats<R: Record>(record: &R) -> Vec<(&'static str, ArrayD<f64>)> {
    record
        .values()
        .into_iter()
        .filter_map(|(name, value)| match value {
            Some(Value::Float(array)) => Some((name, array)),
            _ => None,
        })
        .collect()
}

/// The text fields of a record that are present, by name.
pub(crate) fn texts<R: Record>(record: &R) -> Vec<(&'static str, ArrayD<Option<String>>)> {
    let values = record.values().into_iter();
    values
        .filter_map(|(name, value)| match value {
            Some(Value::Text(array)) => Some((name, array)),
            _ => None,
        })
        .collect()
}

/// The first text by which two outputs differ: its place, and both texts. `rows` says which rows of
/// the first one the second has, all of them where it is none.
pub(crate) fn text_difference<C: Grid>(
    whole: &C::Output,
    part: &C::Output,
    rows: Option<&[usize]>,
) -> Option<(String, String)> {
    for ((name, mut whole), (_, part)) in texts(whole).into_iter().zip(texts(part)) {
        if let (Some(rows), Some(axis)) = (rows, grid::axis_of::<C>(name, C::ROW)) {
            whole = whole.select(axis, rows);
        }
        let differ = part.indexed_iter().zip(&whole).find(|((_, part), whole)| *part != *whole);
        if let Some(((at, part), whole)) = differ {
            let place = format!("{name}{}", crate::text::index(&at));
            return Some((place, found_for(part.as_deref(), whole.as_deref())));
        }
    }
    None
}

/// The same without the gradients, which the law `gradient` alone speaks about.
pub(crate) fn outputs<R: Record>(record: &R) -> Vec<(&'static str, ArrayD<f64>)> {
    let mut fields = floats(record);
    fields.retain(|(name, _)| !name.starts_with("grad_"));
    fields
}

/// Two numbers at the same place that are further apart than allowed.
pub struct Difference {
    /// `[1, 0]`.
    pub index: String,
    /// The first number.
    pub left: f64,
    /// The second number.
    pub right: f64,
    /// How far apart they may be.
    pub allowed: f64,
}

/// The first place where two arrays differ by more than allowed; infinitely far is never checked,
/// and two NaN are the same.
pub fn difference(
    left: &ArrayD<f64>,
    right: &ArrayD<f64>,
    allowed: &ArrayD<f64>,
) -> Option<Difference> {
    let places = left.indexed_iter().zip(right).zip(allowed);
    let differ = |left: f64, right: f64, allowed: f64| {
        apart(left, right, allowed) && !(left.is_nan() && right.is_nan())
    };
    places.into_iter().find(|(((_, left), right), allowed)| differ(**left, **right, **allowed)).map(
        |(((index, left), right), allowed)| Difference {
            index: crate::text::index(&index),
            left: *left,
            right: *right,
            allowed: *allowed,
        },
    )
}

#[cfg(test)]
mod tests {
    use ndarray::{arr1, arr2};

    use super::*;
    use crate::contracts::returns::{Options, Returns, ReturnsCase};

    #[test]
    fn a_contract_of_floats_has_every_universal_law() {
        let laws: Vec<&str> = universal::<Returns>().iter().map(|law| law.id).collect();
        let expected =
            ["total", "in-time", "survives", "well-formed", "finite", "pure", "deterministic"];
        assert_eq!(laws, expected);
    }

    #[test]
    fn numbers_differ_that_are_further_apart_than_allowed_and_two_nan_do_not() {
        let found = |left: f64, right: f64, allowed: f64| {
            let [left, right, allowed] = [left, right, allowed].map(|x| arr1(&[0.0, x]).into_dyn());
            difference(&left, &right, &allowed).map(|found| found.index)
        };
        assert_eq!(found(1.0, 2.0, 0.5).as_deref(), Some("[1]"));
        assert_eq!(found(1.0, 2.0, 1.0), None);
        assert_eq!(found(f64::NAN, f64::NAN, 0.0), None);
        assert!(found(f64::NAN, 1.0, 0.5).is_some() && found(1.0, f64::NAN, 0.5).is_some());
        assert_eq!(found(f64::NAN, 1.0, f64::INFINITY), None);
    }

    /// Rewards with other numbers under the mask, from many seeds.
    fn poisoned(masked_values: MaskedValues) -> Vec<f64> {
        let (rewards, mask) = (arr2(&[[1.0, 2.0]]), arr2(&[[true, false]]));
        let case = ReturnsCase { rewards, mask };
        let options = Options { masked_values, ..Options::default() };
        let poisoned = |seed| Returns::poisoned(&case, &options, &mut Pick::seeded(seed)).rewards;
        let poisoned = (0..600).map(poisoned).inspect(|rewards| assert_eq!(rewards[[0, 0]], 1.0));
        poisoned.map(|rewards| rewards[[0, 1]]).collect()
    }

    #[test]
    fn anything_stands_under_a_mask_where_it_may_and_only_there() {
        let finite = poisoned(MaskedValues::Finite);
        assert!(finite.iter().all(|x| x.is_finite()) && finite.iter().any(|x| *x == -7.0));
        let any = poisoned(MaskedValues::Any);
        assert!(any.iter().any(|x| x.is_nan()) && any.contains(&f64::INFINITY));
        // A third of the cases is without them, as they hide everything else, and half of the rest.
        let finite = any.iter().filter(|x| x.is_finite()).count();
        assert!((360..440).contains(&finite), "{finite} of 600");
    }

    #[test]
    fn padding_adds_columns_that_do_not_count() {
        let (rewards, mask) = (arr2(&[[1.0, 2.0]]), arr2(&[[true, true]]));
        let padded = Returns::padded(&ReturnsCase { rewards, mask }, 2);
        assert_eq!(padded.mask, arr2(&[[true, true, false, false]]));
        assert_eq!(padded.rewards, arr2(&[[1.0, 2.0, 2.0, 2.0]]));
    }
}
