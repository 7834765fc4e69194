//! The sum is the mean times the count.
//!
//! ### Claim
//! `sum` is `mean` times `count`.
//!
//! ### Why it matters
//! Three numbers of which two make the third. Where one goes over the ranks in another way than
//! the others they no longer agree, and no reference is needed to see it.
//!
//! ### Does not hold for
//! Components that give two of the three at most.
//!
//! ### Bugs it has caught
//! trl #6380: a mean of means beside a right count. AReaL #990: divided by elements that are not
//! counted.
//!
//! ### Example
//! ```diff
//! -    mean = total / values.count_nonzero()
//! +    mean = total / count
//! ```

use super::{allowed, with_numbers};
use crate::metric_reduction::MetricReduction;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<MetricReduction> = Rule::new(
    Pitfall::Aggregation,
    &[
        "mean-of-rank-means",
        "moving-average-from-zero",
        "counts-ones",
        "averaged-where-summed",
        "epsilon-in-the-denominator",
        "zeros-left-out",
        "divisor-min-for-max",
        "outer-product-in-the-mean",
    ],
    check,
);

fn check(probe: &mut Probe<'_, MetricReduction>) -> Outcome {
    with_numbers(probe)?;
    let returned = probe.output()?;
    let output = &returned.output;
    let (Some(mean), Some(sum), Some(count)) = (&output.mean, &output.sum, &output.count) else {
        return Err(Stop::Vacuous);
    };
    let (mean, sum, count) = (mean[()], sum[()], count[()]);
    if ![mean, sum, count].into_iter().all(f64::is_finite) {
        return Err(Stop::Vacuous);
    }
    let expected = probe.expected();
    // Above 256 tokens a count is not exact in bf16.
    let of_count = probe.bounds_in(&expected, "count").first().copied().unwrap_or(0.0);
    let allowed = allowed(probe, &expected, "sum")
        + count.abs() * allowed(probe, &expected, "mean")
        + mean.abs() * if count > 256.0 { of_count } else { 0.0 };
    near("`mean` times `count`", mean * count, sum, allowed)
}
