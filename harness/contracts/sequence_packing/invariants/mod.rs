//! What must hold of `sequence-packing`: the laws that apply, and one file for each of its own.

use ndarray::Array2;

use crate::sequence_packing::{Options, Overlong, SequencePacking};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<SequencePacking>> {
    let mut all = laws::universal_and(&[(
        "does-not-raise",
        &["full-document-refused", "one-token-documents-refused"],
    )]);
    let refused = |options: &Options| options.overlong == Overlong::Refuse;
    all.push(laws::refuses::law(refused).catching(&["overlong-overwritten"]));
    all.extend(own());
    all
}

invariants! {
    SequencePacking;
    every_document_once,
    boundaries,
    positions,
    labels,
    padding,
    capacity,
    few_rows,
}

/// The tokens of a row that are of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    row: usize,
    from: usize,
    to: usize,
}

impl Segment {
    /// What stands there in an array; `None` where it is no list of whole numbers.
    fn of(self, array: &Array2<f64>) -> Option<Vec<i64>> {
        (self.from..self.to).map(|token| whole(array[[self.row, token]])).collect()
    }

    /// `row 1, tokens 3 to 5`.
    fn place(self) -> String {
        match self.to - self.from {
            1 => format!("row {}, token {}", self.row, self.from),
            _ => format!("row {}, tokens {} to {}", self.row, self.from, self.to - 1),
        }
    }
}

/// A whole number as what it is.
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0).then_some(number as i64)
}

/// The runs of one number in each row of `segments`, but for padding.
fn segments(segments: &Array2<f64>) -> Vec<Segment> {
    let mut found = Vec::new();
    for (row, numbers) in segments.rows().into_iter().enumerate() {
        let mut from = 0;
        for token in 1..=numbers.len() {
            if token == numbers.len() || numbers[token] != numbers[from] {
                if numbers[from] != 0.0 {
                    found.push(Segment { row, from, to: token });
                }
                from = token;
            }
        }
    }
    found
}

/// What is in a list and not in another, and what is in the other only: one of each, where there
/// is one.
fn unmatched<T: Ord + Clone>(found: &[T], expected: &[T]) -> (Option<T>, Option<T>) {
    let (mut found, mut expected) = (found.to_vec(), expected.to_vec());
    found.sort();
    expected.sort();
    let (mut extra, mut missing) = (None, None);
    let (mut f, mut e) = (found.into_iter().peekable(), expected.into_iter().peekable());
    loop {
        match (f.peek(), e.peek()) {
            (Some(left), Some(right)) if left == right => {
                f.next();
                e.next();
            }
            (Some(left), Some(right)) if left < right => extra = extra.or(f.next()),
            (Some(_), None) => extra = extra.or(f.next()),
            (_, Some(_)) => missing = missing.or(e.next()),
            (None, None) => return (extra, missing),
        }
        if extra.is_some() && missing.is_some() {
            return (extra, missing);
        }
    }
}
