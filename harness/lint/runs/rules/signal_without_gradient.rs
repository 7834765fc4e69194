//! Rewards differ, and nothing is learnt from them.
//!
//! ### Fires when
//! In nine of ten rows with signal, and in 3 at least, `grad_norm` is 0. Signal: not all groups
//! are flat; else the groups' deviation, else the rewards', else the spread of the advantages is
//! above 1e-6. Where many groups are flat, a row may hold the means of several updates and the
//! gradient of the last one only: then so many rows are needed that this is no chance (1 in
//! 1,000).
//!
//! ### Not said
//! Anything where the log rounds the norm to 0.
//!
//! ### Causes
//! - parameters that are frozen, or a loss that is detached from them
//! - an adapter that is not trainable
//! - a norm that was taken of other weights, or of another node's
//! - a mask that leaves nothing of the loss
//!
//! ### Next
//! - shakedown check --stage loss
//! - shakedown check --stage update
//! - count the parameters with requires_grad that the optimiser holds
//!
//! ### Source
//! ms-swift#5571, ms-swift#5890.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::series::Series;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Loss,
    needs: &["grad_norm", "groups.flat", "reward.group_std", "reward.std", "advantage.max"],
    explains: &["reward-flat", "kl-zero"],
    contracts: &[
        ("policy-loss", &["gradient", "on-policy-gradient", "gradient-against-the-advantage"]),
        ("policy-update", &["expected-reward-rises"]),
    ],
    catches: &["frozen"],
    check,
};

/// How likely it may be that rows with signal logged only gradients of updates without.
const BY_CHANCE: f64 = 1e-3;

fn check(run: &Run) -> Judgement {
    let norm = run.need("grad_norm", 3)?;
    let with_signal = run.get("grad_norm.with_signal").map_or(0, Series::points);
    if with_signal < 3 {
        let why = format!("{with_signal} rows with a gradient are known to have signal, of 3");
        return Err(insufficient(why));
    }
    let Some(missed) = run.get("signal.missed") else { return Ok(vec![]) };
    let none = missed.points();
    if 10 * none < 9 * with_signal || none < 3 || chance(missed) > BY_CHANCE {
        return Ok(vec![]);
    }
    if norm.resolution > 0.0 {
        return Err(insufficient(format!("{} is rounded, so its 0 may be none", norm.name)));
    }
    let found = format!("{} is 0 in {none} of {with_signal} rows whose rewards differ", norm.name);
    let share = none as f64 / with_signal as f64;
    Firing::error(found)
        .at_steps(run.steps_where("signal.missed", |bucket| bucket.count > 0).unwrap_or_default())
        .metric("grad_norm", "share of rows with signal that are 0", share, Some(0.9))
        .into()
}

/// How likely it is that each of the rows logged the gradient of an update without signal, if a
/// row's flat groups were whole updates. Buckets of several rows make it larger, not smaller.
fn chance(missed: &Series) -> f64 {
    let logs = missed.finite().map(|bucket| f64::from(bucket.count) * bucket.mean.ln());
    logs.sum::<f64>().exp()
}

#[cfg(test)]
mod tests {
    use super::super::trial::{rounded, run, severities, status};
    use super::*;
    use crate::report::{RuleStatus, Severity};

    const RULE: &str = "signal-without-gradient";

    fn norms(rows: usize, flat: f64, norm: impl Fn(usize) -> f64) -> Run {
        run(rows, |row| vec![("groups.flat", flat), ("grad_norm", norm(row))])
    }

    #[test]
    fn nine_rows_in_ten_without_gradient_are_an_error() {
        assert_eq!(severities(&norms(3, 0.0, |_| 0.0), RULE), [Severity::Error]);
        assert_eq!(severities(&norms(20, 0.3, |row| (row < 2).into()), RULE), [Severity::Error]);
        let more = norms(20, 0.3, |row| if row < 3 { 1.0 } else { 0.0 });
        assert_eq!(status(&more, RULE), RuleStatus::Quiet);
        assert_eq!(status(&norms(2, 0.0, |_| 0.0), RULE), RuleStatus::Insufficient);
        assert_eq!(status(&norms(20, 0.0, |_| 1e-9), RULE), RuleStatus::Quiet);
    }

    #[test]
    fn rows_without_signal_need_no_gradient() {
        let run = norms(20, 1.0, |_| 0.0);
        assert_eq!(status(&run, RULE), RuleStatus::Insufficient);
    }

    #[test]
    fn one_update_of_a_row_may_be_flat_where_most_are() {
        // One group an update, ten updates a row, of which the last one's gradient is logged.
        let hard = norms(30, 0.9, |row| if row % 15 == 7 { 0.2 } else { 0.0 });
        assert_eq!(status(&hard, RULE), RuleStatus::Quiet);
        assert_eq!(severities(&norms(80, 0.9, |_| 0.0), RULE), [Severity::Error]);
    }

    #[test]
    fn a_rounded_nought_says_nothing() {
        let cells = |_| vec![("reward.std", 0.5), ("grad_norm", 0.0002)];
        assert_eq!(status(&rounded(3, 20, cells), RULE), RuleStatus::Insufficient);
    }
}
