//! The definition of `preference-step` in plain f64, with the scale of every number: the oracles of
//! the components, one after the other.
//!
//! What a sum of log-probabilities is off by, the loss makes more of. How much more is seen by
//! asking the loss again with a sum moved to either end of its error. At the bend of a hinge, or
//! where two ranks are equal, the two differ by all of the gradient, and nothing is judged there.

use ndarray::{Array1, Array2, Array4};

use super::{Options, PairLoss, PreferenceStep, PreferenceStepCase};
use crate::pair_objective::{PairObjective, PairObjectiveCase};
use crate::preference_loss::{PreferenceLoss, PreferenceLossCase};
use crate::step::{self, Known, Scores};
use crate::token_log_probs;
use shakedown_core::contract::Contract;
use shakedown_core::contract::step::Stepped;
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number};
use shakedown_core::value::place::Dtype;

/// The numbers of the pairs of a micro-batch: chosen and rejected ones.
type Sides<T> = [Vec<T>; 2];

/// What the loss of a micro-batch is asked with.
struct Batch<'a> {
    options: &'a Options,
    dtype: Dtype,
    policy: Sides<Scaled>,
    reference: Sides<Scaled>,
    lengths: Sides<i64>,
}

impl Batch<'_> {
    /// The slope of the mean loss by the log-probability of each completion.
    fn slopes(&self) -> Sides<Scaled> {
        let mut slopes = self.moved(|_, _| 0.0);
        // Of ranks each pair may change its own.
        let pairs = if self.options.kind.sorts() { self.lengths[0].len() } else { 1 };
        let alone = |pair: usize, other: usize| pairs == 1 || pair == other;
        let moves = (0..4 * pairs).map(|at| (at % 2, at / 4, [1.0, -1.0][at / 2 % 2]));
        for (side, pair, sign) in moves {
            let others = self.moved(|of, other| match of == side && alone(pair, other) {
                true => sign,
                false => 0.0,
            });
            for (slope, other) in slopes.iter_mut().flatten().zip(others.iter().flatten()) {
                let moved = (other.value - slope.value).abs();
                slope.scale += moved / step::error(self.dtype, 1.0);
            }
        }
        slopes
    }

    /// The slopes where log-ratios are moved by their error, so many times, by side and pair.
    fn moved(&self, by: impl Fn(usize, usize) -> f64) -> Sides<Scaled> {
        let side = |at: usize| -> ([Array1<f64>; 2], Vec<f64>) {
            let pairs = self.policy[at].iter().zip(&self.reference[at]).enumerate();
            let moved = pairs.map(|(pair, (policy, reference))| {
                let length = self.lengths[at][pair] as f64;
                let scale = policy.scale + reference.scale + self.of_the_reward(length);
                let moved = policy.value + by(at, pair) * step::error(self.dtype, scale);
                let [reward, slope] = self.options.reward(moved, length);
                ((reward, slope), reference.value)
            });
            let (rewards, reference): (Vec<(f64, f64)>, Vec<f64>) = moved.unzip();
            let (policy, slopes): (Vec<f64>, Vec<f64>) = rewards.into_iter().unzip();
            ([policy.into(), reference.into()], slopes)
        };
        let sides = [side(0), side(1)];
        let slopes = sides.each_ref().map(|(_, slopes)| slopes.clone());
        let [[policy_chosen, ref_chosen], [policy_rejected, ref_rejected]] =
            sides.map(|(side, _)| side);
        let expected = match self.options.loss() {
            PairLoss::Margin(options) => {
                let case =
                    PreferenceLossCase { policy_chosen, policy_rejected, ref_chosen, ref_rejected };
                PreferenceLoss::oracle_gradient(&case, &options, self.dtype)
            }
            PairLoss::Objective(options) => {
                let [chosen_lengths, rejected_lengths] =
                    [0, 1].map(|at| self.lengths[at].iter().copied().collect());
                let case = PairObjectiveCase {
                    policy_chosen,
                    policy_rejected,
                    ref_chosen,
                    ref_rejected,
                    chosen_lengths,
                    rejected_lengths,
                };
                PairObjective::oracle_gradient(&case, &options, self.dtype)
            }
        };
        let of = |field: &str, slopes: &[f64]| -> Vec<Scaled> {
            let found = expected.iter().find(|expected| expected.field == field);
            let numbers = &found.expect("both sides have a gradient").numbers;
            let scaled = |n: &Number| Scaled { value: n.value, scale: n.scale };
            let by_reward = numbers.iter().map(scaled).zip(slopes);
            by_reward.map(|(by_reward, slope)| self.by_log_prob(by_reward, *slope)).collect()
        };
        [of("grad_policy_chosen", &slopes[0]), of("grad_policy_rejected", &slopes[1])]
    }

    /// What rounding makes of a reward, as what it makes of its log-probability: a component may
    /// take the power -α of e^x, subtract it from 1, and divide by α.
    fn of_the_reward(&self, length: f64) -> f64 {
        let alpha = self.options.alpha.abs();
        let length = if self.options.averages() { length } else { 1.0 };
        if alpha == 0.0 { 0.0 } else { length * (6.0 + 2.0 * alpha) / alpha }
    }

    /// The slope by a log-probability, given those by its reward and of that. Such a component has
    /// the second by five factors.
    fn by_log_prob(&self, by_reward: Scaled, slope: f64) -> Scaled {
        match self.options.alpha == 0.0 {
            true => by_reward,
            false => by_reward * Scaled { value: slope, scale: 8.0 * slope },
        }
    }
}

