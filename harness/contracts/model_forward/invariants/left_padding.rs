//! Padding on the left changes nothing.
//!
//! ### Claim
//! With more columns of padding before them, all tokens have the same logits.
//!
//! ### Why it matters
//! Prompts are padded on the left for generation, and completions on the right for training. A
//! model that counts columns puts a token at two positions: the first ratio is not 1.
//!
//! ### Does not hold for
//! `padding: right` and `padding: none`.
//!
//! ### Bugs it has caught
//! trlx #108: learned positions were not shifted by the padding.
//!
//! ### Example
//! ```diff
//! -        position_ids = columns.expand_as(input_ids)
//! +        position_ids = (attention_mask.cumsum(dim=1) - 1).clamp(min=0)
//! ```

use super::{same, tokens};
use crate::model_forward::{ModelForward, widened};
use shakedown_core::contract::prelude::*;
use shakedown_core::value::text::count;

pub(super) const RULE: Rule<ModelForward> = Rule::new(
    Pitfall::MaskingAlignment,
    &["positions-count-the-padding", "attention-mask-ignored", "attention-mask-one-late"],
    check,
)
.under(|options| options.padding.is_on_the_left());

fn check(probe: &mut Probe<'_, ModelForward>) -> Outcome {
    let before = probe.output()?;
    let more = 1 + probe.pick.below(3);
    let after = probe.call(&widened(probe.case, more, 0))?;
    let at: Vec<_> = tokens(probe).into_iter().map(|at| [at, (at.0, at.1 + more)]).collect();
    let what = format!("with {} on the left,", count(more as u64, "more masked column"));
    same(probe, &what, "logits", &after.logits, &before.output.logits, &at)
}
