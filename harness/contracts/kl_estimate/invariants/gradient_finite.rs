//! The gradient is finite wherever the exact one is.
//!
//! ### Claim
//! Every gradient is finite.
//!
//! ### Why it matters
//! A clamp behind an exponential gives the right value and the gradient 0·∞: one token, and after
//! the next step every weight is NaN. The value never shows it.
//!
//! ### Does not hold for
//! Log-ratios at which the exact gradient leaves the dtype; they are not generated.
//!
//! ### Bugs it has caught
//! verl #1779: k3 at log-ratios beyond -88 with a clamp on the result only.
//!
//! ### Example
//! Under `log_ratio_clamp=20.0, clamp=[-10.0, 10.0], extreme_ratios="finite"`:
//! ```diff
//! -        kl = torch.expm1(-log_ratio) + log_ratio
//! +        kl = torch.expm1(-gap) + gap
//! ```

use crate::kl_estimate::{Gradient, KlEstimate};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<KlEstimate> =
    Rule::new(Pitfall::GradientFlow, &["k3-overflows"], check)
        .under(|options| options.gradient != Gradient::None)
        .needs_gradient();

fn check(probe: &mut Probe<'_, KlEstimate>) -> Outcome {
    let returned = probe.gradient_output()?;
    let Some(gradient) = &returned.output.grad_log_probs else { return Err(Stop::Vacuous) };
    if let Some(((row, column), bad)) = gradient.indexed_iter().find(|(_, x)| !x.is_finite()) {
        broken!("grad_log_probs[{row}, {column}] is {}, expected a finite number", number(*bad));
    }
    Ok(())
}