/// What is expected of every update.
pub(super) fn expected(
    case: &PreferenceStepCase,
    options: &Options,
    dtype: Dtype,
) -> Vec<Expected> {
    let (shape, plan) = (PreferenceStep::shape(case, options), options.plan());
    let trained = PreferenceStep::trained(case, options);
    let log_probs = token_log_probs::Options::default();
    let scores = |logits| Scores::of(logits, &shape.tokens, &log_probs, dtype);
    let reference = case.ref_logits.as_ref();
    let reference = reference.map(|logits| scores(shape.held(logits.view())).log_probs);
    let vocabulary = case.logits.shape()[4];
    let mut gradients = Array4::from_elem(
        (plan.updates(), shape.all_rows(), shape.width(), vocabulary),
        Scaled::exact(0.0),
    );
    let mut in_unknown = Vec::new();
    for update in 0..plan.updates() {
        let mut in_prompts = vec![Scaled::exact(0.0); vocabulary];
        let current = scores(shape.logits(&case.logits, update));
        let batches = shape.micro_batches(update);
        let share = 1.0 / batches.len() as f64;
        for rows in batches {
            let pairs = step::pairs(&rows);
            let batch = Batch {
                options,
                dtype,
                policy: sums(&current.log_probs, &trained, &pairs),
                reference: match &reference {
                    Some(reference) => sums(reference, &trained, &pairs),
                    None => [
                        vec![Scaled::exact(0.0); pairs.len()],
                        vec![Scaled::exact(0.0); pairs.len()],
                    ],
                },
                lengths: lengths(&trained, &pairs),
            };
            let mut slopes = batch.slopes();
            let prompts = prompts(options, vocabulary, &pairs);
            let counts: Vec<usize> = (0..pairs.len())
                .map(|of| batch.lengths[0][of] as usize + options.prompt_tokens(pairs[of]))
                .collect();
            let weights = options.nll_weights(&counts).into_iter().enumerate();
            for (of, weight) in weights.filter(|(_, weight)| *weight != 0.0) {
                let weight = Scaled { value: weight, scale: 2.0 * weight.abs() };
                slopes[0][of] = slopes[0][of] + weight;
                for (sum, slope) in in_prompts.iter_mut().zip(&prompts[of]) {
                    *sum = *sum + *slope * weight * share;
                }
            }
            for (side, slopes) in slopes.iter().enumerate() {
                let rows: Vec<usize> = pairs.iter().map(|pair| 2 * pair + side).collect();
                current.add(&mut gradients, &shape, update, &rows, |[of, at]| {
                    match trained[[rows[of], at]] {
                        true => slopes[of] * share,
                        false => Scaled::exact(0.0),
                    }
                });
            }
        }
        let largest = in_prompts.into_iter().map(Scaled::abs);
        let larger = |a: Scaled, b: Scaled| if b.value > a.value { b } else { a };
        in_unknown.push(largest.fold(Scaled::exact(0.0), larger));
    }
    let terms = case.tokens.len();
    let mut outputs = step::outputs(gradients, case.logits.shape(), terms, true);
    let unknown = outputs.iter_mut().find(|expected| expected.field == "unknown");
    let numbers = unknown.map(|expected| expected.numbers.iter_mut());
    for (number, largest) in numbers.into_iter().flatten().zip(in_unknown) {
        *number = largest.into();
    }
    outputs
}

