//! A row goes as a whole, or stays as a whole.
//!
//! ### Claim
//! Where nothing is selected token by token, a row's tokens are all kept or all dropped.
//!
//! ### Why it matters
//! A drift, a veto or a row's ratio says that the completion is not to be trained on. Dropped by
//! halves, its other tokens are still trained, with an advantage that was that of the whole.
//!
//! ### Does not hold for
//! `select: token`; components that do not return `keep`.
//!
//! ### Bugs it has caught
//! slime #1917: the drift of a row is decided token by token.
//!
//! ### Example
//! Under `drift=0.5`:
//! ```diff
//! -        drifted = -log_ratio > drift
//! +        drifted = -row_mean(log_ratio, mask) > drift
//! ```

use super::tokens;
use crate::importance_weights::{ImportanceWeights, Select};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "drift-per-token",
        "veto-per-token",
        "tokens-dropped-one-by-one",
        "keep-leaves-out-the-clamped",
    ],
    check,
)
.under(|options| options.select != Select::Token);

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let tokens = tokens(probe, probe.case);
    let returned = probe.output()?;
    let Some(keep) = &returned.output.keep else { return Err(Stop::Vacuous) };
    let mut checked = false;
    for both in tokens.windows(2).filter(|both| both[0].at.0 == both[1].at.0) {
        let [first, second] = [both[0].at, both[1].at];
        let [own, other] = [keep[second], keep[first]];
        if own != other {
            let row = first.0;
            broken!(
                "keep[{row}, {}] is {}, and keep[{row}, {}] of the same row {}",
                second.1,
                number(own),
                first.1,
                number(other)
            );
        }
        checked = true;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
