//! The policy begins far from its reference.
//!
//! ### Fires when
//! `kl.ref` is above 0.05 in one of the first two rows of the run; of 5 rows or more, only if it
//! is also above 0.3 of what it ends at: a KL that grows fast is another matter. In the very first
//! step, with one update a batch, nothing has moved the policy yet: there 5e-3 is too much whatever
//! it ends at, and 1e-3 where dropout is configured.
//!
//! ### Not said
//! That the reference is wrong where the first updates alone lead so far: `kl.old` of the same row
//! is then as large. Anything of a log whose first step is more than ten of its own steps away
//! from 0: it goes on from a checkpoint, or its beginning is missing. Nor where the reference is a
//! teacher: a metric or a setting that is on says `teacher`, `distill` or `opd`.
//!
//! ### Causes
//! - the reference has other weights than the start
//! - an adapter that is merged into one of them only
//! - dropout in one of the two passes
//! - another template, temperature or precision
//! - a learning rate with which the first updates alone lead so far
//!
//! ### Next
//! - shakedown check --stage log-probability
//! - shakedown check --stage update
//! - compute the log-probabilities of one batch with both before the first update
//!
//! ### Source
//! The divergence of a policy from itself is 0.

use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::runs::series::Series;
use crate::runs::{Run, known};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::rounded;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::LogProbability,
    needs: &["kl.ref"],
    explains: &[],
    contracts: &[
        ("kl-estimate", &["zero-when-equal"]),
        ("policy-update", &["reference-unchanged"]),
        ("token-log-probs", &["row-split", "position-local"]),
    ],
    catches: &["reference-differs", "dropout-in-reference"],
    check,
};

/// What a first update or two, and precision, may make of 0.
const NEAR: f64 = 0.05;
/// What precision may make of it before the first update, and what of it where there is dropout.
const UNMOVED: [f64; 2] = [5e-3, 1e-3];
/// A beginning that is less than this part of the end is growth.
const GROWTH: f64 = 0.3;
/// A policy that moved by this part of it in its first batch need not have begun elsewhere.
const MOVED: f64 = 0.3;

fn check(run: &Run) -> Judgement {
    let kl = run.need("kl.ref", 3)?;
    if known::is_continued(run) {
        return Err(not_applicable("the run goes on from a checkpoint"));
    }
    if known::is_distilled(run) {
        return Err(not_applicable("the reference is a teacher, which is another model"));
    }
    let Some(first) = kl.finite().next().filter(|first| first.index <= 1) else {
        return Err(insufficient(format!("{} is not in the first two rows", kl.name)));
    };
    let figures = run.figures("kl.ref", 3)?;
    // Of a long run, the first bucket holds several rows, the first of which is the smallest at
    // best.
    let start = first.min;
    let dropout = known::dropout(run);
    let is_unmoved = first.index == 0
        && matches!(first.steps, [0, 0] | [1, 1])
        && known::updates_per_batch(run) == Some(1.0)
        && !known::old_is_another_policy(run);
    let near = match is_unmoved {
        true => UNMOVED[usize::from(dropout.is_some())],
        false => NEAR,
    };
    let is_growth = !is_unmoved && figures.n() >= 5 && start <= GROWTH * figures.last;
    let moved = run.get("kl.old").and_then(|old| old.finite().next());
    let moved = moved.filter(|old| old.index == first.index).map_or(0.0, |old| old.mean.abs());
    if start <= near + kl.resolution || is_growth || moved >= MOVED * start {
        return Ok(vec![]);
    }
    let found = format!(
        "{} is {} at step {} already, and {} at the end",
        kl.name,
        rounded(start),
        first.steps[0],
        rounded(figures.last),
    );
    let mut fired = Firing::warning(found);
    if let Some((field, dropout)) = dropout {
        fired = fired.because(Some(field), format!("a dropout of {dropout}"));
    }
    fired.at_steps(first_steps(kl, near)).metric("kl.ref", "at the start", start, Some(near)).into()
}

