//! Top-k leaves k tokens, and what is tied with the last.
//!
//! ### Claim
//! With top-k alone, k tokens are left; more only if tied with the k-th.
//!
//! ### Why it matters
//! An index off by one is the oldest mistake there is, and k is often 1, where it is the
//! difference between greedy and not.
//!
//! ### Does not hold for
//! Other filters beside it; k beyond the number of tokens that can come, where all of them are
//! left.
//!
//! ### Bugs it has caught
//! Thresholds taken from the element after the k-th, and comparisons that take the k-th itself
//! away.
//!
//! ### Example
//! Under `top_k=2`:
//! ```diff
//! -        filtered = filtered.masked_fill(filtered <= kth, -torch.inf)
//! +        filtered = filtered.masked_fill(filtered < kth, -torch.inf)
//! ```

use super::{rows, seen};
use crate::sampling_filter::SamplingFilter;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SamplingFilter> = Rule::new(
    Pitfall::Sampling,
    &["top-k-keeps-one-extra", "top-k-takes-its-last", "top-k-without-effect"],
    check,
)
.under(|options| options.top_k.is_some() && options.top_p.is_none() && options.min_p.is_none());

fn check(probe: &mut Probe<'_, SamplingFilter>) -> Outcome {
    let Some(k) = probe.options.top_k else { return Err(Stop::Vacuous) };
    let k = k.max(probe.options.min_keep) as usize;
    let returned = probe.finite_output()?;
    let dtype = probe.place.dtype;
    for (row, sorted, found) in rows(probe.case, &returned.output.probs, probe.options, dtype) {
        let seen = seen(&sorted, dtype);
        let least = k.min(sorted.size());
        let (_, most) = sorted.level(least - 1);
        let kept = sorted.order[..seen].iter().filter(|token| found[**token] > 0.0).count();
        if kept < least.min(seen) {
            broken!("row {row} keeps {kept} tokens, expected at least {}", least.min(seen));
        }
        if kept > most {
            broken!(
                "row {row} keeps {kept} tokens, expected at most {most}: no other is tied with \
                 the {least} likeliest"
            );
        }
    }
    Ok(())
}
