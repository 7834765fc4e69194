//! The reference implementation of `preference-step`: the references of its components, one after
//! the other. A fault replaces one of them.

use ndarray::{Array1, Array2, Array3, Array4, Axis, IxDyn, arr0};

use super::{Options, PairLoss, PreferenceStep, PreferenceStepCase, PreferenceStepOutput};
use crate::completion_mask::{CompletionMask, CompletionMaskCase};
use crate::pair_objective::{PairObjective, PairObjectiveCase};
use crate::preference_loss::{PreferenceLoss, PreferenceLossCase};
use crate::step;
use crate::token_log_probs::{self, TokenLogProbs, TokenLogProbsCase};
use shakedown_core::contract::step::{Part, Stepped, reference};
use shakedown_core::value::place::Dtype;

/// Weights of chosen and of rejected completions.
pub(super) type Nll = fn(&Options, [&[usize]; 2]) -> [Vec<f64>; 2];

/// What a step is made of.
pub(super) struct Parts {
    pub(super) mask: Part<CompletionMask>,
    pub(super) log_probs: Part<TokenLogProbs>,
    pub(super) ref_log_probs: Part<TokenLogProbs>,
    /// The loss of kinds that look at the margin.
    pub(super) margin: Part<PreferenceLoss>,
    /// That of the others.
    pub(super) objective: Part<PairObjective>,
    /// Which of the pairs of a micro-batch the rejected completion of each is taken from.
    pub(super) rejected_of: fn(usize, usize) -> usize,
    /// What the log-probability of each token of a chosen and of a rejected completion is
    /// multiplied by in the negative log-likelihood; given the numbers of tokens of both sides.
    pub(super) nll: Nll,
    /// What the gradient of an update is multiplied by.
    pub(super) factor: fn(&Options) -> f64,
    /// Whether the reference has a gradient too.
    pub(super) trains_reference: bool,
}

/// All parts right.
pub(super) fn right() -> Parts {
    Parts {
        mask: reference::<CompletionMask>(),
        log_probs: reference::<TokenLogProbs>(),
        ref_log_probs: reference::<TokenLogProbs>(),
        margin: reference::<PreferenceLoss>(),
        objective: reference::<PairObjective>(),
        rejected_of: |pair, _| pair,
        nll: |options, [chosen, rejected]| [options.nll_weights(chosen), vec![0.0; rejected.len()]],
        factor: |_| 1.0,
        trains_reference: false,
    }
}

/// The gradients of all updates.
pub(super) fn step(
    case: &PreferenceStepCase,
    options: &Options,
    dtype: Dtype,
    parts: &Parts,
) -> PreferenceStepOutput {
    let (shape, plan) = (PreferenceStep::shape(case, options), options.plan());
    let mask = CompletionMaskCase { tokens: shape.tokens.clone() };
    let mask = (parts.mask)(&mask, &options.mask(), dtype).mask;
    let log_probs = |part: &Part<TokenLogProbs>, logits: Array3<f64>| {
        let case = TokenLogProbsCase { logits, tokens: shape.tokens.clone() };
        part(&case, &token_log_probs::Options::default(), dtype)
    };
    let scored = case.ref_logits.as_ref();
    let scored = scored.map(|logits| log_probs(&parts.ref_log_probs, shape.held(logits.view())));
    let reference = scored.as_ref().map(|scored| &scored.log_probs);
    let ref_slopes = scored.as_ref().and_then(|scored| scored.grad_logits.as_ref());
    let mut largest = 0.0_f64;
    let (updates, vocabulary) = (plan.updates(), case.logits.shape()[4]);
    let mut gradient = Array4::zeros((updates, shape.all_rows(), shape.width(), vocabulary));
    let mut unknown = Array1::zeros(updates);
    let words = step::words(&[options.eos, options.pad], vocabulary);
    for update in 0..updates {
        let current = log_probs(&parts.log_probs, shape.logits(&case.logits, update));
        let slopes = current.grad_logits.expect("the reference gives its gradient");
        let batches = shape.micro_batches(update);
        let share = (parts.factor)(options) / batches.len() as f64;
        let mut in_prompts = Array1::zeros(vocabulary);
        for rows in batches {
            let pairs = step::pairs(&rows);
            let rejected = |at| pairs[(parts.rejected_of)(at, pairs.len())];
            let rows: [Vec<usize>; 2] = [
                pairs.iter().map(|pair| 2 * pair).collect(),
                (0..pairs.len()).map(|at| 2 * rejected(at) + 1).collect(),
            ];
            let sums = Sums { mask: &mask, policy: &current.log_probs, reference };
            let mut by_side = loss_gradient(options, dtype, parts, &rows, &sums);
            let counts = rows.each_ref().map(|rows| {
                let lengths = sums.lengths(rows).into_iter().zip(rows);
                let prompts = |row: &usize| options.prompt_tokens(row / 2);
                lengths.map(|(length, row)| length as usize + prompts(row)).collect::<Vec<_>>()
            });
            let nll = (parts.nll)(options, [&counts[0], &counts[1]]);
            for (side, nll) in nll.into_iter().enumerate() {
                for (of, weight) in nll.into_iter().enumerate() {
                    by_side[side][of] += weight;
                    let pair = rows[side][of] / 2;
                    if options.prompt_tokens(pair) > 0 {
                        let prompt = step::prompt_slopes(&words, pair, vocabulary);
                        in_prompts = in_prompts + prompt * (weight * share);
                    }
                }
            }
            for (rows, by_row) in rows.iter().zip(&by_side) {
                for (row, by_row) in rows.iter().zip(by_row) {
                    let slopes = ref_slopes.map(|slopes| slopes.index_axis(Axis(0), *row));
                    let slopes = slopes.iter().flat_map(|slopes| slopes.indexed_iter());
                    let by_logit = slopes.map(|((at, _), x)| by_row * share * mask[[*row, at]] * x);
                    largest = by_logit.fold(largest, |most, x| most.max(x.abs()));
                }
                shape.add(&mut gradient, update, rows, |[of, at], [row, id]| {
                    by_row[of] * share * mask[[row, at]] * slopes[[row, at, id]]
                });
            }
        }
        unknown[update] = in_prompts.fold(0.0, |most: f64, x: &f64| most.max(x.abs()));
    }
    let gradient = gradient.into_dyn().into_shape_with_order(IxDyn(case.logits.shape()));
    PreferenceStepOutput {
        gradient: gradient.expect("a row of the table for each place"),
        micro_batches: Some(shape.all_micro_batches()),
        unknown: Some(unknown),
        ref_gradient: Some(arr0(if parts.trains_reference { largest } else { 0.0 })),
        ref_training: Some(arr0(0.0)),
    }
}

