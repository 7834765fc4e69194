//! The definition of `kto-step` in plain f64, with the scale of every number.
//!
//! What a log-ratio is off by, the loss makes more of, or less. How much is seen by asking for its
//! slope again at either end of the error.

use ndarray::{Array2, Array4, ArrayView3, Ix3};

use super::{Behind, Kind, KtoStep, KtoStepCase, Options, until_the_end};
use crate::step::{self, Known, Scores};
use crate::token_log_probs;
use shakedown_core::contract::step::Stepped;
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::place::Dtype;

/// What is expected of every update.
pub(super) fn expected(case: &KtoStepCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    let (shape, plan) = (KtoStep::shape(case, options), options.plan());
    let trained = KtoStep::trained(case, options);
    let scored = token_log_probs::Options::default();
    let scores = |logits| Scores::of(logits, &shape.tokens, &scored, dtype);
    let reference = scores(shape.held(case.ref_logits.view().into_dyn())).log_probs;
    let vocabulary = case.logits.shape()[3];
    let mut gradients = Array4::from_elem(
        (plan.updates(), shape.all_rows(), shape.width(), vocabulary),
        Scaled::exact(0.0),
    );
    for update in 0..plan.updates() {
        let current = scores(shape.logits(&case.logits, update));
        let batches = shape.micro_batches(update);
        let share = 1.0 / batches.len() as f64;
        for rows in batches {
            let kl = match options.kind {
                Kind::Kto => kl(case, options, dtype, update, &rows).max(0.0),
                Kind::ApoZeroUnpaired => Scaled::exact(0.0),
            };
            let slope = |row: usize| {
                let sum = |known: &Known| Scaled::sum(kept(known, &trained, row));
                let ratio = sum(&current.log_probs) - sum(&reference);
                let is_desirable = case.labels[row];
                let sign = if is_desirable { 1.0 } else { -1.0 };
                let beta = Scaled::rounded(options.beta);
                let steepness = steepness((ratio - kl) * sign * beta, dtype);
                let weight = Scaled::rounded(options.weight(is_desirable));
                steepness * beta * weight * -sign / rows.len() as f64
            };
            let slopes: Vec<Scaled> = rows.iter().map(|row| slope(*row)).collect();
            current.add(&mut gradients, &shape, update, &rows, |[of, at]| {
                match trained[[rows[of], at]] {
                    true => slopes[of] * share,
                    false => Scaled::exact(0.0),
                }
            });
        }
    }
    let mut outputs = step::outputs(gradients, case.logits.shape(), case.tokens.len(), true);
    outputs.push(step::exactly("kl_gradient", &[plan.updates()], 0.0));
    outputs
}

/// The log-probabilities of a row's tokens.
fn kept(known: &Known, is_kept: &Array2<bool>, row: usize) -> Vec<Scaled> {
    let places = (0..is_kept.ncols()).filter(|at| is_kept[[row, *at]]);
    places.map(|at| known.at([row, at])).collect()
}

/// The mean log-ratio of a micro-batch's prompts with completions of others: where it is above 0,
/// it is the estimate of the KL.
fn kl(
    case: &KtoStepCase,
    options: &Options,
    dtype: Dtype,
    update: usize,
    rows: &[usize],
) -> Scaled {
    let others: Vec<usize> =
        (0..rows.len()).map(|of| rows[options.other(of, rows.len())]).collect();
    let behind = Behind::new(case, rows, &others);
    let is_kept = until_the_end(&behind.tokens, options);
    let log_probs = |own: ArrayView3<'_, f64>, others: ArrayView3<'_, f64>| {
        let scored = token_log_probs::Options::default();
        Scores::of(behind.held(own, others), &behind.tokens, &scored, dtype).log_probs
    };
    let table = |tables: &ndarray::ArrayD<f64>| -> ndarray::Array3<f64> {
        let table = tables.index_axis(ndarray::Axis(0), update).to_owned();
        table.into_dimensionality::<Ix3>().expect("a row of the table for each place")
    };
    let (own, kl_logits) = (table(&case.logits), case.kl_logits.as_ref().map(table));
    let policy = log_probs(own.view(), kl_logits.as_ref().expect("`kto` has them").view());
    let ref_kl_logits = case.ref_kl_logits.as_ref().expect("`kto` has them");
    let reference = log_probs(case.ref_logits.view(), ref_kl_logits.view());
    let ratios = (0..rows.len()).flat_map(|of| {
        let taken_off = kept(&reference, &is_kept, of).into_iter().map(|x| -x);
        kept(&policy, &is_kept, of).into_iter().chain(taken_off)
    });
    Scaled::sum(ratios) / rows.len() as f64
}

