//! Training on preferences stays where it began.
//!
//! ### Fires when
//! After the third of at least 20 rows the loss is always within 0.002 of ln 2, and the margin does
//! not rise. While the learning rate still warms up, nothing is said.
//!
//! ### Not said
//! That the pairs are noise: a policy that moves leaves ln 2, whatever the labels.
//!
//! ### Causes
//! - the policy is frozen, or not in an optimiser
//! - the reference is the policy itself
//! - the learning rate is far too low
//!
//! ### Next
//! - shakedown check --stage loss
//! - compare some parameters before and after a step
//!
//! ### Source
//! DPO, arXiv 2305.18290: where policy and reference agree, every margin is 0 and the loss is ln 2.

use std::f64::consts::LN_2;

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::pairs::margin;
use crate::runs::statistics::{TREND_POINTS, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Loss,
    needs: &["loss", "pref.margin"],
    explains: &[],
    contracts: &[(
        "preference-loss",
        &["reference-ignored", "gradients-opposite", "equal-policies"],
    )],
    catches: &["dpo-frozen"],
    check,
};

/// How far from ln 2 a loss is that has not moved.
const NEAR: f64 = 2e-3;

/// The first rows may be of a warm-up.
const FIRST: usize = 3;

fn check(run: &Run) -> Judgement {
    let margin = margin(run, TREND_POINTS)?;
    let loss = run.need("loss", TREND_POINTS)?;
    if loss.resolution > NEAR {
        return Err(insufficient("the loss is logged with too few digits"));
    }
    let away = |loss: f64| (loss - LN_2).abs();
    let furthest = loss.values()[FIRST..].iter().map(|loss| away(*loss)).fold(0.0, f64::max);
    if furthest > NEAR + loss.resolution || margin.rises() || margin.falls() {
        return Ok(vec![]);
    }
    if still_warms_up(run) {
        return Err(insufficient("the learning rate still warms up"));
    }
    let found = format!(
        "the loss stays within {} of ln 2 in {} rows, so the policy does not leave the reference",
        short(furthest),
        loss.points(),
    );
    let steps = run.steps_from("loss", 0);
    let firing = Firing::error(found).at_steps(steps);
    firing.metric("loss", "furthest from ln 2", furthest, Some(NEAR)).into()
}

/// Whether the learning rate has grown to the end of the log.
fn still_warms_up(run: &Run) -> bool {
    let Some(lr) = run.statistics("lr") else { return false };
    let highest = lr.values.iter().copied().fold(0.0, f64::max);
    let half = lr.values[lr.n() / 2];
    lr.values[lr.n() - 1] == highest && half < 0.8 * highest
}

#[cfg(test)]
mod tests {
    use std::f64::consts::LN_2;

    use crate::runs::Run;
    use crate::runs::rules::trial2::{Column, always, noise, run, run_rounded, said};

    const RULE: &str = "preference-not-moving";

    fn pairs(rows: usize, slope: f64, seed: u64, more: &[Column<'_>]) -> Run {
        let margin = |i: usize| slope * i as f64 + 1e-4 * noise(seed, i);
        let loss = |i: usize| (1.0 + (-margin(i)).exp()).ln();
        let columns: [Column<'_>; 2] = [("loss", &loss), ("pref.margin", &margin)];
        run(rows, &[&columns, more].concat())
    }

    #[test]
    fn a_policy_that_stays_is_found() {
        always("error", RULE, |seed| pairs(40, 0.0, seed, &[]));
        let exact = run(20, &[("loss", &|_| LN_2), ("pref.margin", &|_| 0.0)]);
        assert_eq!(said(&exact, RULE), "error");
        let rate = |i: usize| 5e-7 * (1.0 - i as f64 / 40.0);
        always("error", RULE, |seed| pairs(40, 0.0, seed, &[("lr", &rate)]));
    }

    #[test]
    fn slow_training_and_a_warm_up_are_left_alone() {
        always("quiet", RULE, |seed| pairs(40, 0.02, seed, &[]));
        always("quiet", RULE, |seed| pairs(40, 1e-4, seed, &[]));
        let warms_up = |i: usize| 1e-9 * (i as f64 + 1.0);
        always("insufficient", RULE, |seed| pairs(40, 0.0, seed, &[("lr", &warms_up)]));
    }

    #[test]
    fn other_training_few_rows_and_few_digits_are_not_judged() {
        assert_eq!(said(&run(40, &[("loss", &|_| LN_2)]), RULE), "not applicable");
        assert_eq!(said(&pairs(19, 0.0, 1, &[]), RULE), "insufficient");
        let columns: [Column<'_>; 2] = [("loss", &|_| LN_2), ("pref.margin", &|_| 0.0)];
        assert_eq!(said(&run_rounded(40, 0.005, &columns), RULE), "insufficient");
        assert_eq!(said(&run_rounded(40, 0.00005, &columns), RULE), "error");
    }
}
