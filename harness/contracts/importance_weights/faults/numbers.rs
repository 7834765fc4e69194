//! The right definition in the wrong arithmetic, and gradients that should not be.

use super::{Fault, after, steps};
use crate::importance_weights::{
    ImportanceWeightsCase, ImportanceWeightsOutput, Options, Rejected,
};
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::round;

/// The right weights with a gradient, 0 under the mask.
macro_rules! with_gradient {
    ($slope:expr) => {
        after(|output, case, options, _| {
            let slope: fn(
                &ImportanceWeightsCase,
                &Options,
                &ImportanceWeightsOutput,
                (usize, usize),
            ) -> f64 = $slope;
            let mut gradient = output.weights.mapv(|_| 0.0);
            for (at, _) in case.mask.indexed_iter().filter(|(_, kept)| **kept) {
                gradient[at] = slope(case, options, output, at);
            }
            output.grad_log_probs = Some(gradient);
        })
    };
}

/// The faults of this theme.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new(
            "gaps-in-half-precision",
            "the log-probabilities are rounded to bf16 before they are subtracted",
        )
        .seen("OpenRLHF #620 (f34ef60a)")
        .on(&[|case, _| round(case, Dtype::Bf16)]),
        Fault::new("weights-in-half-precision", "the weights are those that bf16, or f16, holds")
            .seen("compare OpenRLHF #634: a softmax in the model's dtype")
            .made_of([
                after(|output, _, _, _| output.weights.mapv_inplace(|w| Dtype::Bf16.round(w))),
                after(|output, _, _, _| output.weights.mapv_inplace(|w| Dtype::F16.round(w))),
            ]),
        Fault::new("sum-in-half-precision", "the sum over a row is made in bf16")
            .seen("compare OpenRLHF #620: log-ratios in the model's dtype")
            .under("{level: sequence}")
            .made_of([steps(|s| {
                s.ratios = |row, _, _| {
                    let half = |x: f64| Dtype::Bf16.round(x);
                    let sum = row.gaps.iter().fold(0.0, |sum, gap| half(sum + gap));
                    vec![row.exp(sum); row.gaps.len()]
                };
            })]),
        Fault::new("dropped-by-a-product", "what is dropped is multiplied by 0: ∞ · 0 is NaN")
            .seen("mutation: `weights * keep`; compare trl #5594")
            .under("{clamp_high: null, select: token, select_high: 5, extreme_ratios: finite}")
            .made_of([steps(|s| {
                s.dropped = |weight, options| match options.rejected {
                    Rejected::Zero => weight * 0.0,
                    Rejected::Unchanged => weight,
                };
            })]),
        Fault::new(
            "quotient-of-probabilities",
            "exp(log π) / exp(log μ), which is 0/0 for rare tokens",
        )
        .seen("compare verl #1779: exp beyond what f32 holds")
        .under("{extreme_ratios: finite}")
        .made_of([after(|output, case, options, _| {
            for (at, _) in case.mask.indexed_iter().filter(|(_, kept)| **kept) {
                let narrow = |x: f64| f64::from((x as f32).exp());
                let ratio = narrow(case.log_probs[at]) / narrow(case.sampler_log_probs[at]);
                let high = options.clamp_high.unwrap_or(f64::INFINITY);
                // 0/0 stays what it is.
                output.weights[at] = if ratio > high { high } else { ratio };
            }
        })]),
        Fault::new(
            "weights-with-a-gradient",
            "the weights are not detached, and are trained themselves",
        )
        .seen("mutation: no `detach`; verl and TRL make the weights without a gradient")
        .made_of([
            with_gradient!(|case, options, output, at| {
                let gap = case.log_probs[at] - case.sampler_log_probs[at];
                let held = options.clamp_high.is_some_and(|high| gap > high.ln());
                if held { 0.0 } else { output.weights[at] }
            }),
            with_gradient!(|_, _, output, at| output.weights[at]),
        ]),
        Fault::new("gradient-of-the-row", "the weight of a row is detached at none of its tokens")
            .seen("mutation: no `detach`, on the level of rows")
            .under("{level: sequence, clamp_high: null}")
            .made_of([with_gradient!(|case, _, output, at| {
                let count = case.mask.row(at.0).iter().filter(|kept| **kept).count();
                output.weights[at] * count as f64
            })]),
    ]
}
