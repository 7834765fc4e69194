//! The gradient is finite whatever the sides are.
//!
//! ### Claim
//! Every gradient is finite.
//!
//! ### Why it matters
//! Gaps between long completions reach thousands of nats, and a memorised one has an average of
//! nearly 0. The logarithm of what underflowed has the gradient 0·∞, and one such pair ends a run.
//!
//! ### Does not hold for
//! Nothing: it holds for every kind.
//!
//! ### Bugs it has caught
//! log(sigmoid(z)) for logsigmoid(z).
//!
//! ### Example
//! ```diff
//! -        right, exchanged = margin.sigmoid().log(), (-margin).sigmoid().log()
//! +        right, exchanged = F.logsigmoid(margin), F.logsigmoid(-margin)
//! ```

use crate::pair_objective::PairObjective;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PairObjective> = Rule::new(
    Pitfall::GradientFlow,
    &["logarithm-of-the-sigmoid", "odds-by-division", "exo-logarithm-of-the-share"],
    check,
)
.needs_gradient();

fn check(probe: &mut Probe<'_, PairObjective>) -> Outcome {
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
