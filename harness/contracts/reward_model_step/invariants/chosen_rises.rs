//! The chosen completion's score rises, and the rejected one's falls.
//!
//! ### Claim
//! No gradient lowers the score of a chosen completion, or raises that of a rejected one.
//!
//! ### Why it matters
//! A sign, or sides that are exchanged, leave a loss that starts at ln 2 and moves: the policy that
//! is trained on these rewards learns to write what people did not want.
//!
//! ### Does not hold for
//! A centre, which may pull either score anywhere.
//!
//! ### Bugs it has caught
//! Planted: a loss with the other sign; sides that are exchanged; halves of rows that alternate.
//!
//! ### Example
//! ```diff
//! -        difference = rejected - chosen
//! +        difference = chosen - rejected
//! ```

use crate::reward_model_step::{Options, RewardModelStep, pooled};
use shakedown_core::contract::prelude::*;
use shakedown_core::contract::step::Stepped as _;

pub(super) const RULE: Rule<RewardModelStep> = Rule::new(
    Pitfall::LogSpaceSign,
    &["sign-flipped", "chosen-and-rejected-swapped", "interleaved-rows-halved"],
    check,
)
.under(|options: &Options| options.center == 0.0);

fn check(probe: &mut Probe<'_, RewardModelStep>) -> Outcome {
    let (case, options) = (probe.case, probe.options);
    let returned = probe.finite_output()?;
    let bounds = probe.related("gradient");
    let differs = |row: usize| {
        let pair = case.tokens.index_axis(ndarray::Axis(0), row / 2);
        pair.row(0) != pair.row(1)
    };
    let mut judged = false;
    for (row, place) in pooled(case, options).into_iter().enumerate() {
        if !differs(row) {
            continue;
        }
        judged = true;
        let way = ["lowers", "raises"][row % 2];
        for (update, table) in returned.output.gradient.outer_iter().enumerate() {
            let at = [update, row / 2, row % 2, place];
            let (slope, allowed) = (table[&at[1..]], bounds[&at[..]]);
            if [slope, -slope][row % 2] > allowed {
                broken!(
                    "update {update} {way} the score of {}: its gradient is {}",
                    RewardModelStep::row(case, row),
                    number(slope)
                );
            }
        }
    }
    if judged { Ok(()) } else { Err(Stop::Vacuous) }
}
