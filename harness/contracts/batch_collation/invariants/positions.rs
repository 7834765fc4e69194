//! Positions count tokens, whatever stands beside them.
//!
//! ### Claim
//! The positions of a row's tokens are 0, 1, 2 and so on, whatever the padding.
//!
//! ### Why it matters
//! Positions go into every attention score. Positions that count pads make the log-probabilities of
//! a row depend on how long the other rows are, and differ from those of the sampler.
//!
//! ### Does not hold for
//! Outputs without positions; what stands under padding, unless `pad_positions: zero` says it.
//!
//! ### Bugs it has caught
//! Rows filled up on the left without `position_ids`, which the model then counts by column.
//!
//! ### Example
//! Under `layout="left"`:
//! ```diff
//! -        "position_ids": torch.arange(input_ids.shape[1]).expand_as(input_ids),
//! +        "position_ids": attention_mask.cumsum(1) - 1,
//! ```

use super::{expect, placed};
use crate::batch_collation::{BatchCollation, PadPositions};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchCollation> = Rule::new(
    Pitfall::MaskingAlignment,
    &["positions-by-column", "positions-from-one", "positions-restart", "positions-under-padding"],
    check,
);

fn check(probe: &mut Probe<'_, BatchCollation>) -> Outcome {
    let returned = probe.finite_output()?;
    let Some(positions) = &returned.output.position_ids else { return Err(Stop::Vacuous) };
    let places = placed(probe.case, probe.options, &returned.output)?;
    for ((row, column), _) in positions.indexed_iter() {
        let (expected, why) = match places.token(row, column) {
            Some((at, _)) => (at, format!("it is token {at} of its row")),
            None if probe.options.pad_positions == PadPositions::Zero => {
                (0, "it is padding".to_owned())
            }
            None => continue,
        };
        expect("position_ids", positions, (row, column), expected as f64, || why)?;
    }
    Ok(())
}
