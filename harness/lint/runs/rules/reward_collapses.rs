//! The reward rose and is lost again.
//!
//! ### Fires when
//! `reward.mean` rose by 3 standard errors and a tenth of the rewards' scale, then lost two fifths
//! of that, 4 standard errors and a tenth of the scale. A warning where something went wrong at the
//! same time: since the peak the KL divergence or the gradient × 3, the entropy × 1.5 or ÷ 3, the
//! lengths ÷ 1.5, a held-out score − 30 %; an error where four fifths were lost as well.
//! Completions half as long again count only together with a fifth more of them cut and four fifths
//! lost, as harder prompts make them longer too. Without any of it, or where a held-out score
//! stays, this is a note; where nothing of it is logged a warning if four fifths were lost.
//!
//! ### Not said
//! That training did it, where nothing else changed: harder prompts late in the data look the same.
//!
//! ### Causes
//! - steps too large or too many for one batch, so that the policy leaves what was sampled
//! - the engine samples from other probabilities than the trainer computes
//! - the reward was hacked, and what hacked it no longer pays
//! - harder prompts late in the data
//!
//! ### Next
//! - start again from the checkpoint before the peak with half the learning rate
//! - shakedown check --stage log-probability
//! - shakedown check --stage loss
//!
//! ### Source
//! Search-R1#88; a trust region is there so that a step does not undo those before it.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::rules::reward_declines::RISE;
use crate::runs::series::Series;
use crate::runs::statistics::{Statistics, TREND_POINTS, mean, median, short};
use crate::runs::truth::{self, Truth};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Update,
    needs: &["reward.mean"],
    explains: &[],
    contracts: &[
        ("policy-loss", &["clipped-tokens", "on-policy-gradient"]),
        ("token-log-probs", &["log-ratio-of-tokens"]),
    ],
    catches: &["updates-unclipped"],
    check,
};

fn check(run: &Run) -> Judgement {
    let reward = run.figures("reward.mean", TREND_POINTS)?;
    let scale = run.reward_scale().ok_or_else(|| insufficient("the rewards have no scale"))?;
    let collapse = |reward: Statistics| {
        let (peak, at) = reward.peak();
        // What hardly rose and falls far below its start declines, which is another rule.
        let least = (0.1 * scale).max(RISE * (reward.first - reward.last));
        let gain = reward.gain(least)?;
        let lost = peak - reward.last;
        let is_lost = lost >= (4.0 * reward.se).max(0.1 * scale).max(0.4 * gain);
        is_lost.then_some((reward, [peak, gain, lost], at))
    };
    let Some((reward, [peak, gain, lost], at)) = reward.widths().find_map(collapse) else {
        return Ok(vec![]);
    };
    let end_of_peak = at + reward.window - 1;
    let noise = (3.0 * reward.se).max(0.1 * scale);
    // The first window that is low for good is so because of its last values.
    let lost_at = reward.since(|mean| mean < peak - noise).max(at) + reward.window - 1;
    let from = |index: usize| run.steps_from("reward.mean", index)[0];
    let company = Company::since(run, [from(at), from(end_of_peak)], from(lost_at));
    let [first, top, last] = [peak - gain, peak, reward.last].map(short);
    let share = short(100.0 * (lost / gain).min(1.0));
    let found = format!(
        "the reward rises from {first} to {top} and falls back to {last}, {share} % of the gain; \
         {}",
        company.told(),
    );
    let mut fired = Firing::new(company.severity(lost >= 0.8 * gain), found);
    if let Some(passes) = run.settings.number("batch.passes").filter(|passes| *passes > 1.0) {
        fired = fired.because(Some("batch.passes"), format!("{passes} passes over each batch"));
    }
    if let Some(lr) = run.settings.number("lr").filter(|lr| *lr > 1e-5) {
        fired = fired.because(Some("lr"), format!("a learning rate of {lr:e}"));
    }
    fired
        .at_steps(run.steps_from("reward.mean", lost_at))
        .metric("reward.mean", "last", reward.last, Some(peak - 0.4 * gain))
        .into()
}

/// What else changed since the reward was highest.
struct Company {
    /// Whether anything of it is logged.
    is_known: bool,
    /// Whether a held-out score shows that nothing was lost.
    holds: bool,
    /// What goes wrong in training.
    wrong: Vec<String>,
    /// What harder prompts may do as well.
    harder: Vec<String>,
}

