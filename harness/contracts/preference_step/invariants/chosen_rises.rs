//! The chosen completion rises, and the rejected one falls.
//!
//! ### Claim
//! Where a pair's completions begin differently, the chosen one's first logit does not fall, and
//! the other's does not rise.
//!
//! ### Why it matters
//! A sign, or sides that are exchanged, leave a loss that starts at ln 2 and moves: the model
//! learns to write what people did not want.
//!
//! ### Does not hold for
//! Smoothing, which pulls back where the margin is large; `ipo`, `ipo-norm`, `sppo-hard`, `exo`
//! and ranks, which have a best margin; `nca`, `apo-down`, which also pull the chosen side down.
//!
//! ### Bugs it has caught
//! Planted: a loss with the other sign.
//!
//! ### Example
//! ```diff
//! -        losses = -torch.nn.functional.logsigmoid(0.1 * (ratios[:, 1] - ratios[:, 0]))
//! +        losses = -torch.nn.functional.logsigmoid(0.1 * (ratios[:, 0] - ratios[:, 1]))
//! ```

use crate::preference_step::{Kind, Options, PreferenceStep};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PreferenceStep> =
    Rule::new(Pitfall::LogSpaceSign, &["sign-flipped"], check).under(is_rising);

fn is_rising(options: &Options) -> bool {
    use Kind::{ApoZero, BcoPair, Hinge, Orpo, Robust, Sigmoid, SigmoidNorm, Simpo};
    let kind = matches!(
        options.kind,
        Sigmoid | Hinge | Simpo | SigmoidNorm | Orpo | BcoPair | ApoZero | Robust
    );
    kind && options.label_smoothing == 0.0
}

fn check(probe: &mut Probe<'_, PreferenceStep>) -> Outcome {
    let case = probe.case;
    let returned = probe.finite_output()?;
    let bounds = probe.related("gradient");
    let mut judged = false;
    for (pair, tokens) in case.tokens.outer_iter().enumerate() {
        let [chosen, rejected] = [tokens[[0, 0]], tokens[[1, 0]]];
        if chosen == rejected {
            continue;
        }
        judged = true;
        for update in 0..case.logits.shape()[0] {
            for (token, sign, way) in [(chosen, 1.0, "falls"), (rejected, -1.0, "rises")] {
                // Before the first token both have the same prefix: its row is the chosen one's.
                let at = [update, pair, 0, 0, token as usize];
                let (slope, allowed) = (returned.output.gradient[&at[..]], bounds[&at[..]]);
                if sign * slope > allowed {
                    let which = if sign > 0.0 { "chosen" } else { "rejected" };
                    broken!(
                        "the {which} completion of pair {pair} begins with {token}, whose logit \
                         {way} at update {update}: its gradient is {}",
                        number(slope)
                    );
                }
            }
        }
    }
    if judged { Ok(()) } else { Err(Stop::Vacuous) }
}
