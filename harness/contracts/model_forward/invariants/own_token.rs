//! A token is seen by its own logits.
//!
//! ### Claim
//! Another token in a column changes the logits behind it.
//!
//! ### Why it matters
//! The logits in a column predict the next token. Where they are those of the column before, the
//! shift that every trainer makes puts log-probabilities beside the wrong tokens.
//!
//! ### Does not hold for
//! Models that give the same logits for two ids.
//!
//! ### Bugs it has caught
//! trl #2058: logits and tokens are shifted once more.
//!
//! ### Example
//! ```diff
//! -    hidden = attend(hidden, hidden, seen).roll(1, dims=1)
//! +    hidden = attend(hidden, hidden, seen)
//! ```

use super::tokens;
use crate::model_forward::ModelForward;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ModelForward> =
    Rule::new(Pitfall::MaskingAlignment, &["logits-one-late"], check);

fn check(probe: &mut Probe<'_, ModelForward>) -> Outcome {
    let tokens = tokens(probe);
    if tokens.is_empty() {
        return Err(Stop::Vacuous);
    }
    let before = probe.output()?;
    let (row, column) = *probe.pick.one(&tokens);
    let mut changed = probe.case.clone();
    let id = &mut changed.input_ids[[row, column]];
    let from = *id;
    *id = (from + 1) % probe.options.vocabulary;
    let to = *id;
    let after = probe.call(&changed)?;
    let [before, after] = [&before.output.logits, &after.logits];
    let mut entries = (0..before.dim().2).map(|entry| [row, column, entry]);
    if entries.all(|at| before[at].to_bits() == after[at].to_bits()) {
        broken!(
            "logits[{row}, {column}] are the same with id {to} as with id {from} in that column"
        );
    }
    Ok(())
}
