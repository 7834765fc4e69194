//! The policy moves, and its KL to the reference stays 0.
//!
//! ### Fires when
//! With a KL that is on, every `kl.ref` is exactly 0 in the rows, 10 at least, whose gradient is
//! above 0 and whose learning rate is not 0.
//!
//! ### Not said
//! Anything where the log rounds to 0, or where the KL may be off: then some libraries log 0.
//!
//! ### Causes
//! - the reference is the policy itself: shared weights, or a copy that follows it
//! - the weights do not change: steps that bf16 rounds away, an optimiser of other parameters
//! - an adapter that is switched off for both
//!
//! ### Next
//! - shakedown check --stage update
//! - compare one weight of policy and reference before and after an update
//!
//! ### Source
//! The divergence of two different policies is above 0.

use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::runs::{Run, known};
use crate::settings::Library;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Update,
    needs: &["kl.ref", "grad_norm"],
    explains: &[],
    contracts: &[
        ("policy-update", &["reference-unchanged"]),
        ("policy-loss", &["pulls-towards-the-reference"]),
    ],
    catches: &["reference-shared"],
    check,
};

fn check(run: &Run) -> Judgement {
    let kl = run.need("kl.ref", 10)?;
    // These log it only where it is on.
    let is_logged = || matches!(known::library(run), Some(Library::Trl | Library::Verl));
    match known::kl_is_on(run).or_else(|| is_logged().then_some(true)) {
        Some(true) => {}
        Some(false) => return Err(not_applicable("the KL has no weight")),
        None => return Err(insufficient("whether the KL has a weight is not known")),
    }
    let moving = run.need("kl.ref.moving", 10).map_err(|_| {
        insufficient("fewer than 10 rows have a KL and something that moves weights")
    })?;
    if moving.max() != 0.0 || moving.min() != 0.0 {
        return Ok(vec![]);
    }
    if kl.resolution > 0.0 {
        return Err(insufficient(format!("{} is rounded, so its 0 may be none", kl.name)));
    }
    let rows = moving.points();
    let found = format!("{} is exactly 0 in all {rows} rows whose gradient is not", kl.name);
    Firing::error(found)
        .at_steps(run.steps_where("kl.ref.moving", |bucket| bucket.count > 0).unwrap_or_default())
        .metric("kl.ref", "largest", 0.0, Some(0.0))
        .into()
}

#[cfg(test)]
mod tests {
    use super::super::trial::{rounded, run, severities, status};
    use super::*;
    use crate::report::{RuleStatus, Severity};

    const RULE: &str = "kl-zero";

    fn on(run: Run) -> Run {
        run.with(None, &[("kl.loss", 0.01.into())])
    }

    fn kls(rows: usize, kl: impl Fn(usize) -> f64) -> Run {
        run(rows, |row| vec![("kl.ref", kl(row)), ("grad_norm", 0.2), ("lr", 1e-6)])
    }

    #[test]
    fn a_policy_that_moves_leaves_its_reference() {
        assert_eq!(severities(&on(kls(10, |_| 0.0)), RULE), [Severity::Error]);
        assert_eq!(status(&on(kls(9, |_| 0.0)), RULE), RuleStatus::Insufficient);
        let leaves = on(kls(30, |row| if row == 0 { 0.0 } else { 1e-7 }));
        assert_eq!(status(&leaves, RULE), RuleStatus::Quiet);
    }

    #[test]
    fn where_it_is_off_some_log_nought() {
        assert_eq!(status(&kls(30, |_| 0.0), RULE), RuleStatus::Insufficient);
        assert_eq!(
            severities(&kls(30, |_| 0.0).with(Some(Library::Trl), &[]), RULE),
            [Severity::Error]
        );
        let off = kls(30, |_| 0.0).with(Some(Library::Trl), &[("kl.loss", 0.into())]);
        assert_eq!(status(&off, RULE), RuleStatus::NotApplicable);
    }

    #[test]
    fn a_policy_that_stays_need_not_leave() {
        let warm_up = run(30, |row| {
            let lr = if row < 21 { 0.0 } else { 1e-6 };
            vec![("kl.ref", 0.0), ("grad_norm", 0.2), ("lr", lr)]
        });
        assert_eq!(status(&on(warm_up), RULE), RuleStatus::Insufficient);
        let frozen = run(30, |_| vec![("kl.ref", 0.0), ("grad_norm", 0.0), ("lr", 1e-6)]);
        assert_eq!(status(&on(frozen), RULE), RuleStatus::Insufficient);
    }

    #[test]
    fn a_rounded_nought_says_nothing() {
        let cells = |_| vec![("kl.ref", 0.0004), ("grad_norm", 0.2), ("lr", 1e-6)];
        assert_eq!(status(&on(rounded(3, 30, cells)), RULE), RuleStatus::Insufficient);
    }
}
