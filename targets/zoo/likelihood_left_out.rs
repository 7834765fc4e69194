//! mlx-lm-lora #65: ORPO is the odds ratio alone. The negative log-likelihood, which carries nearly
//! all of the gradient, is not there.

use shakedown::contracts::pair_objective::{Kind, Options, PairObjective, PairObjectiveCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "mlx-lm-lora #65",
    place: Place::CPU_F32,
    found_by: &["oracle", "gradient"],
    fault: "sft-term-left-out",
    check: |bug, budget| {
        let options = Options { kind: Kind::Orpo, ..Options::default() };
        bug.check_on::<PairObjective>(answer, options, budget)
    },
};

fn answer(case: &PairObjectiveCase<Tensors>) -> Tensor {
    let log_odds = |log_probs: &Tensor| log_probs - (-log_probs.expm1()).log();
    let chosen = &case.policy_chosen / &case.chosen_lengths;
    let rejected = &case.policy_rejected / &case.rejected_lengths;
    // Mended: ... - chosen
    (log_odds(&chosen) - log_odds(&rejected)).log_sigmoid() * -0.1
}
