//! An entropy lies between zero and the logarithm of the vocabulary.
//!
//! ### Claim
//! An entropy is at least 0 and at most ln V.
//!
//! ### Why it matters
//! A negative one turns an entropy bonus into a penalty, and one above ln V belongs to no
//! distribution: a sign, a base, or a softmax along another axis.
//!
//! ### Does not hold for
//! A residue of rounding beyond the bounds; positions of which NaN is promised.
//!
//! ### Bugs it has caught
//! Σ p·log p without the minus; entropies in bits.
//!
//! ### Example
//! ```diff
//! -    return terms.sum(dim=-1)
//! +    return -terms.sum(dim=-1)
//! ```

use crate::token_entropy::{TokenEntropy, vocabulary};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenEntropy> = Rule::new(
    Pitfall::LogSpaceSign,
    &["sign-flipped", "logarithm-in-another-base", "softmax-over-another-axis"],
    check,
);

fn check(probe: &mut Probe<'_, TokenEntropy>) -> Outcome {
    let returned = probe.output()?;
    let bounds = probe.bounds("entropy");
    let most = (vocabulary(probe.case) as f64).ln();
    for (((row, column), found), allowed) in returned.output.entropy.indexed_iter().zip(&bounds) {
        if *found < -allowed || *found > most + allowed {
            broken!(
                "entropy[{row}, {column}] is {}, expected from 0 to ln V = {}, ± {allowed:.1e}",
                rounded(*found),
                rounded(most)
            );
        }
    }
    Ok(())
}
