//! A core metric is not finite.
//!
//! ### Fires when
//! A loss, gradient norm, KL, entropy, reward, advantage or value loss is NaN or infinite, or the
//! norm is the -1 that DeepSpeed writes for such a one: an error in 3 rows or in the last one,
//! else a warning. A norm alone is an error in the last row or in a tenth of all, as fp16 training
//! skips steps whose gradient overflows while it looks for its loss scale.
//!
//! ### Not said
//! Which operation made it: the metric named is the first of the row, upstream first. TRL prints a
//! loss of 0 for one that was NaN, so there the gradient is the witness.
//!
//! ### Causes
//! - an overflow of fp16
//! - the logarithm of 0, or 0/0 in an advantage or a loss
//! - a learning rate that is too high
//!
//! ### Next
//! - shakedown check --stage loss
//! - shakedown check --stage advantage
//! - train in bf16, and print the first batch whose loss is not finite
//!
//! ### Source
//! verl#747, OpenRLHF#1120.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::derived::{CORE, NOT_A_NORM};
use crate::runs::series::{Bucket, Series};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::count;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Loss,
    needs: &[
        "loss",
        "grad_norm",
        "kl.ref",
        "entropy",
        "reward.mean",
        "advantage.mean",
        "value.loss",
    ],
    explains: &[
        "out-of-range",
        "entropy-above-vocabulary",
        "kl-negative",
        "reward-parts-disagree",
        "signal-without-gradient",
        "gradient-without-signal",
        "advantage-one-sided",
        "ratio-at-start",
        "clip-never",
        "kl-zero",
        "kl-at-start",
        "reward-constant",
        "reward-part-constant",
        "groups-flat",
        "diversity-lost",
        "reward-flat",
        "reward-declines",
        "reward-collapses",
        "proxy-gain",
        "length-hack",
        "length-explodes",
        "length-collapses",
        "never-stops",
        "truncation",
        "empty-completions",
        "prompts-cut",
        "kl-explodes",
        "kl-spikes",
        "pinned-to-reference",
        "entropy-collapses",
        "entropy-explodes",
        "clip-saturated",
        "update-too-large",
        "gradient-explodes",
        "gradient-spikes",
        "gradient-vanishes",
        "gradient-always-clipped",
        "learning-rate-zero",
        "learning-rate-high",
        "rollout-mismatch",
        "mismatch-grows",
        "weights-degenerate",
        "stale-rollouts",
        "critic-not-learning",
        "critic-explodes",
        "preference-not-moving",
        "preference-inverted",
        "preference-chance",
        "chosen-falls",
        "invalid-actions",
    ],
    contracts: &[
        ("group-advantage", &["finite"]),
        ("token-log-probs", &["finite"]),
        ("token-entropy", &["finite"]),
        ("kl-estimate", &["finite", "gradient-finite"]),
        ("policy-loss", &["finite"]),
        ("value-loss", &["finite"]),
        ("preference-loss", &["finite", "gradient-finite"]),
    ],
    catches: &["fp16-overflow"],
    check,
};

fn check(run: &Run) -> Judgement {
    if !CORE.iter().any(|id| run.series.contains_key(*id)) {
        return Err(insufficient("none of the core metrics is logged"));
    }
    let Some(rows) = run.get("nonfinite") else { return Ok(vec![]) };
    let Some((id, series, first)) = first_bad(run) else { return Ok(vec![]) };
    let is_last = last(rows) == CORE.iter().filter_map(|id| last(run.series.get(*id)?)).max();
    let bad = rows.points();
    let is_bad = |bucket: &Bucket| bucket.count > 0;
    let severity = match bad {
        _ if is_last => Severity::Error,
        3.. if !only_the_norm(run) || 10 * bad >= run.rows => Severity::Error,
        _ => Severity::Warning,
    };
    let found = format!(
        "{} is the first that is not finite, at step {}; so is some metric in {bad} of {}, {} the \
         last",
        series.name,
        first.steps[0],
        count(run.rows, "row"),
        if is_last { "also in" } else { "not in" },
    );
    Firing::new(severity, found)
        .at_steps(run.steps_where("nonfinite", is_bad).unwrap_or(first.steps))
        .metric(id, "rows that are not finite", bad as f64, Some(0.0))
        .into()
}

