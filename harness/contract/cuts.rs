//! How batches of production size are cut along their axes.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::contract::options::{AnyOptions, RowInfluence};
use crate::contract::rows::{Rows, length, select};
use crate::value::record::{AnyRecord, Record as _, Shared};

/// A case with what was recorded for it.
pub(crate) type Pair = (Shared, Shared);

/// How batches of a contract are cut. See [`Contract::cuts`](crate::contract::Contract::cuts).
pub trait Cuts: Send + Sync {
    /// The axes, rows first.
    fn axes(&self) -> Vec<char>;

    /// What may be left out along an axis: sets of places.
    fn units(&self, case: &dyn AnyRecord, axis: char) -> Vec<Vec<usize>>;

    /// The case with some places of an axis only.
    fn take(&self, case: &dyn AnyRecord, axis: char, kept: &[usize]) -> Shared;

    /// The sets of rows that have no influence on each other; `None` where every row may.
    fn parts(&self, case: &dyn AnyRecord, options: &dyn AnyOptions) -> Option<Vec<Vec<usize>>>;

    /// Some rows of a case with the same rows of an output; `None` where an output has no rows.
    fn part(&self, case: &dyn AnyRecord, output: &dyn AnyRecord, rows: &[usize]) -> Option<Pair>;
}

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
