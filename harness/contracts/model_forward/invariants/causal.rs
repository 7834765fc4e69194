//! Tokens do not see those behind them.
//!
//! ### Claim
//! Other tokens behind a column change no logits up to it.
//!
//! ### Why it matters
//! A token that sees the next one predicts it by copying. The training loss falls, and the model
//! cannot generate.
//!
//! ### Does not hold for
//! Rows of one token.
//!
//! ### Bugs it has caught
//! A causal mask that is shifted by one column, or lost where an attention mask is given.
//!
//! ### Example
//! ```diff
//! -    seen = (columns[:, None] + 1 >= columns) & attention_mask[:, None, :]
//! +    seen = (columns[:, None] >= columns) & attention_mask[:, None, :]
//! ```

use super::{same, tokens};
use crate::model_forward::ModelForward;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ModelForward> =
    Rule::new(Pitfall::MaskingAlignment, &["next-token-seen", "attends-both-ways"], check);

fn check(probe: &mut Probe<'_, ModelForward>) -> Outcome {
    let columns = probe.case.input_ids.ncols();
    if columns < 2 {
        return Err(Stop::Vacuous);
    }
    let before = probe.output()?;
    let last = probe.pick.below(columns - 1);
    let mut changed = probe.case.clone();
    for ((_, column), id) in changed.input_ids.indexed_iter_mut() {
        if column > last {
            *id = (*id + 1) % probe.options.vocabulary;
        }
    }
    let at: Vec<_> =
        tokens(probe).into_iter().filter(|at| at.1 <= last).map(|at| [at, at]).collect();
    if at.is_empty() {
        return Err(Stop::Vacuous);
    }
    let after = probe.call(&changed)?;
    let what = format!("with other tokens behind column {last},");
    same(probe, &what, "logits", &after.logits, &before.output.logits, &at)
}
