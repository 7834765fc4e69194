//! The definition of `reward-model-step` in plain f64, with the scale of every number.

use ndarray::{Array1, Array4};

use super::{Options, RewardModelStep, RewardModelStepCase, as_preferences, pooled};
use crate::preference_loss::PreferenceLoss;
use crate::step;
use shakedown_core::contract::Contract;
use shakedown_core::contract::step::Stepped;
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number};
use shakedown_core::value::place::Dtype;

/// What is expected of every update.
pub(super) fn expected(
    case: &RewardModelStepCase,
    options: &Options,
    dtype: Dtype,
) -> Vec<Expected> {
    let (shape, plan) = (RewardModelStep::shape(case, options), options.plan());
    let pooled = pooled(case, options);
    let sizes = (plan.updates(), shape.all_rows(), shape.width(), 1);
    let mut gradients = Array4::from_elem(sizes, Scaled::exact(0.0));
    for update in 0..plan.updates() {
        let scores = shape.logits(&case.scores, update);
        let batches = shape.micro_batches(update);
        let share = 1.0 / batches.len() as f64;
        for rows in batches {
            let pairs = step::pairs(&rows);
            let score = |row: usize| scores[[row, pooled[row], 0]];
            let sides =
                [0, 1].map(|side| pairs.iter().map(|pair| score(2 * pair + side)).collect());
            let slopes = slopes(case, options, dtype, &pairs, sides);
            for (side, slopes) in slopes.iter().enumerate() {
                for (pair, slope) in pairs.iter().zip(slopes) {
                    let row = 2 * pair + side;
                    let [home, place] = shape.home(row, pooled[row]);
                    let sum = &mut gradients[[update, home, place, 0]];
                    *sum = *sum + *slope * share;
                }
            }
        }
    }
    step::outputs(gradients, case.scores.shape(), case.tokens.len(), false)
}

/// The slope of a micro-batch's mean loss by the score of each chosen and each rejected completion.
fn slopes(
    case: &RewardModelStepCase,
    options: &Options,
    dtype: Dtype,
    pairs: &[usize],
    sides: [Array1<f64>; 2],
) -> [Vec<Scaled>; 2] {
    let center: Vec<Scaled> = sides[0]
        .iter()
        .zip(&sides[1])
        .map(|(chosen, rejected)| Scaled::rounded(*chosen) + Scaled::rounded(*rejected))
        .map(|sum| sum * (2.0 * options.center / pairs.len() as f64))
        .collect();
    let case = as_preferences(case, pairs, sides);
    let expected = PreferenceLoss::oracle_gradient(&case, &options.loss(), dtype);
    ["grad_policy_chosen", "grad_policy_rejected"].map(|field| {
        let found = expected.iter().find(|expected| expected.field == field);
        let numbers = &found.expect("both sides have a gradient").numbers;
        let scaled = |n: &Number| Scaled { value: n.value, scale: n.scale };
        numbers.iter().zip(&center).map(|(slope, center)| scaled(slope) + *center).collect()
    })
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, IxDyn, array};

    use super::super::Pooled;
    use super::*;

    /// One pair: an end, and a word before one.
    fn case() -> RewardModelStepCase {
        RewardModelStepCase {
            tokens: array![[[1, 0], [2, 1]]],
            scores: ArrayD::zeros(IxDyn(&[1, 1, 2, 2])),
            margins: None,
            micro_batches: None,
        }
    }

    fn near(case: &RewardModelStepCase, options: &Options, wanted: [f64; 4]) {
        let numbers = &expected(case, options, Dtype::F64)[0].numbers;
        let found: Vec<f64> = numbers.iter().map(|number| number.value).collect();
        let apart = found.iter().zip(&wanted).any(|(a, b)| (a - b).abs() > 1e-12);
        assert!(!apart, "{found:?} is not {wanted:?}");
    }

    #[test]
    fn the_scores_of_both_ends_move_apart() {
        near(&case(), &Options::default(), [-0.5, 0.0, 0.0, 0.5]);
    }

    #[test]
    fn a_margin_is_taken_off_the_difference() {
        let options = Options { has_margins: true, ..Options::default() };
        // σ(ln 3) is 3/4.
        let case = RewardModelStepCase { margins: Some(array![3.0_f64.ln()]), ..case() };
        near(&case, &options, [-0.75, 0.0, 0.0, 0.75]);
    }

    #[test]
    fn the_centre_pulls_the_sum_of_both_scores_to_0() {
        let mut case = case();
        case.scores.fill(2.0);
        let options = Options { center: 0.25, ..Options::default() };
        // 2 · 0.25 · (2 + 2) on both.
        near(&case, &options, [1.5, 0.0, 0.0, 2.5]);
    }

    #[test]
    fn the_last_token_that_is_not_the_pad_may_be_before_the_end() {
        let tokens = array![[[3, 1, 1], [2, 3, 1]]];
        let scores = ArrayD::zeros(IxDyn(&[1, 1, 2, 3]));
        let case = RewardModelStepCase { tokens, scores, ..case() };
        let options = Options { pad: 1, pooled: Pooled::LastNonPad, ..Options::default() };
        let numbers = &expected(&case, &options, Dtype::F64)[0].numbers;
        let found: Vec<f64> = numbers.iter().map(|number| number.value).collect();
        assert_eq!(found, [-0.5, 0.0, 0.0, 0.0, 0.5, 0.0]);
    }
}
