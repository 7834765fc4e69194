//! The model is asked about prompts and completions, and nothing else.
//!
//! ### Claim
//! No gradient falls on logits behind a prefix that is not a prompt and the beginning of one of its
//! completions.
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
//! ```diff
//! -    outputs["unknown"] = outputs["gradient"].abs().amax((1, 2, 3, 4))
//! +    outputs["unknown"] = torch.zeros(len(logits))
//! ```

use crate::grpo_step::GrpoStep;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GrpoStep> =
    Rule::new(Pitfall::MaskingAlignment, &["attention-mask-forgotten"], check);

fn check(probe: &mut Probe<'_, GrpoStep>) -> Outcome {
    let returned = probe.output()?;
    let Some(unknown) = &returned.output.unknown else { return Err(Stop::Vacuous) };
    for (update, x) in unknown.iter().enumerate() {
        if *x != 0.0 {
            broken!(
                "update {update} has a gradient of {} behind tokens that are no prompt and \
                 completion",
                number(*x)
            );
        }
    }
    Ok(())
}
