//! A metric has a value that it cannot have.
//!
//! ### Fires when
//! In some row, a share is below 0 or above 1; an entropy, a norm, a rate or a deviation is below
//! 0; an explained variance is above 1; a correlation is beyond -1 or 1; a mean of exp|Δ log p| is
//! below 1; a mean is below the smallest or above the largest value of reward, advantage or
//! length; one side of the clipping is above both; a mean difference of probabilities is above the
//! largest; a completion is longer than the limit. A thousandth of the larger side is allowed, and
//! what the log rounds away.
//!
//! ### Not said
//! That training is wrong where only the logging is: but what is logged is often what is trained
//! on. A norm of -1 is how DeepSpeed writes one that is not finite. Limits of completions hold for
//! all turns together in TRL and verl only.
//!
//! ### Causes
//! - a sum or a percentage where a mean or a share is named
//! - a mask that counts padding, or leaves tokens out on one side of a division
//! - figures of several batches or devices in one row
//!
//! ### Next
//! - shakedown check --stage loss
//! - shakedown explain accumulated-loss
//!
//! ### Source
//! What each metric is by its definition.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::derived::{NOT_A_NORM, tolerance};
use crate::runs::series::{Bucket, Series};
use crate::runs::{Run, known, names};
use crate::settings::Library;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::rounded;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Loss,
    needs: &[],
    explains: &[],
    contracts: &[
        ("token-entropy", &["bounded"]),
        ("policy-loss", &["clip-fraction"]),
        ("accumulated-loss", &["constant-loss", "partition"]),
    ],
    catches: &["percent-logged"],
    check,
};

/// The pairs that [`crate::runs::derived`] compares row by row, and what is said of them.
const ORDERS: [(&str, &str, &str); 5] = [
    ("disorder.reward", "reward.mean", "is not between the smallest and the largest reward"),
    (
        "disorder.advantage",
        "advantage.mean",
        "is not between the smallest and the largest advantage",
    ),
    ("disorder.length", "length.mean", "is not between the smallest and the largest length"),
    ("disorder.clip", "clip.low", "is above the share that is clipped on both sides"),
    ("disorder.mismatch", "mismatch.prob", "is above the largest difference"),
];

fn check(run: &Run) -> Judgement {
    let mut is_judged = false;
    let mut fired = Vec::new();
    for (id, series) in run.series.iter().filter(|(_, series)| series.points() > 0) {
        let Some([lowest, highest]) = bounds(run, id) else { continue };
        is_judged = true;
        fired.extend(beyond(id, series, lowest, highest));
    }
    fired.extend(ORDERS.iter().filter_map(|order| disorder(run, order)));
    let has_extremes =
        |of: &str| ["min", "max"].iter().any(|end| run.get(&of.replace("mean", end)).is_some());
    is_judged |= ORDERS.iter().any(|(_, of, _)| run.get(of).is_some() && has_extremes(of));
    if is_judged { Ok(fired) } else { Err(insufficient("no metric that has a range is logged")) }
}

/// What a metric may be, where that is limited.
fn bounds(run: &Run, id: &str) -> Option<[f64; 2]> {
    if id.starts_with("reward.part.") {
        return id.ends_with(".std").then_some([0.0, f64::INFINITY]);
    }
    let metric = names::known().iter().find(|metric| metric.id == id)?;
    let [lowest, highest] = range(&metric.range)?;
    let limit = || run.settings.number("length.completion").filter(|limit| *limit > 0.0);
    let is_for_all_turns = matches!(known::library(run), Some(Library::Trl | Library::Verl));
    match (id, limit()) {
        ("length.max", Some(limit)) if is_for_all_turns => Some([lowest, limit]),
        _ => Some([lowest, highest]),
    }
}

/// `0:1`, `0:`, `:1`; none where a bound depends on something else. Only `0:ln V` has an end that
/// another rule judges.
fn range(text: &str) -> Option<[f64; 2]> {
    let (lowest, highest) = text.split_once(':')?;
    let end = |text: &str, open: f64| match text {
        "" => Some(open),
        "ln V" => Some(f64::INFINITY),
        text => text.parse().ok(),
    };
    Some([end(lowest, f64::NEG_INFINITY)?, end(highest, f64::INFINITY)?])
}

/// Entropies are made of logits, which bf16 rounds more than it does shares.
const ENTROPY_ROUNDING: f64 = 1e-3;

fn beyond(id: &str, series: &Series, lowest: f64, highest: f64) -> Option<Firing> {
    let rounding = if id == "entropy" { ENTROPY_ROUNDING } else { 0.0 };
    let slack = |value: f64, bound: f64| tolerance(value, bound, series.resolution) + rounding;
    let is_low = |bucket: &Bucket| {
        let is_mark = id == "grad_norm" && bucket.min == NOT_A_NORM;
        bucket.min < lowest - slack(bucket.min, lowest) && !is_mark
    };
    let is_high = |bucket: &Bucket| bucket.max > highest + slack(bucket.max, highest);
    let mut outside = series.finite().filter(|bucket| is_low(bucket) || is_high(bucket));
    let first = outside.next()?;
    let (value, bound, side) = match is_high(first) {
        true => (first.max, highest, "above"),
        false => (first.min, lowest, "below"),
    };
    let steps = [first.steps[0], outside.next_back().unwrap_or(first).steps[1]];
    let is_percentage = [lowest, highest] == [0.0, 1.0] && value > 1.5 && series.max() <= 100.0;
    let name = &series.name;
    let found = format!("{name} is {}, {side} {}", rounded(value), rounded(bound));
    let firing = Firing::error(found).at_steps(steps).metric(id, "value", value, Some(bound));
    Some(match is_percentage {
        true => firing.because(None, "a percentage where a share is named"),
        false => firing,
    })
}

