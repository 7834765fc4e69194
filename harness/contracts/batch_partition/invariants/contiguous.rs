//! Parts are runs of rows.
//!
//! ### Claim
//! With `contiguous` the part of a row is that of the row before, or the one behind it.
//!
//! ### Why it matters
//! Rows of one prompt, and of one conversation, stand together, and are cut apart by slices. Who
//! joins the parts again by concatenation gets the rows in another order, and all else was not
//! moved with them.
//!
//! ### Does not hold for
//! `contiguous: false`.
//!
//! ### Bugs it has caught
//! Options without effect: rows sorted by length, though slices were asked for.
//!
//! ### Example
//! Under `mode="capacity", contiguous=True`:
//! ```diff
//! -    order = lengths.argsort(descending=True)
//! +    order = torch.arange(len(lengths))
//! +    if not contiguous:
//! +        order = lengths.argsort(descending=True)
//! ```

use super::parts;
use crate::batch_partition::BatchPartition;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchPartition> = Rule::new(
    Pitfall::MaskingAlignment,
    &["contiguous-ignored", "runs-in-falling-order", "first-row-goes-round"],
    check,
)
.under(|options| options.contiguous);

fn check(probe: &mut Probe<'_, BatchPartition>) -> Outcome {
    let (numbers, _) = parts(probe)?;
    if numbers.len() < 2 {
        return Err(Stop::Vacuous);
    }
    for (row, pair) in numbers.windows(2).enumerate() {
        if pair[1] < pair[0] || pair[1] > pair[0] + 1 {
            let (before, here) = (pair[0], pair[1]);
            broken!(
                "parts[{}] is {here}, expected {before} or {}: the row before is in part {before}",
                row + 1,
                before + 1
            );
        }
    }
    Ok(())
}