/// The same of each micro-batch of all updates.
pub(super) fn mean_log_ratios(case: &KtoStepCase, options: &Options) -> Vec<f64> {
    let shape = KtoStep::shape(case, options);
    let of_update = |update| {
        let batches = shape.micro_batches(update).into_iter();
        batches.map(move |rows| kl(case, options, Dtype::F64, update, &rows).value)
    };
    (0..options.plan().updates()).flat_map(of_update).collect()
}

/// The slope of a sigmoid, σ(x)·(1 - σ(x)).
fn steepness(x: Scaled, dtype: Dtype) -> Scaled {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let slope = |x: f64| sigmoid(x) * sigmoid(-x);
    let (value, error) = (slope(x.value), step::error(dtype, x.scale));
    let moved = [error, -error].map(|error| (slope(x.value + error) - value).abs());
    let passed = (moved[0] + moved[1]) / step::error(dtype, 1.0);
    // A σ near 1 is off by an ulp, 2 u, and so is what it lacks to 1; then three more roundings.
    let rounded = 2.0 * sigmoid(x.value) * sigmoid(x.value) + 3.0 * value;
    Scaled { value, scale: passed + rounded }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, ArrayD, IxDyn, array};

    use super::*;

    /// Two completions of one token, and of two: an end, and a word before one.
    fn case() -> KtoStepCase {
        KtoStepCase {
            tokens: array![[1, 0], [2, 1]],
            labels: array![true, false],
            logits: ArrayD::zeros(IxDyn(&[1, 2, 2, 4])),
            ref_logits: Array3::zeros((2, 2, 4)),
            kl_logits: Some(ArrayD::zeros(IxDyn(&[1, 2, 2, 4]))),
            ref_kl_logits: Some(Array3::zeros((2, 2, 4))),
            micro_batches: None,
        }
    }

    fn near(case: &KtoStepCase, options: &Options, wanted: &[f64]) {
        let numbers = &expected(case, options, Dtype::F64)[0].numbers;
        let found: Vec<f64> = numbers.iter().map(|number| number.value).collect();
        let apart = found.iter().zip(wanted).any(|(a, b)| (a - b).abs() > 1e-12);
        assert!(found.len() == wanted.len() && !apart, "{found:?} is not {wanted:?}");
    }

    /// The gradients where the tokens of both completions have these weights in the loss.
    fn weighted(desirable: f64, undesirable: f64) -> Vec<f64> {
        let of = |id: usize, weight: f64| {
            (0..4).map(move |other| weight * (f64::from(u8::from(other == id)) - 0.25))
        };
        let (desirable, zero) = (of(1, desirable), [0.0; 4]);
        let undesirable = of(2, undesirable).chain(of(1, undesirable));
        desirable.chain(zero).chain(undesirable).collect()
    }

    #[test]
    fn a_desirable_completion_rises_and_another_one_falls() {
        // β·σ(0)·σ(0) is 0.025, half of it in the mean of two.
        near(&case(), &Options::default(), &weighted(-0.0125, 0.0125));
        let options =
            Options { desirable_weight: 2.0, undesirable_weight: 0.5, ..Options::default() };
        near(&case(), &options, &weighted(-0.025, 0.00625));
    }

    #[test]
    fn the_estimate_of_the_kl_is_of_the_other_completion() {
        let mut case = case();
        // Behind the first prompt comes `2 1`: its second token has a probability of 3/4, of 1/4
        // under the reference. The other prompt has `1`, which is as likely under both.
        case.kl_logits.as_mut().unwrap()[[0, 0, 1, 1]] = 9.0_f64.ln();
        let options = Options { beta: 1.0, ..Options::default() };
        let odds = 3.0_f64.sqrt();
        let slope = odds / (1.0 + odds).powi(2) / 2.0;
        near(&case, &options, &weighted(-slope, slope));
        let options = Options { kind: Kind::ApoZeroUnpaired, ..options };
        near(&case, &options, &weighted(-0.125, 0.125));
    }

    #[test]
    fn an_estimate_below_0_is_0() {
        let mut case = case();
        case.kl_logits.as_mut().unwrap()[[0, 0, 1, 1]] = -3.0;
        let options = Options { beta: 1.0, ..Options::default() };
        near(&case, &options, &weighted(-0.125, 0.125));
    }
}
