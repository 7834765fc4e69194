//! Written by `forms.rs`: every form compiles, and its function is called.

#[shakedown::contract(group_sampling)]
#[should_panic(expected = "not yet implemented")]
fn my_group_sampling(
    prompts: &[i64],
    seed: i64,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(turn_mask)]
#[should_panic(expected = "not yet implemented")]
fn my_turn_mask(
    turns: &[shakedown::contracts::turn_mask::Turn],
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(batch_collation)]
#[should_panic(expected = "not yet implemented")]
fn my_batch_collation(
    prompts: &[i64],
    prompt_lengths: &[i64],
    completions: &[i64],
    completion_lengths: &[i64],
    rows: usize,
    columns: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(sequence_packing, returns(packed, segments))]
#[should_panic(expected = "not yet implemented")]
fn my_sequence_packing(
    tokens: &[i64],
    lengths: &[i64],
    mask: &[bool],
    rows: usize,
    columns: usize,
) -> (Vec<f32>, Vec<f32>) {
    todo!()
}

#[shakedown::contract(batch_partition)]
#[should_panic(expected = "not yet implemented")]
fn my_batch_partition(
    lengths: &[i64],
    values: &[f32],
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(reward_function)]
#[should_panic(expected = "not yet implemented")]
fn my_reward_function(
    prompts: &[&str],
    completions: &[&str],
    answers: &[&str],
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(length_penalty)]
#[should_panic(expected = "not yet implemented")]
fn my_length_penalty(
    lengths: &[i64],
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(reward_combination)]
#[should_panic(expected = "not yet implemented")]
fn my_reward_combination(
    rewards: &[f32],
    groups: &[i64],
    rows: usize,
    columns: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(completion_decoder)]
#[should_panic(expected = "not yet implemented")]
fn my_completion_decoder(
    completions: &[&str],
) -> Vec<String> {
    todo!()
}

#[shakedown::contract(answer_extractor)]
#[should_panic(expected = "not yet implemented")]
fn my_answer_extractor(
    texts: &[&str],
) -> Vec<Option<String>> {
    todo!()
}

#[shakedown::contract(token_decoder)]
#[should_panic(expected = "not yet implemented")]
fn my_token_decoder(
    tokens: &[i64],
    rows: usize,
    columns: usize,
) -> Vec<String> {
    todo!()
}

#[shakedown::contract(completion_mask)]
#[should_panic(expected = "not yet implemented")]
fn my_completion_mask(
    tokens: &[i64],
    rows: usize,
    columns: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(sampling_filter)]
#[should_panic(expected = "not yet implemented")]
fn my_sampling_filter(
    logits: &[f32],
    rows: usize,
    columns: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(group_filter)]
#[should_panic(expected = "not yet implemented")]
fn my_group_filter(
    rewards: &[f32],
    metric: &[f32],
    groups: &[i64],
    ids: &[i64],
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(group_advantage)]
#[should_panic(expected = "not yet implemented")]
fn my_group_advantage(
    rewards: &[f32],
    groups: &[i64],
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(outcome_advantage)]
#[should_panic(expected = "not yet implemented")]
fn my_outcome_advantage(
    token_rewards: &[f32],
    mask: &[bool],
    groups: &[i64],
    rows: usize,
    columns: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(token_rewards)]
#[should_panic(expected = "not yet implemented")]
fn my_token_rewards(
    scores: &[f32],
    log_probs: &[f32],
    ref_log_probs: &[f32],
    mask: &[bool],
    finished: Option<&[bool]>,
    rows: usize,
    columns: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(gae, returns(advantages, returns))]
#[should_panic(expected = "not yet implemented")]
fn my_gae(
    rewards: &[f32],
    values: &[f32],
    mask: &[bool],
    rows: usize,
    columns: usize,
) -> (Vec<f32>, Vec<f32>) {
    todo!()
}

#[shakedown::contract(rollout_gae, returns(advantages, returns))]
#[should_panic(expected = "not yet implemented")]
fn my_rollout_gae(
    rewards: &[f32],
    values: &[f32],
    dones: &[bool],
    last_values: &[f32],
    last_dones: &[bool],
    rows: usize,
    columns: usize,
) -> (Vec<f32>, Vec<f32>) {
    todo!()
}

#[shakedown::contract(returns)]
#[should_panic(expected = "not yet implemented")]
fn my_returns(
    rewards: &[f32],
    mask: &[bool],
    rows: usize,
    columns: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(whiten)]
#[should_panic(expected = "not yet implemented")]
fn my_whiten(
    values: &[f32],
    mask: &[bool],
    rows: usize,
    columns: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(model_forward)]
