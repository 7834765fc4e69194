//! What is measured of a batch and of the updates that were made of it.

use super::advantages::shaped_mean;
use super::bug::Bug;
use super::completion::{Completion, Token};
use super::log::Log;
use super::rollout::Batch;
use super::task::Task;
use super::update::Update;
use super::{Algorithm, Penalty, Simulation};
use crate::runs::statistics::{deviation, mean};

/// All that is measured of a batch before it is trained on.
pub(super) fn batch(plan: &Simulation, task: &Task, batch: &Batch, log: &mut Log) {
    rewards(plan, batch, log);
    if matches!(plan.algorithm, Algorithm::Grpo | Algorithm::Rloo) {
        groups(plan, batch, log);
    }
    let advantages: Vec<f64> = batch.tokens().map(|token| token.advantage).collect();
    spread("advantage", &advantages, log);
    lengths(batch, log);
    prompts(plan, task, batch, log);
    if plan.has_actions {
        log.put("action.invalid", share(batch, |one| !one.is_valid));
    }
    mismatch(batch, log);
    if plan.is_corrected {
        weights(batch, log);
    }
}

fn of(batch: &Batch, get: fn(&Completion) -> f64) -> Vec<f64> {
    batch.completions.iter().map(get).collect()
}

fn share(batch: &Batch, is_meant: fn(&Completion) -> bool) -> f64 {
    let meant = batch.completions.iter().filter(|one| is_meant(one)).count();
    meant as f64 / batch.completions.len() as f64
}

/// The mean, the largest and the smallest.
fn spread(id: &str, values: &[f64], log: &mut Log) {
    log.put(&format!("{id}.mean"), mean(values));
    log.put(&format!("{id}.max"), values.iter().copied().fold(f64::NAN, f64::max));
    log.put(&format!("{id}.min"), values.iter().copied().fold(f64::NAN, f64::min));
}

fn rewards(plan: &Simulation, batch: &Batch, log: &mut Log) {
    let rewards = of(batch, |one| one.reward);
    spread("reward", &rewards, log);
    log.put("reward.std", deviation(&rewards));
    log.put("reward.shaped", shaped_mean(plan, batch));
    let has_length = matches!(plan.bug, Some(Bug::LengthPays | Bug::LengthPenalised));
    let parts = [
        ("correct", of(batch, |one| one.scores.correct), true),
        ("format", of(batch, |one| one.scores.format), plan.format != 0.0),
        ("length", of(batch, |one| one.scores.length), has_length),
    ];
    for (name, part, _) in parts.iter().filter(|(_, _, is_logged)| *is_logged) {
        log.put(&format!("reward.part.{name}"), mean(part));
        log.put(&format!("reward.part.{name}.std"), deviation(part));
    }
}

fn groups(plan: &Simulation, batch: &Batch, log: &mut Log) {
    let rewards = of(batch, |one| one.reward);
    let groups: Vec<(f64, f64)> =
        rewards.chunks(plan.group).map(|group| (group[0], deviation(group))).collect();
    let flat = |is_meant: &dyn Fn(f64) -> bool| {
        let flat = groups.iter().filter(|(reward, std)| *std < 1e-6 && is_meant(*reward));
        flat.count() as f64 / groups.len() as f64
    };
    let [scale, lowest] = plan.reward;
    let highest = lowest + scale * (1.0 + plan.format);
    log.put(
        "reward.group_std",
        groups.iter().map(|(_, std)| std).sum::<f64>() / groups.len() as f64,
    );
    log.put("groups.flat", flat(&|_| true));
    log.put("groups.all_wrong", flat(&|reward| (reward - lowest).abs() < 1e-6));
    log.put("groups.all_right", flat(&|reward| (reward - highest).abs() < 1e-6));
}

