//! Masked columns at the end change nothing.
//!
//! ### Claim
//! Appending masked columns changes nothing at the tokens that were there.
//!
//! ### Why it matters
//! How wide a batch is depends on its longest row. A result that depends on the width changes
//! with the other rows, with the batch size and with sequence packing.
//!
//! ### Does not hold for
//! Conventions that divide by the width of the mask: contracts ask for a constant instead.
//!
//! ### Bugs it has caught
//! verl #3741 and understand-r1-zero 14046dc: a normaliser made of the batch's own width. trlx:
//! mean and deviation of the padded matrix.
//!
//! ### Example
//! In `token-rewards`:
//! ```diff
//! -    return {"rewards": rewards, "kl": kl.mean()}
//! +    return {"rewards": rewards, "kl": kl.sum() / mask.sum().clamp(min=1)}
//! ```

use crate::contract::invariant::{Invariant, Rule};
use crate::contract::outcome::Outcome;
use crate::contract::probe::Probe;
use crate::contract::rows::Masked;
use crate::contract::stage::Pitfall;
use crate::laws::compare::unmasked_difference;
use crate::value::text::count;

/// The law, for the contract `C`.
pub fn law<C: Masked>() -> Invariant<C> {
    let rule = Rule::new(Pitfall::MaskingAlignment, &[], check::<C>);
    Invariant::own("padding", include_str!("padding.rs"), rule)
}

fn check<C: Masked>(probe: &mut Probe<'_, C>) -> Outcome {
    let columns = 1 + probe.pick.below(3);
    let padded = C::padded(probe.case, columns);
    let more = count(columns as u64, "more masked column");
    unmasked_difference(probe, &padded, &format!("with {more},"))
}
