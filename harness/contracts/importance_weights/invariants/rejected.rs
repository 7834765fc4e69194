//! What is dropped weighs nothing, what is kept has its weight.
//!
//! ### Claim
//! With `rejected: zero`, weights are 0 where `keep` is false, and as if nothing was dropped else.
//!
//! ### Why it matters
//! Trainers that multiply by the weights never look at `keep`. A weight that is left there trains
//! what was to be dropped, and one that went with it takes honest tokens out of the batch.
//!
//! ### Does not hold for
//! `rejected: unchanged`; components that do not return `keep`.
//!
//! ### Bugs it has caught
//! A lower clamp that comes after the mask, and so lifts what was dropped.
//!
//! ### Example
//! Under `clamp_low=0.5, select="token", select_high=2.0`:
//! ```diff
//! -    weights = ratio.masked_fill(~keep, 0)
//! -    weights = weights.clamp(clamp_low or 0, clamp_high)
//! +    weights = ratio.clamp(clamp_low or 0, clamp_high)
//! +    weights = weights.masked_fill(~keep, 0)
//! ```

use super::tokens;
use crate::importance_weights::oracle::Verdict;
use crate::importance_weights::{ImportanceWeights, Normalize, Rejected};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::Configuration,
    &[
        "dropped-keeps-its-weight",
        "dropped-weighs-one",
        "dropped-raised-to-the-lower-clamp",
        "keep-is-inverted",
    ],
    check,
)
.under(|options| options.rejected == Rejected::Zero);

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let tokens = tokens(probe, probe.case);
    let returned = probe.output()?;
    let Some(keep) = &returned.output.keep else { return Err(Stop::Vacuous) };
    for token in &tokens {
        let (row, column) = token.at;
        let found = returned.output.weights[token.at];
        if keep[token.at] == 0.0 && found != 0.0 {
            broken!(
                "weights[{row}, {column}] is {}, expected 0: keep says that it is dropped",
                number(found)
            );
        }
        // Undecided tokens are whatever `keep` says of them.
        let held = probe.tolerance.bound(token.weight.into(), 1);
        let is_plain = probe.options.normalize == Normalize::None;
        if keep[token.at] == 1.0 && is_plain && token.dropped != Verdict::Yes && !token.ambiguous {
            let what = format_args!("where keep is true, weights[{row}, {column}]");
            near(what, found, token.weight.value, held)?;
        }
    }
    if tokens.is_empty() { Err(Stop::Vacuous) } else { Ok(()) }
}
