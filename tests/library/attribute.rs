//! The attribute `contract`: functions in their own types, right and wrong.

use half::bf16;
use ndarray::{Array2, ArrayView2, ArrayView3};

/// Rewards less the mean of their group.
#[shakedown::contract(group_advantage, scale = "none", .cases(50), .without_corpora())]
fn slices(rewards: &[f32], groups: &[i64]) -> Vec<f32> {
    centred(rewards, groups)
}

#[shakedown::contract(group_advantage, scale = "none", .cases(20), .without_corpora())]
async fn vectors_in_another_order(groups: Vec<i64>, rewards: Vec<f64>) -> Vec<f64> {
    let mut advantages = vec![0.0; rewards.len()];
    for (row, reward) in rewards.iter().enumerate() {
        let of = |other: &usize| groups[*other] == groups[row];
        let rows: Vec<usize> = (0..rewards.len()).filter(of).collect();
        let sum: f64 = rows.iter().map(|other| rewards[*other]).sum();
        advantages[row] = reward - sum / rows.len() as f64;
    }
    advantages
}

fn centred(rewards: &[f32], groups: &[i64]) -> Vec<f32> {
    let mean = |group: i64| {
        let rows = rewards.iter().zip(groups).filter(|(_, other)| **other == group);
        let (sum, count) = rows
            .fold((0.0, 0.0), |(sum, count), (reward, _)| (sum + f64::from(*reward), count + 1.0));
        sum / count
    };
    rewards.iter().zip(groups).map(|(r, group)| (f64::from(*r) - mean(*group)) as f32).collect()
}

#[shakedown::contract(group_advantage, scale = "none", .cases(20), .without_corpora())]
#[should_panic(expected = "baseline-missing")]
fn wrong_in_f32(rewards: &[f32]) -> Vec<f32> {
    rewards.to_vec()
}

#[shakedown::contract(group_advantage, .cases(20), .without_corpora())]
#[should_panic(expected = "raised an error: no rewards")]
fn an_error_is_a_finding(rewards: &[f32]) -> Result<Vec<f32>, &'static str> {
    if rewards.len() == 1 { Err("no rewards") } else { Ok(rewards.to_vec()) }
}

#[shakedown::contract(group_advantage, .cases(20), .without_corpora())]
#[should_panic(expected = "returned 1 text cells, which is none of the outputs `advantages`")]
fn another_kind_of_output_is_a_finding(rewards: &[f32]) -> Vec<String> {
    rewards.iter().map(f32::to_string).collect()
}

#[shakedown::contract(group_advantage, .cases(20), .without_corpora())]
#[should_panic(expected = "8589934595 is no i32")]
fn an_id_that_the_type_cannot_hold_is_a_finding(groups: &[i32]) -> Vec<f32> {
    vec![0.0; groups.len()]
}

/// The log-probability of each token, of logits that lie flat.
#[shakedown::contract(token_log_probs, .cases(50), .without_corpora())]
fn flat_logits(
    logits: &[f32],
    tokens: &[u32],
    rows: usize,
    columns: usize,
    vocabulary: usize,
) -> Vec<f32> {
    assert_eq!((logits.len(), tokens.len()), (rows * columns * vocabulary, rows * columns));
    let of_token = |(logits, token): (&[f32], &u32)| {
        let largest = logits.iter().fold(f32::NEG_INFINITY, |a, b| a.max(*b));
        let sum: f64 = logits.iter().map(|logit| f64::from(logit - largest).exp()).sum();
        (f64::from(logits[*token as usize] - largest) - sum.ln()) as f32
    };
    logits.chunks(vocabulary).zip(tokens).map(of_token).collect()
}

#[shakedown::contract(token_log_probs, .cases(50), .without_corpora())]
#[should_panic(expected = "cpu/bf16")]
fn views_and_another_format(logits: ArrayView3<'_, bf16>, tokens: &Array2<i64>) -> Array2<bf16> {
    // Not normalised.
    Array2::from_shape_fn(tokens.raw_dim(), |(row, column)| {
        logits[[row, column, tokens[[row, column]] as usize]]
    })
}

/// REINFORCE without a ratio, with its gradient.
#[shakedown::contract(
    policy_loss,
    objective = "reinforce",
    advantage_shape = "token",
    aggregate = "token-sum",
    returns(loss, grad_log_probs),
    .cases(50),
    .without_corpora(),
)]
fn named_outputs(
    log_probs: ArrayView2<f64>,
    advantages: &[f64],
    mask: &[bool],
    columns: usize,
) -> (f64, Vec<f64>) {
    let (mut loss, mut gradient) = (0.0, Vec::new());
    for (place, log_prob) in log_probs.iter().enumerate() {
        assert!(columns > 0 && place < advantages.len());
        let weight = if mask[place] { advantages[place] } else { 0.0 };
        loss -= if mask[place] { weight * log_prob } else { 0.0 };
        gradient.push(-weight);
    }
    (loss, gradient)
}
