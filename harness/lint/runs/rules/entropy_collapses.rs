//! The policy stops trying anything else.
//!
//! ### Fires when
//! In 20 rows or more the last entropy is at most a fifth of the first and below 0.1 nats per
//! token, or at most 0.01 where it began above 0.05. At most 0.01 is an error, else it is a
//! warning; a note while the reward still rises in the second half, or the task is solved. In 3 to
//! 19 rows it falls from row to row, from above 0.05 to at most 0.01 and a twentieth: an error, or
//! a note where the reward ends at 0.9 of the largest, or rises evenly where that is not logged.
//!
//! ### Not said
//! That entropy must not fall: a policy that learns becomes surer. What is lost is the difference
//! between completions of one group, without which nothing more is learnt.
//!
//! ### Causes
//! - the clip range holds rare tokens down and lets likely ones grow
//! - the learning rate, or the number of passes over a batch, is too high
//! - a low temperature, so that only likely tokens are sampled
//!
//! ### Next
//! - raise the upper clip bound, or add a small entropy bonus
//! - shakedown check --stage log-probability
//! - shakedown check --stage loss
//!
//! ### Source
//! DAPO, arXiv 2503.14476, section 3.1; on the mechanism of entropy arXiv 2505.22617.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::ceiling;
use crate::runs::statistics::{Statistics, TREND_POINTS, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::LogProbability,
    needs: &["entropy"],
    explains: &["groups-flat", "diversity-lost", "gradient-vanishes"],
    contracts: &[
        ("token-entropy", &["bounded", "near-one-hot"]),
        ("policy-loss", &["clipped-tokens", "clip-fraction"]),
    ],
    catches: &["entropy-lost", "entropy-lost-at-once"],
    check,
};

/// Nats per token: below the first a policy is narrow, below the second it has stopped to try.
const LIMITS: [f64; 2] = [0.1, 0.01];

/// A policy that begins below this had nothing to lose.
const NARROW_FROM_THE_START: f64 = 0.05;

/// So few rows show a collapse, by as much at least.
const AT_ONCE: usize = 3;
const TIMES: f64 = 20.0;

fn check(run: &Run) -> Judgement {
    let entropy = run.figures("entropy", AT_ONCE)?;
    if entropy.n() < TREND_POINTS {
        return at_once(run, &entropy.values);
    }
    let last = entropy.last + run.series["entropy"].resolution;
    if entropy.first <= 0.0 {
        return Err(insufficient("the entropy is not above 0 at first"));
    }
    let is_gone = last <= LIMITS[1] && entropy.first > NARROW_FROM_THE_START;
    let is_narrow = last <= 0.2 * entropy.first && last < LIMITS[0];
    if !is_gone && !is_narrow {
        return Ok(vec![]);
    }
    let learns = ceiling::is_reached(run) || rises_in_the_second_half(run);
    let severity = match (learns, last <= LIMITS[1]) {
        (true, _) => Severity::Note,
        (false, true) => Severity::Error,
        (false, false) => Severity::Warning,
    };
    let found = format!(
        "the entropy falls from {} to {} nats per token{}",
        short(entropy.first),
        short(entropy.last),
        if learns { ", while the reward is learnt" } else { "" },
    );
    let limit = if is_gone { LIMITS[1] } else { LIMITS[0].min(0.2 * entropy.first) };
    let steps = run.steps_where("entropy", |row| row.mean <= limit).unwrap_or_default();
    Firing::new(severity, found)
        .at_steps(steps)
        .metric("entropy", "last", entropy.last, Some(limit))
        .metric("entropy", "first", entropy.first, None)
        .into()
}

/// A collapse that is over before there is a trend.
fn at_once(run: &Run, entropy: &[f64]) -> Judgement {
    let (first, last) = (entropy[0], entropy[entropy.len() - 1]);
    let resolution = run.series["entropy"].resolution;
    let falls = entropy.windows(2).all(|pair| pair[1] < pair[0]);
    let limit = LIMITS[1].min(first / TIMES);
    if !falls || first <= NARROW_FROM_THE_START || last + resolution > limit {
        run.need("entropy", TREND_POINTS)?;
    }
    let learns = is_learnt(run);
    let found = format!(
        "the entropy falls from {} to {} nats per token within {} rows{}",
        short(first),
        short(last),
        entropy.len(),
        if learns { ", while the reward is learnt" } else { "" },
    );
    let fired = if learns { Firing::note(found) } else { Firing::error(found) };
    fired
        .at_steps(run.steps_from("entropy", 1))
        .metric("entropy", "last", last, Some(limit))
        .metric("entropy", "first", first, None)
        .into()
}

