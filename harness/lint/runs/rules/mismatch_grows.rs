//! The engine that samples drifts away from the trainer.
//!
//! ### Fires when
//! A measure of their difference rises, doubles at least, and ends at half the limit of
//! `rollout-mismatch` or more.
//!
//! ### Not said
//! That the engine computes wrongly: both may have agreed at first.
//!
//! ### Causes
//! - weights are not sent to the engine after each update, or not all of them
//! - caches of the engine that outlive an update
//! - the policy moves to tokens at which precision matters
//!
//! ### Next
//! - compare the log-probabilities of both right after weights are sent
//! - shakedown check --stage log-probability
//!
//! ### Source
//! verl#6780.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::mismatch::{Measured, measured};
use crate::runs::statistics::{TREND_POINTS, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::LogProbability,
    needs: &["mismatch.prob", "mismatch.logp", "mismatch.kl", "mismatch.ratio", "mismatch.corr"],
    explains: &["kl-explodes", "gradient-explodes", "reward-collapses", "update-too-large"],
    contracts: &[("token-log-probs", &["log-ratio-of-tokens"])],
    catches: &["weights-not-synchronised"],
    check,
};

fn check(run: &Run) -> Judgement {
    let all = measured(run, TREND_POINTS);
    if all.is_empty() {
        return Err(insufficient("too few rows compare the engine with the trainer"));
    }
    let times = |one: &Measured| one.distance.last / one.measure.limits[0];
    let growing = all.iter().filter(|one| grows(one));
    let Some(worst) = growing.max_by(|a, b| times(a).total_cmp(&times(b))) else {
        return Ok(vec![]);
    };
    let (first, last) = (worst.value(worst.distance.first), worst.value(worst.distance.last));
    let found = format!("{} goes from {} to {}", worst.measure.name, short(first), short(last));
    let limit = least(worst);
    Firing::warning(found)
        .at_steps(worst.steps(run, limit))
        .metric(worst.measure.id, "last", last, Some(worst.value(limit)))
        .metric(worst.measure.id, "tau", worst.side * worst.distance.tau, None)
        .into()
}

fn grows(one: &Measured) -> bool {
    let last = one.distance.last - one.resolution;
    one.distance.rises() && one.distance.tau >= 0.3 && last >= least(one)
}

/// The least distance at the end: twice the first, and half the limit of a warning.
fn least(one: &Measured) -> f64 {
    (2.0 * one.distance.first).max(one.measure.limits[0] / 2.0)
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{always, noise, run, said, scatter};

    const RULE: &str = "mismatch-grows";

    fn drifts(rows: usize, [from, to]: [f64; 2], seed: u64) -> Run {
        let prob = |i: usize| from + (to - from) * i as f64 / rows as f64;
        run(rows, &[("mismatch.prob", &|i| prob(i) * scatter(seed, i, 0.1))])
    }

    #[test]
    fn a_drift_is_found() {
        always("warning", RULE, |seed| drifts(60, [0.001, 0.02], seed));
        always("warning", RULE, |seed| {
            run(60, &[("mismatch.corr", &|i| 0.999 - 0.001 * i as f64 + 1e-4 * noise(seed, i))])
        });
    }

    #[test]
    fn a_level_and_a_drift_of_little_are_left_alone() {
        always("quiet", RULE, |seed| drifts(60, [0.02, 0.02], seed));
        always("quiet", RULE, |seed| drifts(60, [0.001, 0.004], seed));
        always("quiet", RULE, |seed| drifts(60, [0.004, 0.006], seed));
        always("quiet", RULE, |seed| run(25, &[("weights.mean", &|i| 1.0 + 0.1 * noise(seed, i))]));
        assert_eq!(said(&drifts(19, [0.001, 0.05], 1), RULE), "insufficient");
    }
}
