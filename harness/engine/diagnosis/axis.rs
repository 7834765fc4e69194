//! Axes of arrays, and their ends.

use ndarray::{ArrayD, Axis};

/// An axis of an array: its letter, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Along {
    pub(crate) letter: char,
    pub(crate) axis: usize,
}

impl Along {
    pub(crate) fn told(self) -> String {
        match self.letter {
            '?' => format!("axis {}", self.axis),
            letter => letter.to_string(),
        }
    }

    /// The array, where it has the axis and anything along it.
    pub(crate) fn within<T>(self, array: &ArrayD<T>) -> Option<&ArrayD<T>> {
        (self.axis < array.ndim() && array.len_of(Axis(self.axis)) > 0).then_some(array)
    }

    /// Where the first or the last place of the axis is.
    pub(crate) fn at<T>(self, end: End, array: &ArrayD<T>) -> Option<usize> {
        let last = self.within(array)?.len_of(Axis(self.axis)) - 1;
        Some(if end == End::First { 0 } else { last })
    }
}

/// An end of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    First,
    Last,
}

impl End {
    pub(crate) const BOTH: [End; 2] = [End::First, End::Last];

    pub(crate) fn told(self) -> &'static str {
        match self {
            End::First => "first",
            End::Last => "last",
        }
    }
}
