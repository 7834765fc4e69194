//! The definition of `grpo-step` in plain f64, with the scale of every number: the oracles of the
//! components, one after the other.
//!
//! What a component gives is off by its rounding, and the next one makes more of it. How much more
//! is seen by asking the next one twice again, with its input moved to either end of its error. At
//! a bound of the clipping the two differ by all of the gradient, and so the bound is not judged.

use ndarray::{Array1, Array2, Array4, ArrayView1, Axis, Zip, s};

use super::{Action, GrpoStep, GrpoStepCase, KlIn, Options, Over, groups, rows};
use crate::completion_mask::{CompletionMask, CompletionMaskCase};
use crate::group_advantage::oracle::{self as advantage, Reward};
use crate::policy_loss::{KlEstimator, PolicyLoss, PolicyLossCase, Ratio};
use crate::reward_combination::{RewardCombination, RewardCombinationCase};
use crate::step::{self, Known, Scores};
use shakedown_core::contract::Contract;
use shakedown_core::contract::step::{Shape, Stepped};
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number};
use shakedown_core::value::place::Dtype;

/// The losses of some rows, as the oracle of the loss is asked.
struct Batch<'a> {
    options: &'a Options,
    dtype: Dtype,
    mask: Array2<bool>,
    log_probs: Known,
    old: Known,
    reference: Option<Known>,
    advantages: Array1<Number>,
}

/// Which input is moved, and which way.
#[derive(Clone, Copy)]
struct Move {
    policy: f64,
    reference: f64,
    advantage: f64,
}

