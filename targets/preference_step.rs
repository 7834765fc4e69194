//! `preference-step` on tensors: DPO and its relatives on a policy that is a table of logits.

use shakedown::author::Component;
use shakedown::contracts::preference_step::{
    Nll, Options, PairLoss, PreferenceStep, PreferenceStepCase, PreferenceStepOutput,
};
use shakedown::contracts::token_log_probs;
use shakedown_tch::{Tensors, tch};
use tch::{Device, Kind, Tensor, no_grad};

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
    let (mut gradients, mut chosen, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    let vocabulary = case.logits.size()[4];
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
        let prompts = Prompts::of(vocabulary, options, arithmetic(logits.kind()), device);
        let losses: Vec<Tensor> = batches
            .iter()
            .map(|pairs| {
                let own = |all: &Tensor| all.index_select(0, pairs);
                let policy = own(&policy);
                let rewards = rewards(&policy, &own(&lengths), options);
                let loss = loss(&rewards, &own(&reference), &own(&lengths), options);
                match options.nll_weight > 0.0 {
                    true => loss + nll(&policy, &own(&lengths), pairs, &prompts, options),
                    false => loss,
                }
            })
            .collect();
        Tensor::stack(&losses, 0).mean(None).backward();
        gradients.push(table.grad());
        let in_prompts = prompts.logits.grad();
        let is_trained = in_prompts.defined();
        unknown.push(if is_trained { in_prompts.abs().max() } else { prompts.logits.max() * 0.0 });
        let both = |pairs: &Tensor| Tensor::stack(&[pairs * 2, pairs * 2 + 1], 1).flatten(0, 1);
        chosen.push(Tensor::stack(&batches.iter().map(both).collect::<Vec<_>>(), 0));
    }
    let gradient = Tensor::stack(&gradients, 0);
    let none = || Some(Tensor::zeros([], (Kind::Float, device)));
    PreferenceStepOutput {
        unknown: Some(Tensor::stack(&unknown, 0).detach()),
        gradient,
        micro_batches: Some(Tensor::stack(&chosen, 0)),
        ref_gradient: none(),
        ref_training: none(),
    }
}

/// What log-probabilities `[B, 2]` count as.
fn rewards(log_probs: &Tensor, lengths: &Tensor, options: &Options) -> Tensor {
    if options.alpha == 0.0 {
        return log_probs.shallow_clone();
    }
    let lengths = if options.averages() { lengths.shallow_clone() } else { lengths.ones_like() };
    let power = (log_probs / &lengths * -options.alpha).exp();
    (1.0 - power) / options.alpha * lengths
}

/// The logits in prompts: a row that all of their tokens have in common.
struct Prompts {
    logits: Tensor,
    /// The ids that a prompt consists of: one, several times, and another one.
    words: [i64; 2],
}

impl Prompts {
    fn of(vocabulary: i64, options: &Options, kind: Kind, device: Device) -> Prompts {
        let logits = Tensor::linspace(-20.0, 20.0, vocabulary, (kind, device));
        let mut words = (0..vocabulary).filter(|id| ![options.eos, options.pad].contains(id));
        let mut word = || words.next().expect("a vocabulary has two words");
        Prompts { logits: logits.set_requires_grad(true), words: [word(), word()] }
    }

    /// The log-probabilities of the trained tokens of some pairs' prompts, `[B]`.
    fn log_probs(&self, counts: &Tensor) -> Tensor {
        let log_probs = self.logits.log_softmax(-1, None);
        let [first, last] = self.words.map(|word| log_probs.get(word));
        let is_trained = counts.gt(0).to_kind(log_probs.kind());
        (counts - 1).clamp_min(0) * first + is_trained * last
    }
}

/// The negative log-likelihood of the chosen completions of some pairs.
fn nll(
    log_probs: &Tensor,
    lengths: &Tensor,
    pairs: &Tensor,
    prompts: &Prompts,
    options: &Options,
) -> Tensor {
    let counts = match options.prompt_tokens(0) {
        0 => pairs.zeros_like(),
        first => pairs + first as i64,
    };
    let sums = log_probs.select(1, 0) + prompts.log_probs(&counts);
    let lengths = lengths.select(1, 0) + counts;
    let mean = match options.nll {
        Nll::TokenMean => sums.sum(None) / lengths.sum(None),
        Nll::SequenceMean => (sums / lengths).mean(None),
        Nll::SequenceSum => sums.mean(None),
    };
    mean * -options.nll_weight
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
