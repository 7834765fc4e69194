//! A sure position has no entropy.
//!
//! ### Claim
//! Where one logit leads by M ≥ 5 temperatures, the entropy is at most V·(M + 1)·e^{-M}.
//!
//! ### Why it matters
//! Late in training most positions are sure. There p·log p is a product of 0 and a large number,
//! and what protects it from NaN often adds something, at every position.
//!
//! ### Does not hold for
//! Positions with a smaller lead; positions of which NaN is promised.
//!
//! ### Bugs it has caught
//! Probabilities clamped from below; exp without the maximum taken off.
//!
//! ### Example
//! ```diff
//! -    probs = log_probs.exp().clamp(min=1e-5)
//! +    probs = log_probs.exp()
//! ```

use crate::token_entropy::generate::{DOMINANT, lead};
use crate::token_entropy::{NegInf, TokenEntropy, positions, vocabulary};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenEntropy> = Rule::new(
    Pitfall::StabilityConstant,
    &["temperature-multiplied", "maximum-not-subtracted"],
    check,
);

fn check(probe: &mut Probe<'_, TokenEntropy>) -> Outcome {
    let returned = probe.output()?;
    let bounds = probe.bounds("entropy");
    let size = vocabulary(probe.case) as f64;
    let mut checked = false;
    for ((row, column), logits) in positions(probe.case) {
        let lead = lead(logits, probe.options);
        let promised = probe.options.neg_inf != NegInf::Nan || logits.iter().all(|x| x.is_finite());
        if lead < DOMINANT || !promised {
            continue;
        }
        checked = true;
        let found = returned.output.entropy[[row, column]];
        // (M + 1)·e^{-M} is 0 where M is infinite.
        let most = if lead.is_finite() { size * (lead + 1.0) * (-lead).exp() } else { 0.0 };
        let allowed = bounds[[row, column]];
        // Not `>`: NaN is above every bound.
        if found.is_nan() || found > most + allowed {
            broken!(
                "one token leads by {} temperatures, but entropy[{row}, {column}] is {}, expected \
                 at most {} + {allowed:.1e}",
                rounded(lead),
                rounded(found),
                rounded(most),
            );
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