impl Batch<'_> {
    /// The same with a column for each completion: its log-probabilities are sums over its tokens.
    fn of_completions(self) -> Self {
        let any = |row: ArrayView1<'_, bool>| row.iter().any(|kept| *kept);
        let summed = |known: &Known| {
            let sum = |row: usize| {
                let kept = (0..self.mask.ncols()).filter(|at| self.mask[[row, *at]]);
                Scaled::sum(kept.map(|at| known.at([row, at])))
            };
            let sums: Vec<Scaled> = (0..self.mask.nrows()).map(sum).collect();
            let column = |of: fn(&Scaled) -> f64| {
                Array1::from_iter(sums.iter().map(of)).insert_axis(Axis(1))
            };
            Known { values: column(|sum| sum.value), scales: column(|sum| sum.scale) }
        };
        Batch {
            log_probs: summed(&self.log_probs),
            old: summed(&self.old),
            reference: self.reference.as_ref().map(summed),
            mask: self.mask.map_axis(Axis(1), any).insert_axis(Axis(1)),
            ..self
        }
    }

    /// The gradient by each token's log-probability.
    fn gradient(&self) -> Known {
        let still = Move { policy: 0.0, reference: 0.0, advantage: 0.0 };
        let mut gradient = self.moved(still);
        for sign in [-1.0, 1.0] {
            for moved in [
                Move { policy: sign, ..still },
                Move { reference: sign, ..still },
                Move { advantage: sign, ..still },
            ] {
                let other = self.moved(moved);
                Zip::from(&mut gradient.scales).and(&gradient.values).and(&other.values).for_each(
                    |scale, here, there| *scale += (there - here).abs() / self.error(1.0),
                );
            }
        }
        gradient
    }

    /// How far a number of this scale is moved.
    fn error(&self, scale: f64) -> f64 {
        step::error(self.dtype, scale)
    }

    /// The gradient where an input is moved by its error.
    fn moved(&self, by: Move) -> Known {
        let apart = |known: &Known, sign: f64| -> Array2<f64> {
            let error = known.scales.mapv(|scale| sign * self.error(scale));
            &known.values + &error
        };
        // The log-ratio is what counts: the other policy moves against this one.
        let case = PolicyLossCase {
            log_probs: apart(&self.log_probs, by.policy),
            old_log_probs: apart(&self.old, -by.policy),
            advantages: self
                .advantages
                .mapv(|a| a.value + by.advantage * self.error(a.scale))
                .into_dyn(),
            mask: self.mask.clone(),
            ref_log_probs: self.reference.as_ref().map(|reference| {
                let moved = apart(reference, -by.reference);
                moved - self.log_probs.scales.mapv(|scale| by.reference * self.error(scale))
            }),
        };
        let beta = self.options.beta_of_the_loss();
        if !self.options.kl_weighted || beta == 0.0 {
            return self.of_loss(&case, beta);
        }
        let mut gradient =
            self.of_loss(&PolicyLossCase { ref_log_probs: None, ..case.clone() }, 0.0);
        for (row, slopes) in self.weighted(&case).into_iter().enumerate() {
            for (at, slope) in slopes.into_iter().enumerate() {
                let sum =
                    Scaled { value: gradient.values[[row, at]], scale: gradient.scales[[row, at]] }
                        + slope * beta;
                (gradient.values[[row, at]], gradient.scales[[row, at]]) = (sum.value, sum.scale);
            }
        }
        gradient
    }

    fn of_loss(&self, case: &PolicyLossCase, beta: f64) -> Known {
        let options = self.options.loss(beta);
        Known::of(&PolicyLoss::oracle_gradient(case, &options, self.dtype)[0])
    }

    /// The gradient of Σ weight · ratio · k(d), d = log-probability − that of the reference.
    fn weighted(&self, case: &PolicyLossCase) -> Vec<Vec<Scaled>> {
        let Options { aggregate, empty_rows, norm_length, ratio, kl_estimator, .. } = *self.options;
        let (rows, width) = case.mask.dim();
        let mut gradient = vec![vec![Scaled::exact(0.0); width]; rows];
        let Some(weights) = aggregate.weights(&case.mask, empty_rows, norm_length) else {
            return gradient;
        };
        let reference = case.ref_log_probs.as_ref().expect("a divergence has a reference");
        for (row, slopes) in gradient.iter_mut().enumerate() {
            let kept: Vec<usize> = (0..width).filter(|at| case.mask[[row, *at]]).collect();
            let log_ratio = |at: &usize| {
                Scaled::exact(case.log_probs[[row, *at]]) - case.old_log_probs[[row, *at]]
            };
            let mean = Scaled::sum(kept.iter().map(log_ratio)) / kept.len().max(1) as f64;
            let of_row: Vec<[Scaled; 2]> = kept
                .iter()
                .map(|at| {
                    let x = if ratio == Ratio::Token { log_ratio(at) } else { mean };
                    let weight = x.exp() * weights[[row, *at]];
                    let d = Scaled::exact(case.log_probs[[row, *at]]) - reference[[row, *at]];
                    let [value, slope] = divergence(d, kl_estimator);
                    [weight * value, weight * slope]
                })
                .collect();
            let all =
                Scaled::sum(of_row.iter().map(|[value, _]| *value)) / kept.len().max(1) as f64;
            for (at, [value, slope]) in kept.iter().zip(&of_row) {
                slopes[*at] = *slope + if ratio == Ratio::Sequence { all } else { *value };
            }
        }
        gradient
    }
}

/// An estimate of the divergence, and its derivative.
fn divergence(d: Scaled, estimator: KlEstimator) -> [Scaled; 2] {
    match estimator {
        KlEstimator::K1 => [d, Scaled::exact(1.0)],
        KlEstimator::K2 => [d * d / 2.0, d],
        KlEstimator::K3 => [(-d).exp_m1() + d, -(-d).exp_m1()],
        KlEstimator::Abs if d.value == 0.0 => [Scaled::exact(0.0); 2],
        KlEstimator::Abs => [d.abs(), Scaled::exact(d.value.signum())],
    }
}