impl Company {
    fn since(run: &Run, peak: [i64; 2], lost_at: i64) -> Company {
        let changed = |id: &str, name: &str, is_change: fn(f64, f64) -> bool| {
            let (from, to) = around(run, id, peak).filter(|(from, to)| is_change(*from, *to))?;
            Some(format!("{name} went from {} to {}", short(from), short(to)))
        };
        let wrong = [
            changed("kl.ref", "the KL divergence", |from, to| {
                to.abs() >= 0.1 && to.abs() >= 3.0 * from.abs()
            }),
            changed("grad_norm", "the gradient", |from, to| to >= 3.0 * from),
            changed("entropy", "the entropy", |from, to| {
                to - from >= (0.5 * from).max(0.05) || from >= 0.05 && to <= from / 3.0
            }),
            changed("length.mean", "the length", |from, to| to <= from / 1.5),
        ];
        let harder = [
            changed("length.mean", "the length", |from, to| to >= 1.5 * from),
            changed("length.clipped", "the share cut", |from, to| to - from >= 0.2),
        ];
        let logged = ["kl.ref", "grad_norm", "entropy", "length.mean", "length.clipped"];
        let mut company = Company {
            is_known: logged.iter().any(|id| run.get(id).is_some()),
            holds: false,
            wrong: wrong.into_iter().flatten().collect(),
            harder: harder.into_iter().flatten().collect(),
        };
        company.scores(run, peak, lost_at);
        company
    }

    fn scores(&mut self, run: &Run, peak: [i64; 2], lost_at: i64) {
        let mut held_out = truth::truths(run);
        held_out.retain(|truth| truth.is_held_out);
        self.is_known |= !held_out.is_empty();
        let stays = |truth: &Truth| stays(run, &truth.id, peak, lost_at);
        self.holds = held_out.iter().any(stays) && !held_out.iter().any(Truth::falls);
        let fell = |truth: &&Truth| truth.falls() && truth.last <= 0.7 * truth.best;
        for truth in held_out.iter().filter(fell) {
            let [best, last] = [truth.best, truth.last].map(short);
            self.wrong.push(format!("{} went from {best} to {last}", truth.id));
        }
    }

    fn severity(&self, nearly_all: bool) -> Severity {
        let (is_wrong, rambles) = (!self.wrong.is_empty(), self.harder.len() == 2);
        match nearly_all {
            _ if self.holds => Severity::Note,
            true if is_wrong => Severity::Error,
            true if rambles || !self.is_known => Severity::Warning,
            false if is_wrong => Severity::Warning,
            _ => Severity::Note,
        }
    }

    fn told(&self) -> String {
        let changes = [&self.wrong[..], &self.harder[..]].concat();
        match (changes.is_empty(), self.is_known) {
            (false, _) => format!("since its peak {}", changes.join(", ")),
            (true, true) => "nothing else changed with it".to_owned(),
            (true, false) => "nothing else is logged".to_owned(),
        }
    }
}

/// Whether a score is still 0.9 of what it was at the peak in two evaluations or more that came
/// after the reward was lost: those before say nothing about it.
fn stays(run: &Run, id: &str, peak: [i64; 2], lost_at: i64) -> bool {
    let Some((before, _)) = around(run, id, peak) else { return false };
    let series = run.get(id).into_iter().flat_map(Series::finite);
    let after: Vec<f64> =
        series.filter(|one| one.steps[0] >= lost_at).map(|one| one.mean).collect();
    after.len() >= 2 && mean(&after) >= 0.9 * before
}

