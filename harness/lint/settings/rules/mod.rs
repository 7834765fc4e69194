//! The rules about configurations, one file each.

use crate::rules::rules;
use crate::settings::Settings;

rules! {
    Settings;
    group_of_one,
    group_of_two,
    batch_not_divisible,
    mini_batch_too_large,
    off_policy,
    learning_rate,
    kl_coefficient,
    kl_twice,
    kl_without_effect,
    kl_estimator,
    clip_range,
    temperature,
    sampling_filter,
    lengths,
    half_dr_grpo,
    loss_is_a_sum,
    length_bias,
    entropy_coefficient,
    gradient_clipping,
    discount,
    columns_removed,
    reward_weights,
    contradiction,
    invalid_value,
    unknown_field,
    end_ignored,
    dropout,
    asynchronous_without_correction,
    rollout_uncorrected,
    validated_on_training_data,
    reference_differs,
    nothing_saved,
    logged_rarely,
}