/// What is expected of every update.
pub(super) fn expected(case: &GrpoStepCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    let (shape, plan) = (GrpoStep::shape(case, options), options.plan());
    let mask = CompletionMaskCase { tokens: shape.tokens.clone() };
    let mask = Known::of(&CompletionMask::oracle(&mask, &options.mask(), dtype)[0]);
    let mask = mask.values.mapv(|flag| flag == 1.0);
    let scores = |logits| Scores::of(logits, &shape.tokens, &options.log_probs(), dtype);
    let reference =
        case.ref_logits.as_ref().map(|logits| scores(shape.held(logits.view())).log_probs);
    let vocabulary = case.logits.shape()[4];
    let mut gradients = Array4::from_elem(
        (plan.updates(), shape.all_rows(), shape.width(), vocabulary),
        Scaled::exact(0.0),
    );
    let penalty = |generation: usize| {
        let reference = reference.as_ref().filter(|_| options.kl_in == KlIn::Reward)?;
        let old = scores(shape.logits(&case.logits, shape.first_update(generation))).log_probs;
        let of_row = |row: usize| {
            let kept = (0..shape.width()).filter(|at| mask[[row, *at]]);
            let apart = kept.map(|at| old.at([row, at]) - reference.at([row, at]));
            Scaled::sum(apart.map(|d| divergence(d, options.kl_estimator)[0])) * options.beta
        };
        Some(shape.rows_of(generation).map(of_row).collect::<Vec<Scaled>>())
    };
    let advantages: Vec<Array1<Number>> = (0..plan.generations)
        .map(|generation| {
            let penalty = penalty(generation);
            advantages(case, &shape, generation, options, dtype, penalty.as_deref())
        })
        .collect();
    for update in 0..plan.updates() {
        let generation = shape.generation(update);
        let first = shape.rows_of(generation).start;
        let sampled = shape.first_update(generation);
        let old = scores(shape.logits(&case.logits, sampled)).log_probs;
        let current = scores(shape.logits(&case.logits, update));
        let micro_batches = shape.micro_batches(update);
        let share = 1.0 / micro_batches.len() as f64;
        let sets = match options.over {
            Over::MicroBatch => micro_batches,
            Over::Update | Over::Generation => vec![micro_batches.concat()],
        };
        for rows in sets {
            let trained = mask.select(Axis(0), &rows);
            let batch = Batch {
                options,
                dtype,
                mask: trained.clone(),
                log_probs: current.log_probs.rows(&rows),
                old: old.rows(&rows),
                reference: reference.as_ref().map(|reference| reference.rows(&rows)),
                advantages: rows.iter().map(|row| advantages[generation][row - first]).collect(),
            };
            let factor = match options.over {
                Over::MicroBatch => share,
                Over::Update => 1.0,
                Over::Generation => {
                    let all: Vec<usize> = shape.rows_of(generation).collect();
                    let tokens = |rows: &[usize]| {
                        rows.iter().flat_map(|row| mask.row(*row)).filter(|m| **m).count() as f64
                    };
                    // Of no token nothing is trained, whatever it is multiplied by.
                    tokens(&rows) * f64::from(options.mini_batches) / tokens(&all).max(1.0)
                }
            };
            let is_whole = options.action == Action::Completion;
            let gradient = if is_whole { batch.of_completions() } else { batch }.gradient();
            current.add(&mut gradients, &shape, update, &rows, |[row, at]| {
                match trained[[row, at]] {
                    true => gradient.at([row, if is_whole { 0 } else { at }]) * factor,
                    false => Scaled::exact(0.0),
                }
            });
        }
    }
    let terms = case.tokens.len() / plan.generations;
    let mut outputs = step::outputs(gradients, case.logits.shape(), terms, true);
    outputs.push(step::exactly("scored", case.rewards.shape(), 1.0));
    outputs
}

