//! The reference implementation of `group-filter`, as a trainer would write it.

use std::collections::HashMap;

use super::{Criterion, GroupFilterCase, GroupFilterOutput, Options, Singleton};

/// Which rows stay, with their ids and rewards.
pub(super) fn filter(case: &GroupFilterCase, options: &Options) -> GroupFilterOutput {
    let mut order = Vec::new();
    let mut metrics: HashMap<i64, Vec<f64>> = HashMap::new();
    for (group, metric) in case.groups.iter().zip(&case.metric) {
        let known = metrics.entry(*group).or_insert_with(|| {
            order.push(*group);
            Vec::new()
        });
        known.push(*metric);
    }
    order.retain(|group| stays(&metrics[group], options));
    if let Some(limit) = options.limit {
        order.truncate(limit as usize);
    }
    let keep: Vec<bool> = case.groups.iter().map(|group| order.contains(group)).collect();
    carried(case, &keep)
}

/// Whether a group of this metric stays.
fn stays(metric: &[f64], options: &Options) -> bool {
    let least = metric.iter().copied().fold(f64::INFINITY, f64::min);
    let most = metric.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    match options.criterion {
        Criterion::Spread if metric.len() == 1 => options.singleton == Singleton::Keep,
        Criterion::Spread => most - least > options.tolerance,
        Criterion::Range => {
            let mean = metric.iter().sum::<f64>() / metric.len() as f64;
            options.range[0] < mean && mean < options.range[1]
        }
    }
}

/// The ids and rewards of the rows that stay.
pub(super) fn carried(case: &GroupFilterCase, keep: &[bool]) -> GroupFilterOutput {
    let kept = (0..keep.len()).filter(|row| keep[*row]);
    let kept: Vec<usize> = kept.collect();
    GroupFilterOutput {
        keep: keep.iter().map(|keep| f64::from(*keep)).collect(),
        kept_ids: Some(kept.iter().map(|row| case.ids[*row] as f64).collect()),
        kept_rewards: Some(kept.iter().map(|row| case.rewards[*row]).collect()),
    }
}
