//! LLaMA-Factory: the odds of ORPO are of log-probabilities summed over the completion, where 1 - p
//! is 1: what is left is the ratio of likelihoods, and the longer completion loses.

use shakedown::contracts::pair_objective::{Kind, Options, PairObjective, PairObjectiveCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "LLaMA-Factory 52d402e2a (ORPO)",
    place: Place::CPU_F32,
    found_by: &["oracle", "gradient", "length-normalised"],
    fault: "odds-of-sums",
    check: |bug, budget| {
        let options = Options { kind: Kind::Orpo, ..Options::default() };
        bug.check_on::<PairObjective>(answer, options, budget)
    },
};

fn answer(case: &PairObjectiveCase<Tensors>) -> Tensor {
    let log_odds = |log_probs: &Tensor| log_probs - (-log_probs.exp()).log1p();
    // Mended: log_odds(&(&case.policy_chosen / &case.chosen_lengths)), and so for the other side.
    let ratio = log_odds(&case.policy_chosen) - log_odds(&case.policy_rejected);
    ratio.log_sigmoid() * -0.1 - &case.policy_chosen / &case.chosen_lengths
}
