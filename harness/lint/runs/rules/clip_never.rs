//! Several updates are made of a batch, and the policy never differs from the one that sampled.
//!
//! ### Fires when
//! In 20 rows or more, every `clip.frac` and every `kl.old` is exactly 0, while something moves
//! the weights. An error with more than one update a batch where `kl.old` is logged; a warning
//! where only clipped shares are, as very small steps stay within the range; a note where the
//! number of updates is not known, as with one of them 0 is right.
//!
//! ### Not said
//! Anything where the log rounds to 0, or where the range is as wide as 1 or more: CISPO's is.
//!
//! ### Causes
//! - the old log-probabilities are the current ones: detached in each update, or computed anew
//! - the loss does not use the ratio
//! - the weights that are updated are not those that are evaluated
//!
//! ### Next
//! - shakedown check --stage loss
//! - keep the log-probabilities of the rollout, or compute them before the first update
//!
//! ### Source
//! trl#3120.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::runs::series::Series;
use crate::runs::{Run, known};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::{count, number};

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Loss,
    needs: &["clip.frac", "kl.old"],
    explains: &[],
    contracts: &[("policy-loss", &["clip-fraction", "clipped-tokens", "log-prob-shift"])],
    catches: &["old-is-current"],
    check,
};

fn check(run: &Run) -> Judgement {
    let updates = known::updates_per_batch(run);
    if updates.is_some_and(|updates| updates <= 1.0) {
        return Err(not_applicable("a batch takes one update"));
    }
    let is_narrow = run.settings.number("clip.high").is_none_or(|high| high < 1.0);
    let long = |series: &&Series| series.points() >= 20;
    let clip = run.get("clip.frac").filter(long);
    let clip = clip.filter(|clip| is_narrow && !clip.name.contains("cispo"));
    let kl = run.get("kl.old").filter(long);
    let logged: Vec<(&str, &Series)> = [("kl.old", kl), ("clip.frac", clip)]
        .into_iter()
        .filter_map(|(id, s)| Some((id, s?)))
        .collect();
    let Some((id, series)) = logged.first() else {
        return Err(insufficient("neither clip.frac nor kl.old has 20 values that tell"));
    };
    if logged.iter().any(|(_, series)| series.max() != 0.0 || series.min() != 0.0) {
        return Ok(vec![]);
    }
    if logged.iter().all(|(_, series)| series.resolution > 0.0) {
        return Err(insufficient(format!("{} is rounded, so its 0 may be none", series.name)));
    }
    if nothing_moves(run) {
        return Err(insufficient("no gradient or learning rate moves the weights"));
    }
    let severity = match (updates, kl) {
        (None, _) => Severity::Note,
        (Some(_), Some(kl)) if kl.resolution == 0.0 => Severity::Error,
        _ => Severity::Warning,
    };
    let names: Vec<&str> = logged.iter().map(|(_, series)| &*series.name).collect();
    let among = match updates {
        Some(updates) => format!("with {} updates a batch", number(updates)),
        None => "which is right with one update a batch only".to_owned(),
    };
    let rows = count(series.points(), "row");
    let are = if names.len() > 1 { "are" } else { "is" };
    let found = format!("{} {are} exactly 0 in all {rows}, {among}", names.join(" and "));
    Firing::new(severity, found)
        .at_steps(run.steps_where(id, |bucket| bucket.count > 0).unwrap_or_default())
        .metric(id, "largest", 0.0, Some(0.0))
        .into()
}

/// Whether it is known that the weights stay.
fn nothing_moves(run: &Run) -> bool {
    let is_zero = |id: &str| {
        run.get(id).is_some_and(|series| series.max() == 0.0 && series.resolution == 0.0)
    };
    is_zero("grad_norm") || is_zero("lr")
}

#[cfg(test)]
mod tests {
    use super::super::trial::{rounded, run, severities, status};
    use super::*;
    use crate::report::RuleStatus;
    use crate::settings::Library;
    use serde_json::json;

    const RULE: &str = "clip-never";

    fn passes(run: Run, passes: i32) -> Run {
        let sizes = [("batch.prompts", json!(8)), ("batch.update", json!(8))];
        run.with(Some(Library::Verl), &sizes).with(None, &[("batch.passes", json!(passes))])
    }

    fn ratios(rows: usize, kl: f64) -> Run {
        run(rows, |row| {
            let kl = if row == 7 { kl } else { 0.0 };
            vec![("clip.frac", 0.0), ("kl.old", kl), ("grad_norm", 0.3)]
        })
    }

    #[test]
    fn old_log_probabilities_that_are_current_ones_never_differ() {
        assert_eq!(severities(&passes(ratios(20, 0.0), 4), RULE), [Severity::Error]);
        assert_eq!(status(&passes(ratios(20, 1e-9), 4), RULE), RuleStatus::Quiet);
        assert_eq!(status(&passes(ratios(19, 0.0), 4), RULE), RuleStatus::Insufficient);
    }

    #[test]
    fn with_one_update_that_is_right() {
        assert_eq!(status(&passes(ratios(30, 0.0), 1), RULE), RuleStatus::NotApplicable);
        assert_eq!(severities(&ratios(30, 0.0), RULE), [Severity::Note]);
    }

    #[test]
    fn shares_alone_may_be_nought_where_steps_are_small() {
        let shares = || run(30, |_| vec![("clip.frac", 0.0), ("grad_norm", 0.3)]);
        assert_eq!(severities(&passes(shares(), 2), RULE), [Severity::Warning]);
        let wide = passes(shares(), 2).with(None, &[("clip.high", json!(5.0))]);
        assert_eq!(status(&wide, RULE), RuleStatus::Insufficient);
    }

    #[test]
    fn rounded_noughts_and_weights_that_stay_say_nothing() {
        let printed = rounded(3, 30, |_| vec![("clip.frac", 0.0002), ("kl.old", 0.0003)]);
        assert_eq!(status(&passes(printed, 2), RULE), RuleStatus::Insufficient);
        let still = run(30, |_| vec![("kl.old", 0.0), ("lr", 0.0), ("grad_norm", 1.0)]);
        assert_eq!(status(&passes(still, 2), RULE), RuleStatus::Insufficient);
    }
}
