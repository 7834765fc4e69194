//! Length pays: completions grow with the reward, but not with what is meant.
//!
//! ### Fires when
//! The lengths double and rise, the reward rises, and a held-out score or a part for being right
//! falls, or a part of the reward that is named after length rises, or a tenth of the completions
//! is cut at the end, more than at the beginning; 0.3 of them where a score of what is meant rises.
//!
//! ### Not said
//! That long completions are bad: where they bring the reward and end by themselves this is quiet.
//!
//! ### Causes
//! - a part of the reward grows with the length
//! - each completion's loss is the mean of its tokens, so that long wrong ones are punished less
//! - the scorer finds the answer in any of several that the completion tries
//!
//! ### Next
//! - plot the reward of single completions against their length
//! - shakedown check --stage reward
//! - aggregate the loss over the tokens of the batch, or over a constant length
//!
//! ### Source
//! Dr. GRPO (arXiv 2503.20783) on the length bias of means per completion.

use crate::rules::{Firing, Head, Judgement};
use crate::runs::statistics::{Statistics, TREND_POINTS, proportion, short};
use crate::runs::truth::{self, Truth, truths};
use crate::runs::{Run, lengths};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Reward,
    needs: &["length.mean", "reward.mean"],
    explains: &["length-explodes", "truncation"],
    contracts: &[
        ("length-penalty", &["never-rises"]),
        ("reward-function", &["answers-repeated", "trailing-text"]),
        ("policy-loss", &["on-policy-gradient"]),
    ],
    catches: &["length-pays"],
    check,
};

fn check(run: &Run) -> Judgement {
    let lengths = lengths::doubled(run)?;
    let reward = run.figures("reward.mean", TREND_POINTS)?;
    let Some(lengths) = lengths.filter(|_| reward.rises()) else { return Ok(vec![]) };
    let Some(sign) = sign(run) else { return Ok(vec![]) };
    let [before, after] = [lengths.first, lengths.last].map(short);
    let [low, high] = [reward.first, reward.last].map(short);
    let found = format!(
        "lengths grow from {before} to {after} tokens and the reward from {low} to {high}, while \
         {sign}"
    );
    let since = lengths.since(|mean| mean > lengths.first);
    Firing::warning(found)
        .at_steps(run.steps_from("length.mean", since))
        .metric("length.mean", "last", lengths.last, Some(2.0 * lengths.first))
        .metric("reward.mean", "z", reward.trend(), Some(4.0))
        .into()
}

/// What says that it is not the better answers that are longer.
fn sign(run: &Run) -> Option<String> {
    let truths = truths(run);
    if let Some(one) = truths.iter().find(|truth| truth.falls()) {
        return Some(format!("{} falls from {} to {}", one.id, short(one.best), short(one.last)));
    }
    if let Some(part) = paid_length(run) {
        return Some(format!("{part} rises"));
    }
    let enough = if truths.iter().any(Truth::rises) { lengths::MANY_CUT } else { 0.0 };
    let cut = lengths::newly_cut(run).filter(|share| *share >= enough);
    cut.map(|share| format!("{} of them are cut", proportion(share)))
}

/// A part of the reward that is named after length and rises.
fn paid_length(run: &Run) -> Option<&str> {
    let rises = |one: Statistics| one.n() >= TREND_POINTS && one.rises();
    let mut parts = truth::parts(run).filter(|(_, name, _)| truth::is_about_length(name));
    let part = parts.find(|(_, _, series)| Statistics::of(series).is_some_and(rises));
    part.map(|(id, _, _)| id)
}

#[cfg(test)]
mod tests {
    use crate::report::Severity;
    use crate::runs::rules::trial1::{Metric, findings, noise, run};

    /// Whether it fires where these are logged besides lengths that grow and a reward that rises.
    fn fires(rows: usize, by: f64, others: &[Metric<'_>]) -> bool {
        let share = |i: usize| i as f64 / rows as f64;
        let length = |i: usize| 200.0 * (1.0 + by * share(i)) + 5.0 * noise(1, i);
        let reward = |i: usize| 0.2 + 0.5 * share(i) + 0.02 * noise(2, i);
        let own: [Metric<'_>; 2] = [("length.mean", &length), ("reward.mean", &reward)];
        let found = findings(&run(rows, &[&own, others].concat()), "length-hack");
        assert!(found.iter().all(|(severity, _)| *severity == Severity::Warning));
        !found.is_empty()
    }

    const CUT: Metric<'_> = ("length.clipped", &|i| 0.003 * i as f64);

    #[test]
    fn longer_thoughts_that_bring_reward_and_end_are_none() {
        assert!(!fires(100, 3.0, &[]));
        assert!(!fires(100, 3.0, &[("length.clipped", &|_| 0.05)]));
        let gets_rarer = |i: usize| 0.4 - 0.002 * i as f64;
        assert!(!fires(100, 3.0, &[("length.clipped", &gets_rarer)]));
    }

    #[test]
    fn cut_completions_a_paid_length_or_a_falling_score_tell() {
        assert!(fires(100, 3.0, &[CUT]));
        let paid = |i: usize| 0.01 * i as f64 + 0.01 * noise(3, i);
        assert!(fires(100, 3.0, &[("reward.part.length_bonus", &paid)]));
        let falls = |i: usize| 0.6 - 0.004 * i as f64 + 0.01 * noise(4, i);
        assert!(fires(100, 3.0, &[("reward.part.accuracy", &falls)]));
    }

    #[test]
    fn a_score_that_rises_says_that_length_helps() {
        let score = |i: usize| if i % 10 == 9 { 0.2 + 0.004 * i as f64 } else { f64::NAN };
        assert!(!fires(100, 3.0, &[CUT, ("eval.aime", &score)]));
    }

    #[test]
    fn where_many_are_cut_or_length_is_paid_a_rising_score_is_no_excuse() {
        let score = |i: usize| if i % 10 == 9 { 0.2 + 0.004 * i as f64 } else { f64::NAN };
        let eval: Metric<'_> = ("eval.aime", &score);
        assert!(fires(100, 3.0, &[("length.clipped", &|i| 0.006 * i as f64), eval]));
        let paid = |i: usize| 0.01 * i as f64 + 0.01 * noise(3, i);
        assert!(fires(100, 3.0, &[("reward.part.length", &paid), eval]));
    }

    #[test]
    fn half_as_long_again_is_not_double_and_nineteen_rows_are_too_few() {
        assert!(!fires(100, 0.6, &[CUT]));
        let cut: Metric<'_> = ("length.clipped", &|i| 0.02 * i as f64);
        assert!(fires(20, 4.0, &[cut]) && !fires(19, 4.0, &[cut]));
    }
}
