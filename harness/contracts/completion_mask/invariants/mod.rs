//! What must hold of `completion-mask`: the laws that apply, and one file for each of its own.

use ndarray::Array2;

use crate::completion_mask::{CompletionMask, CompletionMaskCase, Options};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<CompletionMask>> {
    let mut all = laws::universal();
    all.extend([
        laws::oracle::law().catching(&["padding-mask-returned", "ends-at-the-first-pad"]),
        laws::row_permutation::law().catching(&["lengths-along-the-other-axis"]),
        laws::row_split::law()
            .catching(&["lengths-along-the-other-axis", "one-length-for-the-batch"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    CompletionMask;
    zero_or_one,
    prefix,
    ends_at_the_first_eos,
    unfinished_rows,
    total_length,
    behind_the_first_eos,
    any_eos_ends,
    pads_at_the_end,
    a_word_in_front,
    renaming,
}

/// The rows of a case, each with the position at which it ends.
fn rows(
    case: &CompletionMaskCase,
    options: &Options,
) -> impl Iterator<Item = (usize, Vec<i64>, Option<usize>)> {
    case.tokens.rows().into_iter().enumerate().map(|(at, row)| {
        let row = row.to_vec();
        let first = options.first_eos(&row);
        (at, row, first)
    })
}

/// Breaks the invariant where a mask has not the flag that is expected at a place; `why` says for
/// what reason it is. Flags are not rounded.
fn expect_flag(
    mask: &Array2<f64>,
    at: (usize, usize),
    expected: bool,
    why: impl FnOnce() -> String,
) -> Outcome {
    let (found, expected) = (mask[at], f64::from(expected));
    if found != expected {
        broken!("mask[{}, {}] is {}, expected {expected}: {}", at.0, at.1, number(found), why());
    }
    Ok(())
}

/// Breaks the invariant where the mask after some change is not what it was before.
fn expect_same(before: &Array2<f64>, after: &Array2<f64>, what: &str) -> Outcome {
    before.indexed_iter().try_for_each(|(at, before)| expect_kept(*before, after, at, what))
}

/// Breaks the invariant where the mask after some change has another flag at a place.
fn expect_kept(before: f64, after: &Array2<f64>, at: (usize, usize), what: &str) -> Outcome {
    if after[at] != before {
        let [before, after] = [before, after[at]].map(number);
        broken!("{what}, mask[{}, {}] is {after}, expected {before} as before", at.0, at.1);
    }
    Ok(())
}
