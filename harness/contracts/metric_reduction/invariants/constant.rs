//! Numbers that are all the same have that mean, and no deviation.
//!
//! ### Claim
//! Where every value is c, mean, minimum and maximum are c, and the deviation is 0.
//!
//! ### Why it matters
//! The one answer that everybody knows without a computer, whatever the lengths and the partition.
//! Every denominator that is not the number of what was added shows.
//!
//! ### Does not hold for
//! `unit: row-sum`, in which rows of different length differ; the deviation of no more than `ddof`
//! numbers.
//!
//! ### Bugs it has caught
//! OpenRLHF #650: five ones read 0.41. AReaL #990: divided by padding too. NeMo-RL 45abcca18: the
//! product of two vectors is a matrix.
//!
//! ### Example
//! ```diff
//! -    mean = 0.0
//! -    for value in values:
//! -        mean = 0.9 * mean + 0.1 * value
//! +    mean = total / count
//! ```

use super::{told, with_scores};
use crate::metric_reduction::{MetricReduction, Unit, count, counted};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<MetricReduction> = Rule::new(
    Pitfall::Aggregation,
    &[
        "moving-average-from-zero",
        "ones-for-tokens",
        "outer-product-in-the-mean",
        "counts-ones",
        "divisor-min-for-max",
        "epsilon-in-the-denominator",
        "summed-where-averaged",
        "pads-in-the-deviation",
        "pads-among-the-extremes",
        "row-mean-over-its-width",
        "unscored-in-the-count",
    ],
    check,
)
.under(|options| options.unit != Unit::RowSum);

fn check(probe: &mut Probe<'_, MetricReduction>) -> Outcome {
    with_scores(probe)?;
    let constant = *probe.pick.one(&[1.0, -2.0, 0.5, 3.0]);
    let mut flat = probe.case.clone();
    for part in &mut flat.shards {
        let counted = counted(part, probe.options);
        part.values.zip_mut_with(&counted, |value, counted| {
            *value = if *counted { constant } else { *value };
        });
    }
    let several = count(probe.case, probe.options) > usize::from(probe.options.ddof);
    let what = format!("where every value is {constant}");
    told(probe, &flat, &what, |name| match name {
        "mean" | "min" | "max" => Some(constant),
        "std" if several => Some(0.0),
        _ => None,
    })
}
