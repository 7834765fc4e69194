//! `critic-step` on tensors: rewards, returns and the clipped value loss, of a critic that is a
//! table of values.

use shakedown::author::Component;
use shakedown::contracts::critic_step::{
    CriticStep, CriticStepCase, CriticStepOutput, Options, Over, Targets,
};
use shakedown::contracts::token_rewards::{self as of_rewards, TokenRewardsCase};
use shakedown::contracts::{gae as of_returns, value_loss as of_loss};
use shakedown_tch::{Tensors, tch};
use tch::{Kind, Tensor};

use crate::arithmetic;
use crate::gae::gae;
use crate::token_rewards::token_rewards;
use crate::value::value_loss;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<CriticStep> {
    tch::<CriticStep>(move |case| critic_step(case, &options))
}

/// The gradient of the table at each update.
///
/// # Shapes
/// As the contract's.
///
/// # Units
/// Those of a loss over values. Half formats are answered in f32.
///
/// # Errors
/// Panics where the options do not fit the case.
///
/// # Source
/// Ouyang et al. 2022 for the rewards, Schulman et al. 2016 for the returns; verl
/// `compute_value_loss`.
pub fn critic_step(case: &CriticStepCase<Tensors>, options: &Options) -> CriticStepOutput<Tensors> {
    let (rows, _) = case.tokens.size2().expect("tokens are [N, T]");
    let [generations, epochs, mini_batches, accumulation] =
        [options.generations, options.epochs, options.mini_batches, options.accumulation]
            .map(i64::from);
    let of_a_generation = rows / generations;
    let size = of_a_generation / (mini_batches * accumulation);
    let (mut gradients, mut chosen) = (Vec::new(), Vec::new());
    for update in 0..generations * epochs * mini_batches {
        let generation = update / (epochs * mini_batches);
        let old = case.values.get(generation * epochs * mini_batches);
        let returns = returns(case, &old, options);
        let values = case.values.get(update).detach();
        let table = values.to_kind(arithmetic(values.kind())).set_requires_grad(true);
        let first = generation * of_a_generation + update % mini_batches * accumulation * size;
        let batches: Vec<Tensor> = (0..accumulation)
            .map(|at| Tensor::arange(size, (Kind::Int64, table.device())) + first + at * size)
            .collect();
        let loss = |rows: &Tensor| {
            let [values, old, returns, mask] =
                [&table, &old, &returns, &case.mask].map(|of| of.index_select(0, rows));
            let Options { clip, factor, aggregate, .. } = *options;
            let declared = of_loss::Options { clip, factor, aggregate, ..Default::default() };
            value_loss(&values, &old, &returns, &mask, &declared).loss
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
    CriticStepOutput {
        gradient,
        micro_batches: Some(Tensor::stack(&chosen, 0)),
        unknown: Some(unknown),
    }
}

/// What the value of each token should be.
fn returns(case: &CriticStepCase<Tensors>, old: &Tensor, options: &Options) -> Tensor {
    if options.targets == Targets::Given {
        return case.returns.as_ref().expect("returns are given").shallow_clone();
    }
    let Options { gamma, lam, beta, masked, .. } = *options;
    let none = old.zeros_like();
    let kls = case.kls.as_ref().unwrap_or(&none);
    let scores = case.scores.as_ref().expect("rewards are made of scores");
    let declared = of_rewards::Options { beta, ..Default::default() };
    let [scores, log_probs, ref_log_probs, mask] =
        [scores, kls, &none, &case.mask].map(Tensor::shallow_clone);
    let asked = TokenRewardsCase { scores, log_probs, ref_log_probs, mask, finished: None };
    let rewards = token_rewards(&asked, &declared).rewards;
    let declared = of_returns::Options { gamma, lam, masked, ..Default::default() };
    gae(&rewards, old, &case.mask, &declared).returns
}
