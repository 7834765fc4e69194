//! For small gaps k3 is k2.
//!
//! ### Claim
//! k3 differs from d²/2 by at most |d|³/6·e^|d| where |d| ≤ 0.5.
//!
//! ### Why it matters
//! Nearly all tokens of a healthy run lie there, and k3 is the difference of numbers near 1: what
//! is lost to a coarse format or to a missing term is more than all that is left.
//!
//! ### Does not hold for
//! Larger gaps, and tokens that a clamp changes.
//!
//! ### Bugs it has caught
//! OpenRLHF #620: a difference of bf16 log-probabilities.
//!
//! ### Example
//! ```diff
//! -    log_ratio = log_probs.bfloat16() - ref_log_probs.bfloat16()
//! +    log_ratio = log_probs - ref_log_probs
//! ```

use crate::kl_estimate::{Estimator, KlEstimate, oracle};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<KlEstimate> =
    Rule::new(Pitfall::StabilityConstant, &["minus-one-missing", "kl-in-half-precision"], check)
        .under(|options| options.estimator == Estimator::K3);

fn check(probe: &mut Probe<'_, KlEstimate>) -> Outcome {
    let returned = probe.output()?;
    let bounds = probe.bounds("kl");
    let options = probe.options;
    let mut checked = false;
    for ((row, column), found) in returned.output.kl.indexed_iter() {
        let at = [row, column];
        let d = probe.case.log_probs[at] - probe.case.ref_log_probs[at];
        let k3 = oracle::value(Estimator::K3, d);
        let free = oracle::clamped(options, d) == d
            && options.clamp.is_none_or(|[lo, hi]| lo <= k3 && k3 <= hi);
        if d == 0.0 || d.abs() > 0.5 || !free {
            continue;
        }
        checked = true;
        let k2 = 0.5 * d * d;
        let allowed = bounds[at] + d.abs().powi(3) / 6.0 * d.abs().exp();
        if apart(*found, k2, allowed) {
            let [found, k2] = pair(*found, k2);
            broken!(
                "at a log-ratio of {d:.6}, kl[{row}, {column}] is {found}, expected d²/2 = {k2} ± \
                 {allowed:.1e}"
            );
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
