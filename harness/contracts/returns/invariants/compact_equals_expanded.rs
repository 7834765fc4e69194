//! Masked tokens are no steps.
//!
//! ### Claim
//! A row gives at its tokens what the same row gives without its masked columns.
//!
//! ### Why it matters
//! A tool's output or a prompt between two turns is not the policy's doing: how long it is must
//! not discount what came before it, and it must not cut the row in two.
//!
//! ### Does not hold for
//! `masked: zero`, where masked columns are steps.
//!
//! ### Bugs it has caught
//! verl #7278: the first turn gets a return of 0 because the row starts anew after the gap.
//!
//! ### Example
//! Under `gamma=0.9, holes=True`:
//! ```diff
//!          own = rewards[:, t] + gamma * ahead
//! -        ahead = own
//! +        ahead = torch.where(mask[:, t], own, ahead)
//! ```

use crate::returns::{Returns, ReturnsCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Returns> = Rule::new(
    Pitfall::MaskingAlignment,
    &["return-reset-at-observation", "time-passes-at-masked-tokens"],
    check,
)
.under(|options| options.masked == MaskedTokens::Skip);

fn check(probe: &mut Probe<'_, Returns>) -> Outcome {
    let row = probe.pick.below(probe.case.rewards.nrows());
    let mask = probe.case.mask.row(row);
    let kept: Vec<usize> = (0..mask.len()).filter(|token| mask[*token]).collect();
    if kept.is_empty() || kept.len() == mask.len() {
        return Err(Stop::Vacuous);
    }
    let before = probe.output()?;
    let alone: ReturnsCase = Returns::take(probe.case, &[row]);
    let compact = rows::select::<Returns, _>(&alone, 'T', &kept);
    let after = probe.call(&compact)?;
    let bounds = 2.0 * probe.related("returns");
    for (at, token) in kept.iter().enumerate() {
        let (found, expected) = (before.output.returns[[row, *token]], after.returns[[0, at]]);
        let allowed = bounds[[row, *token]];
        if apart(found, expected, allowed) {
            let [found, expected] = pair(found, expected);
            broken!(
                "returns[{row}, {token}] is {found}; without the masked columns the row gives \
                 {expected} ± {allowed:.1e} there"
            );
        }
    }
    Ok(())
}
