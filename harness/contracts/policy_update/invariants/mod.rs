//! What must hold of `policy-update`: the laws that apply, and one file for each of its own.

use crate::policy_update::PolicyUpdate;
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<PolicyUpdate>> {
    let mut all = laws::universal_and(&[("finite", &["nothing-divided-by-nothing"])]);
    all.extend(own());
    all
}

invariants! {
    PolicyUpdate;
    expected_reward_rises,
    best_arm_gains,
    constant_rewards,
    reference_unchanged,
    tiny_learning_rate,
    more_steps,
    one_step,
    permutation,
    closer_with_beta,
}
