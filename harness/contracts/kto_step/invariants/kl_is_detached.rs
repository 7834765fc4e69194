//! The estimate of the KL has no gradient.
//!
//! ### Claim
//! At each update the gradient is 0 on the logits behind a prompt and the completion of another.
//!
//! ### Why it matters
//! The estimate is a point to compare with. With a gradient, desirable completions make those of
//! other prompts less likely, and the loss falls where nothing is learned.
//!
//! ### Does not hold for
//! `apo-zero-unpaired`, which has no estimate; trainers that do not say it: without `kl_gradient`
//! nothing is judged.
//!
//! ### Bugs it has caught
//! Planted: an estimate with its gradient.
//!
//! ### Example
//! ```diff
//! -        kl = (policy - reference).mean().clamp(min=0)
//! +        kl = (policy - reference).mean().clamp(min=0).detach()
//! ```

use crate::kto_step::{Kind, KtoStep, Options};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<KtoStep> =
    Rule::new(Pitfall::GradientFlow, &["kl-not-detached"], check)
        .under(|options: &Options| options.kind == Kind::Kto);

fn check(probe: &mut Probe<'_, KtoStep>) -> Outcome {
    let returned = probe.finite_output()?;
    let Some(gradient) = &returned.output.kl_gradient else { return Err(Stop::Vacuous) };
    let Some(update) = gradient.iter().position(|x| *x != 0.0) else { return Ok(()) };
    broken!(
        "update {update} has a gradient of {} behind a prompt and the completion of another",
        number(gradient[update])
    );
}
