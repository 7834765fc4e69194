//! An entropy lies between zero and the logarithm of the vocabulary.
//!
//! ### Claim
//! The entropy is at least 0; a mean of entropies is at most ln V.
//!
//! ### Why it matters
//! A negative entropy turns the bonus into a penalty, and one above ln V belongs to no
//! distribution. Both are what pads with a sentinel, and sums for means, look like.
//!
//! ### Does not hold for
//! Above: aggregates that are sums. A residue of rounding beyond the bounds.
//!
//! ### Bugs it has caught
//! trl #2022, #2281: sentinels of pads summed. Entropies in bits.
//!
//! ### Example
//! ```diff
//! -    entropies = entropies.masked_fill(~mask, 1.0)
//! +    entropies = entropies.masked_fill(~mask, 0)
//! ```

use ndarray::Axis;

use super::{bound, given};
use crate::entropy_bonus::EntropyBonus;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<EntropyBonus> = Rule::new(
    Pitfall::LogSpaceSign,
    &["pad-sentinel", "sign-flipped", "logarithm-in-another-base", "summed-over-tokens"],
    check,
);

fn check(probe: &mut Probe<'_, EntropyBonus>) -> Outcome {
    let returned = probe.finite_output()?;
    let expected = probe.expected();
    let most = match probe.options.is_mean() {
        true => (probe.case.logits.len_of(Axis(2)) as f64).ln(),
        false => f64::INFINITY,
    };
    for (name, found, times) in given(&returned.output, probe.options) {
        // Where the definition leaves a number open, it still is an entropy.
        let allowed = bound(probe, &expected, name);
        let allowed = if allowed.is_finite() { allowed } else { 1e-2 * (1.0 + found.abs()) };
        let entropy = found / times;
        if entropy < -allowed / times.abs() || entropy > most + allowed / times.abs() {
            broken!(
                "{name} is {}, which is {} times an entropy of {}, expected one from 0 to {}",
                rounded(found),
                rounded(times),
                rounded(entropy),
                rounded(most)
            );
        }
    }
    Ok(())
}