fn last(series: &Series) -> Option<u64> {
    series.buckets.last().map(|bucket| bucket.index)
}

/// The core metric that is the first to be not finite, upstream first, and where.
fn first_bad(run: &Run) -> Option<(&'static str, &Series, &Bucket)> {
    let firsts = CORE.iter().filter_map(|id| {
        let series = run.series.get(*id)?;
        let bad = |bucket: &&Bucket| {
            bucket.nonfinite > 0 || (*id == "grad_norm" && bucket.min == NOT_A_NORM)
        };
        Some((*id, series, series.buckets.iter().find(bad)?))
    });
    firsts.min_by_key(|(_, _, bucket)| bucket.index)
}

fn only_the_norm(run: &Run) -> bool {
    let is_finite = |id: &str| run.series.get(id).is_none_or(|series| series.nonfinite() == 0);
    CORE.iter().filter(|id| **id != "grad_norm").all(|id| is_finite(id))
}

#[cfg(test)]
mod tests {
    use super::super::trial::{found, run, severities, status};
    use super::*;
    use crate::report::RuleStatus;

    const RULE: &str = "non-finite";

    fn losses(bad: impl Fn(usize) -> bool) -> Run {
        run(30, |row| {
            let loss = if bad(row) { f64::NAN } else { 0.1 };
            vec![("loss", loss), ("grad_norm", 1.0), ("length.mean", 50.0 + row as f64)]
        })
    }

    #[test]
    fn one_row_is_a_warning_and_three_are_an_error() {
        assert_eq!(status(&losses(|_| false), RULE), RuleStatus::Quiet);
        assert_eq!(severities(&losses(|row| row == 7), RULE), [Severity::Warning]);
        assert_eq!(severities(&losses(|row| row % 10 == 3), RULE), [Severity::Error]);
    }

    #[test]
    fn a_run_that_ends_so_is_an_error() {
        assert_eq!(severities(&losses(|row| row == 29), RULE), [Severity::Error]);
    }

    #[test]
    fn the_first_metric_and_its_step_are_named() {
        let run = run(20, |row| {
            let bad = |from: usize| if row >= from { f64::INFINITY } else { 0.5 };
            vec![("loss", bad(11)), ("kl.ref", bad(10)), ("grad_norm", bad(10))]
        });
        let said = "kl.ref is the first that is not finite, at step 11; so is some metric in 10 \
                    of 20 rows, also in the last";
        assert_eq!(found(&run, RULE), [said]);
    }

    #[test]
    fn a_loss_scale_that_is_looked_for_is_a_warning() {
        let norms = |bad: usize| {
            run(60, |row| vec![("loss", 0.0), ("grad_norm", if row < bad { -1.0 } else { 0.3 })])
        };
        assert_eq!(severities(&norms(5), RULE), [Severity::Warning]);
        assert_eq!(severities(&norms(6), RULE), [Severity::Error]);
    }

    #[test]
    fn nothing_is_judged_after_the_row_from_which_nothing_is_finite() {
        let dead = |from: usize| {
            run(40, |row| {
                let core = if row >= from { f64::NAN } else { 0.5 };
                vec![("loss", core), ("kl.ref", core), ("length.mean", row as f64)]
            })
        };
        assert_eq!(dead(25).get("length.mean").map(Series::points), Some(25));
        assert_eq!(severities(&dead(25), RULE), [Severity::Error]);
        assert!(dead(0).get("length.mean").is_none());
        let scattered = losses(|row| row % 2 == 1);
        assert_eq!(scattered.get("length.mean").map(Series::points), Some(30));
    }

    #[test]
    fn other_metrics_may_be_anything() {
        let run = run(20, |_| vec![("loss", 0.1), ("length.stopped", f64::NAN)]);
        assert_eq!(status(&run, RULE), RuleStatus::Quiet);
        let run = super::super::trial::run(20, |_| vec![("length.mean", f64::NAN)]);
        assert_eq!(status(&run, RULE), RuleStatus::Insufficient);
    }
}
