//! The beginning of a row has the logits that it has in the whole row.
//!
//! ### Claim
//! A batch that is cut behind a column gives the same logits up to it.
//!
//! ### Why it matters
//! A sampler sees the beginning of a row, and a trainer the whole of it. Where the length changes
//! the logits, the sampled distribution is not the one that is trained.
//!
//! ### Does not hold for
//! Rows of one column, and a beginning without a token.
//!
//! ### Bugs it has caught
//! transformers #25104: dynamic NTK scales positions by the length of the call, so that each length
//! is another model.
//!
//! ### Example
//! ```diff
//! -    hidden = EMBEDDING[input_ids] + POSITIONS[position_ids * 12 // len(columns)]
//! +    hidden = EMBEDDING[input_ids] + POSITIONS[position_ids]
//! ```

use super::{same, tokens};
use crate::model_forward::ModelForward;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ModelForward> = Rule::new(
    Pitfall::Sampling,
    &["next-token-seen", "attends-both-ways", "positions-scaled-by-the-length"],
    check,
);

fn check(probe: &mut Probe<'_, ModelForward>) -> Outcome {
    let columns = probe.case.input_ids.ncols();
    if columns < 2 {
        return Err(Stop::Vacuous);
    }
    let before = probe.output()?;
    let kept: Vec<usize> = (0..1 + probe.pick.below(columns - 1)).collect();
    let after = probe.call(&rows::select::<ModelForward, _>(probe.case, 'T', &kept))?;
    let at = tokens(probe).into_iter().filter(|at| at.1 < kept.len()).map(|at| [at, at]);
    let at: Vec<_> = at.collect();
    let what = format!("without the columns from {} on,", kept.len());
    same(probe, &what, "logits", &after.logits, &before.output.logits, &at)
}
