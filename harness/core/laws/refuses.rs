//! A component that promises to raise does.
//!
//! ### Claim
//! Where an option says `refuse`, an input that it speaks of raises.
//!
//! ### Why it matters
//! Who declares this wants the run to stop instead of going on with a number made of nothing.
//!
//! ### Does not hold for
//! The other values of that option.
//!
//! ### Bugs it has caught
//! ROLL #475: none is refused, but one token gives NaN.
//!
//! ### Example
//! In `whiten`, under `empty_mask="refuse"`:
//! ```diff
//! -    if empty_mask == "refuse" and (count == 0).any():
//! +    if empty_mask == "refuse" and (count <= ddof).any():
//!          raise ValueError("too few tokens for a deviation")
//! ```

use crate::contract::definition::Definition;
use crate::contract::invariant::Invariant;
use crate::contract::outcome::{Outcome, broken};
use crate::contract::probe::AnyProbe;
use crate::contract::stage::Pitfall;

/// The law, for any contract; `under` says under which options there is something to refuse.
pub fn law<D: Definition>(under: fn(&D::Options) -> bool) -> Invariant<D> {
    Invariant::law("refuses", include_str!("refuses.rs"), Pitfall::StabilityConstant, check)
        .under(under)
}

fn check(probe: &mut AnyProbe<'_>) -> Outcome {
    if !probe.raises()? {
        broken!("it returned something, expected an error: this input is refused");
    }
    Ok(())
}
