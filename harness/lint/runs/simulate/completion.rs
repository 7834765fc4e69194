//! Completions, token by token.

/// A token of a completion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    /// The row of the table that it was chosen from.
    pub(super) row: usize,
    /// The token.
    pub(super) token: usize,
    /// Its log-probability as the engine has it.
    pub(super) engine: f64,
    /// As the trainer has it before the first update.
    pub(super) old: f64,
    /// As the reference has it.
    pub(super) reference: f64,
    /// What its choice was better by.
    pub(super) advantage: f64,
    /// What the critic expected, and what it should have expected.
    pub(super) value: f64,
    /// The return, for the critic.
    pub(super) target: f64,
    /// The importance weight, trainer over engine.
    pub(super) weight: f64,
}

/// A completion.
#[derive(Clone, Debug)]
pub(super) struct Completion {
    /// The prompt that was asked for.
    pub(super) prompt: usize,
    /// Its tokens.
    pub(super) tokens: Vec<Token>,
    /// Whether it was cut at the limit.
    pub(super) is_cut: bool,
    /// Whether the environment could use what it wrote.
    pub(super) is_valid: bool,
    /// What the reward functions gave.
    pub(super) scores: Scores,
    /// Their weighted sum.
    pub(super) reward: f64,
}

/// What the reward functions gave for a completion.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scores {
    /// The answer is right.
    pub(super) correct: f64,
    /// A mark, an answer, the end.
    pub(super) format: f64,
    /// What the length brings or costs.
    pub(super) length: f64,
}
