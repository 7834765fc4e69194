//! slime #1372: the KL penalty of tokens that a tool wrote is part of the return of the tokens that
//! the policy wrote before it.

use shakedown::author::conventions::MaskedTokens;
use shakedown::contracts::returns::{Options, Returns, ReturnsCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "slime #1372 (166441911)",
    place: Place::CPU_F32,
    found_by: &["oracle", "padding", "masked-poison", "recursion", "linear"],
    fault: "masked-penalty-in-the-return",
    check: |bug, budget| {
        let options =
            Options { gamma: 0.9, masked: MaskedTokens::Zero, holes: true, ..Options::default() };
        bug.check_on::<Returns>(returns, options, budget)
    },
};

fn returns(case: &ReturnsCase<Tensors>) -> Tensor {
    let mask = case.mask.to_kind(case.rewards.kind());
    // Mended: &case.rewards * &mask
    let rewards = case.rewards.shallow_clone();
    let mut running = rewards.select(1, 0).zeros_like();
    let mut returns = Vec::new();
    for token in (0..rewards.size()[1]).rev() {
        running = rewards.select(1, token) + running * 0.9;
        returns.push(running.shallow_clone());
    }
    returns.reverse();
    Tensor::stack(&returns, 1) * mask
}
