//! `gae` on tensors: generalised advantage estimation over the tokens of a completion.

use shakedown::author::Component;
use shakedown::contracts::gae as contract;
use shakedown::contracts::gae::{GaeOutput, Options};
use shakedown::contracts::whiten;
use shakedown_tch::tch;
use tch::Tensor;

use crate::arithmetic;
use crate::masked::under;
use crate::returns::{discounted, steps};
use crate::whiten::whiten;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<contract::Gae> {
    tch::<contract::Gae>(move |case| {
        let Gae { advantages, returns } = gae(&case.rewards, &case.values, &case.mask, &options);
        GaeOutput { advantages, returns }
    })
}

/// What [`gae()`] gives.
#[derive(Debug)]
pub struct Gae {
    /// How much better a token was than the value function thought.
    pub advantages: Tensor,
    /// What the value function should have thought: the advantages before whitening, plus values.
    pub returns: Tensor,
}

/// Advantages and returns of each token; the value after the last token of a row is 0.
///
/// # Shapes
/// `N` rows of `T` tokens: rewards, values and mask `[N, T]`, both results `[N, T]`, 0 where
/// masked.
///
/// # Units
/// Those of the rewards, or deviations of the advantages with `whiten`; `gamma` and `lam` a token.
/// Half formats are answered in f32.
///
/// # Errors
/// Panics where fewer than two tokens are whitened with `empty_mask: refuse`.
///
/// # Source
/// Schulman et al. 2016. `skip`: verl `compute_gae_advantage_return`; `zero`: OpenRLHF
/// `get_advantages_and_returns`.
pub fn gae(rewards: &Tensor, values: &Tensor, mask: &Tensor, options: &Options) -> Gae {
    let kind = arithmetic(values.kind());
    let rewards = under(mask, &rewards.to_kind(kind));
    let values = under(mask, &values.to_kind(kind));
    let steps = steps(mask, options.masked);

    let errors = rewards + next(&values, &steps) * options.gamma - &values;
    let advantages = discounted(&errors, &steps, options.gamma * options.lam);
    let returns = under(mask, &(&advantages + values));
    let advantages = if options.whiten {
        let options = whiten::Options { empty_mask: options.empty_mask, ..Default::default() };
        whiten(&advantages, mask, &options)
    } else {
        under(mask, &advantages)
    };
    Gae { advantages, returns }
}

/// The value of the step after each token; 0 after the last.
fn next(values: &Tensor, steps: &Tensor) -> Tensor {
    let from_here = discounted(values, steps, 0.0);
    let (count, tokens) = from_here.size2().expect("values are [N, T]");
    let after = values.new_zeros([count, 1], (values.kind(), values.device()));
    Tensor::cat(&[from_here.narrow(1, 1, tokens - 1), after], 1)
}
