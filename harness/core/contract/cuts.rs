//! How batches of production size are cut along their axes.

use crate::contract::options::AnyOptions;
use crate::value::record::{AnyRecord, Shared};

/// A case with what was recorded for it.
pub type Pair = (Shared, Shared);

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
