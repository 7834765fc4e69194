//! A row ends with its last token.
//!
//! ### Claim
//! The return of a row's last token is that token's reward: nothing after it counts.
//!
//! ### Why it matters
//! Behind the end of a completion there are pads, and the critic has a value for them too. A
//! bootstrap from there credits the end of every short completion with noise.
//!
//! ### Does not hold for
//! Rollouts that are cut in the middle, which the contract `rollout-gae` is about.
//!
//! ### Bugs it has caught
//! SB3 #183: the last stored value once more, for the value that follows it.
//!
//! ### Example
//! ```diff
//! -        next_values = values[:, step]
//! +        next_values = torch.where(counts, values[:, step], next_values)
//! ```

use super::tokens;
use crate::gae::Gae;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Gae> = Rule::new(
    Pitfall::MaskingAlignment,
    &["pad-value-as-the-next", "bootstrap-with-the-last-value"],
    check,
);

fn check(probe: &mut Probe<'_, Gae>) -> Outcome {
    let returned = probe.output()?;
    let bounds = probe.bounds("returns");
    let mut checked = false;
    for (row, tokens) in tokens(probe.case).into_iter().enumerate() {
        let Some(last) = tokens.last() else { continue };
        let at = [row, *last];
        let (found, expected) = (returned.output.returns[at], probe.case.rewards[at]);
        if apart(found, expected, bounds[at]) {
            let [found, expected] = pair(found, expected);
            broken!(
                "returns[{row}, {last}] is {found}, expected the reward of the row's last token, \
                 {expected} ± {:.1e}",
                bounds[at]
            );
        }
        checked = true;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
