//! The component does not change its inputs.
//!
//! ### Claim
//! The inputs are the same after the call as before.
//!
//! ### Why it matters
//! An in-place operation on a tensor that is logged, returned or used by the next stage changes
//! numbers far from here: the second epoch sees other rewards than the first.
//!
//! ### Does not hold for
//! Components on host arrays, which the compiler keeps from writing into their inputs.
//!
//! ### Bugs it has caught
//! slime #2114: `kl *= -beta` on the tensor that is logged. OpenRLHF's `log_probs_from_logits`
//! divides its argument by the temperature in place.
//!
//! ### Example
//! In `token-rewards`, under `unfinished="subtract"`:
//! ```diff
//!      if unfinished == "subtract":
//! -        scores[~finished] -= penalty
//! +        scores = torch.where(finished, scores, scores - penalty)
//! ```

use crate::contract::cause::{Cause, Found};
use crate::contract::definition::Definition;
use crate::contract::invariant::Invariant;
use crate::contract::outcome::{Outcome, Stop};
use crate::contract::probe::AnyProbe;
use crate::contract::stage::Pitfall;

/// The law, for any contract.
pub fn law<D: Definition>() -> Invariant<D> {
    let doc = include_str!("inputs_unchanged.rs");
    Invariant::law("inputs-unchanged", doc, Pitfall::PurityShapeDtype, check)
}

fn check(probe: &mut AnyProbe<'_>) -> Outcome {
    let returned = probe.output()?;
    if let Some(changed) = returned.changed.first() {
        let message = match changed.split_once(": ") {
            Some((name, cell)) => {
                format!("`{name}` is not the same after the call as before: {cell}")
            }
            None => format!("`{changed}` is not the same after the call as before"),
        };
        return Err(Stop::Broken(Found::new(message, Cause::ChangedInput)));
    }
    Ok(())
}
