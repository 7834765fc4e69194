//! No number at all is what is declared.
//!
//! ### Claim
//! Without a token, `sum` and `count` are 0, and all else is what `empty_mask` says.
//!
//! ### Why it matters
//! A step in which nothing counted is rare, and it is the one that somebody will look at. A 0 in
//! the curve of the reward is a crash, NaN is a gap; which of the two is meant has to be said.
//!
//! ### Does not hold for
//! `empty_mask: avoid`, and `refuse`, which raises.
//!
//! ### Bugs it has caught
//! verl #906: 0/0 over no token.
//!
//! ### Example
//! ```diff
//! -        return dict.fromkeys(NAMES, math.nan)
//! +        return dict.fromkeys(NAMES, 0.0)
//! ```

use super::told;
use crate::metric_reduction::MetricReduction;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<MetricReduction> =
    Rule::new(Pitfall::StabilityConstant, &["nothing-gives-nan", "nothing-gives-zero"], check)
        .under(|options| matches!(options.empty_mask, EmptyMask::Zero | EmptyMask::Nan));

fn check(probe: &mut Probe<'_, MetricReduction>) -> Outcome {
    let mut nothing = probe.case.clone();
    nothing.shards.iter_mut().for_each(|part| part.mask.fill(false));
    for part in &mut nothing.shards {
        part.values.mapv_inplace(|x| if x.is_finite() { x } else { 1.0 });
        part.targets.mapv_inplace(|x| if x.is_finite() { x } else { 1.0 });
    }
    let declared = if probe.options.empty_mask == EmptyMask::Nan { f64::NAN } else { 0.0 };
    told(probe, &nothing, "without a token", |name| match name {
        "sum" | "count" => Some(0.0),
        _ => Some(declared),
    })
}