/// The median of a metric while the reward was highest (of the last values before, where none were
/// logged then), and that of its end.
fn around(run: &Run, id: &str, [from, to]: [i64; 2]) -> Option<(f64, f64)> {
    let series = run.get(id)?;
    let last = Statistics::of(series)?.last;
    let until: Vec<_> = series.finite().filter(|one| one.steps[0] <= to).collect();
    let then: Vec<f64> =
        until.iter().filter(|one| one.steps[1] >= from).map(|one| one.mean).collect();
    if !then.is_empty() {
        return Some((median(&then), last));
    }
    let before: Vec<f64> = until.iter().rev().take(3).map(|one| one.mean).collect();
    (!before.is_empty()).then(|| (median(&before), last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::rules::trial1::{Metric, findings, noise, run};

    const STD: Metric<'_> = ("reward.std", &|_| 0.4);

    /// A reward that rises from 0.2 to 0.7 and from row 100 on keeps this share of the gain.
    fn back(seed: u64, kept: f64) -> impl Fn(usize) -> f64 {
        move |i| {
            let gain = 0.5 * (i as f64 / 60.0).min(1.0);
            0.2 + if i < 100 { gain } else { kept * gain } + 0.03 * noise(seed, i)
        }
    }

    fn judged(metrics: &[Metric<'_>]) -> Option<(Severity, [i64; 2])> {
        findings(&run(150, metrics), "reward-collapses").first().copied()
    }

    fn late(early: f64, late: f64) -> impl Fn(usize) -> f64 {
        move |i| if i < 100 { early } else { late }
    }

    #[test]
    fn what_is_lost_with_company_is_an_error_from_where_it_is_lost() {
        for seed in 0..30 {
            let metrics: [Metric<'_>; 3] =
                [("reward.mean", &back(seed, 0.05)), STD, ("kl.ref", &late(0.05, 2.0))];
            let (severity, [from, to]) = judged(&metrics).expect("it collapses");
            assert_eq!((severity, to), (Severity::Error, 150), "seed {seed}");
            assert!((100..=112).contains(&from), "seed {seed}: {from}");
        }
    }

    #[test]
    fn half_of_it_is_a_warning_and_a_third_is_nothing() {
        let kl = late(0.05, 2.0);
        let of = |kept: f64| judged(&[("reward.mean", &back(1, kept)), STD, ("kl.ref", &kl)]);
        assert_eq!(of(0.45).map(|found| found.0), Some(Severity::Warning));
        assert_eq!(of(0.7), None);
    }

    #[test]
    fn harder_prompts_late_in_the_data_are_no_more_than_a_note() {
        for seed in 0..30 {
            let reward = back(seed, 0.4);
            let longer = late(300.0, 500.0);
            let same = |_: usize| 0.2;
            let metrics: [Metric<'_>; 5] = [
                ("reward.mean", &reward),
                STD,
                ("entropy", &same),
                ("length.mean", &longer),
                ("grad_norm", &same),
            ];
            let found = judged(&metrics);
            assert!(found.is_none_or(|found| found.0 == Severity::Note), "seed {seed}");
        }
    }

    #[test]
    fn a_held_out_score_that_stays_says_that_nothing_was_lost() {
        let (reward, kl) = (back(1, 0.05), late(0.05, 2.0));
        let score = |i: usize| if i % 10 == 9 { 0.4 + 0.01 * noise(9, i) } else { f64::NAN };
        let metrics: [Metric<'_>; 4] =
            [("reward.mean", &reward), STD, ("kl.ref", &kl), ("eval.math", &score)];
        assert_eq!(judged(&metrics).map(|found| found.0), Some(Severity::Note));
    }

    #[test]
    fn evaluations_from_before_the_loss_say_nothing_about_it() {
        let (reward, kl) = (back(1, 0.05), late(0.05, 2.0));
        let score = |i: usize| if i % 10 == 9 && i < 112 { 0.4 } else { f64::NAN };
        let metrics: [Metric<'_>; 4] =
            [("reward.mean", &reward), STD, ("kl.ref", &kl), ("eval.math", &score)];
        assert_eq!(judged(&metrics).map(|found| found.0), Some(Severity::Error));
    }

    #[test]
    fn where_nothing_else_is_logged_only_the_loss_of_nearly_all_is_a_warning() {
        let of = |kept: f64| judged(&[("reward.mean", &back(1, kept)), STD]).map(|found| found.0);
        assert_eq!(of(0.05), Some(Severity::Warning));
        assert_eq!(of(0.4), Some(Severity::Note));
    }

    #[test]
    fn scatter_and_rises_are_none() {
        for seed in 0..100 {
            let scatter = |i: usize| 0.3 + 0.2 * noise(seed, i);
            assert_eq!(judged(&[("reward.mean", &scatter), STD]), None, "seed {seed}");
            assert_eq!(judged(&[("reward.mean", &back(seed, 1.0)), STD]), None, "seed {seed}");
        }
    }

    #[test]
    fn a_small_collapse_shows_in_a_long_noisy_run() {
        for seed in 0..10 {
            let hill = |i: usize| {
                let part = i as f64 / 1000.0;
                0.3 + 0.1 * part.min(4.0 - part).clamp(0.0, 1.0) + 0.15 * noise(seed, i)
            };
            let found = findings(&run(5000, &[("reward.mean", &hill)]), "reward-collapses");
            assert_eq!(found.first().map(|one| one.0), Some(Severity::Warning), "seed {seed}");
        }
    }

    #[test]
    fn nineteen_rows_are_too_few() {
        let hill = |i: usize| if i < 10 { 0.05 * i as f64 } else { 0.0 };
        let metrics: [Metric<'_>; 2] = [("reward.mean", &hill), STD];
        assert!(findings(&run(19, &metrics), "reward-collapses").is_empty());
    }
}
