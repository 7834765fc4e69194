//! The policy becomes noise.
//!
//! ### Fires when
//! The entropy rises, by at least 0.1 nats per token, and by half of what it was, or by 15 % where
//! the reward does not rise with it. A note while the reward rises.
//!
//! ### Not said
//! That rising entropy is harm: with a higher upper clip bound it rises while a policy learns.
//!
//! ### Causes
//! - the entropy bonus is too large
//! - the upper clip bound is too far from 1
//! - the learning rate is too high
//! - the engine that samples disagrees with the trainer
//!
//! ### Next
//! - shakedown check --stage log-probability
//! - set the entropy bonus to 0, and lower the learning rate
//!
//! ### Source
//! A policy gradient without a bonus lowers the entropy of what it rewards; rllm#116.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement};
use crate::runs::Run;
use crate::runs::statistics::{TREND_POINTS, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::LogProbability,
    needs: &["entropy"],
    explains: &[],
    contracts: &[("token-entropy", &["bounded", "gradient-sums-to-zero", "uniform"])],
    catches: &["bonus-huge"],
    check,
};

/// Nats per token that it rises by at least.
const LEAST: f64 = 0.1;

/// Shares of the first entropy: much at any time, and much where the reward does not rise.
const SHARES: [f64; 2] = [0.5, 0.15];

fn check(run: &Run) -> Judgement {
    let entropy = run.figures("entropy", TREND_POINTS)?;
    let gain = entropy.last - entropy.first;
    let reward = run.statistics("reward.mean").filter(|reward| reward.n() >= TREND_POINTS);
    let learns = reward.as_ref().is_some_and(|reward| reward.rises()) || run.is_solved();
    let share = if reward.is_some() && !learns { SHARES[1] } else { SHARES[0] };
    let limit = entropy.first + LEAST.max(share * entropy.first);
    if !entropy.rises() || entropy.last < limit {
        return Ok(vec![]);
    }
    let found = format!(
        "the entropy rises by {} nats per token, from {} to {}{}",
        short(gain),
        short(entropy.first),
        short(entropy.last),
        match (reward, learns) {
            (None, _) => "",
            (_, true) => ", and the reward with it",
            (_, false) => ", and the reward does not",
        },
    );
    let severity = if learns { Severity::Note } else { Severity::Warning };
    let steps = run.steps_where("entropy", |row| row.mean >= limit).unwrap_or_default();
    Firing::new(severity, found)
        .at_steps(steps)
        .metric("entropy", "last", entropy.last, Some(limit))
        .metric("entropy", "z", entropy.trend(), Some(4.0))
        .into()
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{always, noise, run, said};

    const RULE: &str = "entropy-explodes";

    fn rises(rows: usize, [from, to]: [f64; 2], slope: f64, seed: u64) -> Run {
        let entropy = |i: usize| from + (to - from) * i as f64 / rows as f64;
        let reward = |i: usize| 0.2 + slope * i as f64 + 0.03 * noise(seed, i + 9999);
        let noisy = |i: usize| entropy(i) + 0.02 * noise(seed, i);
        run(rows, &[("entropy", &noisy), ("reward.mean", &reward)])
    }

    #[test]
    fn entropy_that_rises_without_the_reward_is_found() {
        always("warning", RULE, |seed| rises(100, [0.4, 3.0], 0.0, seed));
        always("warning", RULE, |seed| rises(100, [1.0, 1.3], 0.0, seed));
        let alone = run(60, &[("entropy", &|i| 0.3 + 0.02 * i as f64)]);
        assert_eq!(said(&alone, RULE), "warning");
    }

    #[test]
    fn it_is_a_note_while_the_reward_rises() {
        always("note", RULE, |seed| rises(100, [0.4, 1.0], 0.005, seed));
        always("quiet", RULE, |seed| rises(100, [1.0, 1.3], 0.005, seed));
    }

    #[test]
    fn healthy_entropies_are_left_alone() {
        always("quiet", RULE, |seed| rises(100, [0.2, 0.27], 0.0, seed));
        always("quiet", RULE, |seed| rises(100, [2.0, 2.2], 0.0, seed));
        always("quiet", RULE, |seed| rises(200, [0.8, 0.3], 0.0, seed));
        let wanders = |i: usize| 0.5 + 0.3 * (i as f64 / 12.0).sin();
        assert_eq!(said(&run(300, &[("entropy", &wanders)]), RULE), "quiet");
    }

    #[test]
    fn few_rows_have_no_trend() {
        assert_eq!(said(&rises(19, [0.4, 3.0], 0.0, 1), RULE), "insufficient");
    }
}
