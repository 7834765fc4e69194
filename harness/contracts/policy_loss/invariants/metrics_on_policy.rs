//! On the policy nothing is clipped and nothing diverges.
//!
//! ### Claim
//! Where all policies are one, `clip_fraction`, `approx_kl` and `kl` are 0.
//!
//! ### Why it matters
//! At the first step of every run these three are known. What is not 0 there counts something
//! else, and early stopping acts on it.
//!
//! ### Does not hold for
//! Components that do not give them; `clip_fraction` of shared ratios and other objectives.
//!
//! ### Bugs it has caught
//! OpenRLHF feeb0283: the mean of the ratio, -1 on the policy.
//!
//! ### Example
//! ```diff
//! -        "approx_kl": aggregated(-ratio.detach(), mask),
//! +        "approx_kl": aggregated(-log_ratio.detach(), mask),
//! ```

use super::on_policy;
use crate::policy_loss::PolicyLoss;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> =
    Rule::new(Pitfall::LogSpaceSign, &["approx-kl-averages-the-ratio"], check)
        .under(|options| options.kl_clamp.is_none_or(|[lo, hi]| lo <= 0.0 && hi >= 0.0));

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    if !probe.case.mask.iter().any(|kept| *kept) {
        return Err(Stop::Vacuous);
    }
    let case = on_policy(probe.case);
    let output = probe.call(&case)?;
    let expected = probe.expected_of(&case);
    let metrics = [
        ("clip_fraction", &output.clip_fraction),
        ("approx_kl", &output.approx_kl),
        ("kl", &output.kl),
    ];
    let mut checked = false;
    for (name, metric) in metrics {
        let Some(metric) = metric else { continue };
        let allowed = probe.bounds_in(&expected, name)[[]];
        near(format_args!("where all policies are one, {name}"), metric[()], 0.0, allowed)?;
        checked |= allowed.is_finite();
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
