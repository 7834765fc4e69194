//! Renaming the tokens of the vocabulary changes nothing.
//!
//! ### Claim
//! Permuting the vocabulary changes no entropy.
//!
//! ### Why it matters
//! Token ids are names. A component to which the first token or the last one is special drops a
//! padded entry too many, or reads one shard of a vocabulary.
//!
//! ### Does not hold for
//! Nothing: it holds for every implementation.
//!
//! ### Bugs it has caught
//! A distribution over all entries but the last.
//!
//! ### Example
//! ```diff
//! -    logits = logits[..., :-1] / temperature
//! +    logits = logits / temperature
//! ```

use ndarray::Axis;

use crate::token_entropy::{TokenEntropy, TokenEntropyCase, vocabulary};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenEntropy> =
    Rule::new(Pitfall::MaskingAlignment, &["first-or-last-entry-left-out"], check);

fn check(probe: &mut Probe<'_, TokenEntropy>) -> Outcome {
    let before = probe.finite_output()?;
    let size = vocabulary(probe.case);
    let allowed = 2.0 * probe.related("entropy");
    // The reversal is the same for every case, so a case that it breaks can be made small.
    for order in [(0..size).rev().collect(), probe.pick.shuffled(size)] {
        let logits = probe.case.logits.select(Axis(2), &order).as_standard_layout().into_owned();
        let after = probe.call(&TokenEntropyCase { logits })?;
        let what = format_args!("with the vocabulary in the order {order:?}, entropy");
        close(what, &after.entropy, &before.output.entropy, &allowed)?;
    }
    Ok(())
}
