//! `reward-model-step` on tensors: pairs of scores from a model that is a table of them.

use shakedown::author::Component;
use shakedown::contracts::reward_model_step::{
    Options, Pooled, RewardModelStep, RewardModelStepCase, RewardModelStepOutput,
};
use shakedown_tch::{Tensors, tch};
use tch::{Kind, Tensor};

use crate::arithmetic;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<RewardModelStep> {
    tch::<RewardModelStep>(move |case| reward_model_step(case, &options))
}

/// The gradient of the table at each update.
///
/// # Shapes
/// As the contract's.
///
/// # Units
/// Those of a loss over scores. Half formats are answered in f32.
///
/// # Errors
/// Panics where the options do not fit the case.
///
/// # Source
/// Ouyang et al. 2022, equation 1; TRL's `RewardTrainer` for margins and the centre.
pub fn reward_model_step(
    case: &RewardModelStepCase<Tensors>,
    options: &Options,
) -> RewardModelStepOutput<Tensors> {
    let (pairs, _, _) = case.tokens.size3().expect("tokens are [P, 2, T]");
    let [mini_batches, accumulation] = [options.mini_batches, options.accumulation].map(i64::from);
    let size = pairs / (mini_batches * accumulation);
    let device = case.tokens.device();
    let end = case.tokens.eq(options.eos).to_kind(Kind::Int64).argmax(-1, true);
    let skips_the_end = options.pooled == Pooled::LastNonPad && options.pad == options.eos;
    let pooled = if skips_the_end { end - 1 } else { end };
    // Where both completions begin alike, the scores of the chosen one hold.
    let [chosen, rejected] = [0, 1].map(|side| case.tokens.select(1, side));
    let alike = chosen.eq_tensor(&rejected).to_kind(Kind::Int64).cumprod(-1, Kind::Int64).ne(0);
    let (mut gradients, mut micro_batches) = (Vec::new(), Vec::new());
    for update in 0..i64::from(options.epochs) * mini_batches {
        let scores = case.scores.get(update).detach();
        let table = scores.to_kind(arithmetic(scores.kind())).set_requires_grad(true);
        let [chosen, rejected] = [0, 1].map(|side| table.select(1, side));
        let rejected = chosen.where_self(&alike, &rejected);
        let rewards =
            Tensor::stack(&[chosen, rejected], 1).gather(-1, &pooled, false).squeeze_dim(-1);
        let first = update % mini_batches * accumulation;
        let batches: Vec<Tensor> = (first..first + accumulation)
            .map(|at| Tensor::arange(size, (Kind::Int64, device)) + at * size)
            .collect();
        let losses: Vec<Tensor> = batches
            .iter()
            .map(|pairs| {
                let own = rewards.index_select(0, pairs);
                let [chosen, rejected] = [0, 1].map(|side| own.select(1, side));
                let difference = &chosen - &rejected;
                let difference = match &case.margins {
                    Some(margins) => difference - margins.index_select(0, pairs),
                    None => difference,
                };
                let center = (chosen + rejected).square().mean(None) * options.center;
                center - difference.log_sigmoid().mean(None)
            })
            .collect();
        let loss = Tensor::stack(&losses, 0).mean(None);
        gradients.push(Tensor::run_backward(&[loss], &[&table], false, false).remove(0));
        let both = |pairs: &Tensor| Tensor::stack(&[pairs * 2, pairs * 2 + 1], 1).flatten(0, 1);
        micro_batches.push(Tensor::stack(&batches.iter().map(both).collect::<Vec<_>>(), 0));
    }
    let gradient = Tensor::stack(&gradients, 0);
    RewardModelStepOutput {
        unknown: Some(Tensor::zeros([gradients.len() as i64], (gradient.kind(), device))),
        gradient,
        micro_batches: Some(Tensor::stack(&micro_batches, 0)),
    }
}
