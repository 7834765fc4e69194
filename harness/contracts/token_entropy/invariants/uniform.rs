//! Equal logits have the entropy of a fair choice.
//!
//! ### Claim
//! Where the k possible tokens of a position have equal logits, its entropy is ln k.
//!
//! ### Why it matters
//! The one value that everybody knows, whatever the temperature and the level of the logits. It
//! shows the base of the logarithm, a factor, and a sum over another number of tokens.
//!
//! ### Does not hold for
//! Positions with different finite logits; logits of -inf unless `neg_inf: zero`.
//!
//! ### Bugs it has caught
//! Means over the vocabulary; entropies in bits; a vocabulary that was trimmed.
//!
//! ### Example
//! ```diff
//! -    return -terms.mean(dim=-1)
//! +    return -terms.sum(dim=-1)
//! ```

use crate::token_entropy::{NegInf, TokenEntropy, positions};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenEntropy> = Rule::new(
    Pitfall::LogSpaceSign,
    &[
        "logarithm-in-another-base",
        "divided-by-its-maximum",
        "mean-over-the-vocabulary",
        "first-or-last-entry-left-out",
    ],
    check,
);

fn check(probe: &mut Probe<'_, TokenEntropy>) -> Outcome {
    let returned = probe.output()?;
    let bounds = probe.bounds("entropy");
    let mut checked = false;
    for ((row, column), logits) in positions(probe.case) {
        let possible: Vec<f64> = logits.iter().copied().filter(|x| x.is_finite()).collect();
        let whole = possible.len() == logits.len() || probe.options.neg_inf == NegInf::Zero;
        if !whole || possible.iter().any(|logit| *logit != possible[0]) {
            continue;
        }
        checked = true;
        let expected = (possible.len() as f64).ln();
        let (found, allowed) = (returned.output.entropy[[row, column]], bounds[[row, column]]);
        let what = format_args!(
            "{} tokens are equally likely, but entropy[{row}, {column}]",
            possible.len()
        );
        near(what, found, expected, allowed)?;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
