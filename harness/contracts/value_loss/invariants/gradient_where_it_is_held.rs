//! A value that is held has no gradient.
//!
//! ### Claim
//! A token has gradient 0 where its clipped error is the larger, and else that of its own error.
//!
//! ### Why it matters
//! Where the held value counts, moving the value changes nothing: that is what the clip is for.
//! A gradient there drives the critic further from its old values, and the loss does not show it.
//!
//! ### Does not hold for
//! Values at an end of the range, equal errors of opposite sign, and components without gradients.
//!
//! ### Bugs it has caught
//! Straight-through clamps; clips that are declared and have no effect.
//!
//! ### Example
//! Under `clip=0.2`:
//! ```diff
//! -        held = values + (values.clamp(low, high) - values).detach()
//! +        held = values.clamp(low, high)
//! ```

use crate::value_loss::{Errors, ValueLoss};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ValueLoss> =
    Rule::new(Pitfall::GradientFlow, &["gradient-through-the-clip", "clip-without-effect"], check)
        .under(|options| options.clip.is_some())
        .needs_gradient();

fn check(probe: &mut Probe<'_, ValueLoss>) -> Outcome {
    let returned = probe.gradient_output()?;
    let Some(gradient) = &returned.output.grad_values else { return Err(Stop::Vacuous) };
    if gradient.dim() != probe.case.mask.dim() {
        // The law `gradient` says so.
        return Err(Stop::Vacuous);
    }
    let expected = ValueLoss::oracle_gradient(probe.case, probe.options, probe.place.dtype);
    let bounds = probe.bounds_in(&expected, "grad_values");
    let mut checked = false;
    for (at, _) in probe.case.mask.indexed_iter().filter(|(_, kept)| **kept) {
        let errors = Errors::of(probe.case, probe.options, at);
        let held = errors.outside && errors.clips() && !errors.is_undecided(probe.place.dtype);
        if !held {
            continue;
        }
        checked = true;
        let allowed = bounds[[at.0, at.1]];
        if apart(gradient[at], 0.0, allowed) {
            let [found, _] = pair(gradient[at], 0.0);
            broken!(
                "the value {} at [{}, {}] is held, as the clipped error {} is larger than its own \
                 {}; its gradient is {found}, expected 0 ± {allowed:.1e}",
                number(probe.case.values[at]),
                at.0,
                at.1,
                number(errors.clipped),
                number(errors.plain),
            );
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
