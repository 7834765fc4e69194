//! A desirable completion rises, and another one falls.
//!
//! ### Claim
//! The first logit of a desirable completion does not fall, and that of one that is not does not
//! rise.
//!
//! ### Why it matters
//! A sign, or labels that are exchanged, leave a loss that starts at a half and moves: the model
//! learns to write what people did not want.
//!
//! ### Does not hold for
//! Nothing: each label has one direction, whatever the estimate of the KL.
//!
//! ### Bugs it has caught
//! Planted: a loss with the other sign; labels that are exchanged, or ignored.
//!
//! ### Example
//! ```diff
//! -        sign = torch.where(labels[rows], -1.0, 1.0)
//! +        sign = torch.where(labels[rows], 1.0, -1.0)
//! ```

use crate::kto_step::KtoStep;
use shakedown_core::contract::prelude::*;
use shakedown_core::contract::step::Stepped as _;

pub(super) const RULE: Rule<KtoStep> =
    Rule::new(Pitfall::LogSpaceSign, &["sign-flipped", "labels-swapped", "label-ignored"], check);

fn check(probe: &mut Probe<'_, KtoStep>) -> Outcome {
    let case = probe.case;
    let returned = probe.finite_output()?;
    let bounds = probe.related("gradient");
    for (row, is_desirable) in case.labels.iter().copied().enumerate() {
        let token = case.tokens[[row, 0]];
        for update in 0..case.logits.shape()[0] {
            let at = [update, row, 0, token as usize];
            let (slope, allowed) = (returned.output.gradient[&at[..]], bounds[&at[..]]);
            let (sign, way) = if is_desirable { (1.0, "falls") } else { (-1.0, "rises") };
            if sign * slope > allowed {
                let label = if is_desirable { "desirable" } else { "undesirable" };
                broken!(
                    "{} is {label} and begins with {token}, whose logit {way} at update {update}: \
                     its gradient is {}",
                    KtoStep::row(case, row),
                    number(slope)
                );
            }
        }
    }
    Ok(())
}
