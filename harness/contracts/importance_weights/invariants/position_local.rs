//! A token's weight depends on its own two numbers only.
//!
//! ### Claim
//! At the token level, changing all other tokens changes nothing at a token.
//!
//! ### Why it matters
//! A weight that has taken in its neighbours corrects other tokens than those that were sampled
//! wrongly, and is 1 on average all the same.
//!
//! ### Does not hold for
//! Ratios of rows, a veto, a drift, weights that are divided by their mean.
//!
//! ### Bugs it has caught
//! trl #2058: positions shifted in one of two forward passes.
//!
//! ### Example
//! ```diff
//! -    log_ratio = (log_probs.detach() - sampler_log_probs.roll(1, 1)).masked_fill(~mask, 0)
//! +    log_ratio = (log_probs.detach() - sampler_log_probs).masked_fill(~mask, 0)
//! ```

use crate::importance_weights::{ImportanceWeights, Level, Normalize, Select};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "sampler-off-by-one",
        "sampler-of-another-row",
        "weights-of-the-next-token",
        "weights-of-the-next-row",
        "row-ratio-for-tokens",
        "rows-dropped-for-tokens",
    ],
    check,
)
.under(|options| {
    options.level == Level::Token
        && matches!(options.select, Select::None | Select::Token)
        && options.veto.is_none()
        && options.drift.is_none()
        && options.normalize == Normalize::None
});

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let tokens: Vec<(usize, usize)> =
        super::tokens(probe, probe.case).iter().map(|token| token.at).collect();
    if tokens.len() < 2 {
        return Err(Stop::Vacuous);
    }
    let chosen = *probe.pick.one(&tokens);
    let mut others = probe.case.clone();
    for at in tokens.into_iter().filter(|at| *at != chosen) {
        others.log_probs[at] = -1.0;
        others.sampler_log_probs[at] = -1.375;
    }
    let before = probe.finite_output()?;
    let after = probe.call(&others)?;
    let allowed = only(2.0 * probe.related("weights"), |[row, column]| (row, column) == chosen);
    let what = "with other numbers everywhere else, weights";
    unchanged(what, &after.weights, &before.output.weights, &allowed)
}
