//! Nothing is sampled that cannot come.
//!
//! ### Claim
//! A token whose logit is -inf has probability 0.
//!
//! ### Why it matters
//! Constrained decoding, padded vocabularies and bans of tokens put -inf there. A guard that adds
//! a little to every probability, or a filter that keeps a fixed number, brings such tokens back;
//! their log-probability under the model is -inf.
//!
//! ### Does not hold for
//! Cases without a logit of -inf.
//!
//! ### Bugs it has caught
//! Probabilities clamped from below before the logarithm.
//!
//! ### Example
//! ```diff
//! -    return (filtered / late).softmax(dim=-1).clamp(min=1e-8)
//! +    return (filtered / late).softmax(dim=-1)
//! ```

use crate::sampling_filter::SamplingFilter;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SamplingFilter> =
    Rule::new(Pitfall::Sampling, &["dust-on-every-token"], check);

fn check(probe: &mut Probe<'_, SamplingFilter>) -> Outcome {
    let returned = probe.output()?;
    let mut checked = false;
    for (((row, token), logit), found) in
        probe.case.logits.indexed_iter().zip(&returned.output.probs)
    {
        if *logit != f64::NEG_INFINITY {
            continue;
        }
        checked = true;
        // Not `> 0`: NaN is no 0 either.
        if *found != 0.0 {
            broken!(
                "token {token} of row {row} has the logit -inf, but probs[{row}, {token}] is {}, \
                 expected 0",
                rounded(*found)
            );
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
