//! The reward is not one weighted sum of its parts.
//!
//! ### Fires when
//! No weights, the same for all rows, make `reward.mean` of two or more `reward.part.*` and a
//! constant (least squares over 20 rows or more, and twice as many as weights): some row is off by
//! more than a thousandth of the range of the reward, and what the log rounds away.
//!
//! ### Not said
//! That this is wrong: it is good to know where the weights are thought to be fixed. Shares of
//! categories, which slime logs in place of parts, are not judged.
//!
//! ### Causes
//! - weights that change, or rewards that are normalised before they are added
//! - a part that gives nothing for some rows
//! - a reward that is clipped after the sum, or a part that is not logged
//!
//! ### Next
//! - shakedown check --stage reward
//! - log the sum beside its parts for one batch, and add them by hand
//!
//! ### Source
//! The mean of a weighted sum is the weighted sum of the means.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use crate::runs::series::Series;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::rounded;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Reward,
    needs: &["reward.mean", "reward.part.{name}"],
    explains: &[],
    contracts: &[
        ("reward-combination", &["weighted-mean", "nothing-scored"]),
        ("reward-function", &["in-range", "zero-is-a-score"]),
    ],
    catches: &["part-dropped"],
    check,
};

/// What may be left of the range of the reward.
const LEFT: f64 = 1e-3;

fn check(run: &Run) -> Judgement {
    let reward = run.need("reward.mean", 20)?;
    let parts: Vec<&Series> = parts(run);
    if parts.len() < 2 {
        return Err(insufficient("fewer than two parts of the reward are logged"));
    }
    let (steps, columns) = rows_with_all(reward, &parts);
    let enough = 20.max(2 * (parts.len() + 1));
    if steps.len() < enough {
        let why = format!("{} rows have all parts, {enough} are needed", steps.len());
        return Err(insufficient(why));
    }
    let (weights, left) = fit(&columns[0], &columns[1..]);
    let hidden: f64 = parts.iter().zip(&weights).map(|(part, w)| part.resolution * w.abs()).sum();
    let range = extent(&columns[0]);
    let limit = LEFT * range + reward.resolution + hidden + 1e-9;
    let off: Vec<usize> = (0..left.len()).filter(|row| left[*row].abs() > limit).collect();
    let (Some(first), Some(last)) = (off.first(), off.last()) else { return Ok(vec![]) };
    let most = left.iter().fold(0.0, |most: f64, left| most.max(left.abs()));
    let found = format!(
        "in {} of {} rows no fixed weights of {} parts make {}, which is off by up to {}",
        off.len(),
        left.len(),
        parts.len(),
        reward.name,
        rounded(most),
    );
    Firing::note(found)
        .at_steps([steps[*first], steps[*last]])
        .metric("reward.mean", "off by", most, Some(limit))
        .into()
}

/// The parts, without their deviations. Only names that stand for a part of a sum count.
fn parts(run: &Run) -> Vec<&Series> {
    let parts = run.starting("reward.part.").filter(|(id, _)| !id.ends_with(".std"));
    parts.map(|(_, part)| part).filter(|part| !part.name.contains("reward_cat/")).collect()
}

/// The steps of the rows that have the reward and all parts, and the columns of their values.
fn rows_with_all(reward: &Series, parts: &[&Series]) -> (Vec<i64>, Vec<Vec<f64>>) {
    let mut columns = vec![Vec::new(); parts.len() + 1];
    let mut steps = Vec::new();
    for bucket in reward.finite() {
        let same = |part: &&Series| {
            let at = part.buckets.binary_search_by_key(&bucket.index, |one| one.index).ok()?;
            Some(part.buckets[at]).filter(|one| one.count == bucket.count).map(|one| one.mean)
        };
        let Some(values) = parts.iter().map(same).collect::<Option<Vec<f64>>>() else { continue };
        steps.push(bucket.steps[0]);
        columns[0].push(bucket.mean);
        columns[1..].iter_mut().zip(values).for_each(|(column, value)| column.push(value));
    }
    (steps, columns)
}