/// What sums of log-probabilities are made of.
struct Sums<'a> {
    mask: &'a Array2<f64>,
    policy: &'a Array2<f64>,
    reference: Option<&'a Array2<f64>>,
}

impl Sums<'_> {
    fn of(&self, log_probs: Option<&Array2<f64>>, rows: &[usize]) -> Array1<f64> {
        let sum = |row: &usize| {
            let terms = log_probs.into_iter().flat_map(|all| all.row(*row).to_vec());
            terms.zip(self.mask.row(*row)).map(|(x, m)| x * m).sum::<f64>()
        };
        rows.iter().map(sum).collect()
    }

    fn lengths(&self, rows: &[usize]) -> Array1<i64> {
        rows.iter().map(|row| self.mask.row(*row).sum() as i64).collect()
    }
}

/// The gradient of the mean loss by the log-probability of each chosen and each rejected row.
fn loss_gradient(
    options: &Options,
    dtype: Dtype,
    parts: &Parts,
    [chosen, rejected]: &[Vec<usize>; 2],
    sums: &Sums<'_>,
) -> [Array1<f64>; 2] {
    let reward = |row: &usize| {
        let rows = &[*row];
        let log_prob = sums.of(Some(sums.policy), rows)[0];
        options.reward(log_prob, sums.lengths(rows)[0] as f64)
    };
    let policy = |rows: &[usize]| rows.iter().map(|row| reward(row)[0]).collect::<Array1<f64>>();
    let slopes = [chosen, rejected]
        .map(|rows| rows.iter().map(|row| reward(row)[1]).collect::<Array1<f64>>());
    let reference = |rows: &[usize]| sums.of(sums.reference, rows);
    let (by_chosen, by_rejected) = match options.loss() {
        PairLoss::Margin(options) => {
            let case = PreferenceLossCase {
                policy_chosen: policy(chosen),
                policy_rejected: policy(rejected),
                ref_chosen: reference(chosen),
                ref_rejected: reference(rejected),
            };
            let output = (parts.margin)(&case, &options, dtype);
            (output.grad_policy_chosen, output.grad_policy_rejected)
        }
        PairLoss::Objective(options) => {
            let case = PairObjectiveCase {
                policy_chosen: policy(chosen),
                policy_rejected: policy(rejected),
                ref_chosen: reference(chosen),
                ref_rejected: reference(rejected),
                chosen_lengths: sums.lengths(chosen),
                rejected_lengths: sums.lengths(rejected),
            };
            let output = (parts.objective)(&case, &options, dtype);
            (output.grad_policy_chosen, output.grad_policy_rejected)
        }
    };
    let [of_chosen, of_rejected] = slopes;
    [(by_chosen, of_chosen), (by_rejected, of_rejected)]
        .map(|(by_reward, slopes)| by_reward.expect("the reference gives its gradient") * slopes)
}
