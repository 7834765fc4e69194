//! The reward falls and never rose.
//!
//! ### Fires when
//! `reward.mean` falls, by at least a tenth of the rewards' scale, and its peak is above its start
//! by less than 3 standard errors, a tenth of the scale or a fifth of what is lost. Not where a
//! held-out score, or a part of the reward for being right, rises: then the prompts become harder.
//!
//! ### Not said
//! That the task is too hard: then the reward stays, it does not fall.
//!
//! ### Causes
//! - the sign of the advantage, of the loss or of the reward
//! - rows that belong to other groups
//! - a mask that is shifted
//!
//! ### Next
//! - shakedown check --stage advantage
//! - shakedown check --stage loss
//! - look whether the data are sorted from easy to hard; shuffle them if they are
//!
//! ### Source
//! A policy gradient of the right sign does not lower what it follows.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::statistics::{Statistics, TREND_POINTS, short};
use crate::runs::{Run, truth};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Advantage,
    needs: &["reward.mean"],
    explains: &["groups-flat", "diversity-lost"],
    contracts: &[
        ("group-advantage", &["odd", "order-preserved"]),
        ("policy-loss", &["gradient-against-the-advantage"]),
        ("policy-update", &["expected-reward-rises"]),
    ],
    catches: &["advantage-negated", "loss-negated"],
    check,
};

/// A rise of less than this share of what is lost below the start is only the data coming around.
pub(super) const RISE: f64 = 0.2;

/// Why a reward falls that did not from the start.
const BROKEN: &str = "it held at first: the policy broke down, by a step too large or by bad data";

fn check(run: &Run) -> Judgement {
    let reward = run.figures("reward.mean", TREND_POINTS)?;
    let scale = run.reward_scale().ok_or_else(|| insufficient("the rewards have no scale"))?;
    let fell = 0.1 * scale;
    let rose = |one: &Statistics| one.gain(fell.max(RISE * (one.first - one.last))).is_some();
    let falls = |one: &Statistics| one.z <= -4.0 && one.first - one.last >= fell;
    let widths: Vec<Statistics> = reward.widths().collect();
    let declines = widths.iter().find(|one| one.falls() && falls(one));
    let Some(reward) = declines.filter(|_| !widths.iter().any(rose)) else { return Ok(vec![]) };
    if truth::improves(run) {
        return Ok(vec![]);
    }
    let lost = reward.first - reward.last;
    let [first, mid, last] = [reward.first, reward.mid, reward.last].map(short);
    let errors = if reward.z.is_finite() {
        format!("{} standard errors", short(-reward.z))
    } else {
        "without any noise".to_owned()
    };
    let found = format!(
        "the reward falls from {first} over {mid} to {last}, {errors}; it never rose clearly \
         above its start"
    );
    let visibly = (3.0 * reward.se).min(lost / 2.0);
    let since = reward.since(|mean| mean < reward.first - visibly);
    let fired = Firing::error(found);
    let held = reward.mid >= reward.first - fell.min(lost / 4.0);
    let fired = if held { fired.because(None, BROKEN) } else { fired };
    fired
        .at_steps(run.steps_from("reward.mean", since))
        .metric("reward.mean", "last", reward.last, Some(reward.first - fell))
        .metric("reward.mean", "z", reward.z, Some(-4.0))
        .into()
}

#[cfg(test)]
mod tests {
    use crate::report::Severity;
    use crate::runs::rules::trial1::{Metric, findings, noise, run};

    const ID: &str = "reward-declines";
    const STD: Metric<'_> = ("reward.std", &|_| 0.4);