/// The steps from the first one on, as long as it stays so.
fn first_steps(kl: &Series, near: f64) -> [i64; 2] {
    let far = kl.finite().take_while(|bucket| bucket.min > near);
    let far: Vec<[i64; 2]> = far.map(|bucket| bucket.steps).collect();
    match (far.first(), far.last()) {
        (Some(first), Some(last)) => [first[0], last[1]],
        _ => [0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{run, severities, status, stepped};
    use serde_json::Value as Json;

    use super::*;
    use crate::report::{RuleStatus, Severity};
    use crate::settings::Library;

    const RULE: &str = "kl-at-start";

    fn kls(rows: usize, kl: impl Fn(usize) -> f64) -> Run {
        run(rows, |row| vec![("kl.ref", kl(row)), ("loss", 0.1)])
    }

    #[test]
    fn a_reference_is_the_start() {
        assert_eq!(status(&kls(20, |row| 0.05 + 0.001 * row as f64), RULE), RuleStatus::Quiet);
        assert_eq!(
            severities(&kls(20, |row| 0.06 + 0.001 * row as f64), RULE),
            [Severity::Warning]
        );
        assert_eq!(severities(&kls(3, |_| 0.06), RULE), [Severity::Warning]);
        assert_eq!(status(&kls(2, |_| 0.06), RULE), RuleStatus::Insufficient);
    }

    #[test]
    fn a_kl_that_grows_fast_is_another_matter() {
        assert_eq!(status(&kls(20, |row| 0.06 * (row + 1) as f64), RULE), RuleStatus::Quiet);
    }

    #[test]
    fn before_the_first_update_nothing_has_moved() {
        let once = [("batch.prompts", 64.into()), ("batch.update", 64.into())];
        let once = [&once[..], &[("batch.passes", 1.into())]].concat();
        let of = |start: f64, more: &[(&str, Json)]| {
            let settings = [&once, more].concat();
            let run = kls(20, |row| start + 0.01 * row as f64);
            severities(&run.with(Some(Library::Verl), &settings), RULE)
        };
        assert_eq!(of(0.006, &[]), [Severity::Warning]);
        assert_eq!(of(0.004, &[]), []);
        assert_eq!(of(0.002, &[("dropout", 0.1.into())]), [Severity::Warning]);
        assert_eq!(of(5e-4, &[("dropout", 0.1.into())]), []);
        assert_eq!(of(0.006, &[("batch.passes", 2.into())]), []);
        assert_eq!(severities(&kls(20, |row| 0.006 + 0.01 * row as f64), RULE), []);
    }

    #[test]
    fn a_first_batch_may_lead_far_by_itself() {
        let with = |old: f64| run(20, |_| vec![("kl.ref", 0.2), ("kl.old", old)]);
        assert_eq!(severities(&with(0.01), RULE), [Severity::Warning]);
        assert_eq!(status(&with(-0.1), RULE), RuleStatus::Quiet);
    }

    #[test]
    fn a_teacher_is_no_start() {
        let mut run = kls(20, |_| 0.2);
        assert_eq!(severities(&run, RULE), [Severity::Warning]);
        run.unknown.insert("teacher_logp_mean".to_owned());
        assert_eq!(status(&run, RULE), RuleStatus::NotApplicable);
    }

    #[test]
    fn a_run_that_goes_on_began_elsewhere() {
        let from = |first: i64, by: i64| {
            stepped((0..20).map(|row| (first + by * row, vec![("kl.ref", 0.2)])))
        };
        assert_eq!(severities(&from(10, 10), RULE), [Severity::Warning]);
        assert_eq!(severities(&from(0, 1), RULE), [Severity::Warning]);
        assert_eq!(status(&from(501, 1), RULE), RuleStatus::NotApplicable);
        assert_eq!(status(&from(510, 10), RULE), RuleStatus::NotApplicable);
    }

    #[test]
    fn a_kl_that_is_logged_later_says_nothing_of_the_start() {
        let late = stepped((1..30).map(|step| {
            let cells = vec![("loss", 0.1), ("kl.ref", 0.2)];
            (step, cells.into_iter().take(if step < 3 { 1 } else { 2 }).collect())
        }));
        assert_eq!(status(&late, RULE), RuleStatus::Insufficient);
    }
}
