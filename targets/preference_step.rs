//! `preference-step` on tensors: DPO and its relatives on a policy that is a table of logits.

use shakedown::author::Component;
use shakedown::contracts::preference_step::{
    Options, PairLoss, PreferenceStep, PreferenceStepCase, PreferenceStepOutput,
};
use shakedown::contracts::token_log_probs;
use shakedown_tch::{Tensors, tch};
use tch::{Kind, Tensor, no_grad};

use crate::arithmetic;
use crate::grpo_step::{held, homes};
use crate::log_probs::token_log_probs;
use crate::masked::under;
use crate::pair_objective::{Side, pair_objective};
use crate::preference::{Pairs, preference_loss};

/// The function below as a component.
pub fn component(options: Options) -> impl Component<PreferenceStep> {
    tch::<PreferenceStep>(move |case| preference_step(case, &options))
}

/// The gradient of the table at each update.
///
/// # Shapes
/// As the contract's.
///
/// # Units
/// Those of a loss over logits. Half formats are answered in f32.
///
/// # Errors
/// Panics where the options do not fit the case.
///
/// # Source
/// Rafailov et al. 2023 for the step; the losses are those of `preference` and `pair_objective`.
pub fn preference_step(
    case: &PreferenceStepCase<Tensors>,
    options: &Options,
) -> PreferenceStepOutput<Tensors> {
    let homes = homes(&case.tokens);
    let (pairs, _, _) = case.tokens.size3().expect("tokens are [P, 2, T]");
    let tokens = case.tokens.flatten(0, 1);
    let ends = tokens.eq(options.eos).to_kind(Kind::Int64);
    let mask = (ends.cumsum(1, Kind::Int64) - &ends).eq(0);
    let sums = |table: &Tensor| {
        let table = table.to_kind(arithmetic(table.kind()));
        let scored = token_log_probs::Options::default();
        let log_probs = token_log_probs(&held(&table, &homes), &tokens, &scored);
        under(&mask, &log_probs).sum_dim_intlist(1, false, None).view([pairs, 2])
    };
    let lengths = mask.sum_dim_intlist(1, false, Kind::Int64).view([pairs, 2]);
    let reference = case.ref_logits.as_ref().map(|table| no_grad(|| sums(table)));
    let [mini_batches, accumulation] = [options.mini_batches, options.accumulation].map(i64::from);
    let size = pairs / (mini_batches * accumulation);
    let device = case.tokens.device();
    let (mut gradients, mut chosen) = (Vec::new(), Vec::new());
    for update in 0..i64::from(options.epochs) * mini_batches {
        let logits = case.logits.get(update).detach();
        let table = logits.to_kind(arithmetic(logits.kind())).set_requires_grad(true);
        let policy = sums(&table);
        let reference =
            reference.as_ref().map_or_else(|| policy.zeros_like(), Tensor::shallow_clone);
        let first = update % mini_batches * accumulation;
        let batches: Vec<Tensor> = (first..first + accumulation)
            .map(|at| Tensor::arange(size, (Kind::Int64, device)) + at * size)
            .collect();
        let losses: Vec<Tensor> = batches
            .iter()
            .map(|pairs| {
                let own = |all: &Tensor| all.index_select(0, pairs);
                loss(&own(&policy), &own(&reference), &own(&lengths), options)
            })
            .collect();
        let loss = Tensor::stack(&losses, 0).mean(None);
        gradients.push(Tensor::run_backward(&[loss], &[&table], false, false).remove(0));
        let both = |pairs: &Tensor| Tensor::stack(&[pairs * 2, pairs * 2 + 1], 1).flatten(0, 1);
        chosen.push(Tensor::stack(&batches.iter().map(both).collect::<Vec<_>>(), 0));
    }
    let gradient = Tensor::stack(&gradients, 0);
    let none = || Some(Tensor::zeros([], (Kind::Float, device)));
    PreferenceStepOutput {
        unknown: Some(Tensor::zeros([gradients.len() as i64], (gradient.kind(), device))),
        gradient,
        micro_batches: Some(Tensor::stack(&chosen, 0)),
        ref_gradient: none(),
        ref_training: none(),
    }
}

/// The mean loss of some pairs, given `[B, 2]`: chosen and rejected ones.
fn loss(policy: &Tensor, reference: &Tensor, lengths: &Tensor, options: &Options) -> Tensor {
    let side = |all: &Tensor, at| all.select(1, at);
    let [policy, reference, lengths] =
        [policy, reference, lengths].map(|all| [side(all, 0), side(all, 1)]);
    match options.loss() {
        PairLoss::Margin(options) => {
            let pairs = Pairs {
                policy_chosen: &policy[0],
                policy_rejected: &policy[1],
                ref_chosen: &reference[0],
                ref_rejected: &reference[1],
            };
            preference_loss(&pairs, &options).losses
        }
        PairLoss::Objective(options) => {
            let [chosen, rejected] = [0, 1].map(|at| Side {
                policy: &policy[at],
                reference: &reference[at],
                lengths: &lengths[at],
            });
            pair_objective(&chosen, &rejected, &options).losses
        }
    }
}
