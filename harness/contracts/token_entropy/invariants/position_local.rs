//! An entropy depends on nothing but its own position.
//!
//! ### Claim
//! Changing the logits of all other positions changes nothing at a position.
//!
//! ### Why it matters
//! Off by one along a row, left in another order, normalised over the wrong axis: the numbers look
//! like entropies and belong to other tokens.
//!
//! ### Does not hold for
//! Cases of one position.
//!
//! ### Bugs it has caught
//! verl #1943, #2185: entropies left in the order by length.
//!
//! ### Example
//! ```diff
//! -    log_probs = logits - logits.logsumexp(dim=1, keepdim=True)
//! +    log_probs = logits - logits.logsumexp(dim=-1, keepdim=True)
//! ```

use crate::token_entropy::TokenEntropy;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenEntropy> = Rule::new(
    Pitfall::MaskingAlignment,
    &["rows-left-in-sorted-order", "shifted-by-one", "softmax-over-another-axis"],
    check,
);

/// What stands in the other positions instead.
const LOGITS: [f64; 7] = [0.0, 3.0, -1.0, 1.0, 8.0, -2.0, 0.5];

fn check(probe: &mut Probe<'_, TokenEntropy>) -> Outcome {
    let (rows, columns, _) = probe.case.logits.dim();
    if rows * columns < 2 {
        return Err(Stop::Vacuous);
    }
    let kept = (probe.pick.below(rows), probe.pick.below(columns));
    let mut others = probe.case.clone();
    for ((row, column, entry), logit) in others.logits.indexed_iter_mut() {
        if (row, column) != kept {
            *logit = probe.options.temperature * LOGITS[(row + 3 * column + 2 * entry) % 7];
        }
    }
    others.logits.mapv_inplace(|logit| probe.place.dtype.round(logit));
    let before = probe.finite_output()?;
    let after = probe.call(&others)?;
    let allowed = only(2.0 * probe.related("entropy"), |[row, column]| (row, column) == kept);
    let what = "with other logits everywhere else, entropy";
    close(what, &after.entropy, &before.output.entropy, &allowed)
}
