//! A token's estimate depends on its own two numbers only.
//!
//! ### Claim
//! Changing the log-probabilities of all other tokens changes nothing at a token.
//!
//! ### Why it matters
//! The estimates are masked, weighted and added up later. One that has taken in its neighbours, or
//! compares a token with the next one, charges the wrong tokens.
//!
//! ### Does not hold for
//! Cases of one token.
//!
//! ### Bugs it has caught
//! trl #2058: positions shifted in one of two forward passes; a mean that was broadcast.
//!
//! ### Example
//! ```diff
//! -    log_ratio = log_probs - ref_log_probs.roll(-1, dims=1)
//! +    log_ratio = log_probs - ref_log_probs
//! ```

use crate::kl_estimate::KlEstimate;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<KlEstimate> = Rule::new(
    Pitfall::MaskingAlignment,
    &["mean-of-the-row", "reference-off-by-one", "reference-of-another-row"],
    check,
);

fn check(probe: &mut Probe<'_, KlEstimate>) -> Outcome {
    let (rows, columns) = probe.case.log_probs.dim();
    if rows * columns < 2 {
        return Err(Stop::Vacuous);
    }
    let kept = (probe.pick.below(rows), probe.pick.below(columns));
    let mut others = probe.case.clone();
    for (at, x) in others.log_probs.indexed_iter_mut() {
        *x = if at == kept { *x } else { -1.0 };
    }
    for (at, x) in others.ref_log_probs.indexed_iter_mut() {
        *x = if at == kept { *x } else { -4.0 };
    }
    let before = probe.finite_output()?;
    let after = probe.call(&others)?;
    let allowed = only(2.0 * probe.related("kl"), |[row, column]| (row, column) == kept);
    let what = "with other numbers everywhere else, kl";
    close(what, &after.kl, &before.output.kl, &allowed)
}
