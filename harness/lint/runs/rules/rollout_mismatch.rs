//! The engine that samples and the trainer disagree about probabilities.
//!
//! ### Fires when
//! At the end the mean difference of probabilities is 0.01 or more (0.05: error), that of
//! log-probabilities 0.05 (0.2), the KL between both 0.01 (0.1), the mean factor 1.05 (1.2), their
//! correlation 0.98 or less (0.9), or, where none of these is logged, the mean importance weight
//! more than 0.1 away from 1: weights of whole completions multiply what tokens differ by. A
//! correlation counts only where probabilities differ too, as far as that is logged: near-certain
//! tokens scarcely scatter.
//!
//! ### Not said
//! Which of both is right.
//!
//! ### Causes
//! - the engine computes in other precision, above all at the last layer
//! - sampling with a temperature or with filters that the trainer does not apply
//! - other weights, or another template, in the engine
//! - routing of experts that differs between both
//!
//! ### Next
//! - shakedown check --stage log-probability
//! - shakedown check --stage decoding
//! - compute the last layer in float32, or correct with importance weights
//!
//! ### Source
//! verl's documentation calls 0.005 usual, NeMo-RL's a factor below 1.05; on the correction
//! <https://fengyao.notion.site/off-policy-rl>.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::mismatch::{Measured, measured};
use crate::runs::statistics::short;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::LogProbability,
    needs: &["mismatch.prob", "mismatch.logp", "mismatch.kl", "mismatch.ratio", "mismatch.corr"],
    explains: &["kl-explodes", "gradient-explodes", "reward-collapses", "update-too-large"],
    contracts: &[
        ("token-log-probs", &["log-ratio-of-tokens", "probabilities-sum-to-one"]),
        ("importance-weights", &["direction", "mismatch-kl"]),
        ("sampling-filter", &["plain-softmax", "units-of-the-temperature", "kept-log-ratios"]),
    ],
    catches: &["engine-differs"],
    check,
};

fn check(run: &Run) -> Judgement {
    let all = measured(run, 3);
    if all.is_empty() {
        return Err(insufficient("the run does not compare the engine with the trainer"));
    }
    let probabilities = all.iter().find(|one| one.measure.id == "mismatch.prob");
    let agree = probabilities.is_some_and(|one| one.distance.last < one.measure.limits[0] / 2.0);
    let counts = |one: &&Measured| one.measure.id != "mismatch.corr" || !agree;
    let mut away: Vec<&Measured> =
        all.iter().filter(counts).filter(|one| times(one) >= 1.0).collect();
    away.sort_by(|a, b| (severe(b), times(b)).partial_cmp(&(severe(a), times(a))).expect("finite"));
    let Some(worst) = away.first() else { return Ok(vec![]) };
    let found = format!(
        "{} is {} at the end, beyond {}",
        worst.measure.name,
        short(worst.value(worst.distance.last)),
        short(worst.value(limit(worst))),
    );
    let firing = if severe(worst) { Firing::error(found) } else { Firing::warning(found) };
    let firing = firing.at_steps(worst.steps(run, limit(worst)));
    let evidence = |firing: Firing, one: &&Measured| {
        let limit = one.value(limit(one));
        firing.metric(one.measure.id, "last", one.value(one.distance.last), Some(limit))
    };
    away.iter().fold(firing, evidence).into()
}

/// The limit that it passed, or the first.
fn limit(one: &Measured) -> f64 {
    one.measure.limits[usize::from(severe(one))]
}

fn severe(one: &Measured) -> bool {
    one.distance.last - one.resolution >= one.measure.limits[1]
}

/// How many times the first limit its distance certainly is; a hair less counts, as 1.05 − 1 is.
fn times(one: &Measured) -> f64 {
    (one.distance.last - one.resolution) / one.measure.limits[0] + 1e-9
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{always, noise, run, run_rounded, said, scatter};

    const RULE: &str = "rollout-mismatch";

    fn level(id: &str, value: f64, seed: u64) -> Run {
        run(40, &[(id, &|i| value * scatter(seed, i, 0.01))])
    }

    #[test]
    fn each_measure_has_its_limits() {
        let limits = [
            ("mismatch.prob", 0.02, 0.08),
            ("mismatch.logp", 0.08, 0.4),
            ("mismatch.kl", 0.03, 0.3),
            ("mismatch.kl", -0.03, -0.3),
            ("mismatch.ratio", 1.1, 1.4),
            ("mismatch.corr", 0.95, 0.8),
        ];
        for (id, warning, error) in limits {
            always("warning", RULE, |seed| level(id, warning, seed));
            always("error", RULE, |seed| level(id, error, seed));
        }
        always("warning", RULE, |seed| level("weights.mean", 1.3, seed));
        always("warning", RULE, |seed| level("weights.mean", 0.3, seed));
        assert_eq!(said(&run(3, &[("mismatch.ratio", &|_| 1.05)]), RULE), "warning");
    }

    #[test]
    fn engines_as_they_are_do_not_count() {
        always("quiet", RULE, |seed| {
            let prob = |i: usize| 0.004 * scatter(seed, i, 0.3);
            let kl = |i: usize| 0.004 * noise(seed, i);
            let weight = |i: usize| 1.0 + 0.15 * noise(seed, i + 700);
            let corr = |_: usize| 0.97;
            let columns: [(&str, &dyn Fn(usize) -> f64); 4] = [
                ("mismatch.prob", &prob),
                ("mismatch.kl", &kl),
                ("weights.mean", &weight),
                ("mismatch.corr", &corr),
            ];
            run(150, &columns)
        });
        let once = |i: usize| if i == 39 { 0.5 } else { 0.003 };
        assert_eq!(said(&run(40, &[("mismatch.prob", &once)]), RULE), "quiet");
        assert_eq!(said(&run_rounded(9, 0.005, &[("mismatch.prob", &|_| 0.01)]), RULE), "quiet");
    }

    #[test]
    fn weights_of_whole_completions_do_not_count_beside_a_measure_of_tokens() {
        always("quiet", RULE, |seed| {
            let logp = |i: usize| 0.009 * scatter(seed, i, 0.3);
            let weight = |i: usize| 0.86 * scatter(seed, i, 0.1);
            run(40, &[("mismatch.logp", &logp), ("weights.mean", &weight)])
        });
    }

    #[test]
    fn it_needs_a_comparison() {
        assert_eq!(said(&run(2, &[("mismatch.prob", &|_| 0.5)]), RULE), "insufficient");
        assert_eq!(said(&run(40, &[("loss", &|_| 0.5)]), RULE), "insufficient");
    }
}
