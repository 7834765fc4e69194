//! Completions shrink to a third of what they were.
//!
//! ### Fires when
//! The lengths fall to 0.35 of their beginning or less. Only noted where the reward or a score of
//! what is meant rises and no such score falls.
//!
//! ### Not said
//! That short completions are worse: a model that learns to stop, or to be brief, does this too.
//!
//! ### Causes
//! - a length penalty outweighs being right
//! - the loss favours ending early: the mask leaves out the end, or its token is counted twice
//! - the policy gives up and ends at once, as trying brings only punishment
//!
//! ### Next
//! - shakedown check --stage reward
//! - read ten completions of the last batch
//! - set the weight of the length penalty to 0 for 20 steps and compare
//!
//! ### Source
//! A penalty that grows with each token is paid least by the empty completion.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement};
use crate::runs::Run;
use crate::runs::statistics::{TREND_POINTS, short};
use crate::runs::truth::{Truth, truths};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Reward,
    needs: &["length.mean"],
    explains: &[],
    contracts: &[
        ("length-penalty", &["knees", "continuous"]),
        ("completion-mask", &["ends-at-the-first-eos"]),
    ],
    catches: &["length-penalised"],
    check,
};

const LEFT: f64 = 0.35;

fn check(run: &Run) -> Judgement {
    let lengths = run.figures("length.mean", TREND_POINTS)?;
    // They may have fallen within the first fifth already.
    let before = lengths.first.max(lengths.start().0);
    let limit = LEFT * before;
    if !lengths.falls() || lengths.last > limit {
        return Ok(vec![]);
    }
    let severity = if is_gain(run) { Severity::Note } else { Severity::Warning };
    let [first, mid, last] = [before, lengths.mid, lengths.last].map(short);
    let found = format!("the lengths fall from {first} over {mid} to {last} tokens");
    let since = lengths.since(|mean| mean < lengths.first);
    Firing::new(severity, found)
        .at_steps(run.steps_from("length.mean", since))
        .metric("length.mean", "last", lengths.last, Some(limit))
        .into()
}

/// Whether the run gets better all the same, as far as noise lets it be seen.
fn is_gain(run: &Run) -> bool {
    let truths = truths(run);
    let reward = run.statistics("reward.mean");
    let rises = reward.is_some_and(|reward| reward.n() >= TREND_POINTS && reward.trend() >= 2.0);
    (rises || truths.iter().any(Truth::rises)) && !truths.iter().any(Truth::falls)
}

#[cfg(test)]
mod tests {
    use crate::report::Severity;
    use crate::runs::rules::trial1::{Metric, findings, noise, run};

    /// What it says of lengths that fall to this share, with these besides.
    fn severity(rows: usize, left: f64, others: &[Metric<'_>]) -> Option<Severity> {
        let fall = |i: usize| (5.0 * i as f64 / rows as f64).min(1.0);
        let length = |i: usize| 400.0 * (1.0 - (1.0 - left) * fall(i)) + 2.0 * noise(1, i);
        let own: [Metric<'_>; 1] = [("length.mean", &length)];
        let found = findings(&run(rows, &[&own, others].concat()), "length-collapses");
        found.first().map(|(severity, _)| *severity)
    }

    const RISES: Metric<'_> = ("reward.mean", &|i| 0.2 + 0.004 * i as f64 + 0.02 * noise(2, i));

    #[test]
    fn how_much_is_left_of_the_start_tells() {
        // They fall within the first fifth, whose median is halfway.
        assert_eq!(severity(100, 0.1, &[]), Some(Severity::Warning));
        assert_eq!(severity(100, 0.25, &[]), Some(Severity::Warning));
        assert_eq!(severity(100, 0.4, &[]), None);
        assert_eq!(severity(19, 0.1, &[]), None);
    }

    #[test]
    fn brevity_that_brings_reward_is_noted_unless_a_score_falls() {
        assert_eq!(severity(100, 0.1, &[RISES]), Some(Severity::Note));
        let falls = |i: usize| 0.6 - 0.005 * i as f64 + 0.01 * noise(4, i);
        let part: Metric<'_> = ("reward.part.correct", &falls);
        assert_eq!(severity(100, 0.1, &[RISES, part]), Some(Severity::Warning));
    }
}
