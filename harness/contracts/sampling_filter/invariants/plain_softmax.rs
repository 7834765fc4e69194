//! Filters that are off, or that find nothing to take away, do nothing.
//!
//! ### Claim
//! Where no filter takes a token away, the probabilities are the softmax over the temperature.
//!
//! ### Why it matters
//! The distribution that training scores is the softmax. With neutral filters (k ≥ V, p = 1, min_p
//! = 0) the two must agree, or every ratio of the first step is off.
//!
//! ### Does not hold for
//! Rows of which a filter takes a token, or may.
//!
//! ### Bugs it has caught
//! verl #4162, SGLang #2178: log-probabilities without the temperature. Ours: a softmax along the
//! rows.
//!
//! ### Example
//! ```diff
//! -    return (filtered / late).softmax(dim=0)
//! +    return (filtered / late).softmax(dim=-1)
//! ```

use super::rows;
use crate::sampling_filter::SamplingFilter;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SamplingFilter> = Rule::new(
    Pitfall::Sampling,
    &[
        "temperature-not-applied",
        "temperature-multiplied",
        "temperature-applied-twice",
        "softmax-over-the-rows",
        "maximum-not-subtracted",
    ],
    check,
);

fn check(probe: &mut Probe<'_, SamplingFilter>) -> Outcome {
    let returned = probe.output()?;
    let bounds = probe.bounds("probs");
    let temperature = probe.options.temperature;
    let mut checked = false;
    let probs = &returned.output.probs;
    for (row, sorted, found) in rows(probe.case, probs, probe.options, probe.place.dtype) {
        if sorted.left != [sorted.size()] {
            continue;
        }
        checked = true;
        for token in &sorted.order {
            let logits = probe.case.logits.row(row);
            let others = logits.iter().map(|logit| ((logit - logits[*token]) / temperature).exp());
            let expected = 1.0 / others.sum::<f64>();
            let what =
                format_args!("no filter takes anything from row {row}, but probs[{row}, {token}]");
            near(what, found[*token], expected, bounds[[row, *token]])?;
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
