//! The policy runs away from the reference.
//!
//! ### Fires when
//! The last KL to the reference is above half a nat per token, and three times its median after the
//! first tenth of the run; an error where it is above five nats, wherever it was before. A sum over
//! completions counts where the mean length is logged with it.
//!
//! ### Not said
//! That KL must stay small: growth below half a nat per token is how a policy learns.
//!
//! ### Causes
//! - the learning rate is too high
//! - the sign or the weight of the KL in the loss
//! - the engine that samples disagrees with the trainer
//! - many passes over one batch
//!
//! ### Next
//! - shakedown check --stage loss
//! - shakedown check --stage log-probability
//! - halve the learning rate, or raise the weight of the KL
//!
//! ### Source
//! A token that is half a nat away has its probability changed by a factor of 1.6 on average; at
//! five nats little is left of the reference.

use std::collections::BTreeMap;

use crate::rules::{Firing, Head, Judgement, Unjudged, insufficient};
use crate::runs::Run;
use crate::runs::statistics::{Statistics, TREND_POINTS, median, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Loss,
    needs: &["kl.ref"],
    explains: &["reward-collapses"],
    contracts: &[
        ("kl-estimate", &["direction", "non-negative", "within-the-clamp"]),
        ("policy-loss", &["kl-raises-the-loss", "pulls-towards-the-reference"]),
    ],
    catches: &["rate-too-high"],
    check,
};

/// Nats per token that are worth a look, and that are too many at any time.
const LIMITS: [f64; 2] = [0.5, 5.0];

fn check(run: &Run) -> Judgement {
    let (id, kl) = per_token(run)?;
    let tenth = kl.n().div_ceil(10).min(kl.n() - 1);
    let usual = median(&kl.values[tenth..]).abs();
    let last = kl.last.abs();
    let grows = kl.n() >= TREND_POINTS && last > LIMITS[0] && last >= 3.0 * usual;
    if last > LIMITS[1] {
        let found = format!("the KL to the reference is {} nats per token at the end", short(last));
        let steps = from(run, id, &kl, LIMITS[1]);
        return Firing::error(found)
            .at_steps(steps)
            .metric(id, "last", last, Some(LIMITS[1]))
            .into();
    }
    if grows {
        let times = short(last / usual);
        let found = format!(
            "the KL to the reference ends at {} nats per token, {times} times its median of {}",
            short(last),
            short(usual),
        );
        let limit = LIMITS[0].max(3.0 * usual);
        let steps = from(run, id, &kl, limit);
        return Firing::warning(found).at_steps(steps).metric(id, "last", last, Some(limit)).into();
    }
    match kl.n() {
        few if few < TREND_POINTS => {
            Err(insufficient(format!("{id} has {few} values, {TREND_POINTS} are needed")))
        }
        _ => Ok(vec![]),
    }
}

/// The KL of a token: as it is logged, or a sum over completions divided by their mean length.
fn per_token(run: &Run) -> Result<(&'static str, Statistics), Unjudged> {
    if run.get("kl.ref").is_some() || run.get("kl.ref.seq").is_none() {
        return Ok(("kl.ref", run.figures("kl.ref", 3)?));
    }
    let sums = run.need("kl.ref.seq", 3)?;
    let lengths = run.get("length.mean").ok_or_else(|| {
        insufficient("the KL is a sum over completions, and their length is not logged")
    })?;
    let lengths: BTreeMap<u64, f64> = lengths.finite().map(|row| (row.index, row.mean)).collect();
    let length = |index| lengths.get(index).filter(|length| **length >= 1.0);
    let values = sums.finite().filter_map(|row| Some(row.mean / length(&row.index)?)).collect();
    let figures = Statistics::of_values(values).filter(|figures| figures.n() >= 3);
    let few = || insufficient("fewer than 3 rows have a KL and a length");
    Ok(("kl.ref.seq", figures.ok_or_else(few)?))
}

/// The steps from the first row with a KL above a limit to the end.
fn from(run: &Run, id: &str, kl: &Statistics, limit: f64) -> [i64; 2] {
    let at = kl.values.iter().position(|value| value.abs() > limit).unwrap_or(0);
    run.steps_from(id, at)
}

#[cfg(test)]
mod tests {
    use crate::runs::rules::trial2::{always, noise, run, said, scatter, steps};

    const RULE: &str = "kl-explodes";

    #[test]
    fn growth_that_speeds_up_is_found() {
        let kl = |i: usize| 0.002 * (i as f64 * 0.06).exp();
        always("warning", RULE, |seed| run(120, &[("kl.ref", &|i| kl(i) * scatter(seed, i, 0.3))]));
        always("error", RULE, |seed| run(160, &[("kl.ref", &|i| kl(i) * scatter(seed, i, 0.3))]));
    }

    #[test]
    fn slow_growth_a_high_level_and_a_k1_around_zero_are_no_explosion() {
        let linear = |i: usize| 0.006 * i as f64;
        always("quiet", RULE, |seed| {
            run(150, &[("kl.ref", &|i| linear(i) + 0.02 * noise(seed, i))])
        });
        always("quiet", RULE, |seed| run(60, &[("kl.ref", &|i| 0.8 * scatter(seed, i, 0.4))]));
        always("quiet", RULE, |seed| run(200, &[("kl.ref", &|i| 0.3 * noise(seed, i))]));
        let below = |i: usize| 0.001 * (i as f64 * 0.05).exp();
        always("quiet", RULE, |seed| {
            run(120, &[("kl.ref", &|i| below(i) * scatter(seed, i, 0.1))])
        });
    }

    #[test]
    fn it_begins_where_the_limit_is_passed() {
        let kl = run(100, &[("kl.ref", &|i| if i < 80 { 0.1 } else { 9.0 })]);
        assert_eq!(steps(&kl, RULE), Some([7 * 80 + 3, 7 * 99 + 3]));
    }

    #[test]
    fn a_sum_is_divided_by_the_length() {
        let sum = |i: usize| 30.0 + i as f64 * 0.01;
        let length = |_: usize| 200.0;
        assert_eq!(said(&run(60, &[("kl.ref.seq", &sum)]), RULE), "insufficient");
        let both = run(60, &[("kl.ref.seq", &sum), ("length.mean", &length)]);
        assert_eq!(said(&both, RULE), "quiet");
        let short = run(60, &[("kl.ref.seq", &sum), ("length.mean", &|_| 5.0)]);
        assert_eq!(said(&short, RULE), "error");
    }

    #[test]
    fn few_rows_tell_only_of_what_no_run_may_have() {
        assert_eq!(said(&run(10, &[("kl.ref", &|_| 0.7)]), RULE), "insufficient");
        assert_eq!(said(&run(10, &[("kl.ref", &|_| 7.0)]), RULE), "error");
        assert_eq!(said(&run(2, &[("kl.ref", &|_| 7.0)]), RULE), "insufficient");
    }
}
