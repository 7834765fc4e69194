//! A shard without a token changes nothing.
//!
//! ### Claim
//! A shard more, in which every token is masked, changes nothing.
//!
//! ### Why it matters
//! A rank whose prompts were all filtered out, the end of an epoch. Its mean is 0/0 and its
//! extremes are of nothing; a 0 in their place is the least of all positive numbers, and a share
//! in the mean.
//!
//! ### Does not hold for
//! Nothing: a row without a token is no number in any `unit`.
//!
//! ### Bugs it has caught
//! trl #6380: means of ranks averaged, whatever the rank had. verl's and OpenRLHF's masked means
//! are NaN over no token.
//!
//! ### Example
//! ```diff
//! -    smallest = min(rank.min() if len(rank) else 0.0 for rank in ranks)
//! +    smallest = values.min()
//! ```

use ndarray::Array2;

use super::{unmoved, with_numbers};
use crate::metric_reduction::{MetricReduction, Shard};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<MetricReduction> = Rule::new(
    Pitfall::StabilityConstant,
    &[
        "mean-of-rank-means",
        "empty-rank-gives-nan",
        "empty-rank-is-zero",
        "averaged-where-summed",
        "empty-rows-counted",
    ],
    check,
);

fn check(probe: &mut Probe<'_, MetricReduction>) -> Outcome {
    with_numbers(probe)?;
    let mut more = probe.case.clone();
    let at = probe.pick.below(more.shards.len() + 1);
    let shape = (1 + probe.pick.below(2), 1 + probe.pick.below(3));
    let empty = Shard {
        values: Array2::from_elem(shape, 1.0),
        targets: Array2::from_elem(shape, 1.0),
        mask: Array2::from_elem(shape, false),
    };
    more.shards.insert(at, empty);
    let what = format!("with a shard {at} more that has no token");
    unmoved(probe, &more, &what)
}
