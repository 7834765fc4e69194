//! The first update on a batch already finds another policy than the one that sampled.
//!
//! ### Fires when
//! One update is made of each batch, so that its ratios are all 1, and the median of |`kl.old`| is
//! above 1e-3, or the mean of `clip.frac` is.
//!
//! ### Not said
//! Anything where the old log-probabilities are the engine's, or the rollouts of older weights by
//! design: then ratios measure just that. Clipped shares are left alone where whole completions
//! have one ratio or the loss clips by something else.
//!
//! ### Causes
//! - dropout in one of the two passes
//! - other micro-batches, padding or precision in the old log-probabilities
//! - a temperature that only one of them applies
//!
//! ### Next
//! - shakedown check --stage log-probability
//! - compute the log-probabilities of one batch twice, in evaluation mode and as in training
//!
//! ### Source
//! verl#2996, verl#6280. A ratio of one policy to itself is 1.

use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::runs::series::Series;
use crate::runs::statistics::{mean, median};
use crate::runs::{Run, known};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::rounded;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::LogProbability,
    needs: &["kl.old", "clip.frac"],
    explains: &[],
    contracts: &[
        ("token-log-probs", &["row-split", "position-local"]),
        ("policy-loss", &["metrics-on-policy"]),
    ],
    catches: &["dropout-in-old"],
    check,
};

/// What precision explains.
const PRECISION: f64 = 1e-3;

fn check(run: &Run) -> Judgement {
    match known::updates_per_batch(run) {
        None => return Err(insufficient("how many updates a batch takes is not known")),
        Some(updates) if updates > 1.0 => {
            return Err(not_applicable("a batch takes several updates"));
        }
        Some(_) if known::old_is_another_policy(run) => {
            return Err(not_applicable(
                "old log-probabilities are those of other weights or engines",
            ));
        }
        Some(_) => {}
    }
    let long = |series: &&Series| series.points() >= 3;
    let kl = run.get("kl.old").filter(long);
    let clip = run.get("clip.frac").filter(long).filter(|_| known::clips_token_ratios(run));
    if kl.is_none() && clip.is_none() {
        return Err(insufficient("neither kl.old nor clip.frac has 3 values that tell"));
    }
    let sizes = |kl: &Series| kl.values().iter().map(|kl| kl.abs()).collect::<Vec<f64>>();
    let kl = kl.map(|kl| ("kl.old", "median size", median(&sizes(kl)), kl));
    let clip = clip.map(|clip| ("clip.frac", "mean", mean(&clip.values()), clip));
    let is_off =
        |(_, _, value, series): &(&str, &str, f64, &Series)| *value > PRECISION + series.resolution;
    Ok([kl, clip]
        .into_iter()
        .flatten()
        .find(is_off)
        .map(|one| firing(run, one))
        .into_iter()
        .collect())
}

fn firing(run: &Run, (id, what, value, series): (&str, &str, f64, &Series)) -> Firing {
    let found = format!(
        "the {what} of {} is {}, with one update a batch, which begins where it sampled",
        series.name,
        rounded(value),
    );
    let is_off = |bucket: &crate::runs::series::Bucket| bucket.mean.abs() > PRECISION;
    let firing = Firing::error(found)
        .at_steps(run.steps_where(id, is_off).unwrap_or_default())
        .metric(id, what, value, Some(PRECISION));
    match run.settings.number("dropout") {
        Some(dropout) if dropout > 0.0 => firing.because(Some("dropout"), "dropout is on"),
        _ => firing,
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{rounded, run, severities, status};
    use super::*;
    use crate::report::{RuleStatus, Severity};
    use crate::settings::{Library, Origin, Value};
    use serde_json::{Value as Json, json};

    const RULE: &str = "ratio-at-start";

    fn once() -> [(&'static str, Json); 3] {
        [("batch.prompts", json!(64)), ("batch.update", json!(64)), ("batch.passes", json!(1))]
    }

    fn drawn(kl: f64, clip: f64) -> Run {
        let run = run(10, |row| {
            let sign = if row % 2 == 0 { 1.0 } else { -1.0 };
            vec![("kl.old", sign * kl), ("clip.frac", clip)]
        });
        run.with(Some(Library::Verl), &once())
    }

    #[test]
    fn a_policy_does_not_differ_from_itself() {
        assert_eq!(status(&drawn(0.9e-3, 0.9e-3), RULE), RuleStatus::Quiet);
        assert_eq!(severities(&drawn(1.1e-3, 0.0), RULE), [Severity::Error]);
        assert_eq!(severities(&drawn(0.0, 1.1e-3), RULE), [Severity::Error]);
    }

    #[test]
    fn with_several_updates_it_moves() {
        let several = drawn(0.1, 0.1).with(None, &[("batch.passes", json!(2))]);
        assert_eq!(status(&several, RULE), RuleStatus::NotApplicable);
        let unknown = run(10, |_| vec![("kl.old", 0.5)]);
        assert_eq!(status(&unknown, RULE), RuleStatus::Insufficient);
    }

    #[test]
    fn another_policy_may_have_sampled_by_design() {
        let late = drawn(0.1, 0.1).with(None, &[("asynchronous", json!(true))]);
        assert_eq!(status(&late, RULE), RuleStatus::NotApplicable);
        let mut engine = drawn(0.1, 0.1);
        let on = Value { json: json!(true), origin: Origin::Flag };
        let name = "algorithm.rollout_correction.bypass_mode";
        engine.settings.fields.insert(name.to_owned(), on);
        assert_eq!(status(&engine, RULE), RuleStatus::NotApplicable);
    }

    #[test]
    fn clipped_sequences_say_nothing() {
        let whole = drawn(0.0, 0.1).with(None, &[("ratio.level", json!("sequence"))]);
        assert_eq!(status(&whole, RULE), RuleStatus::Quiet);
    }

    #[test]
    fn what_a_log_rounds_up_is_allowed() {
        let run = rounded(2, 10, |_| vec![("kl.old", 0.0051)]).with(Some(Library::Verl), &once());
        assert_eq!(severities(&run, RULE), [Severity::Error]);
        let run = rounded(2, 10, |_| vec![("kl.old", 0.0049)]).with(Some(Library::Verl), &once());
        assert_eq!(status(&run, RULE), RuleStatus::Quiet);
    }
}
