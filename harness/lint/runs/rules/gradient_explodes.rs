//! The gradient grows without end.
//!
//! ### Fires when
//! The gradient's norm ends at 10 times its first level or more, and grows on the way; an error at
//! 100 times. Rows without a signal do not count, and it may grow as the signal does: by as much as
//! the share of groups that are not flat.
//!
//! ### Not said
//! That a large norm is harm: its unit depends on the model and on how losses are summed.
//!
//! ### Causes
//! - the learning rate is too high
//! - the engine that samples disagrees with the trainer
//! - gradients are not clipped
//!
//! ### Next
//! - shakedown check --stage loss
//! - halve the learning rate, and clip gradients at a norm of 1
//!
//! ### Source
//! trl#2980, and what verl's documentation says of runs that diverge.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::gradient::{signal_growth, with_signal};
use crate::runs::statistics::{Statistics, TREND_POINTS, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Update,
    needs: &["grad_norm"],
    explains: &[],
    contracts: &[
        ("policy-loss", &["gradient-against-the-advantage", "on-policy-gradient"]),
        ("policy-update", &["one-step", "tiny-learning-rate"]),
    ],
    catches: &["rate-too-high"],
    check,
};

/// How many times the first level is a warning, and an error.
const LIMITS: [f64; 2] = [10.0, 100.0];

fn check(run: &Run) -> Judgement {
    let series = with_signal(run, TREND_POINTS)?;
    let none = || insufficient("grad_norm has no finite value");
    let norm = Statistics::of(series).ok_or_else(none)?;
    let first = norm.first + run.series["grad_norm"].resolution;
    if first <= 0.0 {
        return Err(insufficient("the gradient is 0 at first"));
    }
    let expected = first * signal_growth(run).max(1.0);
    let times = norm.last / expected;
    if times < LIMITS[0] || norm.tau < 0.2 {
        return Ok(vec![]);
    }
    let found = format!(
        "the gradient's norm grows from {} to {}, {} times what it was",
        short(norm.first),
        short(norm.last),
        short(norm.last / first),
    );
    let is_severe = times >= LIMITS[1];
    let limit = expected * if is_severe { LIMITS[1] } else { LIMITS[0] };
    let steps = run.steps_where("grad_norm", |row| row.mean >= limit).unwrap_or_default();
    let firing = if is_severe { Firing::error(found) } else { Firing::warning(found) };
    firing
        .at_steps(steps)
        .metric("grad_norm", "last", norm.last, Some(limit))
        .metric("grad_norm", "tau", norm.tau, Some(0.2))
        .into()
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{always, run, said, scatter};

    const RULE: &str = "gradient-explodes";

    fn grows(rows: usize, from: f64, to: f64, seed: u64) -> Run {
        let norm = |i: usize| from * (to / from).powf(i as f64 / rows as f64);
        run(rows, &[("grad_norm", &|i| norm(i) * scatter(seed, i, 0.3))])
    }

    #[test]
    fn growth_without_end_is_found() {
        always("warning", RULE, |seed| grows(120, 0.3, 12.0, seed));
        always("error", RULE, |seed| grows(120, 0.3, 300.0, seed));
    }

    #[test]
    fn gradients_that_grow_a_little_scatter_or_fall_are_left_alone() {
        always("quiet", RULE, |seed| grows(120, 0.3, 1.2, seed));
        always("quiet", RULE, |seed| grows(120, 0.3, 0.1, seed));
        always("quiet", RULE, |seed| run(200, &[("grad_norm", &|i| scatter(seed, i, 1.0))]));
        let late = |i: usize| if i == 97 || i == 99 { 80.0 } else { 0.5 };
        assert_eq!(said(&run(100, &[("grad_norm", &late)]), RULE), "quiet");
    }

    #[test]
    fn a_gradient_grows_as_rare_rewards_become_frequent() {
        always("quiet", RULE, |seed| {
            let mixed = |i: usize| 0.02 + 0.5 * (i as f64 / 120.0);
            let flat = |i: usize| 1.0 - mixed(i);
            let norm = |i: usize| mixed(i) * scatter(seed, i, 0.2);
            run(120, &[("groups.flat", &flat), ("grad_norm", &norm)])
        });
    }

    #[test]
    fn zeros_and_few_rows_have_no_level_to_compare() {
        let late = |i: usize| if i < 40 { 0.0 } else { 1.0 };
        assert_eq!(said(&run(100, &[("grad_norm", &late)]), RULE), "insufficient");
        assert_eq!(said(&grows(19, 0.1, 90.0, 1), RULE), "insufficient");
    }
}
