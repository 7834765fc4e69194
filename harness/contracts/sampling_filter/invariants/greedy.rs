//! A small temperature is greedy.
//!
//! ### Claim
//! Where one logit leads by M ≥ 5 temperatures, its token has at least 1 - V·e^{-M}.
//!
//! ### Why it matters
//! Evaluation runs at a temperature near zero and expects one answer. A temperature that is
//! clamped, or not applied, gives others.
//!
//! ### Does not hold for
//! Rows with a smaller lead.
//!
//! ### Bugs it has caught
//! Temperatures clamped to a least value that nobody declared; temperatures that multiply.
//!
//! ### Example
//! Under `temperature=0.01`:
//! ```diff
//! -    filtered = logits / max(early, 0.1)
//! +    filtered = logits / early
//! ```

use crate::sampling_filter::SamplingFilter;
use crate::sampling_filter::generate::{DOMINANT, lead};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SamplingFilter> = Rule::new(
    Pitfall::Sampling,
    &["temperature-clamped", "temperature-multiplied", "maximum-not-subtracted"],
    check,
);

fn check(probe: &mut Probe<'_, SamplingFilter>) -> Outcome {
    let returned = probe.output()?;
    let bounds = probe.bounds("probs");
    let size = probe.case.logits.ncols() as f64;
    let mut checked = false;
    for (row, logits) in probe.case.logits.rows().into_iter().enumerate() {
        let lead = lead(logits, probe.options);
        if lead < DOMINANT {
            continue;
        }
        checked = true;
        let first = (0..logits.len()).fold(0, |a, b| if logits[b] > logits[a] { b } else { a });
        let found = returned.output.probs[[row, first]];
        let least = 1.0 - size * (-lead).exp();
        let allowed = bounds[[row, first]];
        // Not `<`: NaN is below every bound.
        if found.is_nan() || found < least - allowed {
            broken!(
                "token {first} leads row {row} by {} temperatures, but probs[{row}, {first}] is \
                 {}, expected at least {} - {allowed:.1e}",
                rounded(lead),
                rounded(found),
                rounded(least),
            );
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
