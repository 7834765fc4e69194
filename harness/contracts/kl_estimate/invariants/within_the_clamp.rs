//! The result stays within its clamp.
//!
//! ### Claim
//! Where `clamp: [lo, hi]` is declared, every estimate is from lo to hi.
//!
//! ### Why it matters
//! The clamp is there so that one token cannot be a whole batch's penalty. It is missing where it
//! was written for one estimator or one side only.
//!
//! ### Does not hold for
//! `clamp: null`.
//!
//! ### Bugs it has caught
//! verl #1779: no clamp; slime: a clamp on one of its estimators.
//!
//! ### Example
//! Under `estimator="k1", clamp=[-10.0, 10.0]`:
//! ```diff
//! -        kl = kl.clamp(max=clamp[1])
//! +        kl = kl.clamp(*clamp)
//! ```

use crate::kl_estimate::KlEstimate;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<KlEstimate> = Rule::new(
    Pitfall::Configuration,
    &["result-clamp-ignored", "result-clamped-above-only"],
    check,
)
.under(|options| options.clamp.is_some());

fn check(probe: &mut Probe<'_, KlEstimate>) -> Outcome {
    let Some([lo, hi]) = probe.options.clamp else { return Err(Stop::Vacuous) };
    let returned = probe.output()?;
    let bounds = probe.bounds("kl");
    for (((row, column), found), allowed) in returned.output.kl.indexed_iter().zip(&bounds) {
        if *found < lo - allowed || *found > hi + allowed {
            broken!(
                "kl[{row}, {column}] is {}, expected from {lo} to {hi}, ± {allowed:.1e}",
                rounded(*found)
            );
        }
    }
    Ok(())
}
