//! `grpo-step` on tensors: GRPO on a policy that is a table of logits.

use shakedown::author::Component;
use shakedown::author::conventions::EmptyMask;
use shakedown::contracts::completion_mask::Unfinished;
use shakedown::contracts::grpo_step::{
    Action, GrpoStep, GrpoStepCase, GrpoStepOutput, KlIn, Options, Over,
};
use shakedown::contracts::kl_estimate::{self, Estimator};
use shakedown::contracts::policy_loss::{KlEstimator, Ratio};
use shakedown_tch::{Tensors, tch};
use tch::{Kind, Tensor, no_grad};

use crate::advantage::group_advantage;
use crate::arithmetic;
use crate::kl::kl_estimate;
use crate::log_probs::token_log_probs;
use crate::masked::{Reduction, under};
use crate::policy::{Inputs, policy_loss};
use crate::reward_combination::reward_combination;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<GrpoStep> {
    tch::<GrpoStep>(move |case| grpo_step(case, &options))
}

/// The completions of a case, a row each, and what is known of them when they were sampled.
struct Completions<'a> {
    options: &'a Options,
    tokens: Tensor,
    mask: Tensor,
    /// For each place, the row whose logits hold there.
    homes: Tensor,
    advantages: Tensor,
    old_log_probs: Tensor,
    ref_log_probs: Option<Tensor>,
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
/// Shao et al. 2024, DeepSeekMath; the updates and micro-batches are those of TRL's `GRPOTrainer`,
/// without its shuffle.
pub fn grpo_step(case: &GrpoStepCase<Tensors>, options: &Options) -> GrpoStepOutput<Tensors> {
    let completions = Completions::of(case, options);
    let passes = i64::from(options.iterations) * i64::from(options.mini_batches);
    let (rows, _) = completions.tokens.size2().expect("a row is a completion");
    let rows = rows / i64::from(options.generations);
    let parts = i64::from(options.mini_batches) * i64::from(options.accumulation);
    let device = case.tokens.device();
    let (mut gradients, mut chosen) = (Vec::new(), Vec::new());
    for update in 0..passes * i64::from(options.generations) {
        let first = update / passes * rows;
        let part = update % i64::from(options.mini_batches) * i64::from(options.accumulation);
        let batches: Vec<Tensor> = (part..part + i64::from(options.accumulation))
            .map(|at| {
                first + Tensor::arange(rows / parts, (Kind::Int64, device)) + at * rows / parts
            })
            .collect();
        let logits = case.logits.get(update).detach();
        let table = logits.to_kind(arithmetic(logits.kind())).set_requires_grad(true);
        let generation = first + Tensor::arange(rows, (Kind::Int64, device));
        let loss = completions.loss(&table, &batches, &generation);
        gradients.push(Tensor::run_backward(&[loss], &[&table], false, false).remove(0));
        chosen.push(Tensor::stack(&batches, 0));
    }
    let gradient = Tensor::stack(&gradients, 0);
    let reference = || case.ref_logits.as_ref().map(|_| Tensor::zeros([], (Kind::Float, device)));
    GrpoStepOutput {
        unknown: Some(Tensor::zeros([gradients.len() as i64], (gradient.kind(), device))),
        gradient,
        micro_batches: Some(Tensor::stack(&chosen, 0)),
        ref_gradient: reference(),
        ref_training: reference(),
        scored: Some(case.rewards.ones_like()),
    }
}

/// For each place of each completion, the row with its prefix that comes first: `[P·G, T]`.
pub(crate) fn homes(tokens: &Tensor) -> Tensor {
    let (prompts, group, width) = tokens.size3().expect("tokens are [P, G, T]");
    let options = (Kind::Int64, tokens.device());
    let (own, none) = (Tensor::arange(group, options), Tensor::full([], group, options));
    let begins = Tensor::arange_start_step(0, prompts * group, group, options).unsqueeze(1);
    let columns: Vec<Tensor> = (0..width)
        .map(|at| {
            let before = tokens.narrow(2, 0, at);
            let same = before.unsqueeze(2).eq_tensor(&before.unsqueeze(1)).all_dim(3, false);
            let first = own.where_self(&same, &none).amin([-1], false);
            (first + &begins).flatten(0, 1)
        })
        .collect();
    Tensor::stack(&columns, 1)
}

