//! The gradient is finite whatever the margin.
//!
//! ### Claim
//! Every gradient is finite.
//!
//! ### Why it matters
//! Margins of completions of a thousand tokens reach ten thousand. The logarithm of a sigmoid that
//! underflowed has the gradient 0·∞, and one such pair ends the run.
//!
//! ### Does not hold for
//! Nothing: it holds for every kind.
//!
//! ### Bugs it has caught
//! log(sigmoid(z)) for logsigmoid(z).
//!
//! ### Example
//! ```diff
//! -        right, exchanged = z.sigmoid().log(), (-z).sigmoid().log()
//! +        right, exchanged = F.logsigmoid(z), F.logsigmoid(-z)
//! ```

use crate::preference_loss::PreferenceLoss;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PreferenceLoss> =
    Rule::new(Pitfall::GradientFlow, &["logarithm-of-the-sigmoid"], check).needs_gradient();

fn check(probe: &mut Probe<'_, PreferenceLoss>) -> Outcome {
    let returned = probe.gradient_output()?;
    let output = &returned.output;
    let mut checked = false;
    for (name, gradient) in [
        ("grad_policy_chosen", &output.grad_policy_chosen),
        ("grad_policy_rejected", &output.grad_policy_rejected),
    ] {
        let Some(gradient) = gradient else { continue };
        checked = true;
        if let Some((at, bad)) = gradient.iter().enumerate().find(|(_, x)| !x.is_finite()) {
            broken!("{name}[{at}] is {}, expected a finite number", number(*bad));
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
