//! Results come back in the order of the rows.
//!
//! ### Claim
//! The restored values are the values.
//!
//! ### Why it matters
//! Log-probabilities are computed part by part, and joined with rewards and masks that never went
//! through the parts. In another order each row gets the numbers of another one, all of them
//! plausible.
//!
//! ### Does not hold for
//! Components that do not give `restored`.
//!
//! ### Bugs it has caught
//! verl #1943 and #1440: outputs left in the order of the micro-batches.
//!
//! ### Example
//! ```diff
//! -    restored = values[moved]
//! +    restored = torch.empty_like(values)
//! +    restored[moved] = values[moved]
//! ```

use crate::batch_partition::BatchPartition;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchPartition> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "left-in-the-order-of-the-parts",
        "restored-twice",
        "order-for-its-inverse",
        "only-the-first-part-restored",
        "restored-from-sorted-rows",
    ],
    check,
);

fn check(probe: &mut Probe<'_, BatchPartition>) -> Outcome {
    let returned = probe.finite_output()?;
    let Some(restored) = &returned.output.restored else { return Err(Stop::Vacuous) };
    for (row, (found, expected)) in restored.iter().zip(&probe.case.values).enumerate() {
        // They were moved, and nothing was computed: not even rounded.
        if found != expected {
            let [found, expected] = [*found, *expected].map(number);
            broken!("restored[{row}] is {found}, expected {expected}");
        }
    }
    Ok(())
}
