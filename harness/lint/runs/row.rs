//! A row of a log under the ids of its metrics.

use std::collections::BTreeMap;

/// One value of a log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// The value.
    pub value: f64,
    /// How far what was logged may be from it: half of the last digit of a text with at most four
    /// decimals, else 0.
    pub resolution: f64,
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell { value, resolution: 0.0 }
    }
}

/// A row under the ids of its metrics.
pub type Row = BTreeMap<String, Cell>;