/// Whether few rewards end close to all there is; where that is not known, whether they rise from
/// row to row about evenly.
fn is_learnt(run: &Run) -> bool {
    let rewards = run.get("reward.mean").map(|rewards| rewards.values()).unwrap_or_default();
    let Some(last) = rewards.last().filter(|_| rewards.len() >= AT_ONCE) else { return false };
    if let Some(full) = run.marks(0.9) {
        return *last >= full;
    }
    let rises = || rewards.windows(2).map(|pair| pair[1] - pair[0]);
    let most = rises().fold(0.0, f64::max);
    most > 0.0 && rises().all(|rise| rise >= 0.5 * most)
}

fn rises_in_the_second_half(run: &Run) -> bool {
    let rewards = run.get("reward.mean").map(|rewards| rewards.values()).unwrap_or_default();
    let half = Statistics::of_values(rewards[rewards.len() / 2..].to_vec());
    half.is_some_and(|half| half.n() >= TREND_POINTS / 2 && half.trend() >= 4.0 && half.tau >= 0.2)
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{
        Column, always, noise, run, run_rounded, said, scatter, steps,
    };

    const RULE: &str = "entropy-collapses";

    fn falls(rows: usize, from: f64, to: f64, seed: u64) -> Run {
        let entropy = move |i: usize| to + (from - to) * (-6.0 * i as f64 / rows as f64).exp();
        run(rows, &[("entropy", &|i| entropy(i) * scatter(seed, i, 0.05))])
    }

    #[test]
    fn a_collapse_is_a_warning_and_a_dead_policy_an_error() {
        always("warning", RULE, |seed| falls(100, 0.4, 0.03, seed));
        always("error", RULE, |seed| falls(100, 0.4, 0.004, seed));
        let late = run(100, &[("entropy", &|i| if i < 60 { 0.5 } else { 0.001 })]);
        assert_eq!(steps(&late, RULE), Some([7 * 60 + 3, 7 * 99 + 3]));
    }

    #[test]
    fn a_healthy_fall_is_left_alone() {
        always("quiet", RULE, |seed| falls(200, 1.2, 0.3, seed));
        always("quiet", RULE, |seed| falls(200, 0.3, 0.09, seed));
        always("quiet", RULE, |seed| falls(200, 2.5, 0.12, seed));
        always("quiet", RULE, |seed| falls(200, 0.04, 0.009, seed));
    }

    #[test]
    fn it_is_a_note_while_the_reward_is_learnt() {
        always("note", RULE, |seed| {
            let entropy = |i: usize| 0.5 * (-0.04 * i as f64).exp();
            let reward = |i: usize| 0.1 + 0.005 * i as f64 + 0.03 * noise(seed, i);
            run(100, &[("entropy", &entropy), ("reward.mean", &reward)])
        });
        always("error", RULE, |seed| {
            let entropy = |i: usize| 0.5 * (-0.06 * i as f64).exp();
            let reward = |i: usize| 0.1 + 0.005 * (i as f64).min(40.0) + 0.03 * noise(seed, i);
            run(100, &[("entropy", &entropy), ("reward.mean", &reward)])
        });
    }

    #[test]
    fn a_collapse_within_three_rows_is_found() {
        let of = |values: [f64; 3]| run(3, &[("entropy", &|i| values[i])]);
        let fallen = [1.03, 0.2, 0.008];
        assert_eq!(said(&of(fallen), RULE), "error");
        assert_eq!(steps(&of(fallen), RULE), Some([10, 17]));
        assert_eq!(said(&of([1.03, 0.2, 0.05]), RULE), "insufficient");
        assert_eq!(said(&of([0.04, 0.01, 0.001]), RULE), "insufficient");
        assert_eq!(said(&of([0.2, 1.03, 0.008]), RULE), "insufficient");
        let learnt: [Column<'_>; 2] =
            [("entropy", &|i| fallen[i]), ("reward.mean", &|i| 0.4 * i as f64)];
        assert_eq!(said(&run(3, &learnt), RULE), "note");
        assert_eq!(said(&run(2, &[("entropy", &|i| fallen[i])]), RULE), "insufficient");
    }

    #[test]
    fn rounding_and_few_rows_do_not_make_a_collapse() {
        let entropy = |i: usize| if i < 50 { 0.3 } else { 0.058 };
        assert_eq!(said(&run(100, &[("entropy", &entropy)]), RULE), "warning");
        assert_eq!(said(&run_rounded(100, 0.005, &[("entropy", &entropy)]), RULE), "quiet");
        assert_eq!(said(&falls(19, 0.4, 0.03, 1), RULE), "insufficient");
        let negated = run(100, &[("entropy", &|i| -0.5 - 0.01 * i as f64)]);
        assert_eq!(said(&negated, RULE), "insufficient");
    }
}
