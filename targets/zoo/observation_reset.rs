//! verl #7278: the running return starts anew at a tool's output, so turns before it get nothing.

use shakedown::author::conventions::MaskedOutput;
use shakedown::contracts::returns::{Options, Returns, ReturnsCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "verl #7278, #7300",
    place: Place::CPU_F32,
    found_by: &["oracle", "recursion", "compact-equals-expanded"],
    fault: "return-reset-at-observation",
    check: |bug, budget| {
        let options =
            Options { holes: true, masked_output: MaskedOutput::Any, ..Options::default() };
        bug.check_on::<Returns>(returns, options, budget)
    },
};

fn returns(case: &ReturnsCase<Tensors>) -> Tensor {
    let mask = case.mask.to_kind(case.rewards.kind());
    let rewards = &case.rewards * &mask;
    let mut running = rewards.select(1, 0).zeros_like();
    let mut returns = Vec::new();
    for token in (0..rewards.size()[1]).rev() {
        // Mended: this where the mask is true, and `running` as it was elsewhere
        running = rewards.select(1, token) + running;
        returns.push(running.shallow_clone());
        running *= mask.select(1, token);
    }
    returns.reverse();
    Tensor::stack(&returns, 1)
}
