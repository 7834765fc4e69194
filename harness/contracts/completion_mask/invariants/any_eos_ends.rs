//! Every end-of-sequence id ends a row.
//!
//! ### Claim
//! Which id of `eos` a row ends in makes no difference.
//!
//! ### Why it matters
//! Chat models stop at the end of a turn as well as at the end of the text. Where one of the two is
//! overlooked, completions that are complete count as cut off, and are left out or trained on with
//! what stands behind them.
//!
//! ### Does not hold for
//! `eos` of one id.
//!
//! ### Bugs it has caught
//! trl #7039: the token compared with the first id only.
//!
//! ### Example
//! Under `eos=[2, 3]`:
//! ```diff
//! -    is_eos = tokens == eos[0]
//! +    is_eos = torch.isin(tokens, torch.tensor(eos, device=tokens.device))
//! ```

use super::expect_same;
use crate::completion_mask::CompletionMask;
use shakedown_core::contract::prelude::*;
use shakedown_core::value::text::one_line;

pub(super) const RULE: Rule<CompletionMask> =
    Rule::new(Pitfall::Configuration, &["only-one-eos-id"], check)
        .under(|options| options.eos.iter().any(|id| *id != options.eos[0]));

fn check(probe: &mut Probe<'_, CompletionMask>) -> Outcome {
    let before = probe.finite_output()?;
    let eos = &probe.options.eos;
    let step = 1 + probe.pick.below(eos.len() - 1);
    let mut changed = probe.case.clone();
    for id in &mut changed.tokens {
        if let Some(place) = eos.iter().position(|eos| eos == id) {
            *id = eos[(place + step) % eos.len()];
        }
    }
    if changed == *probe.case {
        return Err(Stop::Vacuous);
    }
    let after = probe.call(&changed)?;
    expect_same(&before.output.mask, &after.mask, &format!("with {}", one_line(&changed)))
}
