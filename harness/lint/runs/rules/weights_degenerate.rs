//! Importance weights rest on a few tokens, or throw many away.
//!
//! ### Fires when
//! At the end the effective sample size is below 0.3 of the tokens, or more than 0.2 of them are
//! masked or cut by the correction.
//!
//! ### Not said
//! That the correction is wrong: it shows how far the engine is from the trainer.
//!
//! ### Causes
//! - the engine that samples disagrees with the trainer
//! - rollouts that are many updates old
//! - weights of whole sequences, where those of tokens are meant
//! - bounds that are too tight
//!
//! ### Next
//! - shakedown check --stage log-probability
//! - use fresher rollouts, or weights of tokens with an upper bound
//!
//! ### Source
//! <https://fengyao.notion.site/off-policy-rl> on truncated importance weights.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::statistics::short;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Loss,
    needs: &["weights.ess", "weights.dropped"],
    explains: &[],
    contracts: &[
        ("importance-weights", &["within-bounds", "clip-fraction", "constant-gap"]),
        ("token-log-probs", &["log-ratio-of-tokens"]),
    ],
    catches: &["weights-heavy"],
    check,
};

/// The least effective share of the tokens, and the largest share that may be dropped.
const LIMITS: [f64; 2] = [0.3, 0.2];

fn check(run: &Run) -> Judgement {
    let last = |id: &str| run.statistics(id).filter(|of| of.n() >= 3).map(|of| of.last);
    let (effective, dropped) = (last("weights.ess"), last("weights.dropped"));
    if effective.is_none() && dropped.is_none() {
        return Err(insufficient("neither sizes of samples nor dropped tokens are logged"));
    }
    if let Some(share) = effective.filter(|share| *share < LIMITS[0]) {
        let steps = run.steps_where("weights.ess", |row| row.mean < LIMITS[0]).unwrap_or_default();
        let found = format!("the effective sample size is {} of the tokens", short(share));
        let firing = Firing::warning(found).at_steps(steps);
        return firing.metric("weights.ess", "last", share, Some(LIMITS[0])).into();
    }
    if let Some(share) = dropped.filter(|share| *share > LIMITS[1]) {
        let steps = run.steps_where("weights.dropped", |row| row.mean > LIMITS[1]);
        let found = format!("the correction drops or cuts {} of the tokens", short(share));
        let firing = Firing::warning(found).at_steps(steps.unwrap_or_default());
        return firing.metric("weights.dropped", "last", share, Some(LIMITS[1])).into();
    }
    Ok(vec![])
}

#[cfg(test)]
mod tests {
    use crate::runs::rules::trial2::{always, run, said, scatter};

    const RULE: &str = "weights-degenerate";

    #[test]
    fn few_effective_tokens_and_many_dropped_ones_are_found() {
        always("warning", RULE, |seed| {
            run(40, &[("weights.ess", &|i| 0.1 * scatter(seed, i, 0.3))])
        });
        always("warning", RULE, |seed| {
            run(40, &[("weights.dropped", &|i| 0.4 * scatter(seed, i, 0.1))])
        });
    }

    #[test]
    fn usual_weights_are_left_alone() {
        always("quiet", RULE, |seed| {
            let ess = |i: usize| 0.9 * scatter(seed, i, 0.05);
            run(40, &[("weights.ess", &ess), ("weights.dropped", &|_| 0.01)])
        });
        assert_eq!(said(&run(40, &[("weights.ess", &|_| 0.3)]), RULE), "quiet");
        assert_eq!(said(&run(40, &[("weights.dropped", &|_| 0.2)]), RULE), "quiet");
        assert_eq!(said(&run(2, &[("weights.ess", &|_| 0.01)]), RULE), "insufficient");
    }
}
