//! `sft-step` on tensors: supervised fine-tuning of a model that is a table of logits.

use shakedown::author::Component;
use shakedown::author::conventions::{EmptyMask, EmptyRows};
use shakedown::contracts::sft_step::{Loss, Options, Over, SftStep, SftStepCase, SftStepOutput};
use shakedown::contracts::token_log_probs;
use shakedown_tch::{Tensors, tch};
use tch::{Kind, Tensor};

use crate::arithmetic;
use crate::grpo_step::{held, homes};
use crate::log_probs::token_log_probs;
use crate::masked::Reduction;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<SftStep> {
    tch::<SftStep>(move |case| sft_step(case, &options))
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
/// The negative log-likelihood of the trained tokens; `dft` is Wu et al. 2025, arXiv:2508.05629.
pub fn sft_step(case: &SftStepCase<Tensors>, options: &Options) -> SftStepOutput<Tensors> {
    let homes = homes(&case.tokens.unsqueeze(0));
    let (rows, _) = case.tokens.size2().expect("tokens are [N, T]");
    let [mini_batches, accumulation] = [options.mini_batches, options.accumulation].map(i64::from);
    let size = rows / (mini_batches * accumulation);
    let reduction = Reduction {
        aggregate: options.aggregate,
        norm_length: None,
        empty_rows: EmptyRows::Count,
        empty_mask: EmptyMask::Zero,
    };
    let (mut gradients, mut chosen) = (Vec::new(), Vec::new());
    for update in 0..i64::from(options.epochs) * mini_batches {
        let logits = case.logits.get(update).detach();
        let table = logits.to_kind(arithmetic(logits.kind())).set_requires_grad(true);
        let held = held(&table.unsqueeze(0), &homes);
        let scored = token_log_probs::Options::default();
        let log_probs = token_log_probs(&held, &case.tokens, &scored);
        let losses = match options.loss {
            Loss::Nll => -log_probs,
            Loss::Dft => -(log_probs.detach().exp() * log_probs),
        };
        let first = update % mini_batches * accumulation * size;
        let batches: Vec<Tensor> = (0..accumulation)
            .map(|at| Tensor::arange(size, (Kind::Int64, table.device())) + first + at * size)
            .collect();
        let loss = |rows: &Tensor| {
            reduction.of(&losses.index_select(0, rows), &case.mask.index_select(0, rows))
        };
        let loss = match options.over {
            Over::Update => loss(&Tensor::cat(&batches, 0)),
            Over::MicroBatch => {
                let means: Vec<Tensor> = batches.iter().map(loss).collect();
                Tensor::stack(&means, 0).mean(None)
            }
        };
        gradients.push(Tensor::run_backward(&[loss], &[&table], false, false).remove(0));
        chosen.push(Tensor::stack(&batches, 0));
    }
    let gradient = Tensor::stack(&gradients, 0);
    let unknown = Tensor::zeros([gradients.len() as i64], (gradient.kind(), gradient.device()));
    SftStepOutput {
        gradient,
        micro_batches: Some(Tensor::stack(&chosen, 0)),
        unknown: Some(unknown),
    }
}