/// The gradients by the logits of what comes in a prompt of the log-probabilities of the prompts of
/// some pairs, as far as these are trained.
fn prompts(options: &Options, vocabulary: usize, pairs: &[usize]) -> Vec<Vec<Scaled>> {
    let words = step::words(&[options.eos, options.pad], vocabulary);
    let scaled = |count: usize, x: f64| Scaled { value: x, scale: 4.0 * count as f64 };
    let of = |pair: &usize| match options.prompt_tokens(*pair) {
        0 => Vec::new(),
        count => step::prompt_slopes(&words, *pair, vocabulary)
            .iter()
            .map(|x| scaled(count, *x))
            .collect(),
    };
    pairs.iter().map(of).collect()
}

/// The log-probabilities of both completions of some pairs.
fn sums(log_probs: &Known, trained: &Array2<bool>, pairs: &[usize]) -> Sides<Scaled> {
    let sum = |row: usize| {
        let kept = (0..trained.ncols()).filter(|at| trained[[row, *at]]);
        Scaled::sum(kept.map(|at| log_probs.at([row, at])))
    };
    [0, 1].map(|side| pairs.iter().map(|pair| sum(2 * pair + side)).collect())
}

/// How many tokens both completions of some pairs have.
fn lengths(trained: &Array2<bool>, pairs: &[usize]) -> Sides<i64> {
    let length = |row: usize| trained.row(row).iter().filter(|flag| **flag).count() as i64;
    [0, 1].map(|side| pairs.iter().map(|pair| length(2 * pair + side)).collect())
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, IxDyn, array};

    use super::super::Kind;
    use super::*;

    /// One pair of one token each, an end and a word before it.
    fn case() -> PreferenceStepCase {
        PreferenceStepCase {
            tokens: array![[[1, 0], [2, 1]]],
            logits: ArrayD::zeros(IxDyn(&[1, 1, 2, 2, 4])),
            ref_logits: Some(ArrayD::zeros(IxDyn(&[1, 2, 2, 4]))),
            micro_batches: None,
        }
    }

    fn near(options: &Options, wanted: &[f64]) {
        let numbers = &expected(&case(), options, Dtype::F64)[0].numbers;
        let found: Vec<f64> = numbers.iter().map(|number| number.value).collect();
        let apart = found.iter().zip(wanted).any(|(a, b)| (a - b).abs() > 1e-12);
        assert!(found.len() == wanted.len() && !apart, "{found:?} is not {wanted:?}");
    }

    #[test]
    fn the_chosen_completion_rises_and_the_rejected_one_falls() {
        // β·σ(0) = 0.05 on each token; the first prefix is that of both.
        let zero = [0.0; 4];
        let first = [0.0, -0.05, 0.05, 0.0];
        let last = [-0.0125, 0.0375, -0.0125, -0.0125];
        near(&Options::default(), &[first, zero, zero, last].concat());
    }

    #[test]
    fn averages_divide_by_the_number_of_tokens() {
        let options = Options { kind: Kind::SigmoidNorm, ..Options::default() };
        let zero = [0.0; 4];
        // 0.05 on the chosen token, half of it on each rejected one.
        let first = [0.0125 - 0.00625, -0.0375 - 0.00625, 0.0125 + 0.01875, 0.0125 - 0.00625];
        let last = [-0.00625, 0.01875, -0.00625, -0.00625];
        near(&options, &[first, zero, zero, last].concat());
    }
}
