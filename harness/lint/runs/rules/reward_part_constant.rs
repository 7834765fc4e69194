//! A part of the reward never changes.
//!
//! ### Fires when
//! The mean of a part is the same in 10 rows or more and its deviation is 0 (20 rows where that is
//! not logged), while the reward as a whole does change. A part that is always above 0, and a
//! penalty that is always 0, are only noted.
//!
//! ### Not said
//! That the part is wrong: it may ask for what no completion does yet.
//!
//! ### Causes
//! - the part looks for a format that the prompt does not ask for
//! - it reads a column that is not there, or the text without its tags
//! - no completion does what it rewards, or every one does
//!
//! ### Next
//! - score by hand one completion that deserves the part and one that does not
//! - shakedown check --stage reward
//!
//! ### Source
//! A part that is the same for all completions of a group cancels out of their advantages: what it
//! asks for is not learned.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::series::Series;
use crate::runs::statistics::short;
use crate::runs::truth::{is_penalty, parts};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Reward,
    needs: &["reward.part.{name}"],
    explains: &[],
    contracts: &[("reward-function", &["every-tag-counts", "wrong-scores-less"])],
    catches: &["part-constant"],
    check,
};

/// Rows that it takes where the deviation of a part is logged, and where it is not.
const FEWEST: [u64; 2] = [10, 20];

fn check(run: &Run) -> Judgement {
    if parts(run).next().is_none() {
        return Err(insufficient("no parts of the reward are logged"));
    }
    if !parts(run).any(|(_, _, part)| part.points() >= FEWEST[0]) {
        return Err(insufficient(format!(
            "parts of the reward have fewer than {} rows",
            FEWEST[0]
        )));
    }
    if run.get("reward.mean").is_some_and(Series::is_constant) {
        return Ok(vec![]);
    }
    let constant = parts(run).filter(|(id, _, part)| is_constant(run, id, part));
    Ok(constant.map(|(id, name, part)| firing(run, id, name, part)).collect())
}

fn is_constant(run: &Run, id: &str, part: &Series) -> bool {
    let std = run.get(&format!("{id}.std"));
    let fewest = FEWEST[usize::from(std.is_none())];
    part.points() >= fewest
        && part.is_constant()
        // A zero that was rounded may be a part that is hardly ever given.
        && (part.max().abs() > part.resolution || part.resolution == 0.0)
        && std.is_none_or(|std| std.max() <= 1e-9 + std.resolution)
}

fn firing(run: &Run, id: &str, name: &str, part: &Series) -> Firing {
    let value = part.max();
    let rows = part.points();
    let found = format!("the part `{name}` of the reward is {} in all {rows} rows", short(value));
    let fired = if value > 0.0 {
        Firing::note(found).because(None, "every completion has the part already")
    } else if value == 0.0 && is_penalty(name) {
        Firing::note(found).because(None, "no completion deserves the penalty")
    } else {
        Firing::warning(found)
    };
    fired.at_steps(run.steps_from(id, 0)).metric(id, "value", value, None)
}

#[cfg(test)]
mod tests {
    use crate::report::Severity;
    use crate::runs::rules::trial1::{Metric, findings, noise, run};

    fn severities(rows: usize, parts: &[Metric<'_>]) -> Vec<Severity> {
        let reward = |i: usize| 0.5 + 0.1 * noise(7, i);
        let own: [Metric<'_>; 1] = [("reward.mean", &reward)];
        let found = findings(&run(rows, &[&own, parts].concat()), "reward-part-constant");
        found.into_iter().map(|(severity, _)| severity).collect()
    }

    const NEVER: [Metric<'_>; 2] =
        [("reward.part.format", &|_| 0.0), ("reward.part.format.std", &|_| 0.0)];

    #[test]
    fn a_part_that_is_never_given_is_a_warning() {
        assert_eq!(severities(10, &NEVER), [Severity::Warning]);
        assert_eq!(severities(9, &NEVER), []);
    }

    #[test]
    fn without_its_deviation_it_takes_twenty_rows() {
        assert_eq!(severities(20, &NEVER[..1]), [Severity::Warning]);
        assert_eq!(severities(19, &NEVER[..1]), []);
    }

    #[test]
    fn a_part_that_is_always_given_and_a_penalty_that_never_is_are_notes() {
        let always: [Metric<'_>; 2] =
            [("reward.part.tags", &|_| 1.0), ("reward.part.tags.std", &|_| 0.0)];
        assert_eq!(severities(30, &always), [Severity::Note]);
        assert_eq!(severities(30, &[("reward.part.overlong_penalty", &|_| 0.0)]), [Severity::Note]);
    }

    #[test]
    fn parts_that_differ_are_none() {
        let differs: [Metric<'_>; 2] =
            [("reward.part.format", &|_| 0.5), ("reward.part.format.std", &|_| 0.5)];
        assert_eq!(severities(30, &differs), []);
        assert_eq!(severities(30, &[("reward.part.x", &|i| 0.1 * noise(2, i))]), []);
    }

    #[test]
    fn a_reward_that_is_constant_altogether_is_told_by_another_rule() {
        let found = run(30, &[("reward.mean", &|_| 0.0), NEVER[0], NEVER[1]]);
        assert!(findings(&found, "reward-part-constant").is_empty());
    }
}
