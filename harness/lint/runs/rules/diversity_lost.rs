//! The rewards of one prompt's completions become alike, and not because they become right.
//!
//! ### Fires when
//! The deviation of the rewards in a group (or in a batch, where that is not logged) falls to less
//! than a fifth of what it was, fewer than 0.8 of the groups are flat, and the task is not solved.
//! Not while the reward rises, nor after it rose where nobody knows what the largest reward is, nor
//! where it stays at its highest without scatter.
//!
//! ### Not said
//! That completions are the same text: only that they get the same reward.
//!
//! ### Causes
//! - the policy has settled on one answer for all
//! - the temperature is too low, or a filter of the sampler too narrow
//! - the entropy is gone: too many passes, a clip that is too tight upwards, no bonus
//!
//! ### Next
//! - read ten completions of one prompt side by side
//! - sample at temperature 1 without filters, with a larger group
//! - shakedown check --stage advantage
//!
//! ### Source
//! Advantages are differences between the completions of one prompt; without any there is nothing
//! to learn from (arXiv 2505.22617 on entropy that is used up).

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::ceiling;
use crate::runs::statistics::{Statistics, TREND_POINTS, mean, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Advantage,
    needs: &["reward.std"],
    explains: &[],
    contracts: &[("group-advantage", &["signal"]), ("sampling-filter", &["plain-softmax"])],
    catches: &["one-answer"],
    check,
};

/// A deviation below this share of its beginning is lost.
const LOST: f64 = 0.2;

fn check(run: &Run) -> Judgement {
    let ids = ["reward.group_std", "reward.std"];
    let id = ids.into_iter().find(|id| run.get(id).is_some());
    let id = id.ok_or_else(|| insufficient("no deviation of rewards is logged"))?;
    let std = run.figures(id, TREND_POINTS)?;
    let before = std.first.max(std.start().0);
    let limit = LOST * before;
    let flat = run.statistics("groups.flat").map_or(0.0, |flat| mean(flat.tail()));
    if !std.falls() || std.last >= limit || flat >= 0.8 || is_gain(run) {
        return Ok(vec![]);
    }
    let what = if id == "reward.std" { "a batch" } else { "a group" };
    let [first, last] = [before, std.last].map(short);
    let found = format!("the deviation of the rewards in {what} falls from {first} to {last}");
    let since = std.since(|mean| mean < limit.max(2.0 * std.last));
    let mut fired = Firing::warning(found);
    if let Some(low) = run.settings.number("temperature").filter(|one| *one < 0.7) {
        fired = fired.because(Some("temperature"), format!("completions are sampled at {low}"));
    }
    fired.at_steps(run.steps_from(id, since)).metric(id, "last", std.last, Some(limit)).into()
}

/// Whether rewards become alike because they become high.
fn is_gain(run: &Run) -> bool {
    let rises = |reward: &Statistics| match run.marks(0.9) {
        Some(marks) => reward.still_rises() || reward.rises() && reward.last >= marks,
        None => reward.rises(),
    };
    ceiling::is_reached(run) || run.statistics("reward.mean").is_some_and(|reward| rises(&reward))
}

#[cfg(test)]
mod tests {
    use crate::report::Severity;
    use crate::runs::rules::trial1::{Metric, findings, noise, run};

    fn fires(rows: usize, metrics: &[Metric<'_>]) -> bool {
        let found = findings(&run(rows, metrics), "diversity-lost");
        assert!(found.iter().all(|(severity, _)| *severity == Severity::Warning));
        !found.is_empty()
    }

    /// A deviation that falls from 0.5 to this share of it.
    fn down_to(share: f64) -> impl Fn(usize) -> f64 {
        move |i| 0.5 * (share + (1.0 - share) * (-0.1 * i as f64).exp() + 0.01 * noise(3, i))
    }

    const STAYS: Metric<'_> = ("reward.mean", &|i| 0.4 + 0.02 * noise(4, i));

    #[test]
    fn rewards_that_become_alike_fire_unless_they_become_high() {
        let lost = down_to(0.1);
        assert!(fires(100, &[("reward.group_std", &lost), STAYS]));
        assert!(fires(100, &[("reward.std", &lost), STAYS]));
        let rises: Metric<'_> = ("reward.mean", &|i| 0.2 + 0.006 * i as f64 + 0.02 * noise(4, i));
        assert!(!fires(100, &[("reward.std", &lost), rises]));
    }

    #[test]
    fn a_quarter_that_remains_is_enough() {
        assert!(!fires(100, &[("reward.group_std", &down_to(0.25)), STAYS]));
    }

    #[test]
    fn where_groups_are_flat_another_rule_speaks() {
        let lost = down_to(0.1);
        assert!(!fires(100, &[("reward.std", &lost), ("groups.flat", &|_| 0.9), STAYS]));
    }

    #[test]
    fn nineteen_rows_are_too_few() {
        let sudden = |i: usize| if i < 8 { 0.5 } else { 0.01 };
        let falls = |i: usize| sudden(i) - 0.0001 * i as f64;
        assert!(fires(20, &[("reward.std", &falls)]) && !fires(19, &[("reward.std", &falls)]));
    }

    #[test]
    fn a_reward_that_rose_and_stopped_far_from_the_top_is_no_excuse() {
        let lost = down_to(0.05);
        let stuck = |i: usize| (0.1 + 0.02 * i as f64).min(0.5) + 0.005 * noise(4, i);
        let metrics: [Metric<'_>; 3] =
            [("reward.std", &lost), ("reward.mean", &stuck), ("reward.max", &|_| 1.0)];
        assert!(fires(120, &metrics) && !fires(120, &metrics[..2]));
    }
}
