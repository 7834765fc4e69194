//! How wide the inputs are makes no difference.
//!
//! ### Claim
//! More columns of pads in the prompts and completions change nothing.
//!
//! ### Why it matters
//! Inputs come filled up to whatever the step before them needed. What is a token is said by the
//! lengths, and neither by the width nor by the id.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! Buffers of the longest prompt allowed that are put side by side, pads between them and all.
//!
//! ### Example
//! ```diff
//! -        tokens = torch.cat([prompts[row], completions[row]])
//! +        tokens = torch.cat([prompts[row, :begin], completions[row, :length]])
//! ```

use super::rows_of;
use crate::batch_collation::{BatchCollation, case_of};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchCollation> =
    Rule::new(Pitfall::MaskingAlignment, &["as-wide-as-the-inputs", "inputs-side-by-side"], check);

fn check(probe: &mut Probe<'_, BatchCollation>) -> Outcome {
    let before = probe.output()?;
    let more = [1 + probe.pick.below(2), probe.pick.below(3)];
    let rows = rows_of(probe.case);
    let wide = case_of(&rows, probe.options, more);
    if wide == *probe.case {
        return Err(Stop::Vacuous);
    }
    let after = probe.call(&wide)?;
    for ((name, before), (other, after)) in before.output.given().into_iter().zip(after.given()) {
        if name != other {
            continue;
        }
        if before.dim() != after.dim() {
            let (before, after) = (before.ncols(), after.ncols());
            broken!("with {more:?} columns more, `{name}` has {after}, before it had {before}");
        }
        // Under padding there may be anything, which need not be the same twice.
        let expected = probe.bounds(name);
        for (((at, before), after), allowed) in before.indexed_iter().zip(after).zip(&expected) {
            if apart(*after, *before, *allowed) {
                let [before, after] = [*before, *after].map(number);
                broken!(
                    "with {more:?} columns more, {name}[{}, {}] is {after}, before it was {before}",
                    at.0,
                    at.1
                );
            }
        }
    }
    Ok(())
}
