//! A score that is missing concerns its own row and nobody else.
//!
//! ### Claim
//! A missing score changes no other group, and its siblings are as if that row were not there.
//!
//! ### Why it matters
//! Functions skip rows on purpose: a unit test runs only on answers that hold code. Counted as 0,
//! or as NaN in a mean, each row that is skipped moves those that were scored.
//!
//! ### Does not hold for
//! `unscored: avoid`, `final` other than `none`. With `layout: contiguous` no row can be left out
//! under `normalise: group`.
//!
//! ### Bugs it has caught
//! Missing scores turned to 0 before the statistics; `mean` for `nanmean`.
//!
//! ### Example
//! Under `unscored="skip", normalise="group"`:
//! ```diff
//! -            rows = groups == group
//! -            scores[rows, k] = standardised(rewards[rows, k].nan_to_num())
//! +            rows = (groups == group) & ~rewards[:, k].isnan()
//! +            scores[rows, k] = standardised(rewards[rows, k])
//! ```

use super::same;
use crate::reward_combination::{Final, Normalise, RewardCombination, Unscored, members};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardCombination> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["unscored-shifts-its-siblings", "unscored-counted-as-zero", "unscored-spoils-its-group"],
    check,
)
.under(|options| options.unscored == Unscored::Skip && options.r#final == Final::None);

fn check(probe: &mut Probe<'_, RewardCombination>) -> Outcome {
    let (rows, functions) = probe.case.rewards.dim();
    let (row, function) = (probe.pick.below(rows), probe.pick.below(functions));
    let group = members(probe.case).into_iter().find(|rows| rows.contains(&row));
    let group = group.unwrap_or_default();
    let mut checked = rows > group.len() || probe.options.normalise == Normalise::None;
    if checked {
        let before = probe.finite_output()?;
        let mut case = probe.case.clone();
        case.rewards[[row, function]] = f64::NAN;
        let after = probe.call(&case)?;
        let normalised = probe.options.normalise == Normalise::Group;
        let touched = |other: usize| other == row || (normalised && group.contains(&other));
        let allowed = only(2.0 * probe.related("combined"), |[other]| !touched(other));
        let what = format!("without the score of function {function} in row {row}");
        same(&what, &after.combined, &before.output.combined, &allowed)?;
    }
    // What the function gives to the siblings, the others silent, with the row and without it.
    let mut beside = probe.case.clone();
    for other in (0..functions).filter(|other| *other != function) {
        group.iter().for_each(|row| beside.rewards[[*row, other]] = 0.0);
    }
    beside.rewards[[row, function]] = f64::NAN;
    let others: Vec<usize> = (0..rows).filter(|other| *other != row).collect();
    if others.is_empty() {
        return Err(Stop::Vacuous);
    }
    let gone = RewardCombination::take(&beside, &others);
    let both = probe.call(&beside).and_then(|beside| Ok((beside, probe.call(&gone)?)));
    match both {
        Err(Stop::Vacuous) if checked => return Ok(()),
        Err(stop) => return Err(stop),
        Ok((beside_it, without)) => {
            checked = true;
            let expected = probe.expected_of(&gone);
            let allowed = 2.0 * probe.bounds_in(&expected, "combined");
            let those = beside_it.combined.select(ndarray::Axis(0), &others);
            let what = format!("beside row {row} without a score");
            same(&what, &those, &without.combined, &allowed)?;
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
