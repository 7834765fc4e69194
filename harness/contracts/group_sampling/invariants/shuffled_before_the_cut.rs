//! Any prompt may come in the first batch.
//!
//! ### Claim
//! A dozen seeds differ in the prompts of the first batch, in who comes, in who comes with whom.
//!
//! ### Why it matters
//! Batches that are cut before they are shuffled hold the same prompts in every epoch. Neighbours
//! in the file, which often are of one source or one difficulty, are then always in one step.
//!
//! ### Does not hold for
//! Fewer than 8 prompts, or one batch of all.
//!
//! ### Bugs it has caught
//! A shuffle inside each batch for one of the data.
//!
//! ### Example
//! Under `shuffle=True, prompts_per_batch=4`:
//! ```diff
//! -        for batch in order.split(size):
//! -            batch[:] = batch[torch.randperm(len(batch), generator=generator)]
//! +        order = torch.randperm(len(prompts), generator=generator)
//! ```

use std::collections::BTreeSet;

use ndarray::arr0;

use crate::group_sampling::generate::MANY;
use crate::group_sampling::{GroupSampling, GroupSamplingCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupSampling> =
    Rule::new(Pitfall::Configuration, &["shuffled-inside-batches", "shuffle-discarded"], check)
        .under(|options| options.shuffle && options.prompts_per_batch.is_some());

/// So many that chance makes them all alike in one of 10^9 cases at most.
const SEEDS: i64 = 12;

fn check(probe: &mut Probe<'_, GroupSampling>) -> Outcome {
    let count = probe.case.prompts.len();
    let first = probe.options.batches(count).first().copied().unwrap_or(0);
    if count < MANY || first == 0 || first == count {
        return Err(Stop::Vacuous);
    }
    let [copies, passes] = [probe.options.copies(), probe.options.passes()];
    let [mut firsts, mut comes, mut cuts] = [(); 3].map(|()| BTreeSet::new());
    for step in 0..SEEDS {
        let seed = arr0(probe.case.seed[()] / 2 + 3 * step);
        let rows = probe.call(&GroupSamplingCase { seed, ..probe.case.clone() })?.rows;
        let ids: Vec<i64> = rows.iter().map(|id| *id as i64).collect();
        let batches = ids.chunks(first * copies * passes);
        let batches: Vec<BTreeSet<i64>> =
            batches.map(|batch| batch.iter().copied().collect()).collect();
        firsts.extend(batches.first().map(|batch| BTreeSet::from([batch.clone()])));
        comes.insert(BTreeSet::from([ids.iter().copied().collect::<BTreeSet<i64>>()]));
        cuts.insert(batches.into_iter().collect::<BTreeSet<_>>());
    }
    let come: usize = probe.options.batches(count).iter().sum();
    for (what, seen, may_differ) in [
        ("the first batch has the prompts", firsts, true),
        ("the prompts that come are", comes, come < count),
        ("those that share a batch are", cuts, first > 1),
    ] {
        if let (Some(same), 1, true) = (seen.first(), seen.len(), may_differ) {
            broken!("with each of {SEEDS} seeds {what} {same:?}");
        }
    }
    Ok(())
}
