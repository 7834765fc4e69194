//! Min-p leaves what is likely enough beside the most likely token.
//!
//! ### Claim
//! With min-p alone, the tokens left are those of at least min_p times the largest probability.
//!
//! ### Why it matters
//! The threshold moves with the certainty of the model, which is the whole point of this filter.
//! An absolute one takes nearly everything where the model is unsure.
//!
//! ### Does not hold for
//! Other filters beside it; tokens within rounding of the threshold; what `min_keep` keeps.
//!
//! ### Bugs it has caught
//! Probabilities compared with min_p itself, or with a maximum over the whole batch.
//!
//! ### Example
//! Under `min_p=0.5`:
//! ```diff
//! -        least = min_p * probs.max()
//! +        least = min_p * probs.amax(dim=-1, keepdim=True)
//! ```

use super::{rows, seen};
use crate::sampling_filter::SamplingFilter;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SamplingFilter> = Rule::new(
    Pitfall::Sampling,
    &["min-p-absolute", "min-p-of-the-batch-maximum", "min-p-without-effect"],
    check,
)
.under(|options| options.min_p.is_some() && options.top_k.is_none() && options.top_p.is_none());

fn check(probe: &mut Probe<'_, SamplingFilter>) -> Outcome {
    let Some(least) = probe.options.min_p else { return Err(Stop::Vacuous) };
    let returned = probe.finite_output()?;
    let dtype = probe.place.dtype;
    for (row, sorted, found) in rows(probe.case, &returned.output.probs, probe.options, dtype) {
        for place in 0..seen(&sorted, dtype) {
            let token = sorted.order[place];
            let share = (sorted.z[place] - sorted.z[0]).exp();
            let rounding = share * 2.0 * sorted.near(sorted.z[place]);
            let kept = found[token] > 0.0;
            if !kept && share > least + rounding {
                broken!(
                    "token {token} of row {row} has {} of the largest probability, expected it \
                     to be kept from {least} on",
                    rounded(share)
                );
            }
            let (start, _) = sorted.level(place);
            if kept && share < least - rounding && start >= probe.options.min_keep as usize {
                broken!(
                    "token {token} of row {row} has {} of the largest probability, expected none \
                     to be kept below {least}",
                    rounded(share)
                );
            }
        }
    }
    Ok(())
}
