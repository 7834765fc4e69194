//! The task is solved: there is little left to learn from these prompts.
//!
//! ### Fires when
//! The reward ends within 5 % of the largest one that a batch ever had or that is set, and began
//! below. Where that is unknown: nine groups in ten are flat at the end, the reward rises and ends
//! in the highest tenth of what it was.
//!
//! ### Not said
//! That what is meant is solved: only that the reward is nearly full.
//!
//! ### Causes
//! - training did what it is for
//! - the prompts are easy for this model
//!
//! ### Next
//! - train on harder prompts
//! - read ten completions: are they good, or is the scorer easily pleased
//!
//! ### Source
//! Groups whose completions are all right have no advantage and teach nothing.

use crate::rules::{Firing, Head, Judgement};
use crate::runs::Run;
use crate::runs::statistics::{TREND_POINTS, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Reward,
    needs: &["reward.mean"],
    explains: &[],
    contracts: &[],
    catches: &["easy-task"],
    check,
};

fn check(run: &Run) -> Judgement {
    let reward = run.figures("reward.mean", TREND_POINTS)?;
    if !run.is_solved() {
        return Ok(vec![]);
    }
    let [first, last] = [reward.first, reward.last].map(short);
    let full = run.marks(0.95).unwrap_or(reward.last);
    let since = reward.since(|mean| mean >= full.min(reward.last) - 2.0 * reward.se);
    Firing::note(format!("the reward rises from {first} to {last}, close to all there is"))
        .at_steps(run.steps_from("reward.mean", since))
        .metric("reward.mean", "last", reward.last, run.marks(0.95))
        .into()
}

#[cfg(test)]
mod tests {
    use crate::report::Severity;
    use crate::runs::rules::trial1::{Metric, findings, noise, run};
    use crate::settings::Origin;

    const RISES: Metric<'_> =
        ("reward.mean", &|i| 0.2 + (0.02 * i as f64).min(0.78) + 0.004 * noise(1, i));

    fn solved(rows: usize, metrics: &[Metric<'_>]) -> bool {
        let found = findings(&run(rows, metrics), "task-solved");
        assert!(found.iter().all(|(severity, _)| *severity == Severity::Note));
        !found.is_empty()
    }

    #[test]
    fn the_largest_reward_of_a_batch_says_what_can_be_had() {
        assert!(solved(100, &[RISES, ("reward.max", &|_| 1.0)]));
        assert!(!solved(100, &[RISES, ("reward.max", &|_| 2.0)]));
        assert!(!solved(19, &[RISES, ("reward.max", &|_| 0.3)]));
    }

    #[test]
    fn where_the_zero_is_does_not_matter() {
        let shifted = |i: usize| 40.0 + 10.0 * RISES.1(i);
        let metrics: [Metric<'_>; 2] = [("reward.mean", &shifted), ("reward.max", &|_| 50.0)];
        assert!(solved(100, &metrics));
        let far: [Metric<'_>; 2] = [("reward.mean", &shifted), ("reward.max", &|_| 52.0)];
        assert!(!solved(100, &far));
    }

    #[test]
    fn one_very_low_reward_does_not_make_the_rest_full() {
        let half = |i: usize| 0.1 + (0.01 * i as f64).min(0.5);
        let lowest = |i: usize| if i == 7 { -40.0 } else { 0.0 };
        assert!(!solved(
            100,
            &[("reward.mean", &half), ("reward.max", &|_| 1.0), ("reward.min", &lowest)]
        ));
    }

    #[test]
    fn the_setting_counts_where_no_batch_says_it() {
        let mut one = run(100, &[RISES]);
        assert!(findings(&one, "task-solved").is_empty());
        one.settings.set("reward_max", 1.0, Origin::Flag);
        assert!(!findings(&one, "task-solved").is_empty());
    }

    #[test]
    fn what_was_full_from_the_start_was_not_solved() {
        let full = |i: usize| 0.97 + 0.0002 * i as f64;
        assert!(!solved(
            100,
            &[("reward.mean", &full), ("reward.min", &|_| 0.0), ("reward.max", &|_| 1.0)]
        ));
    }

    #[test]
    fn flat_groups_solve_a_task_only_where_prompts_are_alike_too() {
        let flat: Metric<'_> = ("groups.flat", &|i| (0.02 * i as f64).min(0.95));
        let shrinks = |i: usize| 0.5 - (0.01 * i as f64).min(0.4);
        assert!(solved(100, &[RISES, flat]));
        assert!(solved(100, &[RISES, flat, ("reward.std", &shrinks)]));
        assert!(!solved(100, &[RISES, flat, ("reward.std", &|_| 0.5)]));
        let full = |i: usize| (0.97 + 0.0006 * i as f64).min(1.0);
        let little = |i: usize| (0.17 - 0.004 * i as f64).max(0.0);
        let easy: [Metric<'_>; 3] =
            [("reward.mean", &full), ("reward.std", &little), ("groups.flat", &|_| 0.95)];
        assert!(!solved(100, &easy), "it was full from the start");
    }

    #[test]
    fn the_scale_of_rewards_comes_from_the_first_that_is_logged() {
        let ends: [Metric<'_>; 2] =
            [("reward.max", &|i| 3.0 + (i % 2) as f64), ("reward.min", &|_| 1.0)];
        let mean: Metric<'_> = ("reward.mean", &|i| i as f64);
        assert_eq!(
            run(20, &[mean, ends[0], ends[1], ("reward.std", &|_| 7.0)]).reward_scale(),
            Some(7.0)
        );
        assert_eq!(run(20, &[mean, ends[0], ends[1]]).reward_scale(), Some(2.5 / 4.0));
        assert_eq!(run(21, &[mean]).reward_scale(), Some(18.0));
        assert_eq!(run(21, &[mean, ("reward.std", &|_| 0.0)]).reward_scale(), Some(18.0));
        assert_eq!(run(21, &[("reward.mean", &|_| 1.0)]).reward_scale(), None);
    }

    #[test]
    fn spreads_are_those_of_rows_that_have_both_ends() {
        let high = |i: usize| if i < 3 { f64::NAN } else { i as f64 + 4.0 };
        let metrics: [Metric<'_>; 2] = [("reward.max", &high), ("reward.min", &|i| i as f64)];
        assert_eq!(run(20, &metrics).reward_scale(), Some(1.0));
    }
}
