//! Only sampled tokens are trained.
//!
//! ### Claim
//! The gradient is 0 behind the end of every completion, and where `unfinished: drop` is declared
//! on those without an end.
//!
//! ### Why it matters
//! Pads behind the end are the most frequent tokens of a batch. A model that is trained on them
//! learns to write pads, or to forget its end.
//!
//! ### Does not hold for
//! Nothing: a prefix that has a pad in it is one that no completion begins with.
//!
//! ### Bugs it has caught
//! Planted: padding that is trained.
//!
//! ### Example
//! ```diff
//! -    mask = torch.ones_like(ended, dtype=torch.bool).flatten(0, 1)
//! +    mask = (ended.cumsum(-1) - ended == 0).flatten(0, 1)
//! ```

use crate::grpo_step::{GrpoStep, hidden};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GrpoStep> =
    Rule::new(Pitfall::MaskingAlignment, &["padding-trained", "unfinished-rows-kept"], check);

fn check(probe: &mut Probe<'_, GrpoStep>) -> Outcome {
    let returned = probe.output()?;
    let hidden = hidden(probe.case, probe.options);
    if hidden.is_empty() {
        return Err(Stop::Vacuous);
    }
    for (update, table) in returned.output.gradient.outer_iter().enumerate() {
        for (prompt, own, at) in hidden.iter().copied() {
            for (id, x) in table.slice(ndarray::s![prompt, own, at, ..]).iter().enumerate() {
                if *x != 0.0 {
                    let place = format!("[{update}, {prompt}, {own}, {at}, {id}]");
                    broken!("gradient{place} is {}, and no token there is trained", number(*x));
                }
            }
        }
    }
    Ok(())
}
