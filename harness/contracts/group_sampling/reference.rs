//! The reference implementation of `group-sampling`, as a trainer would write it: a permutation,
//! chunks of it, and two loops.

use super::{GroupSamplingCase, Layout, Options};
use shakedown_core::generate::pick::Pick;

/// The prompt of each row.
pub(super) fn rows(case: &GroupSamplingCase, options: &Options) -> Vec<i64> {
    sampled(&ordered(case, options), options, |batch| {
        copied(batch, options).repeat(options.repeats as usize)
    })
}

/// The prompts in the order in which they come.
pub(super) fn ordered(case: &GroupSamplingCase, options: &Options) -> Vec<i64> {
    if !options.shuffle {
        return case.prompts.to_vec();
    }
    let mut generator = Pick::seeded(case.seed[()] as u64);
    let order = generator.shuffled(case.prompts.len());
    order.into_iter().map(|index| case.prompts[index]).collect()
}

/// The rows that `of_batch` makes of each generation batch.
pub(super) fn sampled(
    prompts: &[i64],
    options: &Options,
    of_batch: impl FnMut(&[i64]) -> Vec<i64>,
) -> Vec<i64> {
    let size = options.prompts_per_batch.map_or(prompts.len(), |size| size as usize);
    let kept = |batch: &&[i64]| batch.len() == size || !options.drop_last;
    prompts.chunks(size.max(1)).filter(kept).flat_map(of_batch).collect()
}

/// A generation batch, with all copies of its prompts.
pub(super) fn copied(batch: &[i64], options: &Options) -> Vec<i64> {
    let copies = options.group_size as usize;
    match options.layout {
        Layout::Interleave => {
            batch.iter().flat_map(|prompt| std::iter::repeat_n(*prompt, copies)).collect()
        }
        Layout::Tile => batch.repeat(copies),
    }
}
