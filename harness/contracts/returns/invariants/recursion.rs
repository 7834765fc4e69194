//! Each return is its reward and the discounted return of the next step.
//!
//! ### Claim
//! A token's return is its reward plus γ times the return of the next token.
//!
//! ### Why it matters
//! It ties every return to its neighbour, so one look shows where a row went wrong: at a gap, at
//! its end, or everywhere.
//!
//! ### Does not hold for
//! Neighbours with a gap between them where time passes there (`masked: zero`): each masked column
//! costs another γ.
//!
//! ### Bugs it has caught
//! verl #7278: the return starts anew after a tool's output.
//!
//! ### Example
//! Under `holes=True`:
//! ```diff
//!          own = rewards[:, t] + gamma * ahead
//! -        ahead = own * mask[:, t]
//! +        ahead = torch.where(mask[:, t], own, ahead)
//! ```

use crate::returns::{Options, Returns};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Returns> = Rule::new(
    Pitfall::MaskingAlignment,
    &["return-reset-at-observation", "own-reward-left-out", "summed-from-the-start"],
    check,
);

fn check(probe: &mut Probe<'_, Returns>) -> Outcome {
    let returned = probe.output()?;
    let returns = &returned.output.returns;
    let bounds = probe.bounds("returns");
    let Options { gamma, masked, .. } = *probe.options;
    let mut checked = false;
    for row in 0..returns.nrows() {
        let tokens = (0..returns.ncols()).filter(|token| probe.case.mask[[row, *token]]);
        let tokens: Vec<usize> = tokens.collect();
        for (at, token) in tokens.iter().enumerate() {
            let next = tokens.get(at + 1);
            let ahead = next.map_or(0.0, |next| {
                let steps = if masked == MaskedTokens::Zero { next - token } else { 1 };
                gamma.powi(steps as i32) * returns[[row, *next]]
            });
            let expected = probe.case.rewards[[row, *token]] + ahead;
            let found = returns[[row, *token]];
            let allowed = bounds[[row, *token]] + next.map_or(0.0, |next| bounds[[row, *next]]);
            if apart(found, expected, allowed) {
                let [found, expected] = pair(found, expected);
                broken!(
                    "returns[{row}, {token}] is {found}, but its reward and the discounted return \
                     of the next token make {expected} ± {allowed:.1e}"
                );
            }
            checked = true;
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
