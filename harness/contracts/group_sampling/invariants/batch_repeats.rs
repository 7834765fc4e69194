//! A batch comes again as it was.
//!
//! ### Claim
//! A generation batch is followed by repeats − 1 exact copies of itself.
//!
//! ### Why it matters
//! Completions are sampled the first time a batch comes and looked up the others, by position. A
//! prompt that stands elsewhere in a later pass gets the completions of another one.
//!
//! ### Does not hold for
//! `repeats: 1`.
//!
//! ### Bugs it has caught
//! Prompts repeated in the place of their batch; the epoch repeated as a whole.
//!
//! ### Example
//! Under `repeats=2`:
//! ```diff
//! -        rows.append(copies.repeat_interleave(repeats))
//! +        rows.append(copies.repeat(repeats))
//! ```

use super::passes;
use crate::group_sampling::GroupSampling;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupSampling> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "prompts-repeated-for-batches",
        "epoch-repeated-for-batches",
        "batch-size-ignored",
        "shuffled-anew-in-each-pass",
    ],
    check,
)
.under(|options| options.repeats > 1);

fn check(probe: &mut Probe<'_, GroupSampling>) -> Outcome {
    let returned = probe.output()?;
    let rows = returned.output.rows.to_vec();
    let mut first: &[f64] = &[];
    for pass in passes(probe.case, probe.options, &rows) {
        if pass.pass == 0 {
            first = pass.rows;
            continue;
        }
        let pairs = pass.rows.iter().zip(first).enumerate();
        for (at, (id, before)) in pairs {
            if id != before {
                let [id, before] = [*id, *before].map(number);
                broken!(
                    "rows[{}] is {id}, expected {before} as when batch {} came first",
                    pass.first + at,
                    pass.batch
                );
            }
        }
    }
    if rows.is_empty() { Err(Stop::Vacuous) } else { Ok(()) }
}
