//! A tiny learning rate moves next to nothing.
//!
//! ### Claim
//! With a learning rate of 1e-7 no logit moves against another by more than 0.01.
//!
//! ### Why it matters
//! An optimizer that was made with its default, or a schedule that starts elsewhere, trains at a
//! rate that nobody chose, and every sweep over rates compares the same run with itself.
//!
//! ### Does not hold for
//! Nothing: it holds for SGD, momentum and Adam alike.
//!
//! ### Bugs it has caught
//! Learning rates that never reach the optimizer.
//!
//! ### Example
//! ```diff
//! -            policy -= 0.1 * gradient
//! +            policy -= learning_rate * gradient
//! ```

use ndarray::arr0;

use crate::policy_update::{PolicyUpdate, PolicyUpdateCase, generate, trials};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyUpdate> =
    Rule::new(Pitfall::Configuration, &["learning-rate-ignored"], check);

/// How far a logit may move against another one, besides rounding.
const MOST: f64 = 0.01;

fn check(probe: &mut Probe<'_, PolicyUpdate>) -> Outcome {
    generate::signal(probe.case, probe.options).ok_or(Stop::Vacuous)?;
    let rate = probe.place.dtype.round(1e-7);
    let slow = PolicyUpdateCase { learning_rate: arr0(rate), ..probe.case.clone() };
    let output = trials::run(probe, &slow)?;
    let moved = &output.logits - &probe.case.logits;
    let largest = output.logits.iter().fold(1.0, |most: f64, z| most.max(z.abs()));
    let allowed = MOST + 8.0 * probe.place.dtype.unit_roundoff() * largest;
    let (lo, hi) = moved
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), x| (lo.min(*x), hi.max(*x)));
    if hi - lo > allowed {
        broken!(
            "with a learning rate of 1e-7 one logit moves by {} against another, expected \
             {allowed:.0e} at most",
            rounded(hi - lo),
        );
    }
    Ok(())
}
