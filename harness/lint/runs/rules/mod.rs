//! The rules about runs, one file each.

use crate::rules::rules;
use crate::runs::Run;

rules! {
    Run;
    non_finite,
    out_of_range,
    entropy_above_vocabulary,
    kl_negative,
    reward_parts_disagree,
    margins_disagree,
    signal_without_gradient,
    gradient_without_signal,
    advantage_one_sided,
    ratio_at_start,
    clip_never,
    kl_zero,
    kl_stays,
    kl_at_start,
    run_resumed,
    ends_early,
    reward_constant,
    reward_part_constant,
    groups_flat,
    diversity_lost,
    reward_flat,
    reward_declines,
    reward_collapses,
    proxy_gain,
    length_hack,
    length_explodes,
    length_collapses,
    never_stops,
    truncation,
    empty_completions,
    prompts_cut,
    kl_explodes,
    kl_spikes,
    pinned_to_reference,
    entropy_collapses,
    entropy_explodes,
    clip_saturated,
    update_too_large,
    gradient_explodes,
    gradient_spikes,
    gradient_vanishes,
    gradient_always_clipped,
    learning_rate_zero,
    learning_rate_high,
    learning_rate_differs,
    rollout_mismatch,
    mismatch_grows,
    weights_degenerate,
    stale_rollouts,
    critic_not_learning,
    critic_explodes,
    preference_not_moving,
    preference_inverted,
    preference_chance,
    chosen_falls,
    invalid_actions,
    task_solved,
}

#[cfg(test)]
pub(in crate::runs) mod trial;

#[cfg(test)]
pub(in crate::runs) mod trial1;

#[cfg(test)]
pub(in crate::runs) mod trial2;
