//! The margin of the pairs is not the chosen reward minus the rejected one.
//!
//! ### Fires when
//! In some row `pref.margin` differs from `pref.chosen` - `pref.rejected` by more than a hundredth
//! of the larger side and what the log rounds away.
//!
//! ### Not said
//! That the loss is wrong where only the logged margin is: compare the two in the code.
//!
//! ### Causes
//! - the margin is scaled by β once more, or not at all
//! - the margin is one of log-probabilities, or of another batch than the rewards
//! - chosen and rejected are swapped in one of the three
//!
//! ### Next
//! - shakedown check --stage loss
//! - print the three for one pair
//!
//! ### Source
//! The mean of a difference is the difference of the means.

use std::collections::BTreeMap;

use crate::rules::{Firing, Head, Judgement};
use crate::runs::Run;
use crate::runs::statistics::{median, short};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::count;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Loss,
    needs: &["pref.margin", "pref.chosen", "pref.rejected"],
    explains: &[],
    contracts: &[("preference-loss", &["implicit-rewards"])],
    catches: &["margin-scaled"],
    check,
};

/// What [`crate::runs::derived`] finds row by row.
const APART: &str = "disorder.margin";

fn check(run: &Run) -> Judgement {
    let margin = run.need("pref.margin", 1)?;
    let [chosen, rejected] =
        [run.need("pref.chosen", 1)?, run.need("pref.rejected", 1)?].map(|side| &side.name);
    let Some(apart) = run.get(APART) else { return Ok(vec![]) };
    let rows = count(apart.points(), "row");
    let found = format!("{} is not {chosen} - {rejected} in {rows}{}", margin.name, factor(run));
    Firing::error(found)
        .at_steps(run.steps_where(APART, |bucket| bucket.count > 0).unwrap_or_default())
        .metric("pref.margin", "beyond by", apart.max(), Some(0.0))
        .into()
}

/// How many times the difference it is, where that is the same in most rows.
fn factor(run: &Run) -> String {
    let by_row = |id: &str| -> BTreeMap<u64, f64> {
        let rows = run.get(id).into_iter().flat_map(|series| series.finite());
        rows.map(|row| (row.index, row.mean)).collect()
    };
    let [chosen, rejected] = ["pref.chosen", "pref.rejected"].map(by_row);
    let times = by_row("pref.margin").into_iter().filter_map(|(row, margin)| {
        Some(margin / (chosen.get(&row)? - rejected.get(&row)?)).filter(|times| times.is_finite())
    });
    let times: Vec<f64> = times.collect();
    let usual = median(&times);
    let alike = times.iter().filter(|one| (*one - usual).abs() <= 0.05 * usual.abs()).count();
    match 2 * alike > times.len() {
        true => format!(", but {} times that", short(usual)),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{found, rounded, run, severities, status};
    use crate::report::{RuleStatus, Severity};

    const RULE: &str = "margins-disagree";

    fn pair(i: usize, times: f64) -> Vec<(&'static str, f64)> {
        let (chosen, rejected) = (0.01 * i as f64, -0.02 * i as f64);
        let margin = times * (chosen - rejected);
        vec![("pref.chosen", chosen), ("pref.rejected", rejected), ("pref.margin", margin)]
    }

    #[test]
    fn margins_are_the_chosen_reward_minus_the_rejected_one() {
        let scaled = run(200, |i| pair(i, 0.1));
        assert_eq!(severities(&scaled, RULE), [Severity::Error]);
        let said = "pref.margin is not pref.chosen - pref.rejected in 199 rows, but 0.1 times that";
        assert_eq!(found(&scaled, RULE), [said]);
        assert_eq!(status(&run(200, |i| pair(i, 1.0)), RULE), RuleStatus::Quiet);
        assert_eq!(severities(&run(9, |i| pair(i, -1.0)), RULE), [Severity::Error]);
    }

    #[test]
    fn what_a_log_rounds_away_is_allowed() {
        assert_eq!(status(&rounded(2, 200, |i| pair(i, 1.0)), RULE), RuleStatus::Quiet);
    }

    #[test]
    fn all_three_are_needed() {
        let two = run(9, |i| pair(i, 0.1).into_iter().skip(1).collect());
        assert_eq!(status(&two, RULE), RuleStatus::Insufficient);
    }
}
