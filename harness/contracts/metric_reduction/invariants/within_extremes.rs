//! The mean lies between the minimum and the maximum, and so does every number.
//!
//! ### Claim
//! No number is below `min` or above `max`, and neither is the mean.
//!
//! ### Why it matters
//! Extremes are read to see the one token that went wrong. Averaged over ranks, or with the 0 of a
//! pad among them, they hide it, and say so only by contradicting the other numbers.
//!
//! ### Does not hold for
//! Components that give neither.
//!
//! ### Bugs it has caught
//! NeMo-RL #1818: minima and maxima averaged over ranks, so that numbers lay outside of them.
//!
//! ### Example
//! ```diff
//! -    largest = torch.stack([rank.max() for rank in ranks if len(rank)]).mean()
//! +    largest = values.max()
//! ```

use super::{allowed, with_numbers};
use crate::metric_reduction::{MetricReduction, numbers};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<MetricReduction> = Rule::new(
    Pitfall::Aggregation,
    &[
        "extremes-averaged",
        "extremes-exchanged",
        "one-rank-reported",
        "last-rows-dropped",
        "summed-where-averaged",
        "outer-product-in-the-mean",
    ],
    check,
);

fn check(probe: &mut Probe<'_, MetricReduction>) -> Outcome {
    with_numbers(probe)?;
    let returned = probe.output()?;
    let expected = probe.expected();
    let mut inside: Vec<(String, f64, f64)> = Vec::new();
    let all = probe.case.shards.iter().flat_map(|part| numbers(part, probe.options));
    inside.extend(all.map(|[value, _]| (format!("the number {}", rounded(value)), value, 0.0)));
    if let Some(mean) = &returned.output.mean {
        let mean = mean[()];
        let what = format!("`mean` is {}", rounded(mean));
        inside.push((what, mean, allowed(probe, &expected, "mean")));
    }
    let output = &returned.output;
    let bounds = [("min", &output.min, -1.0), ("max", &output.max, 1.0)];
    let mut compared = false;
    for (name, bound, sign) in bounds {
        let Some(bound) = bound.as_ref().map(|x| x[()]).filter(|x| x.is_finite()) else { continue };
        compared = true;
        let rounding = allowed(probe, &expected, name);
        let outside = inside.iter().find(|(_, x, own)| sign * (x - bound) > rounding + own);
        if let Some((what, ..)) = outside {
            broken!("`{name}` is {}, but {what}", rounded(bound));
        }
    }
    if compared { Ok(()) } else { Err(Stop::Vacuous) }
}
