//! The reward does not move.
//!
//! ### Fires when
//! In 50 rows or more the end of `reward.mean` is above its beginning by less than 2.5 standard
//! errors, or 0.05 of the rewards' scale, and below by less than 4, or 0.1; its middle is within 3,
//! or 0.1, and it never rose by as much. Where the noise would hide 0.15 of the scale in windows of
//! 50 rows and in whole fifths of the run, nothing is said; nor where the task is solved or the
//! reward is at its top, nor where a score of what is meant rises, nor where only mixed groups are
//! kept, whose mean reward stays in the middle.
//!
//! ### Not said
//! That more steps would not help.
//!
//! ### Causes
//! - the reward has nothing to do with the text that gets it
//! - the learning rate is too small, or 0
//! - the pull towards the reference is too strong
//! - the reward is so harsh that hardly any completion gets it
//! - the groups give no signal
//!
//! ### Next
//! - shakedown check
//! - train on 20 prompts only: a reward that does not rise there is not followed
//! - compare the scores of ten completions with the completions
//!
//! ### Source
//! Training is there to raise the reward: 50 batches in which it does not, where the noise would
//! let a rise be seen, are no accident.

use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::runs::statistics::{Statistics, short};
use crate::runs::{Run, truth};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Reward,
    needs: &["reward.mean"],
    explains: &[],
    contracts: &[
        ("reward-function", &["wrong-scores-less"]),
        ("group-advantage", &["order-preserved", "relabelling"]),
        ("policy-loss", &["gradient-against-the-advantage"]),
        ("policy-update", &["expected-reward-rises"]),
    ],
    catches: &["rewards-shuffled"],
    check,
};

const FEWEST: usize = 50;

fn check(run: &Run) -> Judgement {
    let reward = run.figures("reward.mean", FEWEST)?;
    let scale = run.reward_scale().ok_or_else(|| insufficient("the rewards have no scale"))?;
    // In more rows of a long run the noise hides less: a small rise shows there.
    let widths: Vec<Statistics> = reward.widths().collect();
    let may_be_seen: Vec<&Statistics> =
        widths.iter().filter(|one| !is_hidden(one, scale)).collect();
    let reward = may_be_seen.first().copied().unwrap_or(&widths[widths.len() - 1]);
    if !is_flat(reward, scale) || may_be_seen.iter().any(|one| !is_flat(one, scale)) {
        return Ok(vec![]);
    }
    if run.get("groups.kept").is_some() {
        return Err(not_applicable(
            "only mixed groups are kept, whose mean reward stays in the middle",
        ));
    }
    if may_be_seen.is_empty() {
        let noise = short(3.0 * reward.se / scale);
        return Err(insufficient(format!("the noise hides changes up to {noise} of the scale")));
    }
    let is_at_the_top = run.marks(0.95).is_some_and(|full| reward.last >= full);
    if is_at_the_top || run.is_solved() || truth::improves(run) {
        return Ok(vec![]);
    }
    let [first, mid, last] = [reward.first, reward.mid, reward.last].map(short);
    let (rows, noise) = (reward.n(), short(reward.se));
    let found =
        format!("in {rows} rows the reward goes from {first} over {mid} to {last}, ± {noise}");
    let limit = (2.5 * reward.se).max(0.05 * scale);
    let mut fired = Firing::warning(found);
    if let Some(lr) = run.settings.number("lr").filter(|lr| *lr < 1e-7) {
        fired = fired.because(Some("lr"), format!("a learning rate of {lr:e}"));
    }
    if let Some(beta) = run.settings.number("kl.loss").filter(|beta| *beta >= 0.1) {
        fired = fired.because(Some("kl.loss"), format!("a KL weight of {beta}"));
    }
    fired
        .at_steps(run.steps_from("reward.mean", 0))
        .metric("reward.mean", "last - first", reward.last - reward.first, Some(limit))
        .into()
}

/// Whether the noise would hide a gain.
fn is_hidden(reward: &Statistics, scale: f64) -> bool {
    3.0 * reward.se > 0.15 * scale
}

