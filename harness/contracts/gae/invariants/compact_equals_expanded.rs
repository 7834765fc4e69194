//! Masked tokens are no transitions.
//!
//! ### Claim
//! A row gives at its tokens what the same row gives without its masked columns.
//!
//! ### Why it matters
//! A tool's output or a prompt between two turns is not the policy's doing: how long it is must
//! not discount what came before it, and its values must not stand for those of the next turn.
//!
//! ### Does not hold for
//! `masked: zero`, where masked columns are steps; advantages with `whiten: true`, which depend on
//! the other rows.
//!
//! ### Bugs it has caught
//! verl #7278, in the recursion for returns: the first turn gets 0 because the row starts anew.
//!
//! ### Example
//! Under `holes=True`:
//! ```diff
//! -        carried = torch.where(counts, advantages[:, step], 0.0)
//! +        carried = torch.where(counts, advantages[:, step], carried)
//! ```

use super::tokens;
use crate::gae::{Gae, GaeCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Gae> = Rule::new(
    Pitfall::MaskingAlignment,
    &["reset-at-observation", "time-passes-at-masked-tokens", "pad-value-as-the-next"],
    check,
)
.under(|options| options.masked == MaskedTokens::Skip);

fn check(probe: &mut Probe<'_, Gae>) -> Outcome {
    let row = probe.pick.below(probe.case.mask.nrows());
    let kept = tokens(probe.case).swap_remove(row);
    if kept.is_empty() || kept.len() == probe.case.mask.ncols() {
        return Err(Stop::Vacuous);
    }
    let before = probe.output()?;
    let alone: GaeCase = Gae::take(probe.case, &[row]);
    let compact = rows::select::<Gae, _>(&alone, 'T', &kept);
    let after = probe.call(&compact)?;
    let fields = [
        ("advantages", &before.output.advantages, &after.advantages),
        ("returns", &before.output.returns, &after.returns),
    ];
    for (field, before, after) in fields {
        if field == "advantages" && probe.options.whiten {
            continue;
        }
        let bounds = 2.0 * probe.related(field);
        for (at, token) in kept.iter().enumerate() {
            let (found, expected) = (before[[row, *token]], after[[0, at]]);
            let allowed = bounds[[row, *token]];
            if apart(found, expected, allowed) {
                let [found, expected] = pair(found, expected);
                broken!(
                    "{field}[{row}, {token}] is {found}; without the masked columns the row gives \
                     {expected} ± {allowed:.1e} there"
                );
            }
        }
    }
    Ok(())
}
