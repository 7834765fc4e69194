//! The weight of the KL holds the policy at the reference.
//!
//! ### Fires when
//! The KL to the reference ends below 0.02 nats per token, though not at exactly 0, and its weight
//! is 1 or more, or 0.1 or more while the reward does not rise in 50 rows.
//!
//! ### Not said
//! That the task is learnt without the KL: only that the policy could not move to try.
//!
//! ### Causes
//! - the weight of the KL is too large for these rewards
//! - the KL is counted twice, in the reward and in the loss
//! - the KL is summed where a mean is meant
//!
//! ### Next
//! - shakedown check --stage loss
//! - shakedown check --stage update
//! - divide the weight of the KL by ten, or set it to 0 for a short run
//!
//! ### Source
//! At an optimum the KL is about the reward to be gained divided by twice the weight: rewards of
//! one per completion leave little room under a weight of 0.1 per token.

use crate::rules::{Firing, Head, Judgement, Unjudged, insufficient, not_applicable};
use crate::runs::Run;
use crate::runs::statistics::{TREND_POINTS, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Loss,
    needs: &["kl.ref", "kl.loss"],
    explains: &["reward-flat"],
    contracts: &[("policy-loss", &["kl-unscaled"]), ("policy-update", &["closer-with-beta"])],
    catches: &["beta-huge"],
    check,
};

/// Weights that hold a policy where the reward does not rise, and wherever it goes.
const WEIGHTS: [f64; 2] = [0.1, 1.0];

/// Nats per token: a policy that is closer has not moved.
const CLOSE: f64 = 0.02;

/// How many rewards show that they do not rise.
const FLAT_POINTS: usize = 50;

fn check(run: &Run) -> Judgement {
    let weight = weight(run)?;
    if weight < WEIGHTS[0] {
        return Err(not_applicable("the weight of the KL is small or 0"));
    }
    let series = run.need("kl.ref", TREND_POINTS)?;
    let kl = run.figures("kl.ref", TREND_POINTS)?;
    let is_close = kl.last.abs() + series.resolution <= CLOSE;
    // A KL that is exactly 0 is held by nothing: there the policy is the reference.
    if !is_close || series.is_constant() {
        return Ok(vec![]);
    }
    let mut why = String::new();
    if weight < WEIGHTS[1] {
        let reward = run.figures("reward.mean", FLAT_POINTS)?;
        if reward.rises() || run.is_solved() {
            return Ok(vec![]);
        }
        why = format!(", and the reward does not rise in {} rows", reward.n());
    }
    let (last, shown) = (kl.last.abs(), short(kl.last.abs()));
    let found = format!("with a weight of {weight} the KL ends at {shown} nats per token{why}");
    let setting = SETTINGS.into_iter().find(|id| run.settings.number(id) == Some(weight));
    let text = format!("the weight of the KL is {weight}");
    let steps = run.steps_from("kl.ref", 0);
    Firing::warning(found)
        .at_steps(steps)
        .metric("kl.ref", "last", last, Some(CLOSE))
        .because(setting, text)
        .into()
}

const SETTINGS: [&str; 2] = ["kl.loss", "kl.reward"];

/// The weight of the KL: what the run logs of it, else what was set.
fn weight(run: &Run) -> Result<f64, Unjudged> {
    let logged = run.statistics("kl.coef").map(|weight| weight.last);
    let set = || SETTINGS.iter().filter_map(|id| run.settings.number(id)).reduce(f64::max);
    logged.or_else(set).ok_or_else(|| insufficient("the weight of the KL is not known"))
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{always, noise, run, said, scatter, set};

    const RULE: &str = "pinned-to-reference";

    fn pinned(rows: usize, kl: f64, slope: f64, seed: u64) -> Run {
        let kl = |i: usize| kl * scatter(seed, i, 0.2);
        let reward = |i: usize| 0.3 + slope * i as f64 + 0.05 * noise(seed, i);
        run(rows, &[("kl.ref", &kl), ("reward.mean", &reward)])
    }

    #[test]
    fn a_policy_that_may_not_move_is_found() {
        always("warning", RULE, |seed| set(pinned(80, 0.003, 0.0, seed), "kl.loss", 0.2));
        always("warning", RULE, |seed| set(pinned(25, 0.003, 0.01, seed), "kl.reward", 2.0));
        let coef = |rows: usize| {
            run(rows, &[("kl.ref", &|i| 1e-3 + i as f64 * 1e-6), ("kl.coef", &|_| 1.5)])
        };
        assert_eq!(said(&coef(30), RULE), "warning");
    }

    #[test]
    fn usual_weights_and_policies_that_move_or_learn_are_left_alone() {
        always("not applicable", RULE, |seed| set(pinned(80, 0.003, 0.0, seed), "kl.loss", 0.04));
        always("quiet", RULE, |seed| set(pinned(80, 0.003, 0.01, seed), "kl.loss", 0.2));
        always("quiet", RULE, |seed| set(pinned(80, 0.2, 0.0, seed), "kl.loss", 0.2));
        let shared = run(80, &[("kl.ref", &|_| 0.0), ("reward.mean", &|i| noise(1, i))]);
        assert_eq!(said(&set(shared, "kl.loss", 1.0), RULE), "quiet");
    }

    #[test]
    fn too_little_is_known() {
        assert_eq!(said(&pinned(80, 0.003, 0.0, 1), RULE), "insufficient");
        assert_eq!(said(&set(pinned(19, 0.003, 0.0, 1), "kl.loss", 1.0), RULE), "insufficient");
        assert_eq!(said(&set(pinned(49, 0.003, 0.0, 1), "kl.loss", 0.2), RULE), "insufficient");
    }
}
