//! slime #2114: the divergence is made into the penalty in place, given the score, and then
//! reported.

use shakedown::contracts::token_rewards::{
    Options, TokenRewards, TokenRewardsCase, TokenRewardsOutput,
};
use shakedown::place::Place;
use shakedown_tch::Tensors;
use tch::Tensor;

use super::Bug;
use crate::masked::{mean, under};

pub(super) const BUG: Bug = Bug {
    source: "slime #2114 (045310b2b)",
    place: Place::CPU_F32,
    found_by: &["oracle", "report-free-of-the-score"],
    fault: "kl-reused-in-place",
    check: |bug, budget| bug.check_on::<TokenRewards>(answer, Options::default(), budget),
};

fn answer(case: &TokenRewardsCase<Tensors>) -> TokenRewardsOutput<Tensors> {
    let Options { beta, empty_mask, .. } = Options::default();
    // Mended: a second tensor for the rewards.
    let mut kl = under(&case.mask, &(&case.log_probs - &case.ref_log_probs));
    kl *= -beta;
    let columns = Tensor::arange(case.mask.size()[1], (tch::Kind::Int64, case.mask.device()));
    let last = columns.where_scalarother(&case.mask, -1_i64).amax([1], true);
    kl += under(&columns.eq_tensor(&last), &case.scores.unsqueeze(1).expand_as(&case.mask));
    let rewards = kl.shallow_clone();
    TokenRewardsOutput { rewards, kl: Some(mean(&kl, &case.mask, empty_mask)) }
}
