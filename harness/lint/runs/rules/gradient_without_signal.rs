//! No rewards differ, and the policy moves all the same.
//!
//! ### Fires when
//! KL and entropy have no weight, and in 5 rows or more without signal the median of `grad_norm`
//! is 1e-3 or more, and a twentieth or more of that of the rows with signal. Without signal: all
//! groups are flat; else no deviation within groups, else none of the rewards.
//!
//! ### Not said
//! Anything of estimators that compare a completion with others than those of its group, or with a
//! critic. Nor where a router's balance is part of the loss.
//!
//! ### Causes
//! - advantages of equal rewards that are rounding errors divided by a deviation of nearly 0
//! - a part of the loss that is not logged
//! - completions that are compared with those of other prompts
//!
//! ### Next
//! - shakedown check --stage advantage
//! - shakedown explain group-advantage/constant-group
//!
//! ### Source
//! The policy gradient of advantages that are all 0 is 0.

use crate::rules::{Firing, Head, Judgement, Unjudged, insufficient, not_applicable};
use crate::runs::statistics::median;
use crate::runs::{Run, known};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::rounded;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Advantage,
    needs: &["grad_norm", "groups.flat", "reward.group_std", "reward.std"],
    explains: &[],
    contracts: &[
        ("group-advantage", &["constant-group"]),
        ("policy-loss", &["zero-advantage"]),
        ("policy-update", &["constant-rewards"]),
    ],
    catches: &["noise-normalised"],
    check,
};

/// A gradient that is not rounding.
const CLEARLY: f64 = 1e-3;
/// Or less than this of what signal gives.
const SHARE: f64 = 0.05;

fn check(run: &Run) -> Judgement {
    nothing_else_moves(run)?;
    let without = run.need("grad_norm.without_signal", 5).map_err(|_| {
        insufficient("fewer than 5 rows with a gradient are known to be without signal")
    })?;
    let usual = run.get("grad_norm.with_signal").map_or(0.0, |with| median(&with.values()));
    let norm = median(&without.values());
    let limit = CLEARLY.max(SHARE * usual);
    if norm < limit + run.get("grad_norm").map_or(0.0, |norm| norm.resolution) {
        return Ok(vec![]);
    }
    let found = format!(
        "the median norm of the gradient is {} in {} rows in which no rewards differ, and {} in \
         those with signal",
        rounded(norm),
        without.points(),
        rounded(usual),
    );
    let steps = run.steps_where("grad_norm.without_signal", |bucket| bucket.count > 0);
    Firing::warning(found)
        .at_steps(steps.unwrap_or_default())
        .metric("grad_norm", "median without signal", norm, Some(limit))
        .into()
}

/// Whether it is known that only rewards move the policy.
fn nothing_else_moves(run: &Run) -> Result<(), Unjudged> {
    let kl = known::kl_is_on(run);
    let entropy = known::entropy_is_paid(run);
    let group = known::has_group_baseline(run);
    match (kl, entropy, group) {
        (Some(true), ..) => Err(not_applicable("the KL moves the policy too")),
        (_, Some(true), _) => Err(not_applicable("the entropy moves the policy too")),
        (.., Some(false)) => Err(not_applicable("advantages are not made within groups")),
        _ if known::balances_experts(run) => {
            Err(not_applicable("a router's balance moves the policy too"))
        }
        (Some(false), Some(false), Some(true)) => Ok(()),
        (None, ..) => Err(insufficient("whether the KL has a weight is not known")),
        (_, None, _) => Err(insufficient("whether the entropy has a weight is not known")),
        _ => Err(insufficient("how advantages are made is not known")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{run, severities, status};
    use super::*;
    use crate::report::{RuleStatus, Severity};
    use serde_json::{Value as Json, json};

    const RULE: &str = "gradient-without-signal";

    fn bare() -> [(&'static str, Json); 4] {
        let algorithm = ("algorithm", json!("grpo"));
        [algorithm, ("kl.loss", json!(0)), ("kl.reward", json!(0)), ("entropy.coef", json!(0))]
    }

    fn norms(flat_rows: usize, without: f64) -> Run {
        run(30, |row| match row < flat_rows {
            true => vec![("groups.flat", 1.0), ("grad_norm", without)],
            false => vec![("groups.flat", 0.5), ("grad_norm", 0.4)],
        })
    }

    #[test]
    fn a_twentieth_of_what_signal_gives_is_too_much() {
        let of = |rows, norm| severities(&norms(rows, norm).with(None, &bare()), RULE);
        assert_eq!(of(5, 0.021), [Severity::Warning]);
        assert_eq!(of(5, 0.019), []);
        assert_eq!(status(&norms(4, 0.4).with(None, &bare()), RULE), RuleStatus::Insufficient);
        assert_eq!(of(30, 0.0009), [], "rounding");
    }

    #[test]
    fn what_else_moves_the_policy_excuses_it() {
        let with = |settings: &[(&str, Json)]| {
            status(&norms(20, 0.4).with(None, &bare()).with(None, settings), RULE)
        };
        assert_eq!(with(&[]), RuleStatus::Fires);
        assert_eq!(with(&[("kl.loss", json!(0.01))]), RuleStatus::NotApplicable);
        assert_eq!(with(&[("entropy.coef", json!(0.001))]), RuleStatus::NotApplicable);
        assert_eq!(with(&[("algorithm", json!("gae"))]), RuleStatus::NotApplicable);
        assert_eq!(status(&norms(20, 0.4), RULE), RuleStatus::Insufficient);
        let mut routed = norms(20, 0.4).with(None, &bare());
        routed.unknown.insert("train/aux_loss".to_owned());
        assert_eq!(status(&routed, RULE), RuleStatus::NotApplicable);
    }
}