    fn fires(rows: usize, metrics: &[Metric<'_>]) -> bool {
        let found = findings(&run(rows, metrics), ID);
        assert!(found.iter().all(|(severity, _)| *severity == Severity::Error));
        !found.is_empty()
    }

    #[test]
    fn a_reward_that_only_falls_fires_from_where_it_begins_to() {
        for seed in 0..30 {
            let falls = |i: usize| {
                let down = (i as f64 - 60.0).max(0.0) * 0.002;
                0.3 - down.min(0.25) + 0.02 * noise(seed, i)
            };
            let found = findings(&run(200, &[("reward.mean", &falls), STD]), ID);
            let [from, to] = found[0].1;
            assert!((30..=75).contains(&from) && to == 200, "seed {seed}: {from}-{to}");
        }
    }

    #[test]
    fn a_small_fall_shows_in_a_long_noisy_run() {
        for seed in 0..10 {
            let falls = |i: usize| 0.5 - 2e-5 * i as f64 + 0.15 * noise(seed, i);
            assert!(fires(5000, &[("reward.mean", &falls)]), "seed {seed}");
            let stays = |i: usize| 0.5 + 0.15 * noise(seed, i);
            assert!(!fires(5000, &[("reward.mean", &stays)]), "seed {seed}");
        }
    }

    #[test]
    fn a_reward_that_holds_and_then_breaks_has_a_cause_of_its_own() {
        let first_cause = |reward: Metric<'_>| {
            let judged = run(40, &[reward, STD]).judge(&Default::default());
            let declines = judged.findings.into_iter().find(|one| one.rule == ID);
            declines.map(|one| one.causes[0].text.clone())
        };
        let breaks = |i: usize| if i < 24 { 0.85 } else { 0.0 } + 0.03 * noise(4, i);
        assert_eq!(first_cause(("reward.mean", &breaks)).as_deref(), Some(super::BROKEN));
        let falls = |i: usize| 0.85 - 0.02 * i as f64 + 0.03 * noise(4, i);
        let cause = first_cause(("reward.mean", &falls)).expect("it declines");
        assert!(cause.contains("sign"), "{cause}");
    }

    #[test]
    fn nineteen_rows_are_too_few() {
        let falls: Metric<'_> = ("reward.mean", &|i| 0.5 - 0.02 * i as f64);
        assert!(fires(20, &[falls, STD]) && !fires(19, &[falls, STD]));
    }

    #[test]
    fn less_than_a_tenth_of_the_scale_is_no_decline() {
        let by = |by: f64| move |i: usize| 0.5 - by * i as f64 / 100.0;
        assert!(!fires(101, &[("reward.mean", &by(0.045)), STD]));
        assert!(fires(101, &[("reward.mean", &by(0.06)), STD]));
    }

    #[test]
    fn scatter_rises_and_late_dips_are_none() {
        for seed in 0..60 {
            let scatter = |i: usize| 0.4 + 0.1 * noise(seed, i);
            assert!(!fires(30, &[("reward.mean", &scatter), STD]), "seed {seed}");
            let dip = |i: usize| {
                let rise = 0.3 * (1.0 - (-0.05 * i as f64).exp());
                0.2 + rise - if i > 110 { 0.35 } else { 0.0 } + 0.03 * noise(seed, i)
            };
            assert!(!fires(150, &[("reward.mean", &dip), STD]), "seed {seed}");
        }
    }

    #[test]
    fn a_reward_that_rose_within_its_first_fifth_did_rise() {
        let quick = |i: usize| {
            let rise = 0.05 * i.min(10) as f64;
            0.2 + rise - 0.001 * i as f64 + 0.02 * noise(1, i)
        };
        assert!(!fires(200, &[("reward.mean", &quick), STD]));
    }

    #[test]
    fn prompts_that_become_harder_while_a_score_rises_are_no_decline() {
        let falls = |i: usize| 0.7 - 0.002 * i as f64 + 0.02 * noise(1, i);
        let score = |i: usize| if i % 10 == 9 { 0.2 + 0.002 * i as f64 } else { f64::NAN };
        let metrics: [Metric<'_>; 3] = [("reward.mean", &falls), STD, ("eval.math", &score)];
        assert!(fires(200, &metrics[..2]) && !fires(200, &metrics));
    }
}
