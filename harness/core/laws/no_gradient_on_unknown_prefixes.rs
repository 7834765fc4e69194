//! The model is asked about prompts and completions, and nothing else.
//!
//! ### Claim
//! No gradient falls on logits, or scores, behind a prefix that is not a prompt and the beginning
//! of one of its completions.
//!
//! ### Why it matters
//! A forgotten attention mask, a prompt cut at the wrong end, a completion beside the prompt of
//! another: the model is trained on contexts that it will never meet, and the loss looks as usual.
//!
//! ### Does not hold for
//! Trainers that do not say it: without `unknown` nothing is judged.
//!
//! ### Bugs it has caught
//! Planted: a forgotten attention mask.
//!
//! ### Example
//! In `grpo-step`:
//! ```diff
//! -    outputs["unknown"] = outputs["gradient"].abs().amax((1, 2, 3, 4))
//! +    outputs["unknown"] = torch.zeros(len(logits))
//! ```

use crate::contract::invariant::{Invariant, Rule};
use crate::contract::outcome::{Outcome, Stop, broken};
use crate::contract::probe::Probe;
use crate::contract::stage::Pitfall;
use crate::contract::step::Stepped;
use crate::numeric::tolerance::apart;
use crate::value::record::float;
use crate::value::text::number;

/// The law, for the contract `C`.
pub fn law<C: Stepped>() -> Invariant<C> {
    let doc = include_str!("no_gradient_on_unknown_prefixes.rs");
    let rule = Rule::new(Pitfall::MaskingAlignment, &[], check::<C>);
    Invariant::own("no-gradient-on-unknown-prefixes", doc, rule)
}

/// How far the gradient of an update may be off by rounding: what cancels is not always exactly 0.
pub(super) fn rounding<C: Stepped>(probe: &mut Probe<'_, C>) -> f64 {
    let bounds = probe.bounds("gradient");
    bounds.iter().copied().filter(|bound| bound.is_finite()).fold(0.0, f64::max)
}

fn check<C: Stepped>(probe: &mut Probe<'_, C>) -> Outcome {
    let returned = probe.any.output()?;
    let Some(unknown) = float(&*returned.output, "unknown") else { return Err(Stop::Vacuous) };
    let allowed = rounding(probe);
    for (update, x) in unknown.iter().enumerate() {
        if apart(*x, 0.0, allowed) {
            broken!(
                "update {update} has a gradient of {} behind tokens that are no prompt and \
                 completion",
                number(*x)
            );
        }
    }
    Ok(())
}
