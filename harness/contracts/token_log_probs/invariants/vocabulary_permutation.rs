//! Renaming the tokens of the vocabulary changes nothing.
//!
//! ### Claim
//! Permuting the vocabulary, and the tokens with it, changes no log-probability.
//!
//! ### Why it matters
//! Token ids are names. A component to which token 0 or the last one is special mistakes ids for
//! positions, drops a padded entry, or reads one index too far.
//!
//! ### Does not hold for
//! Nothing: it holds for every implementation.
//!
//! ### Bugs it has caught
//! Ids off by one; a normaliser over all entries but the last.
//!
//! ### Example
//! ```diff
//! -    log_probs = scaled - torch.logsumexp(scaled[..., :-1], dim=-1, keepdim=True)
//! +    log_probs = torch.log_softmax(scaled, dim=-1)
//! ```

use crate::token_log_probs::generate::with_vocabulary;
use crate::token_log_probs::{TokenLogProbs, vocabulary};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenLogProbs> = Rule::new(
    Pitfall::MaskingAlignment,
    &["token-ids-off-by-one", "first-or-last-entry-left-out", "normalised-within-a-shard"],
    check,
);

fn check(probe: &mut Probe<'_, TokenLogProbs>) -> Outcome {
    let before = probe.finite_output()?;
    let size = vocabulary(probe.case);
    // The reversal is the same for every case, so a case that it breaks can be made small.
    for order in [(0..size).rev().collect(), probe.pick.shuffled(size)] {
        let after = probe.call(&with_vocabulary(probe.case, &order))?;
        let allowed = 2.0 * probe.related("log_probs");
        let what = format_args!("with the vocabulary in the order {order:?}, log_probs");
        close(what, &after.log_probs, &before.output.log_probs, &allowed)?;
    }
    Ok(())
}
