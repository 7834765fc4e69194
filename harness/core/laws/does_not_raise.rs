//! The component answers every valid input.
//!
//! ### Claim
//! The component does not raise.
//!
//! ### Why it matters
//! A component that raises on a degenerate batch ends a training run after hours. Trainers that
//! catch the exception put a zero in its place.
//!
//! ### Does not hold for
//! Inputs outside the contract, which are never generated.
//!
//! ### Bugs it has caught
//! SB3 #1028: a deviation with ddof 1 over one row. TRL's `masked_var` raises for a mask of one
//! token.
//!
//! ### Example
//! In `whiten`:
//! ```diff
//! -    if (count <= ddof).any():
//! +    if empty_mask == "refuse" and (count <= ddof).any():
//!          raise ValueError("too few tokens for a deviation")
//! ```

use crate::contract::definition::Definition;
use crate::contract::invariant::Invariant;
use crate::laws::answers;

/// The law, for any contract.
pub fn law<D: Definition>() -> Invariant<D> {
    answers::law("does-not-raise", include_str!("does_not_raise.rs"), |probe| {
        answers::check("does-not-raise", probe)
    })
}
