//! The definition of `critic-step` in plain f64, with the scale of every number: the oracles of the
//! components, one after the other.
//!
//! A return is off by its rounding. What the loss makes of that is seen by asking for its gradient
//! twice again, with the returns moved to either end of their error. Where the larger of two errors
//! changes with them, the three differ by all of the gradient, and so that place is not judged.

use ndarray::{Array2, Array4, Axis, Zip};

use super::{CriticStep, CriticStepCase, Options, Targets, sets};
use crate::gae::{Gae, GaeCase};
use crate::step::{self, Known};
use crate::token_rewards::{TokenRewards, TokenRewardsCase};
use crate::value_loss::{ValueLoss, ValueLossCase};
use shakedown_core::contract::Contract;
use shakedown_core::contract::step::Stepped;
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::place::Dtype;

/// What is expected of every update.
pub(super) fn expected(case: &CriticStepCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    let (shape, plan) = (CriticStep::shape(case, options), options.plan());
    let sizes = (plan.updates(), shape.all_rows(), shape.width(), 1);
    let mut gradients = Array4::from_elem(sizes, Scaled::exact(0.0));
    for update in 0..plan.updates() {
        let [now, old] = [update, shape.first_update(shape.generation(update))]
            .map(|update| shape.logits(&case.values, update).remove_axis(Axis(2)));
        let returns = returns(case, options, &old, dtype);
        for (rows, share) in sets(&shape, update, options) {
            let returns = returns.rows(&rows);
            let asked = ValueLossCase {
                values: now.select(Axis(0), &rows),
                old_values: old.select(Axis(0), &rows),
                returns: returns.values.clone(),
                mask: case.mask.select(Axis(0), &rows),
            };
            let slopes = slopes(asked, &returns, options, dtype);
            shape.add(&mut gradients, update, &rows, |place, _| slopes.at(place) * share);
        }
    }
    step::outputs(gradients, case.values.shape(), case.tokens.len(), false)
}

/// What the value of each token should be.
fn returns(case: &CriticStepCase, options: &Options, old: &Array2<f64>, dtype: Dtype) -> Known {
    let none = Array2::zeros(case.tokens.dim());
    if options.targets == Targets::Given {
        let values = case.returns.clone().expect("returns are given");
        return Known { values, scales: none };
    }
    let asked = TokenRewardsCase {
        scores: case.scores.clone().expect("rewards are made of scores"),
        log_probs: case.kls.clone().unwrap_or_else(|| none.clone()),
        ref_log_probs: none,
        mask: case.mask.clone(),
        finished: None,
    };
    let rewards = Known::of(&TokenRewards::oracle(&asked, &options.rewards(), dtype)[0]);
    let (values, mask) = (old.clone(), case.mask.clone());
    let asked = GaeCase { rewards: rewards.values, values, mask };
    let mut returns = Known::of(&Gae::oracle(&asked, &options.gae(), dtype)[1]);
    // No reward counts more than once.
    for (mut scales, rewards) in returns.scales.rows_mut().into_iter().zip(rewards.scales.rows()) {
        scales += rewards.sum();
    }
    returns
}

/// The slopes of the loss by each value.
fn slopes(asked: ValueLossCase, returns: &Known, options: &Options, dtype: Dtype) -> Known {
    let slopes = |sign: f64| {
        let error = returns.scales.mapv(|scale| sign * step::error(dtype, scale));
        let moved = ValueLossCase { returns: &returns.values + &error, ..asked.clone() };
        Known::of(&ValueLoss::oracle_gradient(&moved, &options.loss(), dtype)[0])
    };
    let mut known = slopes(0.0);
    for other in [-1.0, 1.0].map(slopes) {
        Zip::from(&mut known.scales)
            .and(&known.values)
            .and(&other.values)
            .and(&other.scales)
            .for_each(|scale, here, there, open| {
                let moved = (there - here).abs() / step::error(dtype, 1.0);
                *scale = if open.is_infinite() { f64::INFINITY } else { *scale + moved };
            });
    }
    known
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, ArrayD, IxDyn, array};

    use super::super::Over;
    use super::*;
    use shakedown_core::numeric::aggregate::Aggregate;

    /// Completions of two tokens and of one, with values of 1 before each token.
    fn case() -> CriticStepCase {
        CriticStepCase {
            tokens: array![[2, 1], [1, 0]],
            mask: array![[true, true], [true, false]],
            values: ArrayD::from_elem(IxDyn(&[1, 2, 2]), 1.0),
            scores: Some(array![4.0, 2.0]),
            kls: None,
            returns: None,
            micro_batches: None,
        }
    }

    fn near(case: &CriticStepCase, options: &Options, wanted: &[f64]) {
        let numbers = &expected(case, options, Dtype::F64)[0].numbers;
        let found: Vec<f64> = numbers.iter().map(|number| number.value).collect();
        let apart = found.iter().zip(wanted).any(|(a, b)| (a - b).abs() > 1e-12);
        assert!(found.len() == wanted.len() && !apart, "{found:?} is not {wanted:?}");
    }

    #[test]
    fn values_move_to_the_returns() {
        // Of three tokens: what is missing at the end counts half of that one token earlier.
        let half = Options { lam: 0.5, ..Options::default() };
        near(&case(), &half, &[-0.5, -1.0, -1.0 / 3.0, 0.0]);
        let discounted = Options { gamma: 0.5, lam: 1.0, ..Options::default() };
        near(&case(), &discounted, &[-1.0 / 3.0, -1.0, -1.0 / 3.0, 0.0]);
    }

    #[test]
    fn the_divergence_of_a_token_is_taken_off_its_reward() {
        let kls = Some(array![[0.0, 6.0], [2.0, 0.0]]);
        let options = Options { lam: 1.0, beta: 0.5, ..Options::default() };
        near(&CriticStepCase { kls, ..case() }, &options, &[0.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn returns_may_be_given_and_values_clipped() {
        let returns = Some(array![[1.0, 3.0], [2.0, 0.0]]);
        let mut case = CriticStepCase { scores: None, returns, ..case() };
        case.values = ArrayD::from_elem(IxDyn(&[2, 2, 2]), 1.0);
        case.values[[1, 0, 1]] = 1.75;
        let options = Options {
            targets: Targets::Given,
            clip: Some(0.5),
            epochs: 2,
            aggregate: Aggregate::TokenSum,
            ..Options::default()
        };
        // The second update is clipped where it has gone too far.
        near(&case, &options, &[0.0, -2.0, -1.0, 0.0, 0.0, 0.0, -1.0, 0.0]);
    }

    #[test]
    fn a_mean_is_over_an_update_or_a_micro_batch() {
        let mut case = case();
        case.scores = Some(Array1::from_elem(2, 2.0));
        let options = Options { lam: 1.0, accumulation: 2, ..Options::default() };
        near(&case, &options, &[-1.0 / 3.0, -1.0 / 3.0, -1.0 / 3.0, 0.0]);
        let parts = Options { over: Over::MicroBatch, ..options };
        near(&case, &parts, &[-0.25, -0.25, -0.5, 0.0]);
    }
}
