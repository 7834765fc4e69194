//! The probabilities of a row are a distribution.
//!
//! ### Claim
//! No probability is negative, and those of a row sum to one.
//!
//! ### Why it matters
//! What is drawn with torch.multinomial is renormalised silently; the log-probability that is
//! stored with it is not. A sum below one makes every ratio of the first step wrong by the mass
//! that was taken away.
//!
//! ### Does not hold for
//! Residues of rounding.
//!
//! ### Bugs it has caught
//! transformers #19143: the filters after the log-softmax, so that the rest sums to less than one.
//!
//! ### Example
//! Under `min_p=0.1`:
//! ```diff
//!          least = min_p * probs.amax(dim=-1, keepdim=True)
//! -        return probs.masked_fill(probs < least, 0.0)
//! +        filtered = filtered.masked_fill(probs < least, -torch.inf)
//! ```

use super::rows;
use crate::sampling_filter::SamplingFilter;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SamplingFilter> = Rule::new(
    Pitfall::Sampling,
    &["filtered-but-not-renormalised", "softmax-over-the-rows", "dust-on-every-token"],
    check,
);

fn check(probe: &mut Probe<'_, SamplingFilter>) -> Outcome {
    let returned = probe.output()?;
    let probs = &returned.output.probs;
    let dtype = probe.place.dtype;
    for (row, sorted, found) in rows(probe.case, probs, probe.options, dtype) {
        if let Some((token, p)) = found.iter().enumerate().find(|(_, p)| **p < 0.0) {
            broken!("probs[{row}, {token}] is {}, expected at least 0", rounded(*p));
        }
        let terms = probe.case.logits.ncols();
        let allowed = probe.tolerance.bound(Number::new(1.0, sorted.rounds()), terms);
        let sum = found.sum();
        if apart(sum, 1.0, allowed) {
            broken!("probs[{row}] sums to {}, expected 1 ± {allowed:.1e}", rounded(sum));
        }
    }
    Ok(())
}
