//! The task: eight questions of four answers each. An answer counts where a mark announces it and
//! enough thoughts came before.

use super::Simulation;
use super::bug::Bug;
use super::completion::{Completion, Scores};
use super::policy::{ANSWERS, END, MARK, PROMPTS, Situation, THINKING, TOKENS, Table};
use super::random::Random;

/// The prompts and what is asked for.
#[derive(Clone)]
pub(super) struct Task {
    /// The right answer of each prompt.
    gold: [usize; PROMPTS],
    /// How many thoughts it needs.
    needs: [usize; PROMPTS],
    /// How many tokens each prompt has.
    lengths: [usize; PROMPTS],
    /// Whether it can be answered at all.
    is_possible: [bool; PROMPTS],
    bug: Option<Bug>,
}

impl Task {
    /// The task of a seed.
    pub(super) fn new(bug: Option<Bug>, random: &mut Random) -> Task {
        let mut gold = std::array::from_fn(|prompt| ANSWERS + prompt % 4);
        random.shuffle(&mut gold);
        let possible = random.below(PROMPTS);
        Task {
            gold,
            needs: std::array::from_fn(
                |prompt| if bug == Some(Bug::TooEasy) { 0 } else { prompt % 3 },
            ),
            lengths: std::array::from_fn(|_| 20 + random.below(60)),
            is_possible: std::array::from_fn(|prompt| {
                bug != Some(Bug::TooHard) || prompt == possible
            }),
            bug,
        }
    }

    /// How many tokens a prompt has.
    pub(super) fn prompt_length(&self, prompt: usize) -> usize {
        self.lengths[prompt]
    }

    /// The policy with which training starts: it knows the form, and some of the answers.
    pub(super) fn start(&self, plan: &Simulation, random: &mut Random) -> Table {
        let gold = self.gold;
        Table::new(|situation| logits(situation, gold[situation.prompt], plan))
            .perturbed(0.3, random)
    }

    /// What a completion gets for its prompt. `is_cut`: it had reached the limit.
    pub(super) fn score(&self, prompt: usize, tokens: &[usize], is_cut: bool) -> Scores {
        let marks = tokens.iter().filter(|token| **token == MARK).count();
        let at = tokens.windows(2).position(|pair| pair[0] == MARK && is_answer(pair[1]));
        let thoughts = |at: usize| tokens[..at].iter().filter(|token| **token >= THINKING).count();
        let is_wanted = |answer: usize| match self.bug {
            // The judge is pleased by what is always wrong.
            Some(Bug::ProxyHacked) => answer != self.gold[prompt],
            _ => answer == self.gold[prompt] && self.is_possible[prompt],
        };
        let correct = at.is_some_and(|at| {
            !is_cut && is_wanted(tokens[at + 1]) && thoughts(at) >= self.needs[prompt]
        });
        let form = marks == 1 && !is_cut && at.is_some_and(|at| at + 3 == tokens.len());
        let length = tokens.len() as f64;
        let length = match self.bug {
            Some(Bug::LengthPays) => 0.5 * length,
            Some(Bug::LengthPenalised) => -3.0 * length,
            _ => 0.0,
        };
        let one = |is: bool| if is { 1.0 } else { 0.0 };
        Scores { correct: one(correct), format: one(form), length }
    }
}

impl Task {
    /// Whether a completion is what is meant, however it was scored.
    pub(super) fn is_meant(&self, prompt: usize, one: &Completion) -> bool {
        let tokens: Vec<usize> = one.tokens.iter().map(|token| token.token).collect();
        let honest = Task { bug: None, ..self.clone() };
        honest.score(prompt, &tokens, one.is_cut).correct > 0.5
    }
}

/// Whether a token is an answer.
pub(super) fn is_answer(token: usize) -> bool {
    (ANSWERS..THINKING).contains(&token)
}

/// The logits of the start, before noise.
fn logits(situation: Situation, gold: usize, plan: &Simulation) -> [f64; TOKENS] {
    let mut logits = [-1.5; TOKENS];
    let Situation { before, thoughts, .. } = situation;
    if before == MARK {
        logits = [-2.0; TOKENS];
        logits[ANSWERS..THINKING].fill(0.5);
        logits[gold] += plan.skill;
    } else if is_answer(before) {
        logits[END] = 2.0;
        logits[MARK] = -0.5;
    } else {
        logits[MARK] = 0.5 + 0.5 * thoughts.min(3) as f64 - plan.thinking;
        logits[THINKING..].fill(0.0);
        logits[ANSWERS..THINKING].fill(-1.5 - 0.5 * plan.thinking);
        logits[END] = -2.0 - 0.5 * plan.skill - plan.thinking;
    }
    logits
}