/// The advantages of the rows of a generation, from rewards less a penalty where there is one.
fn advantages(
    case: &GrpoStepCase,
    shape: &Shape,
    generation: usize,
    options: &Options,
    dtype: Dtype,
    penalty: Option<&[Scaled]>,
) -> Array1<Number> {
    let count = shape.rows;
    let rewards = rows(&case.rewards).slice(s![shape.rows_of(generation), ..]).to_owned();
    let rewards: RewardCombinationCase =
        RewardCombinationCase { rewards, groups: groups(shape, generation) };
    let functions = rewards.rewards.dim().1;
    let combined = &RewardCombination::oracle(&rewards, &options.reward(), dtype)[0].numbers;
    let reward = |(row, sum): (usize, &Number)| {
        let sum = Scaled { value: sum.value, scale: sum.value.abs().max(sum.scale) };
        let penalty = penalty.map(|penalty| penalty[row]);
        let Scaled { value, scale } = penalty.map_or(sum, |penalty| sum - penalty);
        let exact = functions == 1 && options.weights.is_none() && penalty.is_none();
        Reward { value, magnitude: scale, exact }
    };
    let rewards: Vec<Reward> = combined.iter().enumerate().map(reward).collect();
    let groups: Vec<Vec<usize>> = (0..count)
        .step_by(shape.group)
        .map(|first| (first..first + shape.group).collect())
        .collect();
    advantage::of(&rewards, &groups, &options.advantage()).into()
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayD, IxDyn, array};

    use super::*;

    /// Two completions of one token, `1` and `2`, with rewards 1 and 0.
    fn case(updates: usize) -> GrpoStepCase {
        GrpoStepCase {
            tokens: array![[[1], [2]]],
            rewards: array![[[1.0], [0.0]]],
            logits: ArrayD::zeros(IxDyn(&[updates, 1, 2, 1, 4])),
            ref_logits: None,
            micro_batches: None,
        }
    }

    fn gradient(case: &GrpoStepCase, options: &Options) -> Vec<f64> {
        expected(case, options, Dtype::F64)[0].numbers.iter().map(|n| n.value).collect()
    }

    fn near(found: &[f64], wanted: &[f64]) {
        assert_eq!(found.len(), wanted.len());
        let apart = found.iter().zip(wanted).any(|(a, b)| (a - b).abs() > 1e-12);
        assert!(!apart, "{found:?} is not {wanted:?}");
    }

    /// Half the advantage of the better one: rewards 1 and 0 have the deviation √½.
    fn half() -> f64 {
        0.5 * 0.5 / (0.5_f64.sqrt() + 1e-4)
    }

    #[test]
    fn at_even_odds_only_the_sampled_tokens_move() {
        let a = half();
        let found = gradient(&case(1), &Options::default());
        near(&found, &[0.0, -a, a, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn each_update_has_the_rows_of_its_slice() {
        let a = half();
        let options = Options { mini_batches: 2, ..Options::default() };
        // A row alone: 2a · (p − onehot) of the better one, and its opposite of the other.
        let [better, worse] = [1, 2].map(|token| {
            let sign = if token == 1 { 1.0 } else { -1.0 };
            let slope = |id| sign * 2.0 * a * (0.25 - f64::from(u8::from(id == token)));
            [0, 1, 2, 3].map(slope)
        });
        let zero = [0.0; 4];
        near(&gradient(&case(2), &options), &[better, zero, worse, zero].concat());
        let shuffled = GrpoStepCase { micro_batches: Some(array![[[1]], [[0]]]), ..case(2) };
        near(&gradient(&shuffled, &options), &[worse, zero, better, zero].concat());
    }

    #[test]
    fn at_a_clip_bound_the_gradient_is_open() {
        let options = Options { mini_batches: 2, ..Options::default() };
        let bound = |ratio: f64| {
            let mut moved = case(2);
            // p = ¼ becomes ratio/4 in the second update, in which the worse one is trained.
            moved.logits[[1, 0, 0, 0, 2]] = (ratio * 3.0 / (4.0 - ratio)).ln();
            let numbers = &expected(&moved, &options, Dtype::F32)[0].numbers;
            numbers[[1, 0, 0, 0, 2]].scale
        };
        assert!(bound(0.8) > 1e4 * bound(0.9));
    }
}
