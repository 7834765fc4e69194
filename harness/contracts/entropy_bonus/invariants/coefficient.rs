//! The coefficient scales the loss, and nothing else.
//!
//! ### Claim
//! The loss is the entropy times the negative coefficient; the entropy does not depend on it.
//!
//! ### Why it matters
//! The entropy is the curve by which the coefficient is chosen. One that is scaled with it hides
//! a collapse behind a small number, and cannot be compared between runs.
//!
//! ### Does not hold for
//! Components that return one number, and do not read the coefficient.
//!
//! ### Bugs it has caught
//! The term of the loss logged as the entropy; a coefficient applied twice.
//!
//! ### Example
//! ```diff
//! -    return {"loss": -coefficient * entropy, "entropy": coefficient * entropy}
//! +    return {"loss": -coefficient * entropy, "entropy": entropy}
//! ```

use super::{bound, pairs};
use crate::entropy_bonus::{EntropyBonus, Options};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<EntropyBonus> = Rule::new(
    Pitfall::Configuration,
    &["coefficient-ignored", "coefficient-in-the-metric", "coefficient-applied-twice"],
    check,
);

fn check(probe: &mut Probe<'_, EntropyBonus>) -> Outcome {
    let returned = probe.finite_output()?;
    let expected = probe.expected();
    let (loss, entropy) = (&returned.output.loss, &returned.output.entropy);
    let allowed = |name: &str| bound(probe, &expected, name);
    let of_loss = allowed("loss");
    let of_entropy = allowed("entropy");
    let mut checked = false;
    let coefficient = probe.options.coefficient;
    if let (Some(loss), Some(entropy)) = (loss, entropy) {
        let allowed = of_loss + coefficient * of_entropy;
        let what = format_args!("with an entropy of {}, loss", rounded(entropy[()]));
        near(what, loss[()], -coefficient * entropy[()], allowed)?;
        checked = true;
    }
    if probe.reads("coefficient") {
        let doubled = Options { coefficient: 2.0 * coefficient, ..probe.options.clone() };
        let after = probe.call_under(probe.case, &doubled)?;
        for (name, before, after) in pairs(&returned.output, &after, probe.options) {
            let (times, allowed) = match name {
                "loss" => (2.0, 4.0 * of_loss),
                _ => (1.0, 2.0 * of_entropy),
            };
            let what = format_args!("with twice the coefficient, {name}");
            near(what, after, times * before, allowed)?;
        }
        checked = true;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