#[should_panic(expected = "not yet implemented")]
fn my_model_forward(
    input_ids: &[i64],
    attention_mask: &[bool],
    position_ids: Option<&[i64]>,
    rows: usize,
    columns: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(token_log_probs)]
#[should_panic(expected = "not yet implemented")]
fn my_token_log_probs(
    logits: &[f32],
    tokens: &[i64],
    rows: usize,
    columns: usize,
    vocabulary: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(token_entropy)]
#[should_panic(expected = "not yet implemented")]
fn my_token_entropy(
    logits: &[f32],
    rows: usize,
    columns: usize,
    vocabulary: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(kl_estimate)]
#[should_panic(expected = "not yet implemented")]
fn my_kl_estimate(
    log_probs: &[f32],
    ref_log_probs: &[f32],
    rows: usize,
    columns: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(importance_weights)]
#[should_panic(expected = "not yet implemented")]
fn my_importance_weights(
    log_probs: &[f32],
    sampler_log_probs: &[f32],
    mask: &[bool],
    advantages: Option<&[f32]>,
    rows: usize,
    columns: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(policy_loss)]
#[should_panic(expected = "not yet implemented")]
fn my_policy_loss(
    log_probs: &[f32],
    old_log_probs: &[f32],
    advantages: &[f32],
    mask: &[bool],
    ref_log_probs: Option<&[f32]>,
    rows: usize,
    columns: usize,
) -> f32 {
    todo!()
}

#[shakedown::contract(entropy_bonus)]
#[should_panic(expected = "not yet implemented")]
fn my_entropy_bonus(
    logits: &[f32],
    mask: &[bool],
    rows: usize,
    columns: usize,
    vocabulary: usize,
) -> f32 {
    todo!()
}

#[shakedown::contract(value_loss)]
#[should_panic(expected = "not yet implemented")]
fn my_value_loss(
    values: &[f32],
    old_values: &[f32],
    returns: &[f32],
    mask: &[bool],
    rows: usize,
    columns: usize,
) -> f32 {
    todo!()
}

#[shakedown::contract(preference_loss)]
#[should_panic(expected = "not yet implemented")]
fn my_preference_loss(
    policy_chosen: &[f32],
    policy_rejected: &[f32],
    ref_chosen: &[f32],
    ref_rejected: &[f32],
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(pair_objective)]
#[should_panic(expected = "not yet implemented")]
fn my_pair_objective(
    policy_chosen: &[f32],
    policy_rejected: &[f32],
    ref_chosen: &[f32],
    ref_rejected: &[f32],
    chosen_lengths: &[i64],
    rejected_lengths: &[i64],
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(accumulated_loss, returns(loss, grad_micro_batches))]
#[should_panic(expected = "not yet implemented")]
fn my_accumulated_loss(
    micro_batches: &[shakedown::contracts::accumulated_loss::MicroBatch],
) -> (f32, Vec<String>) {
    todo!()
}

#[shakedown::contract(policy_update)]
#[should_panic(expected = "not yet implemented")]
fn my_policy_update(
    logits: &[f32],
    rewards: &[f32],
    steps: i64,
    learning_rate: f32,
    seed: i64,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(sft_step)]
#[should_panic(expected = "not yet implemented")]
fn my_sft_step(
    tokens: &[i64],
    mask: &[bool],
    logits: &[f32],
    micro_batches: Option<&[i64]>,
    rows: usize,
    columns: usize,
    vocabulary: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(preference_step)]
#[should_panic(expected = "not yet implemented")]
fn my_preference_step(
    tokens: &[i64],
    logits: &[f32],
    ref_logits: Option<&[f32]>,
    micro_batches: Option<&[i64]>,
    rows: usize,
    columns: usize,
    vocabulary: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(reward_model_step)]
#[should_panic(expected = "not yet implemented")]
fn my_reward_model_step(
    tokens: &[i64],
    scores: &[f32],
    margins: Option<&[f32]>,
    micro_batches: Option<&[i64]>,
    rows: usize,
    columns: usize,
    vocabulary: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(grpo_step)]
#[should_panic(expected = "not yet implemented")]
fn my_grpo_step(
    tokens: &[i64],
    rewards: &[f32],
    logits: &[f32],
    ref_logits: Option<&[f32]>,
    micro_batches: Option<&[i64]>,
    rows: usize,
    columns: usize,
    vocabulary: usize,
) -> Vec<f32> {
    todo!()
}

#[shakedown::contract(metric_reduction)]
#[should_panic(expected = "not yet implemented")]
fn my_metric_reduction(
    shards: &[shakedown::contracts::metric_reduction::Shard],
) -> f32 {
    todo!()
}
