//! Training on pairs: direct preference optimisation.

use super::Simulation;
use super::bug::Bug;
use super::completion::Completion;
use super::log::Logged;
use super::policy::{ANSWERS, END, Gradient, MARK, PROMPTS, Situation, THINKING, Table, norm};
use super::random::Random;
use super::rollout;
use super::task::Task;
use super::update::TABLE;
use crate::runs::statistics::mean;

/// The weight of the implicit reward.
const BETA: f64 = 0.1;

/// The rows and tokens of one side of a pair.
type Side = Vec<(usize, usize)>;

/// Trains, and gives what each step logged.
pub(super) fn train(plan: &Simulation) -> Vec<Logged> {
    let mut random = Random::new(plan.seed, 2);
    let task = Task::new(plan.bug, &mut random);
    let mut policy = task.start(plan, &mut random);
    let mut reference = policy.clone();
    let mut gradient = Gradient::default();
    let mut step = |step: usize| {
        let pairs: Vec<[Side; 2]> =
            (0..plan.prompts * 2).map(|_| pair(plan, &task, &mut reference, &mut random)).collect();
        let found = learn(plan, &pairs, [&mut policy, &mut reference], &mut gradient, step);
        let mut logged = vec![("step".to_owned(), step as f64)];
        logged.extend(found.map(|(id, value)| (id.to_owned(), value)));
        logged
    };
    (1..=plan.steps).map(&mut step).collect()
}

/// A right and a wrong completion of one prompt. People label one pair in ten the wrong way round.
fn pair(plan: &Simulation, task: &Task, start: &mut Table, random: &mut Random) -> [Side; 2] {
    let prompt = random.below(PROMPTS);
    if plan.bug == Some(Bug::LikelihoodDisplaced) {
        return near(prompt, random);
    }
    let mut write = |is_right: bool, random: &mut Random| {
        let mut one = rollout::completion(plan, task, start, prompt, random);
        for _ in 0..60 {
            if (one.scores.correct > 0.5) == is_right {
                break;
            }
            one = rollout::completion(plan, task, start, prompt, random);
        }
        side(&one)
    };
    let [right, wrong] = [write(true, random), write(false, random)];
    let is_swapped = match plan.bug {
        Some(Bug::LabelsNoise) => random.chance(0.5),
        _ => random.chance(0.1),
    };
    if is_swapped { [wrong, right] } else { [right, wrong] }
}

fn side(one: &Completion) -> Side {
    one.tokens.iter().map(|token| (token.row, token.token)).collect()
}

/// Two sides that differ in how often a thought is repeated and in their last word.
fn near(prompt: usize, random: &mut Random) -> [Side; 2] {
    let thought = THINKING + random.below(6);
    let text = |thoughts: usize, answer: usize| {
        let mut tokens = vec![thought; thoughts];
        tokens.extend([MARK, answer, END]);
        let mut situation = Situation::start(prompt);
        tokens
            .into_iter()
            .map(|token| {
                let row = situation.row();
                situation = situation.after(token);
                (row, token)
            })
            .collect()
    };
    let answer = ANSWERS + random.below(4);
    [text(10, answer), text(14, answer)]
}

fn log_probability(table: &mut Table, side: &Side) -> f64 {
    side.iter().map(|(row, token)| table.log(*row)[*token]).sum()
}

/// One step; what it logs.
fn learn(
    plan: &Simulation,
    pairs: &[[Side; 2]],
    [policy, reference]: [&mut Table; 2],
    gradient: &mut Gradient,
    step: usize,
) -> [(&'static str, f64); 8] {
    let (mut losses, mut sides, mut logs) = (Vec::new(), [Vec::new(), Vec::new()], Vec::new());
    for pair in pairs {
        let log = [log_probability(policy, &pair[0]), log_probability(policy, &pair[1])];
        let reward = [0, 1].map(|at| BETA * (log[at] - log_probability(reference, &pair[at])));
        let margin = reward[0] - reward[1];
        losses.push((1.0 + (-margin).exp()).ln());
        let pull = BETA / (1.0 + margin.exp()) / pairs.len() as f64;
        for (of, sign) in pair.iter().zip([1.0, -1.0]) {
            let sign = if plan.bug == Some(Bug::DpoSwapped) { -sign } else { sign };
            of.iter().for_each(|(row, token)| gradient.want(*row, *token, sign * pull, 0.0));
        }
        sides[0].push(reward[0]);
        sides[1].push(reward[1]);
        logs.push(log[0]);
    }
    let rate = plan.rate_at(step);
    let direction = gradient.drain(policy);
    let grad_norm = if plan.bug == Some(Bug::DpoFrozen) { 0.0 } else { norm(&direction) };
    let scale = rate * TABLE * (plan.max_norm / (grad_norm + 1e-6)).min(1.0);
    if grad_norm > 0.0 {
        direction.iter().for_each(|(row, of_row)| policy.add(*row, of_row, scale));
    }
    let [chosen, rejected] = &sides;
    let right = chosen.iter().zip(rejected).filter(|(chosen, rejected)| chosen > rejected).count();
    let margin = mean(chosen) - mean(rejected);
    let scale = if plan.bug == Some(Bug::MarginScaled) { BETA } else { 1.0 };
    [
        ("loss", mean(&losses)),
        ("grad_norm", grad_norm),
        ("lr", rate),
        ("pref.chosen", mean(chosen)),
        ("pref.rejected", mean(rejected)),
        ("pref.margin", scale * margin),
        ("pref.accuracy", right as f64 / pairs.len() as f64),
        ("logp.chosen", mean(&logs)),
    ]
}
