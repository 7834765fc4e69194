//! The definition of `sft-step` in plain f64, with the scale of every number.

use ndarray::{Array2, Array4, Axis};

use super::{Loss, Options, Over, SftStep, SftStepCase};
use crate::step::{self, Scores};
use crate::token_log_probs;
use shakedown_core::contract::step::{Shape, Stepped};
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::place::Dtype;

/// What is expected of every update.
pub(super) fn expected(case: &SftStepCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    let (shape, plan) = (SftStep::shape(case, options), options.plan());
    let vocabulary = case.logits.shape()[3];
    let mut gradients = Array4::from_elem(
        (plan.updates(), shape.all_rows(), shape.width(), vocabulary),
        Scaled::exact(0.0),
    );
    for update in 0..plan.updates() {
        let logits = shape.logits(&case.logits, update);
        let log_probs = token_log_probs::Options::default();
        let scores = Scores::of(logits, &shape.tokens, &log_probs, dtype);
        for (rows, share) in sets(&shape, update, options) {
            let mask = case.mask.select(Axis(0), &rows);
            scores.add(&mut gradients, &shape, update, &rows, |[of, at]| {
                if !mask[[of, at]] {
                    return Scaled::exact(0.0);
                }
                let weight = Scaled::from(-share * weight(&mask, of, options));
                match options.loss {
                    Loss::Nll => weight,
                    Loss::Dft => weight * probability(&scores, [rows[of], at], dtype),
                }
            });
        }
    }
    step::outputs(gradients, case.logits.shape(), case.tokens.len(), false)
}

/// The sets of rows that have one mean, and the share of each in the update.
fn sets(shape: &Shape, update: usize, options: &Options) -> Vec<(Vec<usize>, f64)> {
    let batches = shape.micro_batches(update);
    match options.over {
        Over::Update => vec![(batches.concat(), 1.0)],
        Over::MicroBatch => {
            let share = 1.0 / batches.len() as f64;
            batches.into_iter().map(|rows| (rows, share)).collect()
        }
    }
}

/// What the loss of a row's trained tokens is multiplied by.
fn weight(mask: &Array2<bool>, of: usize, options: &Options) -> f64 {
    let count = |flags: &mut dyn Iterator<Item = &bool>| flags.filter(|flag| **flag).count() as f64;
    let rows = mask.nrows() as f64;
    match options.aggregate {
        Aggregate::TokenMean => 1.0 / count(&mut mask.iter()),
        Aggregate::TokenSum => 1.0,
        Aggregate::SeqMeanTokenMean => 1.0 / (rows * count(&mut mask.row(of).iter())),
        Aggregate::SeqMeanTokenSum => 1.0 / rows,
        Aggregate::SeqMeanTokenSumNorm => unreachable!("options were checked"),
    }
}

/// The probability of a token: as far off as its logarithm is.
fn probability(scores: &Scores, place: [usize; 2], dtype: Dtype) -> Scaled {
    let log_prob = scores.log_probs.at(place);
    let p = log_prob.value.exp();
    let moved = (log_prob.value + step::error(dtype, log_prob.scale)).exp() - p;
    Scaled { value: p, scale: p + moved / step::error(dtype, 1.0) }
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, IxDyn, array};

    use super::*;

    /// Two sequences: `2 1` behind a prompt of one token, and `1`.
    fn case(updates: usize) -> SftStepCase {
        SftStepCase {
            tokens: array![[2, 1], [1, 0]],
            mask: array![[false, true], [true, false]],
            logits: ArrayD::zeros(IxDyn(&[updates, 2, 2, 4])),
            micro_batches: None,
        }
    }

    fn gradient(case: &SftStepCase, options: &Options) -> Vec<f64> {
        expected(case, options, Dtype::F64)[0].numbers.iter().map(|n| n.value).collect()
    }

    fn near(found: &[f64], wanted: &[f64]) {
        let apart = found.iter().zip(wanted).any(|(a, b)| (a - b).abs() > 1e-12);
        assert!(found.len() == wanted.len() && !apart, "{found:?} is not {wanted:?}");
    }

    #[test]
    fn the_logits_of_trained_tokens_rise() {
        // Both sequences have one trained token, an end at even odds.
        let towards = [0.125, -0.375, 0.125, 0.125];
        let zero = [0.0; 4];
        // Both have the same first prefix, whose row is that of the first sequence.
        let expected = [towards, towards, zero, zero].concat();
        near(&gradient(&case(1), &Options::default()), &expected);
        // A quarter of that where each token counts by its probability.
        let dft = Options { loss: Loss::Dft, ..Options::default() };
        let quarter: Vec<f64> = expected.iter().map(|x| x / 4.0).collect();
        near(&gradient(&case(1), &dft), &quarter);
    }

    #[test]
    fn an_update_has_the_rows_of_its_slice() {
        let options = Options { mini_batches: 2, ..Options::default() };
        let towards = [0.25, -0.75, 0.25, 0.25];
        let zero = [0.0; 4];
        let expected = [zero, towards, zero, zero, towards, zero, zero, zero].concat();
        near(&gradient(&case(2), &options), &expected);
    }
}
