//! A pair of two equal completions teaches nothing.
//!
//! ### Claim
//! Where all pairs are of two equal completions, the gradient is 0.
//!
//! ### Why it matters
//! Both sides pull at the same logits, one up and one down. A push that is left over comes from a
//! side that is masked, cut or scored in another way than the other.
//!
//! ### Does not hold for
//! Losses that treat the sides apart (`nca`, `sppo-hard`, …), and a likelihood of the chosen side.
//!
//! ### Bugs it has caught
//! Planted: a rejected completion without its gradient.
//!
//! ### Example
//! ```diff
//! -        losses = -torch.nn.functional.logsigmoid(0.1 * (ratios[:, 0] - ratios[:, 1].detach()))
//! +        losses = -torch.nn.functional.logsigmoid(0.1 * (ratios[:, 0] - ratios[:, 1]))
//! ```

use crate::preference_step::{Kind, Options, PreferenceStep};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PreferenceStep> =
    Rule::new(Pitfall::LogSpaceSign, &["rejected-side-detached"], check).under(is_of_the_margin);

fn is_of_the_margin(options: &Options) -> bool {
    use Kind::{Exo, Hinge, Ipo, IpoNorm, Robust, Sigmoid, SigmoidNorm, Simpo};
    let kind = matches!(
        options.kind,
        Sigmoid | Hinge | Ipo | Robust | Simpo | SigmoidNorm | IpoNorm | Exo
    );
    kind && options.nll_weight == 0.0
}

fn check(probe: &mut Probe<'_, PreferenceStep>) -> Outcome {
    if !probe.case.tokens.outer_iter().all(|pair| pair.row(0) == pair.row(1)) {
        return Err(Stop::Vacuous);
    }
    let returned = probe.finite_output()?;
    let bounds = probe.bounds("gradient");
    for ((at, x), allowed) in returned.output.gradient.indexed_iter().zip(&bounds) {
        if apart(*x, 0.0, *allowed) {
            broken!(
                "gradient{} is {}, and all pairs are of two equal completions",
                index(&at),
                number(*x)
            );
        }
    }
    Ok(())
}
