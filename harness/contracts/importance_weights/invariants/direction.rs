//! What the sampler gave too little of counts more.
//!
//! ### Claim
//! Where the policy likes a token better than the sampler, its weight is above 1; else below.
//!
//! ### Why it matters
//! A reversed ratio is 1 on average too, has the same bounds and the same statistics. It doubles
//! the mismatch that it is there to correct.
//!
//! ### Does not hold for
//! Ratios of rows, divided weights, and bounds on the wrong side of 1. Dropped tokens are left out.
//!
//! ### Bugs it has caught
//! verl 2c6c65cb0: the sampler's numbers were the trainer's, so that every weight was 1.
//!
//! ### Example
//! ```diff
//! -    log_ratio = (sampler_log_probs - log_probs.detach()).masked_fill(~mask, 0)
//! +    log_ratio = (log_probs.detach() - sampler_log_probs).masked_fill(~mask, 0)
//! ```

use super::{clamp_holds_one, tokens};
use crate::importance_weights::oracle::Verdict;
use crate::importance_weights::{ImportanceWeights, Level, Normalize};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::ProbabilityRatio,
    &["ratio-reversed", "gap-is-absolute", "sampler-replaced", "log-ratio-as-the-weight"],
    check,
)
.under(|options| {
    options.level == Level::Token
        && options.normalize == Normalize::None
        && clamp_holds_one(options)
});

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let tokens = tokens(probe, probe.case);
    let returned = probe.output()?;
    let bounds = probe.bounds("weights");
    let c = probe.options.log_ratio_clamp.unwrap_or(f64::INFINITY);
    let high = probe.options.clamp_high.unwrap_or(f64::INFINITY);
    let low = probe.options.clamp_low.unwrap_or(0.0);
    let mut checked = false;
    for token in tokens.iter().filter(|token| token.dropped == Verdict::No && token.d != 0.0) {
        let (row, column) = token.at;
        let (found, allowed) = (returned.output.weights[token.at], bounds[[row, column]]);
        let d = token.d.clamp(-c, c);
        // 1 + d ≤ e^d, and e^-d ≤ 1 / (1 + d): enough to tell one side from the other.
        let (wrong, side) = if d > 0.0 {
            (found < (1.0 + d).min(high) - allowed, "at least")
        } else {
            (found > (1.0 / (1.0 - d)).max(low) + allowed, "at most")
        };
        let limit = if d > 0.0 { (1.0 + d).min(high) } else { (1.0 / (1.0 - d)).max(low) };
        if wrong || found.is_nan() {
            broken!(
                "weights[{row}, {column}] is {} where the log-ratio is {}, expected {side} {}",
                rounded(found),
                rounded(token.d),
                rounded(limit)
            );
        }
        checked = true;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
