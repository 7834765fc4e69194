//! What is explained of the targets.

use super::{Fault, Step, Variant, changed, of_others, zero_for_nan};

/// The faults of this theme.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new("explained-variance-averaged", "the mean over ranks of what each one explains")
            .seen("prime-rl #2056 (3dcff28e0), of means")
            .made_of([
                changed(|step, metrics| {
                    let own = step.filled().map(|rank| step.of(rank).explained);
                    let own: Vec<f64> = own.filter(|x| x.is_finite()).collect();
                    if !own.is_empty() && metrics.explained.is_finite() {
                        metrics.explained = own.iter().sum::<f64>() / own.len() as f64;
                    }
                }),
                changed(|step, metrics| {
                    let own = step.filled().map(|rank| step.of(rank).explained);
                    let own: Vec<f64> = own.filter(|x| x.is_finite()).collect();
                    metrics.explained = own.iter().sum::<f64>() / own.len() as f64;
                }),
                changed(|step, metrics| {
                    let own: f64 = step.filled().map(|rank| step.of(rank).explained).sum();
                    metrics.explained = own / step.filled().count() as f64;
                }),
                changed(|step, metrics| {
                    let own: f64 =
                        step.filled().map(|rank| zero_for_nan(step.of(rank).explained)).sum();
                    metrics.explained = own / step.filled().count() as f64;
                }),
            ]),
        Fault::new(
            "squares-for-variance",
            "1 - E[(target - value)²]/Var(target): an offset of the values counts as error",
        )
        .seen("R², reported as explained variance")
        .made_of([ratio(|step| {
            let squares = step.all.iter().map(|[value, target]| (target - value).powi(2));
            let degrees = step.all.len() as f64 - f64::from(step.options.ddof);
            [squares.sum::<f64>() / degrees, step.variance_of(|[_, target]| target)]
        })]),
        Fault::new("variance-of-the-values", "divided by the variance of the values")
            .seen("the operands of `compute_explained_variance(values, returns)`, exchanged")
            .made_of([ratio(|step| {
                let left = step.variance_of(|[value, target]| target - value);
                [left, step.variance_of(|[value, _]| value)]
            })]),
        Fault::new("unexplained-variance", "Var(target - value)/Var(target), not taken from 1")
            .seen("half of the formula")
            .made_of([changed(|_, metrics| metrics.explained = 1.0 - metrics.explained)]),
        Fault::new(
            "targets-in-another-order",
            "values were sorted by length, and targets were not",
        )
        .seen("slime and verl sort rows by length to balance ranks: all columns must follow")
        .made_of([
            of_others(|step| {
                let targets = step.all.iter().rev().map(|pair| pair[1]);
                step.all.iter().zip(targets).map(|([value, _], target)| [*value, target]).collect()
            }),
            of_others(|step| sorted_values(&step.all, false)),
            of_others(|step| sorted_values(&step.all, true)),
        ]),
        Fault::new(
            "deviations-for-variances",
            "1 - σ(target - value)/σ(target): the squares are lost",
        )
        .seen("`std` where `var` is meant")
        .made_of([ratio(|step| {
            let left = step.variance_of(|[value, target]| target - value);
            [left.sqrt(), step.variance_of(|[_, target]| target).sqrt()]
        })]),
        Fault::new("squared-correlation", "r² of values and targets: a wrong scale is explained")
            .seen("`corrcoef(values, returns)[0, 1] ** 2`, which is R² of a fit")
            .made_of([correlated(|r| r * r)]),
        Fault::new("correlation", "r of values and targets: a wrong scale is explained")
            .seen("`corrcoef(values, returns)[0, 1]`, of the range of explained variance")
            .made_of([correlated(|r| r)]),
        Fault::new(
            "degrees-of-one-variance",
            "one of the two variances is over n, and the other over n - 1",
        )
        .seen("`np.var` of what is left and `torch.var` of the targets: defaults differ")
        .made_of([
            ratio(|step| {
                let left = step.variance_with(other(step), |[value, target]| target - value);
                [left, step.variance_of(|[_, target]| target)]
            }),
            ratio(|step| {
                let left = step.variance_of(|[value, target]| target - value);
                [left, step.variance_with(other(step), |[_, target]| target)]
            }),
        ]),
        Fault::new("epsilon-above-too", "ε is added to the variance of what is left too")
            .seen("`(a + eps) / (b + eps)`, against 0/0")
            .under("{ev_epsilon: 1.0e-2}")
            .made_of([ratio(|step| {
                let left = step.variance_of(|[value, target]| target - value);
                [left + step.options.ev_epsilon, step.variance_of(|[_, target]| target)]
            })]),
        Fault::new(
            "equal-targets-explained",
            "equal targets give 0 (or 1, or what ε makes of them), for NaN",
        )
        .seen("0 for a variance of 0, where stable-baselines gives NaN")
        .made_of([
            equal_targets(|_| 0.0),
            equal_targets(|_| 1.0),
            equal_targets(|left| 1.0 - left / 1e-8),
            equal_targets(|left| if left == 0.0 { 1.0 } else { 0.0 }),
            equal_targets(|left| 1.0 - left / 0.0),
        ]),
    ]
}

/// Another quotient under the 1 of `explained_variance`, where there is one.
fn ratio(of: fn(&Step<'_>) -> [f64; 2]) -> Variant {
    changed(move |step, metrics| {
        let [left, divisor] = of(step);
        let explained = 1.0 - left / (divisor + step.options.ev_epsilon);
        if metrics.explained.is_finite() && explained.is_finite() {
            metrics.explained = explained;
        }
    })
}

/// The degrees of freedom that are not declared.
fn other(step: &Step<'_>) -> u8 {
    1 - step.options.ddof
}

/// What the correlation of values and targets makes of `explained_variance`.
fn correlated(of: fn(f64) -> f64) -> Variant {
    changed(move |step, metrics| {
        let (values, targets) = (step.variance_of(|[x, _]| x), step.variance_of(|[_, t]| t));
        if values > 0.0 && targets > 0.0 {
            let both = step.variance_of(|[x, t]| x + t);
            let covariance = (both - values - targets) / 2.0;
            metrics.explained = of(covariance / (values * targets).sqrt());
        }
    })
}

/// Another number where all targets are equal.
fn equal_targets(given: fn(f64) -> f64) -> Variant {
    changed(move |step, metrics| {
        if step.variance_of(|[_, target]| target) == 0.0 && step.options.ev_epsilon == 0.0 {
            metrics.explained = given(step.variance_of(|[value, target]| target - value));
        }
    })
}

/// Values in order, their targets where they were (or in order too, the other way round).
fn sorted_values(all: &[[f64; 2]], falling: bool) -> Vec<[f64; 2]> {
    let mut values: Vec<f64> = all.iter().map(|pair| pair[0]).collect();
    values.sort_by(f64::total_cmp);
    if falling {
        values.reverse();
    }
    values.into_iter().zip(all).map(|(value, pair)| [value, pair[1]]).collect()
}
