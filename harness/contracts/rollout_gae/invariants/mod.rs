//! What must hold of `rollout-gae`: the laws that apply, and one file for each of its own.

use crate::rollout_gae::RolloutGae;
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<RolloutGae>> {
    let mut all = laws::universal();
    all.extend([
        laws::oracle::law().catching(&[
            "inputs-in-half-precision",
            "done-flag-shifted",
            "gamma-not-applied",
            "lambda-not-applied",
            "carry-left-out",
            "dones-ignored",
        ]),
        laws::row_permutation::law()
            .catching(&["carry-crosses-environments", "environments-and-steps-exchanged"]),
        laws::row_split::law()
            .catching(&["carry-crosses-environments", "environments-and-steps-exchanged"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    RolloutGae;
    recursion,
    episodes_are_closed,
    concatenated_episodes,
    last_values,
    content_critic,
    returns_minus_values,
    causal,
    linear,
}
