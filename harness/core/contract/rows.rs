//! What laws ask of a contract: axes that its arrays share, independent rows, a mask.

use std::marker::PhantomData;
use std::sync::Arc;

use ndarray::{Array2, Axis, Slice};

use crate::contract::Contract;
use crate::contract::cuts::{Cuts, Pair};
use crate::contract::options::{AnyOptions, RowInfluence};
use crate::generate::axes::{self, from_fields};
use crate::generate::measure::Measure;
use crate::generate::pick::Pick;
use crate::numeric::conventions::MaskedValues;
use crate::value::place::Dtype;
use crate::value::record::{AnyRecord, Record, Shared, round};

/// Whether the arrays of a case agree in their axes, each of length 1 at least where it may not be
/// empty.
///
/// # Errors
/// Which do not.
pub fn check_axes<C: Contract>(case: &C::Case) -> Result<(), String> {
    C::AXES.check(case)
}

/// The length of an axis of a case.
///
/// # Panics
/// If no input has it.
pub fn length<C: Contract>(case: &C::Case, axis: char) -> usize {
    C::AXES.length(case, axis)
}

/// A record of the contract with some places of an axis only, in that order.
pub fn select<C: Contract, R: Record + AnyRecord>(record: &R, axis: char, kept: &[usize]) -> R {
    from_fields(C::AXES.select(record, axis, kept))
}

/// See [`Axes::measure`](crate::generate::axes::Axes::measure).
pub fn measure<C: Contract>(case: &C::Case) -> Measure {
    C::AXES.measure(case, &C::Case::fields())
}

/// See [`Axes::simpler`](crate::generate::axes::Axes::simpler).
pub fn simpler<C: Contract>(case: &C::Case) -> Vec<C::Case> {
    C::AXES.simpler(case, &C::Case::fields()).into_iter().map(from_fields).collect()
}

/// See [`Axes::fewer_rows_or_words`](crate::generate::axes::Axes::fewer_rows_or_words).
pub fn fewer_rows_or_words<C: Contract>(case: &C::Case) -> Vec<C::Case> {
    let candidates = C::AXES.fewer_rows_or_words(case, &C::Case::fields());
    candidates.into_iter().map(from_fields).collect()
}

/// Simpler values at the same places, of any record: with axes or without, lists too.
pub fn simpler_values<R: Record + AnyRecord>(case: &R) -> Vec<R> {
    axes::simpler_values(case).into_iter().map(from_fields).collect()
}

/// See [`Axes::small`](crate::generate::axes::Axes::small): those that are valid.
pub fn small<C: Contract>(
    values: &[(&str, &[f64])],
    options: &C::Options,
    dtype: Dtype,
) -> Vec<C::Case> {
    let mut cases: Vec<C::Case> = Vec::new();
    for fields in C::AXES.small(values, &C::Case::fields()) {
        let mut case = from_fields(fields);
        round(&mut case, dtype);
        if (C::PARTS.valid)(&case, options, dtype).is_ok() {
            cases.push(case);
        }
    }
    cases
}

/// Contracts whose rows are batches of independent things: completions, pairs, environments.
pub trait Rows: Contract {
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
        length::<Self>(case, Self::AXES.row())
    }

    /// The case of some of its rows, in that order.
    fn take(case: &Self::Case, rows: &[usize]) -> Self::Case {
        select::<Self, _>(case, Self::AXES.row(), rows)
    }
}

/// Contracts with a mask over rows and tokens.
pub trait Masked: Contract {
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
        let tokens = length::<Self>(case, 'T');
        let kept: Vec<usize> = (0..tokens).chain(vec![tokens - 1; columns]).collect();
        let mut padded = select::<Self, _>(case, 'T', &kept);
        Self::mask_mut(&mut padded).slice_axis_mut(Axis(1), Slice::from(tokens..)).fill(false);
        padded
    }

    /// The case with other numbers under the mask.
    fn poisoned(case: &Self::Case, options: &Self::Options, pick: &mut Pick) -> Self::Case {
        let mask = Self::mask(case).clone();
        let any = Self::masked_values(options) == MaskedValues::Any && pick.below(3) > 0;
        let mut poisoned = case.clone();
        let mut masked: Vec<&str> = Vec::new();
        case.visit(&mut |name, value| {
            if value.is_some_and(|value| value.shape() == mask.shape()) {
                masked.push(name);
            }
        });
        poisoned.for_floats(&mut |name, floats| {
            if masked.contains(&name) && Self::AXES.position(name, 'T').is_some() {
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

/// Along the axes that the arrays share, rows first, and those by whole parts.
pub fn along_axes<C: Rows>() -> &'static dyn Cuts {
    &AlongAxes::<C>(PhantomData)
}

struct AlongAxes<C>(PhantomData<fn(C)>);

impl<C: Rows> Cuts for AlongAxes<C> {
    fn axes(&self) -> Vec<char> {
        C::AXES.letters(&C::Case::fields())
    }

    fn units(&self, case: &dyn AnyRecord, axis: char) -> Vec<Vec<usize>> {
        let case = case.typed();
        if axis == C::AXES.row() {
            C::parts(case)
        } else {
            (0..length::<C>(case, axis)).map(|at| vec![at]).collect()
        }
    }

    fn take(&self, case: &dyn AnyRecord, axis: char, kept: &[usize]) -> Shared {
        let case = case.typed();
        let taken = if axis == C::AXES.row() {
            C::take(case, kept)
        } else {
            select::<C, _>(case, axis, kept)
        };
        Arc::new(taken)
    }

    fn parts(&self, case: &dyn AnyRecord, options: &dyn AnyOptions) -> Option<Vec<Vec<usize>>> {
        let independent =
            C::independent(options.typed()) && options.rows() == RowInfluence::Independent;
        independent.then(|| C::parts(case.typed()))
    }

    fn part(&self, case: &dyn AnyRecord, output: &dyn AnyRecord, rows: &[usize]) -> Option<Pair> {
        let case: &C::Case = case.typed();
        let count = C::rows(case);
        let mut all = true;
        output.each(&mut |name, value| {
            if let Some(value) = value {
                let axis = C::AXES.position(name, C::AXES.row());
                all &= axis.is_some_and(|axis| value.shape().get(axis.index()) == Some(&count));
            }
        });
        let output: &C::Output = output.typed();
        all.then(|| -> Pair {
            (Arc::new(C::take(case, rows)), Arc::new(select::<C, _>(output, C::AXES.row(), rows)))
        })
    }
}