/// The weights of the columns that come nearest to a target, with a constant, and what they leave.
/// A column that follows from those before it gets none.
fn fit(target: &[f64], columns: &[Vec<f64>]) -> (Vec<f64>, Vec<f64>) {
    let centred: Vec<Vec<f64>> = columns.iter().map(|column| centre(column)).collect();
    let target = centre(target);
    let scales: Vec<f64> = centred.iter().map(|column| dot(column, column).sqrt()).collect();
    let scale = |at: usize| if scales[at] > 0.0 { scales[at] } else { 1.0 };
    let n = columns.len();
    let mut system: Vec<Vec<f64>> = Vec::with_capacity(n);
    for i in 0..n {
        let products = (0..n).map(|j| dot(&centred[i], &centred[j]) / scale(i) / scale(j));
        let right = dot(&centred[i], &target) / scale(i);
        system.push(products.chain([right]).collect());
    }
    let scaled = solve(system);
    let weights: Vec<f64> = (0..n).map(|i| scaled[i] / scale(i)).collect();
    let left = (0..target.len()).map(|row| {
        let sum: f64 = (0..n).map(|i| weights[i] * centred[i][row]).sum();
        target[row] - sum
    });
    (weights.clone(), left.collect())
}

/// Solves for the last column, by elimination; what is not determined is 0.
fn solve(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let n = rows.len();
    let mut pivots = Vec::new();
    for at in 0..n {
        let size = |row: &usize| rows[*row][at].abs();
        let free = (0..n).filter(|row| !pivots.iter().any(|(used, _)| used == row));
        let Some(pivot) = free.max_by(|a, b| size(a).total_cmp(&size(b))) else { break };
        if rows[pivot][at].abs() < 1e-10 {
            continue;
        }
        let by = rows[pivot].clone();
        for row in (0..n).filter(|row| *row != pivot) {
            let factor = rows[row][at] / by[at];
            rows[row].iter_mut().zip(&by).for_each(|(x, y)| *x -= factor * y);
        }
        pivots.push((pivot, at));
    }
    let mut solution = vec![0.0; n];
    for (row, at) in pivots {
        solution[at] = rows[row][n] / rows[row][at];
    }
    solution
}

fn centre(values: &[f64]) -> Vec<f64> {
    let mean = crate::runs::statistics::mean(values);
    values.iter().map(|value| value - mean).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn extent(values: &[f64]) -> f64 {
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    most - values.iter().copied().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::super::trial::{chance, rounded, run, severities, status};
    use super::*;
    use crate::report::{RuleStatus, Severity};

    const RULE: &str = "reward-parts-disagree";

    fn cells(row: usize, sum: fn(usize, f64, f64) -> f64) -> Vec<(&'static str, f64)> {
        let (right, format) = (chance(row), chance(row + 1000));
        vec![
            ("reward.mean", sum(row, right, format)),
            ("reward.part.right", right),
            ("reward.part.right.std", chance(row + 2000)),
            ("reward.part.format", format),
        ]
    }

    fn sums(rows: usize, sum: fn(usize, f64, f64) -> f64) -> Run {
        run(rows, |row| cells(row, sum))
    }

    #[test]
    fn any_weights_and_a_constant_do() {
        let run = sums(20, |_, right, format| 2.0 * right - 0.3 * format + 5.0);
        assert_eq!(status(&run, RULE), RuleStatus::Quiet);
        let few = sums(19, |_, right, format| right * format);
        assert_eq!(status(&few, RULE), RuleStatus::Insufficient);
    }

    #[test]
    fn a_part_that_is_left_out_in_some_rows_is_noted() {
        let run = sums(60, |row, right, format| right + if row % 9 == 4 { 0.0 } else { format });
        assert_eq!(severities(&run, RULE), [Severity::Note]);
        let clipped = sums(60, |_, right, format| (right + format).min(1.6));
        assert_eq!(severities(&clipped, RULE), [Severity::Note]);
    }

    #[test]
    fn what_is_rounded_away_is_not_missed() {
        let run = rounded(2, 60, |row| cells(row, |_, right, format| right + format));
        assert_eq!(status(&run, RULE), RuleStatus::Quiet);
    }

    #[test]
    fn parts_that_say_the_same_or_nothing_are_no_difficulty() {
        let run = run(40, |row| {
            let part = chance(row);
            vec![
                ("reward.mean", 3.0 * part),
                ("reward.part.one", part),
                ("reward.part.same", 1.0 - part),
                ("reward.part.still", 1.0),
            ]
        });
        assert_eq!(status(&run, RULE), RuleStatus::Quiet);
    }

    #[test]
    fn a_reward_that_never_changes_has_parts_too() {
        let run = sums(30, |_, _, _| 1.0);
        assert_eq!(status(&run, RULE), RuleStatus::Quiet);
    }
}
