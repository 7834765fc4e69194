//! Everything twice has the same mean, and twice the sum.
//!
//! ### Claim
//! The same shards twice give the same mean and extremes, and twice the sum and the count.
//!
//! ### Why it matters
//! More data of the same kind must not be another metric. What grows with the number of ranks is
//! read as progress by who compares two runs.
//!
//! ### Does not hold for
//! The deviation with `ddof: 1`, and what is explained with an `ev_epsilon`.
//!
//! ### Bugs it has caught
//! NeMo-RL 45abcca18: N times the mean of N rows. prime-rl #816: divided by min(count, 1), which
//! never divides.
//!
//! ### Example
//! ```diff
//! -    total = sum(rank.sum() for rank in ranks) / len(ranks)
//! +    total = sum(rank.sum() for rank in ranks)
//! ```

use super::{related, with_numbers};
use crate::metric_reduction::MetricReduction;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<MetricReduction> = Rule::new(
    Pitfall::Aggregation,
    &[
        "outer-product-in-the-mean",
        "divisor-min-for-max",
        "summed-where-averaged",
        "averaged-where-summed",
        "reduced-twice",
        "moving-average-from-zero",
        "epsilon-in-the-denominator",
    ],
    check,
);

fn check(probe: &mut Probe<'_, MetricReduction>) -> Outcome {
    with_numbers(probe)?;
    let mut twice = probe.case.clone();
    twice.shards.extend(probe.case.shards.iter().cloned());
    let (ddof, epsilon) = (probe.options.ddof, probe.options.ev_epsilon);
    related(probe, &twice, "with every shard twice", |name, x| match name {
        "mean" | "min" | "max" => Some(x),
        "sum" | "count" => Some(2.0 * x),
        "std" => (ddof == 0).then_some(x),
        _ => (epsilon == 0.0).then_some(x),
    })
}
