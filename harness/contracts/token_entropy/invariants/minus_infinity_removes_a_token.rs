//! A logit of minus infinity takes its token out of the vocabulary.
//!
//! ### Claim
//! Adding an entry of -inf to the vocabulary changes no entropy.
//!
//! ### Why it matters
//! Masked vocabularies, padded embeddings and constrained decoding put -inf there. 0·∞ is NaN, and
//! one NaN in an entropy bonus ends the run.
//!
//! ### Does not hold for
//! `neg_inf: avoid`, and `neg_inf: nan`, which is what TRL, verl, OpenRLHF and slime give.
//!
//! ### Bugs it has caught
//! -Σ p·log p and logsumexp(z) - Σ p·z as they are written everywhere.
//!
//! ### Example
//! Under `neg_inf="zero"`:
//! ```diff
//! -    terms = probs * log_probs
//! +    terms = probs * log_probs.masked_fill(probs == 0, 0)  # not 0 * -inf
//! ```

use ndarray::{Array3, Axis, concatenate};

use crate::token_entropy::{NegInf, TokenEntropy, TokenEntropyCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenEntropy> =
    Rule::new(Pitfall::StabilityConstant, &["minus-infinity-gives-nan"], check)
        .under(|options| options.neg_inf == NegInf::Zero);

fn check(probe: &mut Probe<'_, TokenEntropy>) -> Outcome {
    let (rows, columns, _) = probe.case.logits.dim();
    let none = Array3::from_elem((rows, columns, 1), f64::NEG_INFINITY);
    let logits = concatenate(Axis(2), &[probe.case.logits.view(), none.view()])
        .expect("equal N and T")
        .as_standard_layout()
        .into_owned();
    let wider = TokenEntropyCase { logits };
    let before = probe.output()?;
    let after = probe.call(&wider)?;
    let allowed = probe.bounds("entropy") + probe.bounds_in(&probe.expected_of(&wider), "entropy");
    let what = "with an entry of -inf more, entropy";
    close(what, &after.entropy, &before.output.entropy, &allowed)
}
