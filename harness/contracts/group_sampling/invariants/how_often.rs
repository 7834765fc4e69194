//! Each prompt comes as often as it should, or never.
//!
//! ### Claim
//! A prompt that comes has group_size·repeats rows; all come, but for a batch that is dropped.
//!
//! ### Why it matters
//! The mean of a group is the baseline of its members. A group with one member less has another
//! baseline, one that is there twice is counted as two, and a prompt that never comes is never
//! learned.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! Prompts drawn with replacement. Where the number of rows changes too, `well-formed` says so:
//! verl #1181 (rows repeated where they are sampled and again where they are sent).
//!
//! ### Example
//! Under `shuffle=True`:
//! ```diff
//! -        order = torch.randint(len(prompts), (len(prompts),), generator=generator)
//! +        order = torch.randperm(len(prompts), generator=generator)
//! ```

use std::collections::BTreeMap;

use crate::group_sampling::GroupSampling;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupSampling> = Rule::new(
    Pitfall::Aggregation,
    &[
        "multiplied-again",
        "one-copy-short",
        "one-copy-more",
        "one-pass-more",
        "first-batch-again",
        "drawn-with-replacement",
        "last-prompt-left-out",
        "first-prompt-left-out",
    ],
    check,
);

fn check(probe: &mut Probe<'_, GroupSampling>) -> Outcome {
    let returned = probe.output()?;
    let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
    for id in &returned.output.rows {
        *counts.entry(*id as i64).or_default() += 1;
    }
    let expected = probe.options.copies() * probe.options.passes();
    for id in &probe.case.prompts {
        let found = counts.get(id).copied().unwrap_or(0);
        if found != expected && found > 0 {
            broken!("prompt {id} comes {found} times, expected {expected}");
        }
    }
    let kept: usize = probe.options.batches(probe.case.prompts.len()).iter().sum();
    let missing = probe.case.prompts.iter().find(|id| !counts.contains_key(id));
    if let Some(id) = missing.filter(|_| kept == probe.case.prompts.len()) {
        broken!("prompt {id} never comes, expected {expected} times");
    }
    Ok(())
}
