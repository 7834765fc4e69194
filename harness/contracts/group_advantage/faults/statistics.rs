//! Faults of the statistics: other rows, other measures, and the reward in its own baseline.

use super::super::{Baseline, Options, members};
use super::{
    Fault, about, all_scored, by_group, changed, divisor, grouped, largest, mean, right, scale_of,
    scaled, smallest,
};

/// Groups read, or given back, in another order.
pub(super) fn layouts() -> Vec<Fault> {
    vec![
        Fault::new(
            "groups-assumed-contiguous",
            "reshapes to rows of the first group's size and never reads `groups`",
        )
        .seen("layout assumptions as disputed in trl #5030")
        .on(&[|case, _| {
            let size = members(case)[0].len() as i64;
            case.groups = (0..case.groups.len() as i64).map(|row| row / size).collect();
        }]),
        Fault::new(
            "groups-strided",
            "reshapes the wrong way: rows i, i + K, i + 2K share a baseline",
        )
        .seen("layout assumptions as disputed in trl #5030")
        .under("{layout: contiguous}")
        .on(&[|case, _| {
            let count = members(case).len() as i64;
            case.groups = (0..case.groups.len() as i64).map(|row| row % count).collect();
        }]),
        Fault::new(
            "rows-in-group-order",
            "the advantages come back sorted by group, not in the order of the rows",
        )
        .seen("verl #1440, #1943: outputs left in sorted order")
        .gives(&[|case, options, dtype| {
            let right = right(case, options, dtype);
            let mut groups = members(case);
            groups.sort_by_key(|rows| case.groups[rows[0]]);
            let order = groups.concat();
            order.iter().map(|row| right.advantages[*row]).collect::<Vec<_>>().into()
        }]),
    ]
}

/// Other statistics than mean and deviation.
pub(super) fn statistics() -> Vec<Fault> {
    vec![
        Fault::new("sign-flipped", "mean - r for r - mean: good completions are pushed down")
            .seen("`mean - r` for `r - mean`: the operands swapped")
            .made_of([changed(|a| -a)]),
        Fault::new("sum-for-mean", "the sum of the group is subtracted for its mean")
            .seen("aggregation slip, compare trlx #509")
            .made_of([by_group(|r, options| {
                let sum: f64 = r.iter().sum();
                r.iter().map(|x| (x - sum) / divisor(r, options)).collect()
            })]),
        Fault::new("median-for-mean", "the median of the group is subtracted for its mean")
            .seen("robust statistics without a word about it")
            .made_of([
                about(|sorted| {
                    let middle = sorted.len() / 2;
                    match sorted.len() % 2 {
                        1 => sorted[middle],
                        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
                    }
                }),
                // torch.median takes the lower of the two in the middle.
                about(|sorted| sorted[(sorted.len() - 1) / 2]),
            ]),
        Fault::new(
            "range-for-deviation",
            "divides by max - min (or maps to 0..1) where the deviation is declared",
        )
        .seen("min-max normalisation in its place")
        .made_of([
            scaled(|r, options| largest(r) - smallest(r) + options.epsilon),
            by_group(|r, options| {
                let width = largest(r) - smallest(r) + options.epsilon;
                r.iter().map(|x| (x - smallest(r)) / width).collect()
            }),
        ]),
        Fault::new("absolute-deviation", "divides by the mean absolute deviation")
            .seen("robust statistics without a word about it")
            .made_of([scaled(|r, options| {
                let mean = mean(r);
                let sum: f64 = r.iter().map(|x| (x - mean).abs()).sum();
                sum / r.len() as f64 + options.epsilon
            })]),
    ]
}

/// The reward itself in its baseline, or not.
pub(super) fn leave_one_out() -> Vec<Fault> {
    vec![
        Fault::new(
            "own-reward-in-the-baseline",
            "the group mean where the mean of the others is declared",
        )
        .seen("GRPO's baseline where RLOO's is declared")
        .under("{baseline: leave-one-out, scale: none}")
        .as_if(&[|options| Options { baseline: Baseline::Mean, ..options }]),
        Fault::new(
            "own-reward-left-out-of-the-baseline",
            "the mean of the others where the group mean is declared",
        )
        .seen("RLOO's baseline where GRPO's is declared")
        .as_if(&[|options| Options { baseline: Baseline::LeaveOneOut, ..options }]),
        Fault::new(
            "leave-one-out-divided-by-the-group-size",
            "the sum of the others divided by G for G - 1",
        )
        .seen("RLOO ports")
        .under("{baseline: leave-one-out, scale: none}")
        .gives(&[|case, options, _| {
            let everyone = all_scored(case);
            grouped(case, |r| {
                let (sum, count) = (r.iter().sum::<f64>(), r.len() as f64);
                let scale = scale_of(r, &everyone, options);
                r.iter().map(|x| (x - (sum - x) / count) / scale).collect()
            })
        }]),
    ]
}