impl<'a> Completions<'a> {
    fn of(case: &GrpoStepCase<Tensors>, options: &'a Options) -> Completions<'a> {
        let tokens = case.tokens.flatten(0, 1);
        let (prompts, group, width) = case.tokens.size3().expect("tokens are [P, G, T]");
        let ended = options
            .eos
            .iter()
            .map(|id| tokens.eq(*id))
            .reduce(|ended, is| ended.logical_or(&is))
            .expect("there is an end");
        let ends = ended.to_kind(Kind::Int64);
        let mut mask = (ends.cumsum(1, Kind::Int64) - &ends).eq(0);
        if options.unfinished == Unfinished::Drop {
            mask = mask.logical_and(&ended.any_dim(1, true).expand([-1, width], false));
        }
        let kind = (Kind::Int64, tokens.device());
        let groups = Tensor::arange(prompts, kind).repeat_interleave_self_int(group, 0, None);
        let rewards = case.rewards.flatten(0, 1);
        let rows = prompts * group / i64::from(options.generations);
        let pass = i64::from(options.iterations) * i64::from(options.mini_batches);
        let homes = homes(&case.tokens);
        let scored = |logits: &Tensor| {
            let logits = logits.to_kind(arithmetic(logits.kind()));
            no_grad(|| token_log_probs(&held(&logits, &homes), &tokens, &options.log_probs()))
        };
        let ref_log_probs = case.ref_logits.as_ref().map(&scored);
        let (mut advantages, mut old) = (Vec::new(), Vec::new());
        for generation in 0..i64::from(options.generations) {
            let own = |all: &Tensor| all.narrow(0, generation * rows, rows);
            let sampled = own(&scored(&case.logits.get(generation * pass)));
            let mut reward =
                reward_combination(&own(&rewards), &own(&groups), &options.reward()).combined;
            let penalized = ref_log_probs.as_ref().filter(|_| options.kl_in == KlIn::Reward);
            if let Some(reference) = penalized {
                let kl = kl_estimate(&sampled, &own(reference), &kl(options));
                reward -= under(&own(&mask), &kl).sum_dim_intlist(1, false, None) * options.beta;
            }
            advantages.push(group_advantage(&reward, &own(&groups), &options.advantage()));
            old.push(sampled);
        }
        Completions {
            options,
            advantages: Tensor::cat(&advantages, 0),
            old_log_probs: Tensor::cat(&old, 0),
            ref_log_probs,
            tokens,
            mask,
            homes,
        }
    }

    /// The loss of an update, to be minimised.
    fn loss(&self, table: &Tensor, batches: &[Tensor], generation: &Tensor) -> Tensor {
        let log_probs =
            token_log_probs(&held(table, &self.homes), &self.tokens, &self.options.log_probs());
        let all = Tensor::cat(batches, 0);
        match self.options.over {
            Over::MicroBatch => {
                let losses: Vec<Tensor> =
                    batches.iter().map(|rows| self.loss_of(&log_probs, rows)).collect();
                Tensor::stack(&losses, 0).mean(None)
            }
            Over::Update => self.loss_of(&log_probs, &all),
            Over::Generation => {
                let tokens = |rows: &Tensor| self.mask.index_select(0, rows).sum(log_probs.kind());
                let mean = tokens(generation) / f64::from(self.options.mini_batches);
                self.loss_of(&log_probs, &all) * tokens(&all) / mean.clamp_min(1e-9)
            }
        }
    }

    fn loss_of(&self, log_probs: &Tensor, rows: &Tensor) -> Tensor {
        let (beta, kl_weighted) = (self.options.beta_of_the_loss(), self.options.kl_weighted);
        let own = |all: &Tensor| all.index_select(0, rows);
        let mut mask = own(&self.mask);
        let mut reference = self.ref_log_probs.as_ref().filter(|_| beta > 0.0).map(own);
        let (mut log_probs, mut old) = (own(log_probs), own(&self.old_log_probs));
        if self.options.action == Action::Completion {
            let summed =
                |log_probs: &Tensor| under(&mask, log_probs).sum_dim_intlist(1, true, None);
            (log_probs, old) = (summed(&log_probs), summed(&old));
            reference = reference.as_ref().map(summed);
            mask = mask.any_dim(1, true);
        }
        let inputs = Inputs {
            log_probs: &log_probs,
            old_log_probs: &old,
            ref_log_probs: reference.as_ref().filter(|_| !kl_weighted),
            advantages: &own(&self.advantages),
            mask: &mask,
        };
        let Some(reference) = reference.as_ref().filter(|_| kl_weighted) else {
            return policy_loss(&inputs, &self.options.loss(beta)).loss;
        };
        let weighted =
            self.ratio(&inputs) * kl_estimate(inputs.log_probs, reference, &kl(self.options));
        let reduction = Reduction {
            aggregate: self.options.aggregate,
            norm_length: self.options.norm_length,
            empty_rows: self.options.empty_rows,
            empty_mask: EmptyMask::Zero,
        };
        let kl = reduction.part(&weighted, inputs.mask).whole(&reduction);
        policy_loss(&inputs, &self.options.loss(0.0)).loss + kl * beta
    }

    /// The ratio of each token to the policy that sampled it.
    fn ratio(&self, inputs: &Inputs<'_>) -> Tensor {
        let log_ratio = under(inputs.mask, &(inputs.log_probs - inputs.old_log_probs));
        let lengths = inputs.mask.sum_dim_intlist(1, true, log_ratio.kind()).clamp_min(1.0);
        let mean = log_ratio.sum_dim_intlist(1, true, None) / lengths;
        match self.options.ratio {
            Ratio::Token => log_ratio,
            Ratio::Sequence => mean.expand_as(&log_ratio),
            Ratio::SequenceToken => mean.detach() + &log_ratio - log_ratio.detach(),
        }
        .exp()
    }
}

/// How the divergence is estimated.
fn kl(options: &Options) -> kl_estimate::Options {
    let estimator = match options.kl_estimator {
        KlEstimator::K1 => Estimator::K1,
        KlEstimator::K2 => Estimator::K2,
        KlEstimator::K3 => Estimator::K3,
        KlEstimator::Abs => Estimator::Abs,
    };
    kl_estimate::Options { estimator, ..kl_estimate::Options::default() }
}

/// The logits that hold at each place, of a table `[P, G, T, V]`: `[P·G, T, V]`.
pub(crate) fn held(table: &Tensor, homes: &Tensor) -> Tensor {
    let table = table.flatten(0, 1);
    table.gather(0, &homes.unsqueeze(2).expand_as(&table), false)
}
