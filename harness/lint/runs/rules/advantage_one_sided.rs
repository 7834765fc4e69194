//! Advantages have one sign only.
//!
//! ### Fires when
//! In nine of ten rows with signal, and in 10 at least, the smallest advantage is not below 0, or
//! the largest not above. A warning where the estimator is not known.
//!
//! ### Not said
//! That their mean must be 0: a mean over tokens is not, as long rows weigh more. Plain REINFORCE,
//! and estimators that reward only the best of a group, have no baseline and are left alone.
//!
//! ### Causes
//! - the baseline is missing: the advantage is the reward
//! - groups of one completion, which have no baseline
//! - completions with advantages of one sign are filtered out or masked
//!
//! ### Next
//! - shakedown check --stage advantage
//! - shakedown explain group-advantage/singleton
//!
//! ### Source
//! A baseline takes away the mean: some completions are below it, wherever rewards differ.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::runs::statistics::mean;
use crate::runs::{Run, known};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Advantage,
    needs: &["advantage.min", "advantage.max"],
    explains: &[],
    contracts: &[("group-advantage", &["zero-sum", "singleton"]), ("whiten", &["mean"])],
    catches: &["no-baseline"],
    check,
};

fn check(run: &Run) -> Judgement {
    let severity = match known::has_both_signs(run) {
        Some(false) => return Err(not_applicable("the estimator has no baseline by design")),
        Some(true) => Severity::Error,
        None => Severity::Warning,
    };
    let rows = run.need("advantage.one_sided", 10).map_err(|_| {
        insufficient("fewer than 10 rows with signal have the smallest and largest advantage")
    })?;
    let weighed = rows.finite().map(|bucket| f64::from(bucket.count) * bucket.mean);
    let one_sided = weighed.sum::<f64>().round();
    let share = one_sided / rows.points() as f64;
    if share < 0.9 {
        return Ok(vec![]);
    }
    let least = run.get("advantage.min").map(|min| mean(&min.values())).unwrap_or_default();
    let (metric, sign) = match least < 0.0 {
        true => ("advantage.max", "above"),
        false => ("advantage.min", "below"),
    };
    let found = format!(
        "no advantage is {sign} 0 in {one_sided} of {} rows whose rewards differ",
        rows.points(),
    );
    let steps = run.steps_where("advantage.one_sided", |bucket| bucket.max > 0.0);
    let firing = Firing::new(severity, found).at_steps(steps.unwrap_or_default());
    let firing = firing.metric(metric, "share of rows of one sign", share, Some(0.9));
    match run.settings.number("group") {
        Some(1.0) => firing.because(Some("group"), "groups of one completion have no baseline"),
        _ => firing,
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::super::trial::{rounded, run, severities, status};
    use super::*;
    use crate::report::RuleStatus;

    const RULE: &str = "advantage-one-sided";

    fn advantages(rows: usize, min: impl Fn(usize) -> f64) -> Run {
        let grpo = [("algorithm", "grpo".into())];
        run(rows, |row| vec![("advantage.min", min(row)), ("advantage.max", 1.0)]).with(None, &grpo)
    }

    #[test]
    fn rewards_without_a_baseline_have_one_sign() {
        assert_eq!(severities(&advantages(10, |_| 0.0), RULE), [Severity::Error]);
        assert_eq!(status(&advantages(9, |_| 0.0), RULE), RuleStatus::Insufficient);
        let some = advantages(20, |row| if row < 3 { -1e-3 } else { 0.0 });
        assert_eq!(status(&some, RULE), RuleStatus::Quiet);
    }

    #[test]
    fn rows_without_signal_have_no_sign() {
        let flat = run(30, |row| {
            let size = if row < 11 { 1.0 } else { 0.0 };
            vec![("advantage.min", -size), ("advantage.max", size)]
        });
        assert_eq!(status(&flat, RULE), RuleStatus::Quiet);
    }

    #[test]
    fn penalties_alone_have_one_sign_too() {
        let run = run(12, |_| vec![("advantage.min", -2.0), ("advantage.max", 0.0)]);
        assert_eq!(severities(&run, RULE), [Severity::Warning], "the estimator is not known");
    }

    #[test]
    fn an_estimator_without_a_baseline_is_left_alone() {
        let plain = [("algorithm", "reinforce".into())];
        let run = advantages(30, |_| 0.0).with(None, &plain);
        assert_eq!(status(&run, RULE), RuleStatus::NotApplicable);
    }

    #[test]
    fn a_rounded_nought_has_no_sign() {
        let cells = |_| vec![("advantage.min", -0.0002), ("advantage.max", 1.0)];
        assert_eq!(status(&rounded(3, 30, cells), RULE), RuleStatus::Insufficient);
    }
}
