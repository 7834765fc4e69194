//! The copies of a prompt stand in one batch, as the layout says.
//!
//! ### Claim
//! In each batch the copies of a prompt stand together, or its prompts in one order, G times.
//!
//! ### Why it matters
//! What comes behind takes every G rows for a group, or every B'-th. Copies that stand otherwise
//! are compared with completions of other prompts, and a group that a batch cuts in two is compared
//! with half of itself.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! Batches counted in rows where they are counted in prompts; rows shuffled after they were copied.
//!
//! ### Example
//! Under `prompts_per_batch=3`:
//! ```diff
//! -    for batch in order.repeat_interleave(group_size).split(size):
//! -        copies = batch
//! +    for batch in order.split(size):
//! +        copies = batch.repeat_interleave(group_size)
//! ```

use super::passes;
use crate::group_sampling::{GroupSampling, Layout};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupSampling> = Rule::new(
    Pitfall::MaskingAlignment,
    &["layout-mistaken", "groups-cut-by-batches", "shuffled-row-by-row", "one-copy-short"],
    check,
);

fn check(probe: &mut Probe<'_, GroupSampling>) -> Outcome {
    let copies = probe.options.copies();
    if copies == 1 {
        return Err(Stop::Vacuous);
    }
    let returned = probe.output()?;
    let rows = returned.output.rows.to_vec();
    for pass in passes(probe.case, probe.options, &rows) {
        for (at, id) in pass.rows.iter().enumerate() {
            let like = match probe.options.layout {
                Layout::Interleave => at - at % copies,
                Layout::Tile => at % pass.size,
            };
            if *id != pass.rows[like] {
                let [id, other] = [*id, pass.rows[like]].map(number);
                let (at, like) = (pass.first + at, pass.first + like);
                broken!("rows[{at}] is {id}, expected {other}, a copy of rows[{like}]");
            }
        }
        let mut heads: Vec<i64> = match probe.options.layout {
            Layout::Interleave => pass.rows.iter().step_by(copies).map(|id| *id as i64).collect(),
            Layout::Tile => pass.rows[..pass.size].iter().map(|id| *id as i64).collect(),
        };
        heads.sort_unstable();
        if let Some(twice) = heads.windows(2).find(|pair| pair[0] == pair[1]) {
            broken!("batch {} has two groups of prompt {}", pass.batch, twice[0]);
        }
    }
    if rows.is_empty() { Err(Stop::Vacuous) } else { Ok(()) }
}