fn lengths(batch: &Batch, log: &mut Log) {
    spread("length", &of(batch, |one| one.tokens.len() as f64), log);
    let stopped = batch.completions.iter().filter(|one| !one.is_cut);
    let stopped: Vec<f64> = stopped.map(|one| one.tokens.len() as f64).collect();
    log.put("length.stopped", if stopped.is_empty() { 0.0 } else { mean(&stopped) });
    log.put("length.clipped", share(batch, |one| one.is_cut));
    log.put("length.empty", share(batch, |one| one.tokens.is_empty()));
}

fn prompts(plan: &Simulation, task: &Task, batch: &Batch, log: &mut Log) {
    let limit = plan.prompt_limit;
    let lengths = || batch.completions.iter().map(|one| task.prompt_length(one.prompt));
    let seen: Vec<f64> = lengths().map(|length| length.min(limit) as f64).collect();
    let cut = lengths().filter(|length| *length > limit).count();
    log.put("prompt.mean", mean(&seen));
    log.put("prompt.clipped", cut as f64 / seen.len() as f64);
}

/// How far the trainer is from the engine.
fn mismatch(batch: &Batch, log: &mut Log) {
    let of = |get: fn(&Token) -> f64| -> Vec<f64> { batch.tokens().map(get).collect() };
    let apart = |token: &Token| token.old - token.engine;
    log.ask("mismatch.logp", || mean(&of(|token| (token.old - token.engine).abs())));
    log.ask("mismatch.ratio", || mean(&of(|token| (token.old - token.engine).abs().exp())));
    log.ask("mismatch.kl", || {
        let kl = |token: &Token| apart(token).exp() - 1.0 - apart(token);
        mean(&batch.tokens().map(kl).collect::<Vec<f64>>())
    });
    if log.asks("mismatch.prob") {
        let (ours, theirs) = (of(|token| token.old.exp()), of(|token| token.engine.exp()));
        let away: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).collect();
        log.put("mismatch.prob", mean(&away));
        log.put("mismatch.prob_max", away.iter().copied().fold(f64::NAN, f64::max));
        log.put("mismatch.corr", correlation(&ours, &theirs));
    }
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (of_a, of_b) = (mean(a), mean(b));
    let both: Vec<f64> = a.iter().zip(b).map(|(x, y)| (x - of_a) * (y - of_b)).collect();
    mean(&both) / (deviation(a) * deviation(b))
}

fn weights(batch: &Batch, log: &mut Log) {
    let raw: Vec<f64> = batch.tokens().map(|token| token.weight).collect();
    let cut: Vec<f64> = raw.iter().map(|weight| weight.min(2.0)).collect();
    spread("weights", &cut, log);
    let squares: f64 = raw.iter().map(|weight| weight * weight).sum();
    log.put("weights.ess", raw.iter().sum::<f64>().powi(2) / squares / raw.len() as f64);
    let dropped = raw.iter().filter(|weight| **weight > 2.0).count();
    log.put("weights.dropped", dropped as f64 / raw.len() as f64);
}

/// What the updates of a batch found, on average.
pub(super) fn updates(plan: &Simulation, updates: &[Update], log: &mut Log) {
    let all = Update::mean(updates);
    let is_summed = plan.bug == Some(Bug::EntropySummed);
    let [mean, least, most] = all.ratio;
    for (id, value) in [
        ("loss", all.loss),
        ("pg_loss", all.pg_loss),
        ("grad_norm", all.grad_norm),
        ("kl.old", all.kl_old),
        ("clip.frac", all.clipped),
        ("clip.low", all.clipped_at[0]),
        ("clip.high", all.clipped_at[1]),
        ("ratio.mean", mean),
        ("ratio.min", least),
        ("ratio.max", most),
        ("entropy", if is_summed { all.entropy * all.tokens } else { all.entropy }),
    ] {
        log.put(id, value);
    }
    if let Penalty::Loss(weight) | Penalty::Reward(weight) = plan.penalty {
        log.put("kl.ref", all.kl);
        log.put("kl.coef", weight);
    }
}