fn is_flat(reward: &Statistics, scale: f64) -> bool {
    let within = |x: f64, errors: f64, share: f64| x <= (errors * reward.se).max(share * scale);
    let change = reward.last - reward.first;
    // To fall a little is not to learn either.
    within(change, 2.5, 0.05)
        && within(-change, 4.0, 0.1)
        && within((reward.mid - reward.first).abs(), 3.0, 0.1)
        && reward.gain(0.1 * scale).is_none()
}

#[cfg(test)]
mod tests {
    use crate::report::Severity;
    use crate::runs::rules::trial1::{Metric, findings, noise, run};

    fn fires(rows: usize, metrics: &[Metric<'_>]) -> bool {
        let found = findings(&run(rows, metrics), "reward-flat");
        assert!(found.iter().all(|(severity, _)| *severity == Severity::Warning));
        !found.is_empty()
    }

    const STD: Metric<'_> = ("reward.std", &|_| 0.5);

    #[test]
    fn a_reward_that_only_scatters_is_flat() {
        let fired = (0..30).filter(|seed| {
            let still = |i: usize| 0.4 + 0.03 * noise(*seed, i);
            fires(120, &[("reward.mean", &still), STD])
        });
        let fired = fired.count();
        assert!(fired >= 28, "{fired} of 30");
    }

    #[test]
    fn forty_nine_rows_are_too_few() {
        let still: Metric<'_> = ("reward.mean", &|i| 0.4 + 0.001 * noise(1, i));
        assert!(fires(50, &[still, STD]) && !fires(49, &[still, STD]));
    }

    #[test]
    fn noise_that_would_hide_a_gain_says_nothing() {
        for seed in 0..30 {
            let noisy = |i: usize| 0.4 + 0.15 * noise(seed, i);
            assert!(!fires(60, &[("reward.mean", &noisy), STD]), "seed {seed}");
        }
    }

    #[test]
    fn a_long_run_is_judged_whatever_its_noise() {
        for seed in 0..10 {
            let noisy = |i: usize| 0.4 + 0.15 * noise(seed, i);
            assert!(fires(5000, &[("reward.mean", &noisy)]), "seed {seed}");
            let rises = |i: usize| 0.4 + 2e-5 * i as f64 + 0.15 * noise(seed, i);
            assert!(!fires(5000, &[("reward.mean", &rises)]), "seed {seed}");
        }
    }

    #[test]
    fn rewards_that_rise_or_come_back_are_not_flat() {
        for seed in 0..30 {
            let rises = |i: usize| 0.4 + 0.001 * i as f64 + 0.03 * noise(seed, i);
            assert!(!fires(150, &[("reward.mean", &rises), STD]), "seed {seed}");
            let hill = |i: usize| 0.4 + 0.2 * (i as f64 / 48.0).sin() + 0.03 * noise(seed, i);
            assert!(!fires(150, &[("reward.mean", &hill), STD]), "seed {seed}");
        }
    }

    #[test]
    fn what_was_learned_within_the_first_fifth_was_learned() {
        let quick = |i: usize| 0.1 + 0.03 * i.min(10) as f64 + 0.02 * noise(1, i);
        assert!(!fires(200, &[("reward.mean", &quick), STD]));
    }

    #[test]
    fn prompts_that_become_harder_as_the_policy_gets_better_are_no_reason() {
        let still: Metric<'_> = ("reward.mean", &|i| 0.5 + 0.02 * noise(1, i));
        let score = |i: usize| if i % 10 == 9 { 0.2 + 0.002 * i as f64 } else { f64::NAN };
        assert!(fires(200, &[still, STD]));
        assert!(!fires(200, &[still, STD, ("eval.gsm8k", &score)]));
        assert!(!fires(200, &[still, STD, ("groups.kept", &|_| 0.6)]));
    }

    #[test]
    fn a_reward_at_its_top_has_nowhere_to_go() {
        let top: Metric<'_> = ("reward.mean", &|i| (0.98 + 0.005 * noise(1, i)).min(1.0));
        assert!(!fires(100, &[top, ("reward.std", &|_| 0.14), ("reward.max", &|_| 1.0)]));
    }
}
