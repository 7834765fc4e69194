//! A row without a token is a row of outcome 0, or is not there, as declared.
//!
//! ### Claim
//! A row without a token acts as one with reward 0, or as if it were not there, as declared.
//!
//! ### Why it matters
//! Filtered and truncated completions stay in the batch with an empty mask. Whether they pull the
//! baseline of their siblings to 0 is a choice, and the rewards that they had must not decide it.
//!
//! ### Does not hold for
//! Batches whose rows all have tokens, or none; with `exclude` and `layout: contiguous`, where the
//! row cannot be taken out.
//!
//! ### Bugs it has caught
//! NeMo-RL #4061, AReaL #1351: excluded rows counted in mean and deviation.
//!
//! ### Example
//! Under `empty_rows="exclude"`:
//! ```diff
//! -        rows = groups == group
//! +        rows = (groups == group) & counted
//!          own = outcomes[rows]
//! ```

use crate::outcome_advantage::{EmptyRows, OutcomeAdvantage, is_empty};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<OutcomeAdvantage> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["excluded-row-in-the-statistics", "excluded-reward-in-the-statistics", "empty-row-left-out"],
    check,
);

fn check(probe: &mut Probe<'_, OutcomeAdvantage>) -> Outcome {
    let rows = 0..probe.case.groups.len();
    let (empty, others): (Vec<usize>, Vec<usize>) =
        rows.partition(|row| is_empty(probe.case, *row));
    if empty.is_empty() || others.is_empty() {
        return Err(Stop::Vacuous);
    }
    let before = probe.finite_output()?;
    let (changed, what) = match probe.options.empty_rows {
        EmptyRows::Exclude => {
            (OutcomeAdvantage::take(probe.case, &others), "without the empty rows")
        }
        EmptyRows::Count => {
            let mut changed = probe.case.clone();
            for row in &empty {
                changed.mask[[*row, 0]] = true;
                changed.token_rewards[[*row, 0]] = 0.0;
            }
            (changed, "with a token of reward 0 in each empty row")
        }
    };
    let after = probe.call(&changed)?;
    let bounds = 2.0 * probe.bounds("advantages");
    for (place, row) in others.into_iter().enumerate() {
        let place = if probe.options.empty_rows == EmptyRows::Exclude { place } else { row };
        for token in (0..probe.case.mask.ncols()).filter(|t| probe.case.mask[[row, *t]]) {
            let found = before.output.advantages[[row, token]];
            let expected = after.advantages[[place, token]];
            let allowed = bounds[[row, token]];
            if apart(found, expected, allowed) {
                let [found, expected] = pair(found, expected);
                broken!(
                    "advantages[{row}, {token}] is {found}, {what} it is {expected}; allowed \
                     difference {allowed:.1e}"
                );
            }
        }
    }
    Ok(())
}
