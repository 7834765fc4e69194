//! Labels are the ids of trained tokens.
//!
//! ### Claim
//! A label is the id of its token where the mask is 1, and `ignore` where it is 0.
//!
//! ### Why it matters
//! Losses read the labels and metrics the mask. Where they differ, what is reported is not what is
//! trained.
//!
//! ### Does not hold for
//! Outputs that lack labels.
//!
//! ### Bugs it has caught
//! verl #2543, slime #1445: what a tool wrote was added to the ids and not to the mask, and from
//! there on every flag was that of another token.
//!
//! ### Example
//! ```diff
//! -    labels = tokens * mask
//! +    labels = tokens.where(mask, ignore)
//! ```

use super::flags;
use crate::turn_mask::TurnMask;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TurnMask> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "labels-of-all-tokens",
        "zero-for-no-label",
        "ignore-hard-coded",
        "id-zero-untrained",
        "labels-one-early",
    ],
    check,
);

fn check(probe: &mut Probe<'_, TurnMask>) -> Outcome {
    let ignore = probe.options.ignore;
    let returned = probe.finite_output()?;
    let Some(labels) = &returned.output.labels else { return Err(Stop::Vacuous) };
    for (at, label, token) in flags(labels, probe.case, probe.options)? {
        // The component's own mask says what it trains, where there is one.
        let mask = returned.output.mask.as_ref();
        let trained = mask.and_then(|mask| mask.get(at)).map_or(token.trained, |flag| *flag == 1.0);
        let expected = if trained { token.id } else { ignore };
        if label != expected as f64 {
            let label = number(label);
            let is = if trained { "trained" } else { "not trained" };
            broken!("labels[{at}] is {label}, expected {expected}: {} is {is}", token.id);
        }
    }
    Ok(())
}
