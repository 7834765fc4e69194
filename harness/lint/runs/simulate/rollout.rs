//! Rollouts: the engine writes completions for the prompts of a batch.

use super::Simulation;
use super::bug::Bug;
use super::completion::{Completion, Token};
use super::policy::{END, MARK, PROMPTS, Situation, TOKENS, Table};
use super::random::Random;
use super::task::{Task, is_answer};

/// The completions of some prompts, group by group.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// The completions.
    pub(super) completions: Vec<Completion>,
    /// The step whose weights the engine had.
    pub(super) step: usize,
}

impl Batch {
    /// Every token.
    pub(super) fn tokens(&self) -> impl Iterator<Item = &Token> {
        self.completions.iter().flat_map(|one| &one.tokens)
    }

    /// Every token, to change it.
    pub(super) fn tokens_mut(&mut self) -> impl Iterator<Item = &mut Token> {
        self.completions.iter_mut().flat_map(|one| &mut one.tokens)
    }
}

/// Writes and scores a batch.
pub(super) fn batch(
    plan: &Simulation,
    task: &Task,
    engine: &mut Table,
    step: usize,
    random: &mut Random,
) -> Batch {
    let mut completions = Vec::with_capacity(plan.prompts * plan.group);
    for _ in 0..plan.prompts {
        let prompt = random.below(PROMPTS);
        for _ in 0..plan.group {
            completions.push(completion(plan, task, engine, prompt, random));
        }
    }
    Batch { completions, step }
}

/// The prompt that the policy sees: one that is cut has lost its question.
fn seen(plan: &Simulation, task: &Task, prompt: usize) -> usize {
    let is_cut = task.prompt_length(prompt) > plan.prompt_limit;
    if is_cut || plan.bug == Some(Bug::OneAnswer) { 0 } else { prompt }
}

/// Writes a completion, and scores it.
pub(super) fn completion(
    plan: &Simulation,
    task: &Task,
    engine: &mut Table,
    prompt: usize,
    random: &mut Random,
) -> Completion {
    let mut tokens = Vec::with_capacity(16);
    let mut situation = Situation::start(seen(plan, task, prompt));
    while tokens.len() < plan.limit {
        let row = situation.row();
        let token = engine.sample(row, random);
        let engine = engine.log(row)[token];
        tokens.push(Token {
            row,
            token,
            engine,
            old: engine,
            reference: engine,
            advantage: 0.0,
            value: 0.0,
            target: 0.0,
            weight: 1.0,
        });
        if token == END {
            break;
        }
        situation = situation.after(token);
    }
    let is_cut = tokens.last().is_some_and(|last| last.token != END);
    if plan.bug == Some(Bug::CompletionsBlanked) && random.chance(0.15) {
        tokens.clear();
    }
    let text: Vec<usize> = tokens.iter().map(|token| token.token).collect();
    let is_valid = acts(&text, plan.bug);
    let mut scores = task.score(prompt, &text, is_cut);
    if plan.has_actions && !is_valid {
        scores.correct = 0.0;
    }
    Completion { prompt, tokens, is_cut, is_valid, scores, reward: 0.0 }
}

/// Whether the parser finds an action: a mark and an answer. With the bug it looks for a mark that
/// the policy has no token for.
fn acts(text: &[usize], bug: Option<Bug>) -> bool {
    let mark = if bug == Some(Bug::ActionsInvalid) { TOKENS } else { MARK };
    text.windows(2).any(|pair| pair[0] == mark && is_answer(pair[1]))
}
