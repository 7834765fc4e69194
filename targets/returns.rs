//! `returns` on tensors: the discounted sum of the rewards still to come.

use shakedown::author::Component;
use shakedown::author::conventions::MaskedTokens;
use shakedown::contracts::returns::{Options, Returns};
use shakedown_tch::tch;
use tch::Tensor;

use crate::arithmetic;
use crate::masked::under;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<Returns> {
    tch::<Returns>(move |case| returns(&case.rewards, &case.mask, &options))
}

/// The return of each token: its reward and, discounted, all later ones of its row.
///
/// # Shapes
/// `N` rows of `T` tokens: rewards and mask `[N, T]`, the result `[N, T]`, 0 where masked.
///
/// # Units
/// Those of the rewards; `gamma` a token. Half formats are answered in f32.
///
/// # Errors
/// None.
///
/// # Source
/// `skip`: verl `compute_reinforce_plus_plus_outcome_advantage`, since it holds the return at tool
/// tokens. `zero`: OpenRLHF `get_cumulative_returns`.
pub fn returns(rewards: &Tensor, mask: &Tensor, options: &Options) -> Tensor {
    let rewards = under(mask, &rewards.to_kind(arithmetic(rewards.kind())));
    under(mask, &discounted(&rewards, &steps(mask, options.masked), options.gamma))
}

/// Which tokens are steps of time.
pub(crate) fn steps(mask: &Tensor, masked: MaskedTokens) -> Tensor {
    match masked {
        MaskedTokens::Skip => mask.shallow_clone(),
        MaskedTokens::Zero => mask.ones_like(),
    }
}

/// The sum of each step's number and, discounted once a step, all later ones. Where there is no
/// step the sum of the next one stands, or 0 after the last.
pub(crate) fn discounted(numbers: &Tensor, steps: &Tensor, discount: f64) -> Tensor {
    let mut sum = numbers.select(1, 0).zeros_like();
    let mut sums = Vec::new();
    for (number, step) in numbers.unbind(1).iter().zip(steps.unbind(1)).rev() {
        sum = (number + &sum * discount).where_self(&step, &sum);
        sums.push(sum.shallow_clone());
    }
    sums.reverse();
    Tensor::stack(&sums, 1)
}
