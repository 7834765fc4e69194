//! OpenRLHF #634: bf16 logits are normalised in bf16, so equal policies have a ratio of 0.96 to
//! 1.04.

use shakedown::contracts::token_log_probs::{Options, TokenLogProbs, TokenLogProbsCase};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;

pub(super) const BUG: Bug = Bug {
    source: "OpenRLHF #634 (dfd840cb)",
    place: Place::CPU_BF16,
    found_by: &[
        "oracle",
        "gradient",
        "probabilities-sum-to-one",
        "uniform",
        "shift-invariant",
        "gradient-sums-to-zero",
    ],
    fault: "log-softmax-in-half-precision",
    check: |bug, budget| bug.check_on::<TokenLogProbs>(log_probs, Options::default(), budget),
};

fn log_probs(case: &TokenLogProbsCase<Tensors>) -> Tensor {
    // Mended: case.logits.to_kind(Kind::Float)
    let logits = &case.logits;
    let picked = logits.gather(-1, &case.tokens.unsqueeze(-1), false).squeeze_dim(-1);
    picked - logits.logsumexp([-1], false)
}
