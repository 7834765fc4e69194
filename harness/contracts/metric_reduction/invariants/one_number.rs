//! One number is its own mean, minimum, maximum and sum.
//!
//! ### Claim
//! One token is its own mean, minimum, maximum and sum, counts 1, and deviates as `one` says.
//!
//! ### Why it matters
//! The smallest batch, which the last step of an epoch has. Its unbiased deviation is 0/0, and a
//! NaN in a dictionary of metrics ends some loggers.
//!
//! ### Does not hold for
//! `one: refuse` where `ddof` is 1, which raises.
//!
//! ### Bugs it has caught
//! ROLL #475: a guard against no token and none against one. OpenRLHF #650: an average that starts
//! at 0.
//!
//! ### Example
//! Under `one="zero"`:
//! ```diff
//! -    if count > 0:
//! +    if count > ddof:
//!          std = variance(values, ddof).sqrt()
//! ```

use ndarray::arr2;

use super::told;
use crate::metric_reduction::{MetricReduction, MetricReductionCase, One, Shard, numbers};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<MetricReduction> = Rule::new(
    Pitfall::StabilityConstant,
    &[
        "one-number-gives-nan",
        "one-number-gives-zero",
        "moving-average-from-zero",
        "counts-ones",
        "biased-for-unbiased-variance",
    ],
    check,
)
.under(|options| options.ddof == 0 || options.one != One::Refuse);

fn check(probe: &mut Probe<'_, MetricReduction>) -> Outcome {
    let number = probe.case.shards.iter().flat_map(|part| numbers(part, probe.options)).next();
    let Some([value, target]) = number else { return Err(Stop::Vacuous) };
    let only =
        Shard { values: arr2(&[[value]]), targets: arr2(&[[target]]), mask: arr2(&[[true]]) };
    let case = MetricReductionCase { shards: vec![only] };
    let deviation = match (probe.options.ddof, probe.options.one) {
        (1, One::Nan) => f64::NAN,
        _ => 0.0,
    };
    let what = format!("of the number {value} alone");
    told(probe, &case, &what, |name| match name {
        "mean" | "min" | "max" | "sum" => Some(value),
        "count" => Some(1.0),
        "std" => Some(deviation),
        _ => None,
    })
}
