//! The gradient by the logits of a prefix sums to 0.
//!
//! ### Claim
//! At each update the gradients by all logits behind a prefix add up to 0.
//!
//! ### Why it matters
//! A softmax does not change when all its logits move alike, so no loss of probabilities has a
//! gradient in that direction. One that has is not of the log-probabilities: a normaliser is
//! missing, or is detached.
//!
//! ### Does not hold for
//! Nothing that is trained on probabilities.
//!
//! ### Bugs it has caught
//! Planted: a normaliser without a gradient.
//!
//! ### Example
//! In `grpo-step`:
//! ```diff
//! -    log_probs = z - z.logsumexp(-1, keepdim=True).detach()
//! +    log_probs = z - z.logsumexp(-1, keepdim=True)
//! ```

use ndarray::Axis;

use crate::contract::invariant::{Invariant, Rule};
use crate::contract::outcome::{Outcome, broken};
use crate::contract::probe::Probe;
use crate::contract::stage::Pitfall;
use crate::contract::step::Stepped;
use crate::numeric::tolerance::apart;
use crate::value::record::{float, index};
use crate::value::text::number;

/// The law, for the contract `C`.
pub fn law<C: Stepped>() -> Invariant<C> {
    let rule = Rule::new(Pitfall::GradientFlow, &[], check::<C>);
    Invariant::own("gradient-sums-to-zero", include_str!("gradient_sums_to_zero.rs"), rule)
}

fn check<C: Stepped>(probe: &mut Probe<'_, C>) -> Outcome {
    let returned = probe.any.finite_output()?;
    let bounds = probe.bounds("gradient");
    let gradient = float(&*returned.output, "gradient").expect("a trainer gives its gradient");
    let vocabulary = Axis(gradient.ndim() - 1);
    let sums = gradient.sum_axis(vocabulary);
    let allowed = bounds.sum_axis(vocabulary);
    for ((at, sum), allowed) in sums.indexed_iter().zip(&allowed) {
        if apart(*sum, 0.0, *allowed) {
            broken!("gradient{} sum to {}, expected 0", index(&at), number(*sum));
        }
    }
    Ok(())
}
