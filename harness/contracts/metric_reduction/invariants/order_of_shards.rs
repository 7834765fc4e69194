//! The order of the shards does not matter.
//!
//! ### Claim
//! Shards in another order give the same numbers.
//!
//! ### Why it matters
//! Ranks answer in whatever order they are gathered. What depends on it knows one of them better
//! than the others: the one that logs, or the one that wrote last.
//!
//! ### Does not hold for
//! A single shard, and those that are all the same.
//!
//! ### Bugs it has caught
//! verl #2259: each report overwrites the one before. OpenRLHF #650: an average that forgets what
//! came first.
//!
//! ### Example
//! ```diff
//! -    for rank in ranks:
//! -        total = rank.sum()
//! +    total = sum(rank.sum() for rank in ranks)
//! ```

use super::{unmoved, with_numbers};
use crate::metric_reduction::{MetricReduction, MetricReductionCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<MetricReduction> = Rule::new(
    Pitfall::Aggregation,
    &["one-rank-reported", "moving-average-from-zero", "targets-in-another-order"],
    check,
);

fn check(probe: &mut Probe<'_, MetricReduction>) -> Outcome {
    with_numbers(probe)?;
    let parts = &probe.case.shards;
    let order = probe.pick.shuffled(parts.len());
    let shards: Vec<_> = order.iter().map(|place| parts[*place].clone()).collect();
    if shards.iter().zip(parts).all(|(new, old)| same_bits(new, old)) {
        return Err(Stop::Vacuous);
    }
    let what = format!("with the shards in the order {order:?}");
    unmoved(probe, &MetricReductionCase { shards }, &what)
}
