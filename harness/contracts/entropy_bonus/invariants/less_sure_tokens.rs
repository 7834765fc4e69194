//! The less sure tokens have the higher mean.
//!
//! ### Claim
//! The mean entropy of the chosen tokens is no lower than that of all.
//!
//! ### Why it matters
//! The choice is there to leave out what the policy is sure of. A quantile taken from the wrong
//! end, or tokens that leave the sum and stay in the count, train on the rest of them.
//!
//! ### Does not hold for
//! Other aggregates than `token-mean`, whose rows may weigh differently; components that do not
//! read `top_share`.
//!
//! ### Bugs it has caught
//! The surest tokens chosen; the chosen ones divided by the number of all.
//!
//! ### Example
//! Under `top_share=0.2`:
//! ```diff
//! -        entropies = entropies * (entropies >= threshold)
//! +        mask = mask & (entropies >= threshold)
//! ```

use super::{bound, pairs};
use crate::entropy_bonus::{EntropyBonus, Options};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<EntropyBonus> =
    Rule::new(Pitfall::MaskingAlignment, &["surest-chosen", "chosen-over-all-tokens"], check)
        .under(|options| options.top_share.is_some() && options.aggregate == Aggregate::TokenMean);

fn check(probe: &mut Probe<'_, EntropyBonus>) -> Outcome {
    if !probe.reads("top_share") {
        return Err(Stop::Vacuous);
    }
    let returned = probe.finite_output()?;
    let all = Options { top_share: None, ..probe.options.clone() };
    let whole = probe.call_under(probe.case, &all)?;
    let expected = EntropyBonus::oracle(probe.case, &all, probe.place.dtype);
    for (name, chosen, whole) in pairs(&returned.output, &whole, probe.options) {
        // Nobody says which tokens are chosen near the quantile, but they are of this size.
        let allowed = 4.0 * bound(probe, &expected, name) + 1e-3 * whole.abs();
        let sign = if name == "loss" { -1.0 } else { 1.0 };
        if sign * (chosen - whole) < -allowed {
            let [chosen, whole] = [chosen, whole].map(rounded);
            broken!("{name} of the less sure tokens is {chosen}, of all tokens {whole}");
        }
    }
    Ok(())
}
