//! k3, k2 and abs are never negative.
//!
//! ### Claim
//! An estimate by k3, k2 or abs is at least 0.
//!
//! ### Why it matters
//! A negative penalty is a reward for leaving the reference. It comes from a sign, from a part of
//! the formula that is missing, and from a tensor that was scaled by -β in place.
//!
//! ### Does not hold for
//! `estimator: k1`, and a residue of rounding below 0.
//!
//! ### Bugs it has caught
//! slime #2114: -β·kl in the tensor that is logged as the KL.
//!
//! ### Example
//! ```diff
//! -        kl = torch.expm1(-gap) - gap
//! +        kl = torch.expm1(-gap) + gap
//! ```

use crate::kl_estimate::{Estimator, KlEstimate};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<KlEstimate> =
    Rule::new(Pitfall::LogSpaceSign, &["kl-tensor-reused-in-place"], check)
        .under(|options| options.estimator != Estimator::K1);

fn check(probe: &mut Probe<'_, KlEstimate>) -> Outcome {
    let returned = probe.output()?;
    let bounds = probe.bounds("kl");
    for (((row, column), found), allowed) in returned.output.kl.indexed_iter().zip(&bounds) {
        if *found < -allowed {
            broken!(
                "kl[{row}, {column}] is {}, expected at least 0 - {allowed:.1e}",
                rounded(*found)
            );
        }
    }
    Ok(())
}
