//! The most likely token can always be sampled.
//!
//! ### Claim
//! No filter takes away every token with the largest logit, and none that is left is likelier.
//!
//! ### Why it matters
//! A filter that sorts the other way, or whose first token is not exempt, samples from the tail,
//! or from nothing. Text still looks like text, for a while.
//!
//! ### Does not hold for
//! Differences within rounding.
//!
//! ### Bugs it has caught
//! transformers #19839: with a top-p of 0 nothing was exempt, and all was taken away.
//!
//! ### Example
//! Under `top_p=0.0`:
//! ```diff
//! -        beyond = mass >= top_p
//! +        beyond = (mass >= top_p) & (mass > 0)
//! ```

use super::rows;
use crate::sampling_filter::SamplingFilter;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SamplingFilter> = Rule::new(
    Pitfall::Sampling,
    &[
        "top-p-zero-empties-the-support",
        "least-likely-kept",
        "filter-fills-with-a-number",
        "filter-mask-in-sorted-order",
        "top-k-takes-its-last",
    ],
    check,
);

fn check(probe: &mut Probe<'_, SamplingFilter>) -> Outcome {
    let returned = probe.output()?;
    let probs = &returned.output.probs;
    let bounds = probe.bounds("probs");
    for (row, sorted, found) in rows(probe.case, probs, probe.options, probe.place.dtype) {
        let (_, end) = sorted.level(0);
        let best = sorted.order[..end].iter().map(|token| found[*token]).fold(0.0, f64::max);
        let first = sorted.order[0];
        // NaN survives nothing: the maximum passes it over.
        if best == 0.0 {
            broken!(
                "token {first} has the largest logit of row {row}, but probs[{row}, {first}] is \
                 {}, expected above 0",
                rounded(found[first])
            );
        }
        for token in &sorted.order[end..] {
            let allowed = bounds[[row, first]] + bounds[[row, *token]];
            if found[*token] > best + allowed {
                broken!(
                    "token {first} has the largest logit of row {row}, but probs[{row}, {token}] \
                     is {}, expected at most {} + {allowed:.1e}",
                    rounded(found[*token]),
                    rounded(best)
                );
            }
        }
    }
    Ok(())
}