fn disorder(run: &Run, (id, of, what): &(&str, &str, &str)) -> Option<Firing> {
    let by = run.get(id)?;
    let name = run.series.get(*of).map_or(*of, |series| &series.name);
    let found = format!("{name} {what}, by {} beyond what rounding explains", rounded(by.max()));
    let steps = run.steps_where(id, |bucket| bucket.count > 0)?;
    Some(Firing::error(found).at_steps(steps).metric(of, "beyond by", by.max(), Some(0.0)))
}

#[cfg(test)]
mod tests {
    use super::super::trial::{found, rounded, run, severities, status};
    use super::*;
    use crate::report::{RuleStatus, Severity};

    const RULE: &str = "out-of-range";

    fn always(id: &'static str, value: f64) -> Vec<Severity> {
        severities(&run(5, |_| vec![(id, value)]), RULE)
    }

    #[test]
    fn what_is_allowed_is_a_thousandth_beyond() {
        assert_eq!(always("clip.frac", 1.0009), []);
        assert_eq!(always("clip.frac", 1.0021), [Severity::Error]);
        assert_eq!(always("groups.flat", -1e-7), []);
        assert_eq!(always("groups.flat", -0.01), [Severity::Error]);
        assert_eq!(always("mismatch.ratio", 0.98), [Severity::Error]);
        assert_eq!(always("value.explained", -30.0), []);
        assert_eq!(always("value.explained", 1.1), [Severity::Error]);
        assert_eq!(always("reward.part.format.std", -0.2), [Severity::Error]);
        assert_eq!(always("reward.part.format", -0.2), []);
        assert_eq!(always("entropy", 900.0), [], "the vocabulary is judged elsewhere");
        assert_eq!(always("kl.ref", -3.0), [], "a k1 may be negative");
    }

    #[test]
    fn one_row_is_enough_and_a_percentage_is_named() {
        let run = run(50, |row| vec![("length.clipped", if row == 9 { 12.5 } else { 0.5 })]);
        assert_eq!(found(&run, RULE), ["length.clipped is 12.5, above 1"]);
        let findings = run.judge(&Default::default()).findings;
        let finding = findings.iter().find(|one| one.rule == RULE).expect("it fires");
        assert_eq!(finding.causes[0].text, "a percentage where a share is named");
        assert_eq!(finding.steps, Some([10, 10]));
    }

    #[test]
    fn what_a_log_rounds_away_is_allowed() {
        let run = rounded(1, 5, |_| vec![("mismatch.ratio", 0.96), ("clip.frac", 1.04)]);
        assert_eq!(status(&run, RULE), RuleStatus::Quiet);
    }

    #[test]
    fn a_mark_for_a_norm_that_is_not_finite_is_no_norm() {
        assert_eq!(always("grad_norm", -1.0), []);
        assert_eq!(always("grad_norm", -0.5), [Severity::Error]);
    }

    #[test]
    fn means_lie_between_the_extremes_of_their_row() {
        let of = |mean: f64| {
            run(9, |row| {
                let shift = 1000.0 * row as f64;
                let length = [shift + 10.0, shift + mean, shift + 20.0];
                vec![
                    ("length.min", length[0]),
                    ("length.mean", length[1]),
                    ("length.max", length[2]),
                ]
            })
        };
        assert_eq!(severities(&of(10.0), RULE), []);
        assert_eq!(severities(&of(9.0), RULE), [Severity::Error], "by a tenth in the first row");
        let zeros = run(9, |_| {
            vec![("advantage.min", 0.0), ("advantage.mean", -1e-9), ("advantage.max", 0.0)]
        });
        assert_eq!(status(&zeros, RULE), RuleStatus::Quiet);
    }

    #[test]
    fn one_row_of_a_long_run_is_found_though_rows_are_not_kept() {
        let run = run(20_000, |row| {
            let mean = if row == 12_345 { 21.0 } else { 10.0 + (row % 10) as f64 };
            vec![("length.min", 10.0), ("length.mean", mean), ("length.max", 20.0)]
        });
        let length = run.get("length.mean").map_or(0, |series| series.buckets.len());
        assert!(length < 10_000, "rows are merged");
        let finding = &run.judge(&Default::default()).findings[0];
        assert_eq!((&*finding.rule, finding.severity), (RULE, Severity::Error));
        let [first, last] = finding.steps.expect("a finding has steps");
        assert!(first <= 12_346 && 12_346 <= last && last - first < 8, "{first}-{last}");
    }

    #[test]
    fn a_limit_of_completions_is_known_where_it_holds_for_all_turns() {
        let of = |library| {
            let run = run(9, |_| vec![("length.max", 300.0)]);
            severities(&run.with(Some(library), &[("length.completion", 256.into())]), RULE)
        };
        assert_eq!(of(Library::Verl), [Severity::Error]);
        assert_eq!(of(Library::Slime), []);
    }

    #[test]
    fn nothing_is_said_where_nothing_has_a_range() {
        let run = run(9, |_| vec![("reward.mean", 3.0)]);
        assert_eq!(status(&run, RULE), RuleStatus::Insufficient);
    }
}
