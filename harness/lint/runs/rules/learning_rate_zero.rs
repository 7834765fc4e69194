//! Nothing is learnt, because the learning rate is 0.
//!
//! ### Fires when
//! The learning rate is exactly 0 in all of at least three rows, or in the last tenth of them,
//! three at least. Zeros that a log rounded to are none: `0.000` may be 1e-6.
//!
//! ### Not said
//! Anything of a last row at 0: so schedules end, and so a warm-up begins.
//!
//! ### Causes
//! - the schedule is shorter than the run
//! - the scheduler is stepped once per micro-batch or process, and ends too early
//! - no parameters are in the optimiser
//!
//! ### Next
//! - shakedown check-config FILE
//! - print the schedule's length beside the number of optimiser steps
//!
//! ### Source
//! A step of length 0 changes nothing.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::series::Series;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Update,
    needs: &["lr"],
    explains: &["reward-flat", "kl-zero", "preference-not-moving"],
    contracts: &[("policy-update", &["expected-reward-rises", "more-steps"])],
    catches: &["schedule-short"],
    check,
};

/// Fewer rows may be the end of a schedule, or the beginning of a warm-up.
const FEW: usize = 3;

fn check(run: &Run) -> Judgement {
    let lr = run.need("lr", FEW)?;
    let rates = lr.values();
    let zeros = rates.iter().rev().take_while(|rate| **rate == 0.0).count();
    if zeros < FEW.max(rates.len().div_ceil(10)) {
        return Ok(vec![]);
    }
    if is_rounded(lr) {
        return Err(insufficient("the learning rate is logged with too few digits"));
    }
    let found = match zeros == rates.len() {
        true => format!("the learning rate is 0 in all of {zeros} rows"),
        false => format!("the learning rate is 0 in the last {zeros} of {} rows", rates.len()),
    };
    let steps = run.steps_from("lr", rates.len() - zeros);
    let firing = Firing::error(found).at_steps(steps);
    firing.metric("lr", "rows at 0", zeros as f64, None).into()
}

/// Whether a small rate would be written as 0: not where one was written that is smaller than what
/// rounding to so few digits leaves.
fn is_rounded(lr: &Series) -> bool {
    let small = |rate: f64| rate != 0.0 && rate.abs() < lr.resolution;
    lr.resolution > 0.0 && !lr.values().into_iter().any(small)
}

#[cfg(test)]
mod tests {
    use crate::runs::Run;
    use crate::runs::rules::trial2::{run, run_rounded, said, steps};

    const RULE: &str = "learning-rate-zero";

    fn rates(rows: usize, of: &dyn Fn(usize) -> f64) -> Run {
        run(rows, &[("lr", of)])
    }

    /// Warm-up to 1e-6 in so many rows, then linear decay, 0 in the last row of so many.
    fn schedule(warm_up: usize, rows: usize) -> impl Fn(usize) -> f64 {
        move |i| {
            let up = i as f64 / warm_up as f64;
            let down = (rows - 1).saturating_sub(i) as f64 / (rows - 1 - warm_up) as f64;
            1e-6 * up.min(down).min(1.0)
        }
    }

    #[test]
    fn a_rate_of_zero_is_found() {
        assert_eq!(said(&rates(3, &|_| 0.0), RULE), "error");
        assert_eq!(said(&rates(100, &schedule(10, 80)), RULE), "error");
        assert_eq!(steps(&rates(100, &schedule(10, 80)), RULE), Some([7 * 79 + 3, 7 * 99 + 3]));
    }

    #[test]
    fn schedules_that_end_with_the_run_are_healthy() {
        assert_eq!(said(&rates(100, &schedule(10, 100)), RULE), "quiet");
        let cosine = |i: usize| 5e-7 * (1.0 + (std::f64::consts::PI * i as f64 / 199.0).cos());
        assert_eq!(said(&rates(200, &cosine), RULE), "quiet");
        assert_eq!(said(&rates(60, &|i| if i < 5 { 0.0 } else { 1e-6 }), RULE), "quiet");
        assert_eq!(said(&rates(100, &|i| if i < 95 { 1e-6 } else { 0.0 }), RULE), "quiet");
        assert_eq!(said(&rates(2, &|_| 0.0), RULE), "insufficient");
    }

    #[test]
    fn zeros_that_a_console_rounded_to_say_nothing() {
        assert_eq!(said(&run_rounded(50, 5e-4, &[("lr", &|_| 1e-6)]), RULE), "insufficient");
        // A log that writes 1e-06 and then 0.0 means 0.
        let mut exact = rates(50, &|i| if i < 30 { 1e-6 } else { 0.0 });
        exact.series.entry("lr".to_owned()).and_modify(|lr| lr.resolution = 0.05);
        assert_eq!(said(&exact, RULE), "error");
    }
}
