//! The output has the promised names, shapes and types.
//!
//! ### Claim
//! The output has the promised names, shapes and a float dtype.
//!
//! ### Why it matters
//! Frameworks broadcast. An advantage of shape `[N, 1]` where `[N]` was promised becomes an `[N,
//! N]` product two functions later, and nothing raises when `N = T`. An integer tensor truncates.
//!
//! ### Does not hold for
//! A half-precision input may be answered in f32: half formats are storage, not arithmetic. Whole
//! numbers may be integers or booleans.
//!
//! ### Bugs it has caught
//! trl 4db63af98 and #6095: an `(N, N)` mask. prime-rl 8d77a2cd9: `(N, 1, T)` against `(N, T)`.
//!
//! ### Example
//! In `group-advantage`:
//! ```diff
//! -    return advantages[:, None]  # for all tokens of a row
//! +    return advantages
//! ```

use crate::contract::definition::Definition;
use crate::contract::invariant::Invariant;
use crate::laws::answers;

/// The law, for any contract.
pub fn law<D: Definition>() -> Invariant<D> {
    answers::law("well-formed", include_str!("well_formed.rs"), |probe| {
        answers::check("well-formed", probe)
    })
}
