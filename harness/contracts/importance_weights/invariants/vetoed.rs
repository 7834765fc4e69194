//! One token that the policy would hardly have sampled takes its row along.
//!
//! ### Claim
//! A row with a token whose own ratio is below `veto` has no token that is kept.
//!
//! ### Why it matters
//! Such a token is a sign that the whole row was made by something else, and its mean, or its
//! neighbours, do not show it.
//!
//! ### Does not hold for
//! `veto: null`; components that do not return `keep`; ratios next to the threshold.
//!
//! ### Bugs it has caught
//! A veto that looked at the ratio of the row, and one that needed all tokens.
//!
//! ### Example
//! Under `veto=0.1`:
//! ```diff
//! -        keep &= ~(log_ratio.exp() < veto).all(1, keepdim=True)
//! +        keep &= ~(log_ratio.exp() < veto).any(1, keepdim=True)
//! ```

use super::{filled_rows, with_gaps};
use crate::importance_weights::ImportanceWeights;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::Configuration,
    &[
        "veto-ignored",
        "veto-per-token",
        "veto-needs-every-token",
        "veto-of-the-mean",
        "veto-of-the-first-token",
        "keep-knows-only-the-bounds",
        "veto-of-the-clamped-ratio",
    ],
    check,
)
.under(|options| options.veto.is_some());

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let Some(v) = probe.options.veto else { return Err(Stop::Vacuous) };
    let mut tokens: Vec<(usize, usize)> =
        super::tokens(probe, probe.case).iter().map(|token| token.at).collect();
    if tokens.is_empty() {
        return Err(Stop::Vacuous);
    }
    let unlikely = tokens.swap_remove(probe.pick.below(tokens.len()));
    // Half of v and less, in whole eighths; a little above 1 everywhere else.
    let gap = (8.0 * (v.ln() - 0.7)).floor() / 8.0;
    let case = with_gaps(probe.case, |at| if at == unlikely { gap } else { 0.125 });
    let output = probe.call(&case)?;
    let Some(keep) = &output.keep else { return Err(Stop::Vacuous) };
    let row = unlikely.0;
    assert!(filled_rows(&case.mask).contains(&row));
    let kept = (0..case.mask.ncols()).filter(|column| case.mask[[row, *column]]);
    for column in kept {
        if keep[[row, column]] != 0.0 {
            broken!(
                "with a ratio of e^{gap} at [{row}, {}], keep[{row}, {column}] is true, expected \
                 false: the veto is {v}",
                unlikely.1
            );
        }
    }
    Ok(())
}
