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
//! Under `beta=0.5`:
//! ```diff
//! -    outputs["ref_training"] = torch.tensor(True)
//! +    outputs["ref_training"] = torch.tensor(False)
//! ```

use crate::grpo_step::GrpoStep;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GrpoStep> =
    Rule::new(Pitfall::ReferenceDrift, &["reference-in-training-mode", "reference-trained"], check)
        .under(|options| options.beta > 0.0);

fn check(probe: &mut Probe<'_, GrpoStep>) -> Outcome {
    let returned = probe.output()?;
    let (gradient, training) = (&returned.output.ref_gradient, &returned.output.ref_training);
    if gradient.is_none() && training.is_none() {
        return Err(Stop::Vacuous);
    }
    if training.as_ref().is_some_and(|flag| flag[()] != 0.0) {
        broken!("the reference is asked in training mode");
    }
    match gradient.as_ref().map(|gradient| gradient[()]) {
        Some(x) if x != 0.0 => broken!("the reference has a gradient of {}", number(x)),
        _ => Ok(()),
    }
}
