//! What top-k takes away has no say any more.
//!
//! ### Claim
//! With top-k, putting -inf in place of all tokens below the k-th changes nothing.
//!
//! ### Why it matters
//! Top-p comes after top-k and takes its share of what is left, renormalised. Computed from the
//! whole distribution it keeps more, or all; and a softmax taken before the filter sums to less
//! than one.
//!
//! ### Does not hold for
//! Options without a top-k; rows with no token below the k-th; `min_keep` beyond k.
//!
//! ### Bugs it has caught
//! transformers #19143: normalised before the filter. Nuclei of the whole distribution behind a
//! top-k.
//!
//! ### Example
//! Under `top_k=3, top_p=0.9`:
//! ```diff
//! -        ranked, tokens = logits.sort(dim=-1, descending=True)
//! +        ranked, tokens = filtered.sort(dim=-1, descending=True)
//!          probs = ranked.softmax(dim=-1)
//! ```

use crate::sampling_filter::SamplingFilter;
use crate::sampling_filter::oracle::Row;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SamplingFilter> = Rule::new(
    Pitfall::Sampling,
    &[
        "top-p-of-the-full-distribution",
        "raw-probabilities-returned",
        "filter-fills-with-a-number",
        "top-k-without-effect",
    ],
    check,
)
.under(|options| options.top_k.is_some());

fn check(probe: &mut Probe<'_, SamplingFilter>) -> Outcome {
    let Some(k) = probe.options.top_k else { return Err(Stop::Vacuous) };
    let k = k.max(probe.options.min_keep) as usize;
    let mut cut = probe.case.clone();
    for mut logits in cut.logits.rows_mut() {
        let sorted = Row::of(logits.view(), probe.options, probe.place.dtype);
        let (_, end) = sorted.level(k.min(sorted.size()) - 1);
        for token in &sorted.order[end..] {
            logits[*token] = f64::NEG_INFINITY;
        }
    }
    if cut == *probe.case {
        return Err(Stop::Vacuous);
    }
    let before = probe.finite_output()?;
    let after = probe.call(&cut)?;
    let allowed = probe.bounds("probs") + probe.bounds_in(&probe.expected_of(&cut), "probs");
    let what = "with -inf below the k-th logit, probs";
    close(what, &after.probs, &before.output.probs, &allowed)
}
