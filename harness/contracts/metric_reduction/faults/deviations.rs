//! Other deviations.

use super::{Fault, changed, mean, squares, variance, zero_for_nan};
use crate::metric_reduction::Options;

/// The faults of this theme.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new("mean-of-rank-deviations", "the mean over ranks of each one's deviation")
            .seen("trl #5620, of means; a deviation is averaged no better")
            .made_of([
                changed(|step, metrics| {
                    let some = step.filled().map(|rank| variance(rank, step.options.ddof).sqrt());
                    let some: Vec<f64> = some.filter(|x| x.is_finite()).collect();
                    if !some.is_empty() {
                        metrics.std = some.iter().sum::<f64>() / some.len() as f64;
                    }
                }),
                changed(|step, metrics| {
                    let own = |rank: &Vec<[f64; 2]>| variance(rank, step.options.ddof).sqrt();
                    let all: f64 = step.filled().map(|rank| zero_for_nan(own(rank))).sum();
                    metrics.std = all / step.filled().count() as f64;
                }),
                changed(|step, metrics| {
                    let all: f64 =
                        step.filled().map(|rank| variance(rank, step.options.ddof).sqrt()).sum();
                    metrics.std = all / step.filled().count() as f64;
                }),
            ]),
        Fault::new("mean-of-rank-variances", "the root of the mean over ranks of their variances")
            .seen("trl #5620, of means; the means of ranks are apart too")
            .made_of([
                changed(|step, metrics| {
                    let own = |rank: &Vec<[f64; 2]>| variance(rank, step.options.ddof);
                    let all: f64 = step.filled().map(|rank| zero_for_nan(own(rank))).sum();
                    metrics.std = (all / step.filled().count() as f64).sqrt();
                }),
                changed(|step, metrics| {
                    let all: f64 =
                        step.filled().map(|rank| variance(rank, step.options.ddof)).sum();
                    metrics.std = (all / step.filled().count() as f64).sqrt();
                }),
                changed(|step, metrics| {
                    let own =
                        |rank: &Vec<[f64; 2]>| zero_for_nan(variance(rank, step.options.ddof));
                    let all: f64 = step.filled().map(|rank| own(rank) * rank.len() as f64).sum();
                    metrics.std = (all / metrics.count).sqrt();
                }),
            ]),
        Fault::new("epsilon-in-the-deviation", "ε under the root, or added to the deviation")
            .seen("a deviation that is to be divided by, reported")
            .made_of([1e-4, 1e-5, 1e-6, 1e-8].into_iter().flat_map(|epsilon: f64| {
                [
                    changed(move |_, metrics| metrics.std = (metrics.std.powi(2) + epsilon).sqrt()),
                    changed(move |_, metrics| metrics.std += epsilon),
                ]
            })),
        Fault::new("other-degrees-of-freedom", "the squares are divided by n + 1, or by n - 2")
            .seen("n for the number that was counted before the last one")
            .made_of([-1.0, 2.0].map(|ddof: f64| {
                changed(move |step, metrics| {
                    let degrees = metrics.count - ddof;
                    if metrics.count > f64::from(step.options.ddof) && degrees > 0.0 {
                        metrics.std = (squares(&step.all) / degrees).sqrt();
                    }
                })
            })),
        Fault::new("deviation-of-rank-means", "how far the means of the ranks are apart")
            .seen("NeMo-RL #1818 (0eb5fffec): what each rank reported was reduced once more")
            .made_of([changed(|step, metrics| {
                let means: Vec<[f64; 2]> = step.filled().map(|rank| [mean(rank), 0.0]).collect();
                let apart = variance(&means, step.options.ddof).sqrt();
                metrics.std = if apart.is_finite() { apart } else { 0.0 };
            })]),
        Fault::new(
            "variance-within-ranks",
            "the squares are taken from the mean of each rank, not from that of all",
        )
        .seen("a pooled variance without the part between groups (Chan et al. 1983 have it)")
        .made_of([changed(|step, metrics| {
            let squares: f64 = step.filled().map(|rank| squares(rank)).sum();
            let degrees = metrics.count - f64::from(step.options.ddof);
            metrics.std = if degrees > 0.0 { (squares / degrees).sqrt() } else { metrics.std };
        })]),
        Fault::new("variance-for-deviation", "the root is missing")
            .seen("verl masked_var, reported as a deviation")
            .made_of([changed(|_, metrics| metrics.std = metrics.std.powi(2))]),
        Fault::new(
            "variance-of-squares",
            "E[x²] - E[x]² in f32: nothing is left of a small spread far from 0",
        )
        .seen("one all-reduce of sums and squares; Chan et al. 1983 say what it costs")
        .made_of([changed(|step, metrics| {
            let narrow = || step.all.iter().map(|pair| pair[0] as f32);
            let count = step.all.len() as f32;
            let mean = narrow().sum::<f32>() / count;
            let spread = (narrow().map(|x| x * x).sum::<f32>() / count - mean * mean).max(0.0);
            let degrees = count - f32::from(step.options.ddof);
            if degrees > 0.0 {
                metrics.std = f64::from((spread * count / degrees).sqrt());
            }
        })]),
        Fault::new(
            "biased-for-unbiased-variance",
            "the variance divides by n where n - 1 is declared, or the reverse",
        )
        .seen("torch.var is unbiased, numpy.var is not")
        .as_if(&[|options| Options { ddof: 1 - options.ddof, ..options }]),
    ]
}
