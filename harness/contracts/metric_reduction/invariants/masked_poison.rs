//! What stands under the mask is nobody's business.
//!
//! ### Claim
//! Overwriting what stands under the mask changes nothing.
//!
//! ### Why it matters
//! Pads and prompts have values too, and nobody looks at them. The largest log-ratio of a step that
//! is one of a pad sends somebody looking for a bug that is not there.
//!
//! ### Does not hold for
//! NaN and infinities under the mask where `masked_values: finite` is declared.
//!
//! ### Bugs it has caught
//! verl #60: an integer mask picked two rows. trl #5594: masked after the arithmetic, so that NaN
//! survives times 0.
//!
//! ### Example
//! ```diff
//! -    return [shard[name][shard["mask"].long()].flatten() for shard in shards]
//! +    return [shard[name][shard["mask"]] for shard in shards]
//! ```

use super::{unmoved, with_numbers};
use crate::metric_reduction::MetricReduction;
use crate::metric_reduction::generate::POISON;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<MetricReduction> =
    Rule::new(Pitfall::MaskingAlignment, &["mask-ignored", "integer-mask-as-index"], check);

fn check(probe: &mut Probe<'_, MetricReduction>) -> Outcome {
    with_numbers(probe)?;
    if probe.case.shards.iter().all(|part| part.mask.iter().all(|kept| *kept)) {
        return Err(Stop::Vacuous);
    }
    let any = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let anything = probe.options.masked_values == MaskedValues::Any && probe.pick.below(3) > 0;
    let values = if anything { &any[..] } else { &POISON[..] };
    let mut poisoned = probe.case.clone();
    for part in &mut poisoned.shards {
        for field in [&mut part.values, &mut part.targets] {
            for (x, kept) in field.iter_mut().zip(&part.mask) {
                *x = if *kept { *x } else { *probe.pick.one(values) };
            }
        }
    }
    unmoved(probe, &poisoned, "with other numbers under the mask")
}
