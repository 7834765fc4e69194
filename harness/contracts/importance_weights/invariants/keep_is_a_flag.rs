//! `keep` says yes or no.
//!
//! ### Claim
//! Every number of `keep` is 0 or 1, also next to a bound.
//!
//! ### Why it matters
//! Trainers multiply by it and divide by its sum. A weight or a sum of conditions that is returned
//! for it counts a token twice, or in part.
//!
//! ### Does not hold for
//! Components that do not return `keep`; masked positions with `masked_output: any`.
//!
//! ### Bugs it has caught
//! The weights, returned as the mask that they were to be multiplied by.
//!
//! ### Example
//! ```diff
//! -    return weights, keep * weights, clip_fraction, mismatch_kl
//! +    return weights, keep.to(weights), clip_fraction, mismatch_kl
//! ```

use crate::importance_weights::ImportanceWeights;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> =
    Rule::new(Pitfall::MaskingAlignment, &["keep-is-the-weight"], check);

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let returned = probe.output()?;
    let Some(keep) = &returned.output.keep else { return Err(Stop::Vacuous) };
    let counts = keep.indexed_iter().filter(|(at, _)| probe.case.mask[*at]);
    for ((row, column), flag) in counts {
        if *flag != 0.0 && *flag != 1.0 {
            broken!("keep[{row}, {column}] is {}, expected 0 or 1", number(*flag));
        }
    }
    Ok(())
}
