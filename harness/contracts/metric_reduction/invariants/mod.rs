//! What must hold of `metric-reduction`: the laws that apply, and one file for each of its own.

use crate::metric_reduction::{
    MetricReduction, MetricReductionCase, MetricReductionOutput, One, Options, Unscored, count,
};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<MetricReduction>> {
    let spoilt: &[&str] = &["empty-rank-gives-nan", "unscored-spoils-all", "nothing-gives-nan"];
    let mut all = laws::universal_and(&[("finite", spoilt)]);
    all.extend([
        laws::oracle::law().catching(&[
            "mean-of-rank-means",
            "extremes-averaged",
            "counts-ones",
            "integer-mask-as-index",
            "outer-product-in-the-mean",
            "last-rows-dropped",
            "moving-average-from-zero",
            "ones-for-tokens",
            "unscored-left-out",
            "unscored-counted",
            "row-mean-over-its-width",
            "biased-for-unbiased-variance",
            "variance-for-deviation",
            "rows-for-tokens",
            "tokens-for-rows",
            "row-sums-for-row-means",
            "row-means-for-row-sums",
            "ev-epsilon-not-applied",
            "ev-epsilon-unasked",
            "equal-targets-explained",
            "targets-in-another-order",
            "variance-of-the-values",
            "sum-in-half-precision",
            "one-rank-left-out",
            "global-zipped-with-local",
            "extremes-start-at-zero",
            "pads-are-zeros",
            "mean-is-whole",
            "rounded-for-the-report",
            "median-for-mean",
            "equal-numbers-counted-once",
            "targets-for-values",
            "targets-not-masked",
            "mask-as-a-prefix",
            "row-dropped-for-one-nan",
            "mean-of-rank-variances",
            "epsilon-in-the-deviation",
            "other-degrees-of-freedom",
            "deviations-for-variances",
            "squared-correlation",
            "epsilon-above-too",
            "nothing-has-infinite-extremes",
        ]),
        laws::refuses::law(|options: &Options| {
            options.empty_mask == EmptyMask::Refuse || options.one == One::Refuse
        })
        .catching(&["epsilon-in-the-denominator"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    MetricReduction;
    partition,
    order_of_shards,
    empty_shard,
    empty,
    one_number,
    constant,
    padding,
    masked_poison,
    shift,
    offset,
    explained_at_most,
    within_extremes,
    sum_is_mean_times_count,
    duplicated,
}

/// Cases with a number; the others are as declared, and no relation says more of them.
fn with_numbers(probe: &Probe<'_, MetricReduction>) -> Result<(), Stop> {
    if count(probe.case, probe.options) == 0 { Err(Stop::Vacuous) } else { Ok(()) }
}

/// Cases in which every token that is not masked has a value, or is left out for want of one.
fn with_scores(probe: &Probe<'_, MetricReduction>) -> Result<(), Stop> {
    with_numbers(probe)?;
    let zero = probe.options.unscored == Unscored::Zero;
    let nan = probe.case.shards.iter().any(|part| {
        part.values.iter().zip(&part.mask).any(|(value, kept)| *kept && value.is_nan())
    });
    if zero && nan { Err(Stop::Vacuous) } else { Ok(()) }
}

/// The outputs by name, those that are there.
fn given(output: &MetricReductionOutput) -> Vec<(&'static str, f64)> {
    let all = [
        ("mean", &output.mean),
        ("min", &output.min),
        ("max", &output.max),
        ("std", &output.std),
        ("sum", &output.sum),
        ("count", &output.count),
        ("explained_variance", &output.explained_variance),
    ];
    all.into_iter().filter_map(|(name, x)| x.as_ref().map(|x| (name, x[()]))).collect()
}

/// The only number of the bounds of an output; what is counted has none.
fn allowed(probe: &Probe<'_, MetricReduction>, expected: &[Expected], name: &str) -> f64 {
    if MetricReduction::WHOLE.contains(&name) {
        return 0.0;
    }
    let bounds = probe.bounds_in(expected, name);
    bounds.first().copied().unwrap_or(f64::INFINITY)
}

/// The outputs of another case are those of the case, moved as `moved` says; of outputs for which
/// it says nothing, and of NaN, nothing is said.
fn related(
    probe: &mut Probe<'_, MetricReduction>,
    other: &MetricReductionCase,
    what: &str,
    moved: impl Fn(&str, f64) -> Option<f64>,
) -> Outcome {
    let before = probe.output()?;
    let wanted = |(name, x): (&'static str, f64)| Some((name, moved(name, x)?));
    let wanted: Vec<_> = given(&before.output).into_iter().filter_map(wanted).collect();
    if !wanted.iter().any(|(_, x)| x.is_finite()) {
        return Err(Stop::Vacuous);
    }
    let after = given(&probe.call(other)?);
    let (of_case, of_other) = (probe.expected(), probe.expected_of(other));
    let mut compared = false;
    for (name, expected) in wanted.into_iter().filter(|(_, x)| x.is_finite()) {
        let Some((_, found)) = after.iter().find(|(known, _)| *known == name) else { continue };
        let allowed = allowed(probe, &of_case, name) + allowed(probe, &of_other, name);
        // Where NaN is the answer, a number is wrong on its own.
        if allowed.is_nan() || allowed.is_infinite() {
            continue;
        }
        compared = true;
        near(format_args!("{what}, `{name}`"), *found, expected, allowed)?;
    }
    if compared { Ok(()) } else { Err(Stop::Vacuous) }
}

/// The outputs of another case are those of the case.
fn unmoved(
    probe: &mut Probe<'_, MetricReduction>,
    other: &MetricReductionCase,
    what: &str,
) -> Outcome {
    related(probe, other, what, |_, x| Some(x))
}

/// The outputs of a case are known: of those that are returned, each as `known` says.
fn told(
    probe: &mut Probe<'_, MetricReduction>,
    case: &MetricReductionCase,
    what: &str,
    known: impl Fn(&str) -> Option<f64>,
) -> Outcome {
    let found = given(&probe.call(case)?);
    let expected = probe.expected_of(case);
    let mut compared = false;
    for (name, found) in found {
        let Some(wanted) = known(name) else { continue };
        compared = true;
        if wanted.is_nan() && found.is_nan() {
            continue;
        }
        let allowed = if wanted.is_nan() { 0.0 } else { allowed(probe, &expected, name) };
        near(format_args!("{what}, `{name}`"), found, wanted, allowed)?;
    }
    if compared { Ok(()) } else { Err(Stop::Vacuous) }
}
