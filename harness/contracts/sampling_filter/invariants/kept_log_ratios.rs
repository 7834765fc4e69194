//! Filters choose; they do not distort.
//!
//! ### Claim
//! The log-ratio of two tokens that are left is the difference of their logits over the
//! temperature.
//!
//! ### Why it matters
//! Greedy text does not show a monotone distortion of the logits, and neither does a sum of one.
//! Here a temperature that is not applied, applied twice or upside down shows at once.
//!
//! ### Does not hold for
//! Tokens that are taken away, and probabilities too small for the dtype.
//!
//! ### Bugs it has caught
//! vLLM #9453, NeMo-RL #69, #902: probabilities before temperature and filters stood for those
//! that were sampled from.
//!
//! ### Example
//! Under `temperature=0.7`:
//! ```diff
//! -    return logits.softmax(dim=-1)
//! +    return (filtered / late).softmax(dim=-1)
//! ```

use super::{rows, seen};
use crate::sampling_filter::SamplingFilter;
use shakedown_core::contract::prelude::*;
use shakedown_core::numeric::tolerance::SAFETY;

pub(super) const RULE: Rule<SamplingFilter> = Rule::new(
    Pitfall::Sampling,
    &[
        "raw-probabilities-returned",
        "temperature-not-applied",
        "temperature-multiplied",
        "temperature-applied-twice",
        "temperature-clamped",
        "logits-in-half-precision",
    ],
    check,
);

fn check(probe: &mut Probe<'_, SamplingFilter>) -> Outcome {
    let returned = probe.finite_output()?;
    let dtype = probe.place.dtype;
    let temperature = probe.options.temperature;
    let mut checked = false;
    for (row, sorted, found) in rows(probe.case, &returned.output.probs, probe.options, dtype) {
        let mut kept =
            sorted.order[..seen(&sorted, dtype)].iter().filter(|token| found[**token] > 0.0);
        let Some(first) = kept.next() else { continue };
        for token in kept {
            let logits = [*first, *token].map(|token| probe.case.logits[[row, token]]);
            let expected = (logits[0] - logits[1]) / temperature;
            let ratio = (found[*first] / found[*token]).ln();
            // Both logits and the quotients are rounded, then both probabilities are stored.
            let scale = (logits[0].abs() + logits[1].abs()) / temperature + 2.0 + expected;
            let arithmetic = dtype.arithmetic().unit_roundoff();
            let rounding = 2.0 * arithmetic * scale + 2.0 * dtype.unit_roundoff();
            let allowed = SAFETY * probe.tolerance.factor * rounding;
            checked = true;
            let what =
                format_args!("the logarithm of probs[{row}, {first}] / probs[{row}, {token}]");
            near(what, ratio, expected, allowed)?;
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
