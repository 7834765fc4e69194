//! Each row is in a part.
//!
//! ### Claim
//! The number of each row's part is 0, 1, 2, …
//!
//! ### Why it matters
//! A row that is in no part is not trained, and nothing says so: sums and means are taken over the
//! rows that are left. It is often the last one, or the longest.
//!
//! ### Does not hold for
//! Samplers that drop what is left over, and say so: they give no part to some rows.
//!
//! ### Bugs it has caught
//! Remainders that are in no part: N rows cut into k times ⌊N/k⌋.
//!
//! ### Example
//! ```diff
//! -    for row in range(len(lengths) // parts * parts):
//! +    for row in range(len(lengths)):
//! ```

use super::is_part;
use crate::batch_partition::BatchPartition;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchPartition> = Rule::new(
    Pitfall::MaskingAlignment,
    &["remainder-in-no-part", "halves-for-parts", "oversized-row-in-no-part"],
    check,
);

fn check(probe: &mut Probe<'_, BatchPartition>) -> Outcome {
    let returned = probe.finite_output()?;
    for (row, part) in returned.output.parts.iter().enumerate() {
        if !is_part(*part) {
            broken!("parts[{row}] is {}, expected 0, 1, 2, …", number(*part));
        }
    }
    Ok(())
}
