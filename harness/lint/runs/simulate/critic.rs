//! The critic: a table of what is expected of each situation.

use super::policy::{PROMPTS, ROWS};
use super::rollout::Batch;
use crate::runs::statistics::deviation;

/// How far a value goes to the mean of its returns, times two.
const RATE: f64 = 0.15;
/// How many visits a situation needs to be learned about that quickly.
const PRIOR: f64 = 4.0;

/// What is expected of each situation.
#[derive(Clone)]
pub(super) struct Critic {
    /// Of each situation.
    values: Vec<f64>,
    /// Of the same situations after any prompt: what they share is learned sooner.
    shared: Vec<f64>,
    /// What a value is multiplied by before it is compared with a return.
    scale: f64,
}

/// What an update of the critic found.
pub(super) struct Criticism {
    /// The mean squared error.
    pub(super) loss: f64,
    /// The share of the variance of the returns that it explains.
    pub(super) explained: f64,
    /// The norm of the gradient.
    pub(super) grad_norm: f64,
}

impl Critic {
    /// One that expects nothing.
    pub(super) fn new(scale: f64) -> Critic {
        Critic { values: vec![0.0; ROWS], shared: vec![0.0; ROWS / PROMPTS], scale }
    }

    /// What it expects.
    pub(super) fn value(&self, row: usize) -> f64 {
        self.scale * (self.values[row] + self.shared[row % self.shared.len()])
    }

    /// Takes a step towards the returns.
    pub(super) fn learn(&mut self, batch: &Batch, is_trained: bool) -> Criticism {
        let rate = if is_trained { RATE } else { 0.0 };
        let count = batch.tokens().count().max(1) as f64;
        let targets: Vec<f64> = batch.tokens().map(|token| token.target).collect();
        let errors: Vec<f64> =
            batch.tokens().map(|token| self.value(token.row) - token.target).collect();
        let explained = 1.0 - (deviation(&errors) / deviation(&targets)).powi(2);
        let mut gradient = vec![0.0; ROWS];
        let mut visits = vec![PRIOR; ROWS];
        for (token, error) in batch.tokens().zip(&errors) {
            gradient[token.row] += 2.0 * error * self.scale / count;
            visits[token.row] += 1.0;
        }
        let grad_norm = gradient.iter().map(|x| x * x).sum::<f64>().sqrt();
        // As adaptive optimisers do, it takes larger steps where gradients are small.
        let situations = self.shared.len();
        let mut slopes = vec![(0.0, PRIOR); situations];
        for (row, value) in self.values.iter_mut().enumerate() {
            *value -= rate * gradient[row] * count / visits[row];
            let (slope, seen) = &mut slopes[row % situations];
            (*slope, *seen) = (*slope + gradient[row] * count, *seen + visits[row] - PRIOR);
        }
        for (value, (slope, seen)) in self.shared.iter_mut().zip(slopes) {
            *value -= rate * slope / seen;
        }
        let loss = errors.iter().map(|error| error * error).sum::<f64>() / count;
        Criticism { loss, explained, grad_norm }
    }
}
