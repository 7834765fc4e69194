//! Completions grow without bringing more reward, or until they are cut.
//!
//! ### Fires when
//! The lengths double and rise, and a tenth of the completions is cut at the end, more than at the
//! beginning, or the reward does not rise and never rose. Only noted where fewer than 0.3 are cut
//! and the reward and a score of what is meant both rise. Where noise would hide a rise of 0.3 of
//! the rewards' scale, a reward that does not rise says nothing.
//!
//! ### Not said
//! That long completions are bad: where they bring reward and end by themselves this is quiet.
//!
//! ### Causes
//! - length pays: in the reward, or in the way the loss is averaged
//! - the end of a completion is not learned: its token is masked, or cut completions count as good
//! - the policy rambles, as its entropy has grown
//!
//! ### Next
//! - shakedown check --stage reward
//! - shakedown check --stage loss
//! - read the longest completions of the last batch from their end
//!
//! ### Source
//! DAPO (arXiv 2503.14476) on overlong completions; Dr. GRPO (arXiv 2503.20783) on the length bias.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement, Unjudged, insufficient};
use crate::runs::statistics::{TREND_POINTS, proportion, short};
use crate::runs::{Run, lengths, truth};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Loss,
    needs: &["length.mean"],
    explains: &[],
    contracts: &[
        ("length-penalty", &["never-rises"]),
        ("completion-mask", &["ends-at-the-first-eos"]),
        ("policy-loss", &["on-policy-gradient"]),
    ],
    catches: &["length-pays"],
    check,
};

fn check(run: &Run) -> Judgement {
    let Some(lengths) = lengths::doubled(run)? else { return Ok(vec![]) };
    let cut = lengths::newly_cut(run);
    let why = match cut {
        Some(share) => format!("{} of the completions are cut", proportion(share)),
        None if brings_nothing(run)? && !truth::improves(run) => "the reward does not rise".into(),
        None => return Ok(vec![]),
    };
    let few = cut.is_some_and(|share| share < lengths::MANY_CUT);
    let severity = match few && rises(run) && truth::improves(run) {
        true => Severity::Note,
        false => Severity::Warning,
    };
    let [before, after] = [lengths.first, lengths.last].map(short);
    let found = format!("the lengths grow from {before} to {after} tokens, and {why}");
    let since = lengths.since(|mean| mean >= 1.8 * lengths.first);
    Firing::new(severity, found)
        .at_steps(run.steps_from("length.mean", since))
        .metric("length.mean", "last", lengths.last, Some(2.0 * lengths.first))
        .into()
}

fn rises(run: &Run) -> bool {
    run.statistics("reward.mean").is_some_and(|reward| reward.rises())
}

/// Whether the reward does not rise, not even for a while.
fn brings_nothing(run: &Run) -> Result<bool, Unjudged> {
    let reward = run.figures("reward.mean", TREND_POINTS)?;
    let scale = run.reward_scale().ok_or_else(|| insufficient("the rewards have no scale"))?;
    let mut is_hidden = true;
    for one in reward.widths() {
        if one.z >= 2.0 || one.gain(0.1 * scale).is_some() {
            return Ok(false);
        }
        is_hidden &= 3.0 * one.se > 0.3 * scale;
    }
    match is_hidden {
        true => Err(insufficient("the noise of the rewards would hide a rise")),
        false => Ok(true),
    }
}

#[cfg(test)]
mod tests {
    use crate::report::Severity;
    use crate::runs::rules::trial1::{Metric, findings, noise, run};

    fn severity(rows: usize, others: &[Metric<'_>]) -> Option<Severity> {
        let length = |i: usize| 200.0 * (1.0 + 2.0 * i as f64 / rows as f64) + 5.0 * noise(1, i);
        let own: [Metric<'_>; 2] = [("length.mean", &length), ("reward.std", &|_| 0.4)];
        let found = findings(&run(rows, &[&own, others].concat()), "length-explodes");
        found.first().map(|(severity, _)| *severity)
    }

    const RISES: Metric<'_> = ("reward.mean", &|i| 0.2 + 0.004 * i as f64 + 0.02 * noise(2, i));
    const STAYS: Metric<'_> = ("reward.mean", &|i| 0.2 + 0.02 * noise(2, i));
    const CUT: Metric<'_> = ("length.clipped", &|i| 0.003 * i as f64);

    #[test]
    fn longer_thoughts_that_bring_reward_and_end_are_none() {
        assert_eq!(severity(100, &[RISES]), None);
        assert_eq!(severity(100, &[RISES, ("length.clipped", &|_| 0.15)]), None);
    }

    #[test]
    fn growth_that_brings_nothing_or_is_cut_is_a_warning() {
        assert_eq!(severity(100, &[STAYS]), Some(Severity::Warning));
        assert_eq!(severity(100, &[RISES, CUT]), Some(Severity::Warning));
        assert_eq!(severity(19, &[RISES, CUT]), None);
    }

    #[test]
    fn a_score_that_rises_makes_it_a_note() {
        let score = |i: usize| if i % 10 == 9 { 0.2 + 0.004 * i as f64 } else { f64::NAN };
        assert_eq!(severity(100, &[RISES, CUT, ("eval.aime", &score)]), Some(Severity::Note));
        assert_eq!(severity(100, &[STAYS, ("eval.aime", &score)]), None);
        let many: Metric<'_> = ("length.clipped", &|i| 0.006 * i as f64);
        assert_eq!(severity(100, &[RISES, many, ("eval.aime", &score)]), Some(Severity::Warning));
    }

    #[test]
    fn a_reward_that_dips_late_or_is_too_noisy_says_nothing() {
        let dips =
            |i: usize| 0.2 + if i < 75 { 0.005 * i as f64 } else { 0.0 } + 0.02 * noise(2, i);
        assert_eq!(severity(100, &[("reward.mean", &dips)]), None);
        for seed in 0..30 {
            let noisy = |i: usize| 0.3 + 0.2 * noise(seed, i);
            assert_eq!(severity(30, &[("reward.mean", &noisy)]), None, "seed {seed}");
        }
        let noisy = |i: usize| 0.3 + 0.2 * noise(1, i);
        assert_eq!(severity(250, &[("reward.mean", &noisy)]), None);
        let long = severity(5000, &[("reward.mean", &noisy)]);
        assert_eq!(long, Some(Severity::Warning), "more rows show what noise hid");
    }
}
