//! Every completion gets the same reward.
//!
//! ### Fires when
//! `reward.mean` never changes in 5 rows or more, and `reward.std` is 0, or all groups are flat, or
//! the highest reward is the lowest. Where none of these is logged it takes 10 rows.
//!
//! ### Not said
//! Which completions deserve more: only that none got it.
//!
//! ### Causes
//! - the scorer returns one value whatever it gets
//! - the answer is never extracted, so nothing is ever right
//! - decoding empties the text before it is scored
//! - the task is impossible for this model, or done already
//!
//! ### Next
//! - print what the scorer gets and gives for one batch: prompt, completion, answer, score
//! - shakedown check --stage reward
//! - shakedown check --stage decoding
//!
//! ### Source
//! Advantages are differences between rewards: where there are none, there is no gradient.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::series::Series;
use crate::runs::statistics::short;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Reward,
    needs: &["reward.mean"],
    explains: &["groups-flat", "reward-flat", "gradient-vanishes"],
    contracts: &[
        ("reward-function", &["wrong-scores-less", "well-formed-is-the-maximum"]),
        ("completion-decoder", &["non-empty"]),
        ("answer-extractor", &["recovered"]),
    ],
    catches: &["scorer-constant"],
    check,
};

/// Rows that it takes where something else says that rewards do not differ, and where nothing does.
const FEWEST: [usize; 2] = [5, 10];

fn check(run: &Run) -> Judgement {
    let reward = run.need("reward.mean", FEWEST[0])?;
    if !reward.is_constant() {
        return Ok(vec![]);
    }
    let witness = match witness(run) {
        Some((_, false)) => return Ok(vec![]),
        Some((witness, true)) => Some(witness),
        None => {
            run.need("reward.mean", FEWEST[1])?;
            None
        }
    };
    let value = reward.max();
    if reward.resolution > 0.0 && value.abs() <= reward.resolution {
        return Err(insufficient("rewards are logged with too few digits to tell them from 0"));
    }
    let because = witness.map_or(String::new(), |witness| format!(", and {witness}"));
    let rows = reward.points();
    let found = format!("the mean reward is {} in all {rows} rows{because}", short(value));
    Firing::error(found)
        .at_steps(run.steps_from("reward.mean", 0))
        .metric("reward.mean", "max - min", reward.max() - reward.min(), None)
        .into()
}

/// What else says whether the rewards of a batch differ, and that they never do.
fn witness(run: &Run) -> Option<(&'static str, bool)> {
    let zero = |series: &Series| series.max() <= 1e-9 + series.resolution;
    let flat = |series: &Series| series.min() >= 1.0 - 1e-9 - series.resolution;
    let same = || {
        let (max, min) = (run.get("reward.max")?, run.get("reward.min")?);
        Some(max.is_constant() && min.is_constant() && max.max() - min.min() <= 1e-9)
    };
    let std = run.get("reward.std").map(|std| ("its deviation is 0", zero(std)));
    let groups = run.get("groups.flat").map(|groups| ("all groups are flat", flat(groups)));
    let ends = same().map(|same| ("the highest reward is the lowest", same));
    let said = [std, groups, ends];
    said.iter().flatten().find(|(_, same)| *same).or(said.iter().flatten().next()).copied()
}

#[cfg(test)]
mod tests {
    use crate::report::Severity;
    use crate::runs::rules::trial1::{Metric, findings, noise, run};

    const ID: &str = "reward-constant";

    fn fires(rows: usize, metrics: &[Metric<'_>]) -> bool {
        let found = findings(&run(rows, metrics), ID);
        assert!(found.iter().all(|(severity, _)| *severity == Severity::Error));
        !found.is_empty()
    }

    #[test]
    fn one_value_and_no_deviation_fire_after_five_rows() {
        let metrics: [Metric<'_>; 2] = [("reward.mean", &|_| 0.25), ("reward.std", &|_| 0.0)];
        assert!(fires(5, &metrics) && !fires(4, &metrics));
    }

    #[test]
    fn one_value_alone_takes_ten_rows() {
        assert!(fires(10, &[("reward.mean", &|_| 0.0)]) && !fires(9, &[("reward.mean", &|_| 0.0)]));
    }

    #[test]
    fn rewards_that_differ_around_a_fixed_mean_are_none() {
        assert!(!fires(40, &[("reward.mean", &|_| 0.0), ("reward.std", &|_| 1.0)]));
        assert!(!fires(40, &[("reward.mean", &|_| 0.0), ("groups.flat", &|_| 0.9)]));
        let ends: [Metric<'_>; 2] = [("reward.max", &|_| 1.0), ("reward.min", &|_| 0.0)];
        assert!(!fires(40, &[("reward.mean", &|_| 0.5), ends[0], ends[1]]));
    }

    #[test]
    fn a_reward_that_scatters_is_none() {
        assert!(!fires(40, &[("reward.mean", &|i| 0.01 * noise(1, i)), ("reward.std", &|_| 0.0)]));
    }

    #[test]
    fn rounded_zeros_say_nothing() {
        let mut rounded = run(40, &[("reward.mean", &|_| 0.0), ("reward.std", &|_| 0.0)]);
        rounded.series.values_mut().for_each(|series| series.resolution = 5e-4);
        assert!(findings(&rounded, ID).is_empty());
    }
}
