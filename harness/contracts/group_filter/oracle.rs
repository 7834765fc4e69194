//! The definition of `group-filter`: which groups stay, and what of their rows is carried along.

use ndarray::Array1;

use super::{Criterion, GroupFilterCase, Options, Singleton, members, spread};
use shakedown_core::contract::coverage;
use shakedown_core::numeric::tolerance::{Expected, Number};

/// Whether a group stays where nothing is limited.
pub(super) fn stays(case: &GroupFilterCase, options: &Options, rows: &[usize]) -> bool {
    match options.criterion {
        Criterion::Spread if rows.len() == 1 => options.singleton == Singleton::Keep,
        Criterion::Spread => spread(case, rows) > options.tolerance,
        Criterion::Range => {
            let [lo, hi] = options.range;
            let mean = mean(case, rows);
            lo < mean && mean < hi
        }
    }
}

/// The mean of the metric of some rows; of equal ones it is one of them.
pub(super) fn mean(case: &GroupFilterCase, rows: &[usize]) -> f64 {
    if spread(case, rows) == 0.0 {
        return case.metric[rows[0]];
    }
    rows.iter().map(|row| case.metric[*row]).sum::<f64>() / rows.len() as f64
}

/// Whether each row stays.
pub(super) fn keep(case: &GroupFilterCase, options: &Options) -> Vec<bool> {
    let mut groups = members(case);
    groups.retain(|rows| stays(case, options, rows));
    if let Some(limit) = options.limit {
        groups.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    }
    coverage::event(&[if groups.is_empty() { "nothing stays" } else { "something stays" }]);
    let mut keep = vec![false; case.metric.len()];
    groups.into_iter().flatten().for_each(|row| keep[row] = true);
    keep
}

/// What the definition gives: nothing is computed of what is given back, so nothing is rounded.
pub(super) fn filter(case: &GroupFilterCase, options: &Options) -> Vec<Expected> {
    let keep = keep(case, options);
    let kept: Vec<usize> = (0..keep.len()).filter(|row| keep[*row]).collect();
    let expected = |field, values: Vec<f64>| {
        let numbers = values.into_iter().map(|value| Number::new(value, 0.0));
        let numbers: Array1<Number> = numbers.collect();
        Expected { field, numbers: numbers.into_dyn(), terms: 1 }
    };
    vec![
        expected("keep", keep.iter().map(|keep| f64::from(*keep)).collect()),
        expected("kept_ids", kept.iter().map(|row| case.ids[*row] as f64).collect()),
        expected("kept_rewards", kept.iter().map(|row| case.rewards[*row]).collect()),
    ]
}

#[cfg(test)]
mod tests {
    use ndarray::Array1;

    use super::*;

    fn case(metric: &[f64], groups: &[i64]) -> GroupFilterCase {
        let count = metric.len();
        GroupFilterCase {
            rewards: (0..count).map(|row| row as f64 / 2.0).collect(),
            metric: metric.to_vec().into(),
            groups: groups.to_vec().into(),
            ids: (0..count as i64).map(|row| 7 - row).collect(),
        }
    }

    fn kept(case: &GroupFilterCase, options: &Options) -> Vec<f64> {
        let ids = filter(case, options)[1].numbers.iter().map(|id| id.value).collect::<Array1<_>>();
        ids.to_vec()
    }

    #[test]
    fn groups_that_differ_stay_and_their_rows_keep_their_order() {
        let case = case(&[1.0, 0.0, 0.0, 0.0, 0.81, 0.81], &[5, 9, 5, 9, 2, 2]);
        assert_eq!(kept(&case, &Options::default()), [7.0, 5.0]);
        let expected = filter(&case, &Options::default());
        let rewards: Vec<f64> = expected[2].numbers.iter().map(|reward| reward.value).collect();
        assert_eq!(rewards, [0.0, 1.0]);
    }

    #[test]
    fn the_edges_of_a_range_are_outside() {
        let options = Options { criterion: Criterion::Range, ..Options::default() };
        let case = case(&[0.0, 0.0, 1.0, 1.0, 0.5, 0.5, 1.0, 0.0], &[0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(kept(&case, &options), [3.0, 2.0, 1.0, 0.0]);
    }

    #[test]
    fn a_limit_counts_the_groups_that_stay() {
        let case = case(&[0.0, 0.0, 1.0, 0.0, 2.0, 0.0], &[4, 4, 3, 3, 1, 1]);
        let of = |limit| kept(&case, &Options { limit: Some(limit), ..Options::default() });
        assert_eq!(of(1), [5.0, 4.0]);
        assert_eq!(of(2), [5.0, 4.0, 3.0, 2.0]);
        assert!(of(0).is_empty());
    }

    #[test]
    fn one_row_has_no_spread_and_has_a_mean() {
        let case = case(&[0.5, 0.0, 1.0], &[0, 1, 1]);
        assert_eq!(kept(&case, &Options::default()), [6.0, 5.0]);
        let options = Options { singleton: Singleton::Keep, ..Options::default() };
        assert_eq!(kept(&case, &options), [7.0, 6.0, 5.0]);
        let options = Options { criterion: Criterion::Range, ..Options::default() };
        assert_eq!(kept(&case, &options), [7.0, 6.0, 5.0]);
    }
}
