//! Equal logits have the entropy of a fair choice.
//!
//! ### Claim
//! With equal logits everywhere, a mean entropy is ln V, and a sum as many times that.
//!
//! ### Why it matters
//! The one value that everybody knows, in nats, whatever the temperature and the level of the
//! logits. With the entropies all alike, what is left is how they are added up and divided.
//!
//! ### Does not hold for
//! `top_share`, where rounding decides between equal tokens; batches without a token.
//!
//! ### Bugs it has caught
//! Entropies in bits; means over padding; a vocabulary that was trimmed.
//!
//! ### Example
//! ```diff
//! -        entropy = entropies.mean()
//! +        entropy = entropies.sum() / lengths.sum().clamp(min=1)
//! ```

use ndarray::Axis;

use super::{bound, given};
use crate::entropy_bonus::{EntropyBonus, EntropyBonusCase, Options};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<EntropyBonus> = Rule::new(
    Pitfall::LogSpaceSign,
    &[
        "logarithm-in-another-base",
        "divided-by-its-maximum",
        "mean-over-the-vocabulary",
        "first-or-last-entry-left-out",
        "mean-over-padding",
        "epsilon-in-the-denominator",
        "maximum-starts-at-zero",
    ],
    check,
)
.under(|options| options.top_share.is_none());

fn check(probe: &mut Probe<'_, EntropyBonus>) -> Outcome {
    let Options { aggregate, empty_rows, norm_length, .. } = *probe.options;
    let weights = aggregate.weights(&probe.case.mask, empty_rows, norm_length);
    let weights = weights.ok_or(Stop::Vacuous)?;
    let mut equal: EntropyBonusCase = probe.case.clone();
    let most = 200.0 * probe.options.temperature.min(1.0);
    let level = *probe.pick.one(&[0.0, 1.0, -3.0, most, -most]);
    equal.logits.fill(probe.place.dtype.round(level));
    let expected = probe.expected_of(&equal);
    let output = probe.call(&equal)?;
    let fair = (equal.logits.len_of(Axis(2)) as f64).ln() * weights.sum();
    for (name, found, times) in given(&output, probe.options) {
        let allowed = bound(probe, &expected, name);
        let what = format_args!("with equal logits everywhere, {name}");
        near(what, found, times * fair, allowed)?;
    }
    Ok(())
}
