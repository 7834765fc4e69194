//! It does not matter where a batch is cut into shards.
//!
//! ### Claim
//! Every cut of the same rows into shards gives the same numbers.
//!
//! ### Why it matters
//! The number of ranks is a question of hardware. A curve that changes with it cannot be compared
//! with itself: where ranks are averaged, a token on a rank with few of them counts for more, and
//! the least of all is no longer the least.
//!
//! ### Does not hold for
//! Nothing: what is one number (`unit`) is a token or a row, and never a shard.
//!
//! ### Bugs it has caught
//! trl #6380 and prime-rl #2056: means of ranks averaged. NeMo-RL #1818: minima and maxima
//! averaged. AReaL #1100: shards cut to the shortest.
//!
//! ### Example
//! ```diff
//! -    mean = torch.stack([rank.mean() for rank in ranks if len(rank)]).mean()
//! +    mean = total / count
//! ```

use ndarray::Axis;

use super::{unmoved, with_numbers};
use crate::metric_reduction::generate::taken;
use crate::metric_reduction::{MetricReduction, MetricReductionCase, joined};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<MetricReduction> = Rule::new(
    Pitfall::Aggregation,
    &[
        "mean-of-rank-means",
        "extremes-averaged",
        "last-rows-dropped",
        "one-rank-reported",
        "averaged-where-summed",
        "summed-where-averaged",
        "reduced-twice",
        "ranks-weighted-by-rows",
        "mean-of-rank-deviations",
        "deviation-of-rank-means",
        "variance-within-ranks",
        "explained-variance-averaged",
        "count-of-rows",
    ],
    check,
);

fn check(probe: &mut Probe<'_, MetricReduction>) -> Outcome {
    with_numbers(probe)?;
    let whole = joined(probe.case);
    let rows = whole.mask.nrows();
    let together = MetricReductionCase { shards: vec![whole] };
    if probe.case.shards.len() > 1 {
        unmoved(probe, &together, "in one shard")?;
    }
    if rows < 2 {
        return if probe.case.shards.len() > 1 { Ok(()) } else { Err(Stop::Vacuous) };
    }
    // Another partition: the rows one by one, or cut in two somewhere.
    let cuts: Vec<usize> = match probe.pick.below(2) {
        0 => (1..rows).collect(),
        _ => vec![1 + probe.pick.below(rows - 1)],
    };
    let starts = [&[0], &cuts[..]].concat();
    let ends = [&cuts[..], &[rows]].concat();
    let parts = starts.iter().zip(ends).map(|(start, end)| {
        taken(&together.shards[0], Axis(0), &(*start..end).collect::<Vec<_>>())
    });
    let other = MetricReductionCase { shards: parts.collect() };
    let what = format!("with the rows cut into {} shards", other.shards.len());
    unmoved(probe, &other, &what)
}
