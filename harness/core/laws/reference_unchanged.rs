//! The reference is asked, and nothing else is done to it.
//!
//! ### Claim
//! The reference gets no gradient, and is asked in evaluation mode.
//!
//! ### Why it matters
//! With dropout on, the reference is another one at every call, and the divergence from it is never
//! 0. A gradient on it costs memory, and moves it where it shares weights with the policy.
//!
//! ### Does not hold for
//! Trainers that do not say it: without `ref_gradient` and `ref_training` nothing is judged.
//!
//! ### Bugs it has caught
//! TRL 1.16 `DPOTrainer`, which leaves a reference that is handed over in training mode.
//!
//! ### Example
//! In `grpo-step`, under `beta=0.5`:
//! ```diff
//! -    outputs["ref_training"] = torch.tensor(True)
//! +    outputs["ref_training"] = torch.tensor(False)
//! ```

use crate::contract::invariant::{Invariant, Rule};
use crate::contract::outcome::{Outcome, Stop, broken};
use crate::contract::probe::Probe;
use crate::contract::stage::Pitfall;
use crate::contract::step::Stepped;
use crate::value::record::float;
use crate::value::text::number;

/// The law, for the contract `C`, under options with which there is a reference.
pub fn law<C: Stepped>(has_reference: fn(&C::Options) -> bool) -> Invariant<C> {
    let rule = Rule::new(Pitfall::ReferenceDrift, &[], check::<C>).under(has_reference);
    Invariant::own("reference-unchanged", include_str!("reference_unchanged.rs"), rule)
}

fn check<C: Stepped>(probe: &mut Probe<'_, C>) -> Outcome {
    let returned = probe.any.output()?;
    let [gradient, training] =
        ["ref_gradient", "ref_training"].map(|field| float(&*returned.output, field));
    if gradient.is_none() && training.is_none() {
        return Err(Stop::Vacuous);
    }
    if training.is_some_and(|flag| flag.iter().any(|flag| *flag != 0.0)) {
        broken!("the reference is asked in training mode");
    }
    match gradient.and_then(|gradient| gradient.first().copied()) {
        Some(x) if x != 0.0 => broken!("the reference has a gradient of {}", number(x)),
        _ => Ok(()),
    }
}
