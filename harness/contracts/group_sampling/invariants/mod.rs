//! What must hold of `group-sampling`: the laws that apply, and one file for each of its own.

use crate::group_sampling::{GroupSampling, GroupSamplingCase, Options};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<GroupSampling>> {
    let mut all = laws::universal_and(&[(
        "well-formed",
        &[
            "multiplied-again",
            "one-copy-short",
            "one-copy-more",
            "one-pass-more",
            "one-pass-short",
            "repeats-ignored",
            "group-size-built-in",
            "last-batch-kept",
            "last-batch-dropped",
            "last-batch-filled-up",
            "full-last-batch-dropped",
            "less-than-a-batch-kept",
            "last-prompt-left-out",
            "first-prompt-left-out",
            "group-and-batch-size-exchanged",
        ],
    )]);
    all.push(laws::oracle::law().under(|options: &Options| !options.shuffle).catching(&[
        "ordered-by-kind",
        "sorted",
        "newest-first",
        "strided-by-worker",
        "shuffled-undeclared",
        "layout-mistaken",
        "batch-size-ignored",
        "tiled-over-all-batches",
    ]));
    all.extend(own());
    all
}

invariants! {
    GroupSampling;
    known_prompts,
    how_often,
    whole_groups,
    batch_repeats,
    renaming,
    seeded,
    shuffled_before_the_cut,
}

/// One coming of a generation batch: which batch it is, which coming of it, the number of its
/// prompts, and its rows.
struct Pass<'a> {
    batch: usize,
    pass: usize,
    size: usize,
    first: usize,
    rows: &'a [f64],
}

/// The rows of an output, coming by coming.
fn passes<'a>(
    case: &GroupSamplingCase,
    options: &Options,
    rows: &'a [f64],
) -> impl Iterator<Item = Pass<'a>> {
    let mut first = 0;
    let (copies, passes) = (options.copies(), options.passes());
    let batches = options.batches(case.prompts.len()).into_iter().enumerate();
    batches.flat_map(move |(batch, size)| (0..passes).map(move |pass| (batch, pass, size))).map(
        move |(batch, pass, size)| {
            let from = first;
            first += size * copies;
            Pass { batch, pass, size, first: from, rows: &rows[from..first] }
        },
    )
}
