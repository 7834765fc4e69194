//! A logit of minus infinity takes its token out of the vocabulary.
//!
//! ### Claim
//! Adding an entry of -inf to the vocabulary changes neither loss nor entropy.
//!
//! ### Why it matters
//! Masked vocabularies, padded embeddings and constrained decoding put -inf there. 0·∞ is NaN, and
//! one NaN in a bonus ends the run.
//!
//! ### Does not hold for
//! `neg_inf: avoid`.
//!
//! ### Bugs it has caught
//! -Σ p·log p and logsumexp(z) - Σ p·z as they are written everywhere.
//!
//! ### Example
//! Under `neg_inf="zero"`:
//! ```diff
//! -    return -(probs * log_probs).sum(dim=-1)
//! +    return -(probs * log_probs.masked_fill(probs == 0, 0)).sum(dim=-1)
//! ```

use ndarray::{Array3, Axis, concatenate};

use super::pairs;
use crate::entropy_bonus::{EntropyBonus, EntropyBonusCase, NegInf};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<EntropyBonus> =
    Rule::new(Pitfall::StabilityConstant, &["minus-infinity-gives-nan"], check)
        .under(|options| options.neg_inf == NegInf::Zero);

fn check(probe: &mut Probe<'_, EntropyBonus>) -> Outcome {
    let (rows, columns, _) = probe.case.logits.dim();
    let mut none = Array3::from_elem((rows, columns, 1), f64::NEG_INFINITY);
    for (entry, kept) in none.iter_mut().zip(&probe.case.mask) {
        *entry = if *kept { *entry } else { 0.0 };
    }
    let logits = concatenate(Axis(2), &[probe.case.logits.view(), none.view()])
        .expect("equal N and T")
        .as_standard_layout()
        .into_owned();
    let wider = EntropyBonusCase { logits, ..probe.case.clone() };
    let before = probe.output()?;
    let after = probe.call(&wider)?;
    let expected = probe.expected_of(&wider);
    for (name, before, after) in pairs(&before.output, &after, probe.options) {
        let allowed = probe.bounds(name) + probe.bounds_in(&expected, name);
        if before.is_nan() && after.is_nan() {
            continue;
        }
        near(format_args!("with an entry of -inf more, {name}"), after, before, allowed[[]])?;
    }
    Ok(())
}
