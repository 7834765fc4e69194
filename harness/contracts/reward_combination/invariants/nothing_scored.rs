//! A row that no function scored is no row with a reward.
//!
//! ### Claim
//! A row without a score gets what is declared; others are not NaN, and are as without it.
//!
//! ### Why it matters
//! Summed to 0 it looks like a failure among siblings that were scored, or like a success among
//! penalties. As a NaN that spreads it ends the run.
//!
//! ### Does not hold for
//! `unscored: avoid`. With `layout: contiguous` only the values are checked where rows cannot be
//! left out.
//!
//! ### Bugs it has caught
//! trl #5773, #5775, #5902: a row of None summed to 0.
//!
//! ### Example
//! Under `unscored="skip"`:
//! ```diff
//! -        "combined": combined,
//! +        "combined": combined.where(scored, torch.nan),
//! ```

use super::{same, valued};
use crate::reward_combination::{Nothing, RewardCombination, Unscored};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardCombination> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &[
        "row-of-none-is-zero",
        "row-of-none-is-nan",
        "nan-spoils-the-row",
        "row-of-none-in-the-statistics",
        "reward-mean-over-all-rows",
        "reward-mean-is-nan",
    ],
    check,
)
.under(|options| options.unscored == Unscored::Skip);

fn check(probe: &mut Probe<'_, RewardCombination>) -> Outcome {
    let case = probe.case;
    let rows = valued(case);
    let whole = probe.output()?.output;
    let declared = if probe.options.nothing == Nothing::Nan { f64::NAN } else { 0.0 };
    for (row, found) in whole.combined.iter().enumerate() {
        if rows.contains(&row) {
            if found.is_nan() {
                broken!("row {row} is scored, but combined[{row}] is nan");
            }
        } else if *found != declared && !(found.is_nan() && declared.is_nan()) {
            let [found, declared] = [number(*found), number(declared)];
            broken!("nothing scored row {row}; combined[{row}] is {found}, expected {declared}");
        }
    }
    let columns = case.rewards.columns().into_iter();
    let scored = columns.map(|column| column.iter().any(|reward| !reward.is_nan()));
    let means = whole.function_means.iter().flatten().zip(scored);
    let means = means
        .enumerate()
        .map(|(k, (mean, scored))| (format!("function_means[{k}]"), *mean, scored));
    let reward_mean =
        whole.reward_mean.iter().map(|mean| ("reward_mean".to_owned(), mean[()], !rows.is_empty()));
    for (name, mean, scored) in means.chain(reward_mean) {
        if scored == mean.is_nan() {
            let expected = if scored { "a number" } else { "NaN: nothing was scored" };
            broken!("{name} is {}, expected {expected}", number(mean));
        }
    }
    if rows.is_empty() || rows.len() == case.groups.len() {
        return Ok(());
    }
    let without = match probe.call(&RewardCombination::take(case, &rows)) {
        Err(Stop::Vacuous) => return Ok(()),
        other => other?,
    };
    let those = whole.combined.select(ndarray::Axis(0), &rows);
    let allowed = 2.0 * probe.related("combined").select(ndarray::Axis(0), &rows);
    same("without the rows that nobody scored", &without.combined, &those, &allowed)?;
    if let (Some(found), Some(expected)) = (&without.reward_mean, &whole.reward_mean) {
        let what = "without the rows that nobody scored, reward_mean";
        near(what, found[()], expected[()], 2.0 * probe.related("reward_mean").sum())?;
    }
    Ok(())
}
