//! One batch changes the policy too much.
//!
//! ### Fires when
//! The KL of the policy to the one that sampled has a median magnitude above 0.05 nats per token in
//! the tail, an error above 0.3; or is above 0.3 in a tenth of at least 20 rows.
//!
//! ### Not said
//! Which of the updates was too large: the log has one number for all updates of a batch.
//!
//! ### Causes
//! - the learning rate is too high
//! - too many passes over one batch
//! - completions of an earlier policy, or of an engine that disagrees with the trainer
//!
//! ### Next
//! - shakedown check --stage log-probability
//! - halve the learning rate, or take one pass over a batch
//!
//! ### Source
//! The ratio is clipped at 20 % as a rule, and 0.05 nats are what a change of all ratios by 30 %
//! gives.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement};
use crate::runs::Run;
use crate::runs::statistics::{Statistics, TREND_POINTS, median, quantile, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Update,
    needs: &["kl.old"],
    explains: &[],
    contracts: &[(
        "token-log-probs",
        &["log-ratio-of-tokens", "probabilities-sum-to-one", "position-local"],
    )],
    catches: &["rate-too-high"],
    check,
};

/// Nats per token that are a warning, and an error.
const LIMITS: [f64; 2] = [0.05, 0.3];

fn check(run: &Run) -> Judgement {
    let kl = run.figures("kl.old", 5)?;
    let sizes = |values: &[f64]| values.iter().map(|kl| kl.abs()).collect::<Vec<f64>>();
    let tail = median(&sizes(kl.tail()));
    let limit = if tail > LIMITS[1] { LIMITS[1] } else { LIMITS[0] };
    if tail > limit {
        let found =
            format!("at the end a batch moves the policy by {} nats per token", short(tail));
        let severity = if tail > LIMITS[1] { Severity::Error } else { Severity::Warning };
        let firing = Firing::new(severity, found);
        return at(run, limit, firing.metric("kl.old", "median of the tail", tail, Some(limit)));
    }
    large_at_times(run, &kl, &sizes(&kl.values))
}

fn large_at_times(run: &Run, kl: &Statistics, sizes: &[f64]) -> Judgement {
    let high = quantile(sizes, 0.9);
    if kl.n() < TREND_POINTS || high <= LIMITS[1] {
        return Ok(vec![]);
    }
    let found = format!("one batch in ten moves the policy by {} nats per token", short(high));
    let firing = Firing::warning(found);
    at(run, LIMITS[1], firing.metric("kl.old", "90th percentile", high, Some(LIMITS[1])))
}

fn at(run: &Run, limit: f64, firing: Firing) -> Judgement {
    let steps = run.steps_where("kl.old", |row| row.mean.abs() > limit).unwrap_or_default();
    firing.at_steps(steps).into()
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{always, noise, run, said, scatter};

    const RULE: &str = "update-too-large";

    fn moves(rows: usize, nats: f64, seed: u64) -> Run {
        run(rows, &[("kl.old", &|i| nats * scatter(seed, i, 0.2))])
    }

    #[test]
    fn large_updates_are_found() {
        always("warning", RULE, |seed| moves(60, 0.1, seed));
        always("error", RULE, |seed| moves(60, 0.8, seed));
        always("error", RULE, |seed| moves(60, -0.8, seed));
        let at_times = |i: usize| if i.is_multiple_of(6) { 0.9 } else { 0.01 };
        assert_eq!(said(&run(60, &[("kl.old", &at_times)]), RULE), "warning");
    }

    #[test]
    fn usual_updates_are_left_alone() {
        always("quiet", RULE, |seed| moves(60, 0.002, seed));
        always("quiet", RULE, |seed| moves(60, 0.03, seed));
        always("quiet", RULE, |seed| run(100, &[("kl.old", &|i| 2e-4 * noise(seed, i))]));
        let rare = |i: usize| if i == 58 { 2.0 } else { 0.001 };
        assert_eq!(said(&run(60, &[("kl.old", &rare)]), RULE), "quiet");
        assert_eq!(said(&moves(4, 1.0, 1), RULE), "insufficient");
    }
}
