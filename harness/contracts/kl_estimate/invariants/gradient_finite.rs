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

use super::super::{Gradient, KlEstimate, Options};
use crate::broken;
use crate::contract::Pitfall;
use crate::invariant::{Outcome, Probe, Stop};
use crate::place::Place;
use crate::text::number;

pub(super) const PITFALL: Pitfall = Pitfall::GradientFlow;
pub(super) const CATCHES: &[&str] = &["k3-overflows"];

pub(super) fn applies(options: &Options, _: Place) -> bool {
    options.gradient != Gradient::None
}

pub(super) fn check(probe: &mut Probe<'_, KlEstimate>) -> Outcome {
    let returned = probe.gradient_output()?;
    let Some(gradient) = &returned.output.grad_log_probs else { return Err(Stop::Vacuous) };
    if let Some(((row, column), bad)) = gradient.indexed_iter().find(|(_, x)| !x.is_finite()) {
        broken!("grad_log_probs[{row}, {column}] is {}, expected a finite number", number(*bad));
    }
    Ok(())
}
