//! `kto-step` on tensors: KTO on a policy that is a table of logits.

use shakedown::author::Component;
use shakedown::contracts::kto_step::{
    Kind as Loss, KtoStep, KtoStepCase, KtoStepOutput, Mismatched, Options,
};
use shakedown::contracts::token_log_probs;
use shakedown_tch::{Tensors, tch};
use tch::{Kind, Tensor, no_grad};

use crate::arithmetic;
use crate::log_probs::token_log_probs;
use crate::masked::under;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<KtoStep> {
    tch::<KtoStep>(move |case| kto_step(case, &options))
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
/// Ethayarajh et al. 2024 (arXiv:2402.01306).
pub fn kto_step(case: &KtoStepCase<Tensors>, options: &Options) -> KtoStepOutput<Tensors> {
    let (rows, _) = case.tokens.size2().expect("tokens are [N, T]");
    let [mini_batches, accumulation] = [options.mini_batches, options.accumulation].map(i64::from);
    let (size, device) = (rows / (mini_batches * accumulation), case.tokens.device());
    let reference = Tables::of(&case.ref_logits, case.ref_kl_logits.as_ref());
    let (mut gradients, mut kl_gradients, mut chosen) = (Vec::new(), Vec::new(), Vec::new());
    for update in 0..i64::from(options.epochs) * mini_batches {
        let kl_logits = case.kl_logits.as_ref().map(|tables| tables.get(update));
        let policy = Tables::of(&case.logits.get(update), kl_logits.as_ref());
        let trained = [&policy.own, &policy.others].map(|table| table.set_requires_grad(true));
        let first = update % mini_batches * accumulation;
        let batches: Vec<Tensor> = (first..first + accumulation)
            .map(|at| Tensor::arange(size, (Kind::Int64, device)) + at * size)
            .collect();
        let losses: Vec<Tensor> =
            batches.iter().map(|rows| loss(case, rows, &policy, &reference, options)).collect();
        Tensor::stack(&losses, 0).mean(None).backward();
        let [own, others] = trained.map(|table| table.grad());
        gradients.push(own);
        let most = if others.defined() { others.abs().max() } else { Tensor::from(0.0_f32) };
        kl_gradients.push(most.to_kind(Kind::Float).to_device(device));
        chosen.push(Tensor::stack(&batches, 0));
    }
    let gradient = Tensor::stack(&gradients, 0);
    let none = || Some(Tensor::zeros([], (Kind::Float, device)));
    KtoStepOutput {
        unknown: Some(Tensor::zeros([gradients.len() as i64], (gradient.kind(), device))),
        gradient,
        micro_batches: Some(Tensor::stack(&chosen, 0)),
        kl_gradient: Some(Tensor::stack(&kl_gradients, 0)),
        ref_gradient: none(),
        ref_training: none(),
    }
}

/// The logits behind each prompt: of its own completion, and of all others.
struct Tables {
    own: Tensor,
    others: Tensor,
}

impl Tables {
    fn of(own: &Tensor, others: Option<&Tensor>) -> Tables {
        let leaf = |table: &Tensor| table.to_kind(arithmetic(table.kind())).detach().copy();
        let own = leaf(own);
        Tables { others: others.map_or_else(|| own.zeros_like(), leaf), own }
    }
}

/// The log-probabilities of completions, each that of one row behind the prompt of another one.
fn log_probs(
    case: &KtoStepCase<Tensors>,
    prompts: &Tensor,
    completions: &Tensor,
    tables: &Tables,
    options: &Options,
) -> Tensor {
    let [ours, tokens] = [prompts, completions].map(|rows| case.tokens.index_select(0, rows));
    let ends = tokens.eq(options.eos).to_kind(Kind::Int64);
    let mask = (ends.cumsum(1, Kind::Int64) - &ends).eq(0);
    // A token is behind the beginning of the prompt's own completion while none before it differs.
    let differs = ours.not_equal_tensor(&tokens).to_kind(Kind::Int64);
    let is_own = (differs.cumsum(1, Kind::Int64) - &differs).eq(0).unsqueeze(-1);
    let [own, others] = [&tables.own, &tables.others].map(|table| table.index_select(0, prompts));
    let held = own.where_self(&is_own, &others);
    let scored = token_log_probs(&held, &tokens, &token_log_probs::Options::default());
    under(&mask, &scored).sum_dim_intlist(1, false, None)
}

/// The mean loss of the rows of a micro-batch.
fn loss(
    case: &KtoStepCase<Tensors>,
    rows: &Tensor,
    policy: &Tables,
    reference: &Tables,
    options: &Options,
) -> Tensor {
    let ratio = |completions: &Tensor| {
        let [policy, reference] =
            [policy, reference].map(|it| log_probs(case, rows, completions, it, options));
        policy - reference
    };
    let ratios = ratio(rows);
    let estimate = match options.kind {
        Loss::ApoZeroUnpaired => ratios.mean(None).zeros_like(),
        Loss::Kto => no_grad(|| {
            let by = if options.mismatched == Mismatched::Previous { 1 } else { -1 };
            ratio(&rows.roll([by], [0])).mean(None).clamp_min(0.0)
        }),
    };
    let labels = case.labels.index_select(0, rows);
    let value =
        |x: Tensor, weight: f64| -> Tensor { (1.0 - (x * options.beta).sigmoid()) * weight };
    let desirable = value(&ratios - &estimate, options.desirable_weight);
    let undesirable = value(estimate - ratios, options.undesirable_weight);
    desirable.where_self(&labels, &undesirable).mean(None)
}
