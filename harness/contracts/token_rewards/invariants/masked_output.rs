//! What was not sampled gets nothing.
//!
//! ### Claim
//! Masked columns hold 0, whatever the log-probabilities there; the column of the score may differ.
//!
//! ### Why it matters
//! Prompts, pads and tool output are not the policy's doing. Returns that are added up along a row
//! pass their penalties on to the tokens before them.
//!
//! ### Does not hold for
//! `masked_output: any`.
//!
//! ### Bugs it has caught
//! slime #1372: the tokens of a tool pay. trl #7024: pads do.
//!
//! ### Example
//! ```diff
//! -    kl = log_probs - ref_log_probs
//! +    kl = torch.where(mask, log_probs - ref_log_probs, 0.0)
//! ```

use super::rounding;
use crate::token_rewards::{TokenRewards, places};
use shakedown_core::contract::prelude::*;
use shakedown_core::numeric::conventions::MaskedOutput;

pub(super) const RULE: Rule<TokenRewards> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "masked-tokens-pay",
        "pads-pay",
        "mask-off-by-one",
        "score-in-the-last-column",
        "score-one-late",
        "empty-row-gets-its-score",
    ],
    check,
)
.under(|options| options.masked_output == MaskedOutput::Zero);

fn check(probe: &mut Probe<'_, TokenRewards>) -> Outcome {
    let (case, options) = (probe.case, probe.options);
    let places = places(case, options);
    let masked: Vec<(usize, usize)> = case
        .mask
        .indexed_iter()
        .filter(|((row, token), kept)| !**kept && places[*row] != Some(*token))
        .map(|(at, _)| at)
        .collect();
    if masked.is_empty() {
        return Err(Stop::Vacuous);
    }
    let returned = probe.output()?;
    let poisoned = <TokenRewards as rows::Masked>::poisoned(case, options, &mut probe.pick);
    let after = probe.call(&poisoned)?;
    let bounds = rounding(probe);
    let outputs = [("", &returned.output.rewards), (" with other numbers there", &after.rewards)];
    for (when, rewards) in outputs {
        for (row, token) in &masked {
            let found = rewards[[*row, *token]];
            if apart(found, 0.0, bounds[[*row, *token]]) {
                broken!(
                    "rewards[{row}, {token}] is {}{when}, expected 0: it is masked",
                    rounded(found)
                );
            }
        }
    }
    Ok(())
}
