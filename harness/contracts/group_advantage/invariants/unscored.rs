//! A completion that could not be scored has no part in anything.
//!
//! ### Claim
//! An unscored row has advantage 0, and its group has the advantages that it has without the row.
//!
//! ### Why it matters
//! Counted as 0 it makes its siblings look better than they are; as NaN it ends the run.
//!
//! ### Does not hold for
//! `unscored: avoid`. With `layout: contiguous` only the zero is checked, as rows cannot be left
//! out.
//!
//! ### Bugs it has caught
//! trl #5773, #5775, #5902: a row of None summed to 0.
//!
//! ### Example
//! Under `unscored="exclude"`:
//! ```diff
//! -        rows = groups == group
//! -        own = rewards[rows].nan_to_num()
//! +        rows = (groups == group) & ~rewards.isnan()
//! +        own = rewards[rows]
//! ```

use crate::group_advantage::{GroupAdvantage, Layout, Unscored};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupAdvantage> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["unscored-counted-as-zero", "unscored-spoils-its-group"],
    check,
)
.under(|options| options.unscored == Unscored::Exclude);

fn check(probe: &mut Probe<'_, GroupAdvantage>) -> Outcome {
    let rewards = &probe.case.rewards;
    let scored: Vec<usize> = (0..rewards.len()).filter(|row| !rewards[*row].is_nan()).collect();
    if scored.len() == rewards.len() {
        return Err(Stop::Vacuous);
    }
    let whole = probe.output()?;
    for row in (0..rewards.len()).filter(|row| rewards[*row].is_nan()) {
        let advantage = whole.output.advantages[row];
        if advantage != 0.0 {
            broken!(
                "row {row} is unscored; advantages[{row}] is {}, expected 0",
                rounded(advantage)
            );
        }
    }
    if scored.is_empty() || probe.options.layout == Layout::Contiguous {
        return Ok(());
    }
    let without = probe.call(&GroupAdvantage::take(probe.case, &scored))?;
    let bounds = probe.bounds("advantages");
    for (place, row) in scored.into_iter().enumerate() {
        let (found, expected) = (whole.output.advantages[row], without.advantages[place]);
        let allowed = 2.0 * bounds[[row]];
        if apart(found, expected, allowed) {
            broken!(
                "advantages[{row}] is {} beside unscored rows and {} without them; allowed \
                 difference {allowed:.1e}",
                rounded(found),
                rounded(expected),
            );
        }
    }
    Ok(())
}
