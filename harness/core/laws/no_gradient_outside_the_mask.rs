//! Only what the mask keeps is trained.
//!
//! ### Claim
//! The gradient is 0 on the logits, or the score, of each token that is not trained, such as those
//! behind an end.
//!
//! ### Why it matters
//! Pads behind the end are the most frequent tokens of a batch. A model that is trained on them
//! learns to write pads, or to forget its end. One that is trained on prompts learns to ask.
//!
//! ### Does not hold for
//! Nothing: behind an end comes a prefix that no other completion begins with.
//!
//! ### Bugs it has caught
//! Planted: padding that is trained, prompts that are trained.
//!
//! ### Example
//! In `grpo-step`:
//! ```diff
//! -    mask = torch.ones_like(ended, dtype=torch.bool).flatten(0, 1)
//! +    mask = (ended.cumsum(-1) - ended == 0).flatten(0, 1)
//! ```

use crate::contract::invariant::{Invariant, Rule};
use crate::contract::outcome::{Outcome, Stop, broken};
use crate::contract::probe::Probe;
use crate::contract::stage::Pitfall;
use crate::contract::step::Stepped;
use crate::laws::no_gradient_on_unknown_prefixes::rounding;
use crate::numeric::tolerance::apart;
use crate::value::record::float;
use crate::value::text::number;

/// The law, for the contract `C`.
pub fn law<C: Stepped>() -> Invariant<C> {
    let doc = include_str!("no_gradient_outside_the_mask.rs");
    let rule = Rule::new(Pitfall::MaskingAlignment, &[], check::<C>);
    Invariant::own("no-gradient-outside-the-mask", doc, rule)
}

fn check<C: Stepped>(probe: &mut Probe<'_, C>) -> Outcome {
    let returned = probe.any.output()?;
    let shape = C::shape(probe.case, probe.options);
    let hidden = shape.hidden(&C::trained(probe.case, probe.options));
    if hidden.is_empty() {
        return Err(Stop::Vacuous);
    }
    let allowed = rounding(probe);
    let gradient = float(&*returned.output, "gradient").expect("a trainer gives its gradient");
    for (update, table) in gradient.outer_iter().enumerate() {
        let by_logit = shape.by_row(table.view());
        for [row, at] in hidden.iter().copied() {
            let slice = by_logit.slice(ndarray::s![row, at, ..]);
            if let Some(x) = slice.iter().find(|x| apart(**x, 0.0, allowed)) {
                broken!(
                    "update {update} has a gradient of {} on the {} of token {at} of {}, which \
                     is not trained",
                    number(*x),
                    C::TABLE,
                    C::row(probe.case, row),
                );
            }
        }
    }
    Ok(())
}
