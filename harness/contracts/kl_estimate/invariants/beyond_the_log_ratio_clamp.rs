//! Beyond the clamp of the log-ratio nothing changes any more.
//!
//! ### Claim
//! A token whose log-ratio is beyond ±c has the estimate that it has at ±c.
//!
//! ### Why it matters
//! The clamp keeps exp from overflowing. One that is missing, or has another size, shows only on
//! the rare tokens for which it was made, as an infinity.
//!
//! ### Does not hold for
//! `log_ratio_clamp: null`, and tokens within ±c.
//!
//! ### Bugs it has caught
//! verl #1779: exp(ref - policy) without a bound.
//!
//! ### Example
//! Under `log_ratio_clamp=5.0`:
//! ```diff
//! -        kl = torch.expm1(-gap) + log_ratio
//! +        kl = torch.expm1(-gap) + gap
//! ```

use crate::kl_estimate::KlEstimate;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<KlEstimate> =
    Rule::new(Pitfall::Configuration, &["log-ratio-clamp-ignored"], check)
        .under(|options| options.log_ratio_clamp.is_some());

fn check(probe: &mut Probe<'_, KlEstimate>) -> Outcome {
    let c = probe.place.dtype.round(probe.options.log_ratio_clamp.ok_or(Stop::Vacuous)?);
    let mut at_the_clamp = probe.case.clone();
    let mut moved = false;
    for (a, b) in at_the_clamp.log_probs.iter_mut().zip(&mut at_the_clamp.ref_log_probs) {
        if (*a - *b).abs() > c {
            (*a, *b) = if *a > *b { (0.0, -c) } else { (-c, 0.0) };
            moved = true;
        }
    }
    if !moved {
        return Err(Stop::Vacuous);
    }
    let before = probe.output()?;
    let after = probe.call(&at_the_clamp)?;
    let allowed = probe.bounds("kl") + probe.bounds_in(&probe.expected_of(&at_the_clamp), "kl");
    let what = format_args!("with the log-ratios beyond ±{c} moved to ±{c}, kl");
    close(what, &after.kl, &before.output.kl, &allowed)
}
