//! Rows that stand out from their neighbours: each is compared with the median of the 21 around it.

use crate::runs::series::{Bucket, Series};
use crate::runs::statistics::median;

/// How many neighbours count on either side; at the ends of a run there are fewer.
const SIDE: usize = 10;

/// A row that stands out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spike {
    /// The first and the last step of the row.
    pub steps: [i64; 2],
    /// Its largest value.
    pub height: f64,
    /// The median of the rows around it, itself among them.
    pub around: f64,
}

impl Spike {
    /// How many times as large as its neighbours it is; infinite where these are 0.
    pub fn times(self) -> f64 {
        self.height / self.around
    }
}

/// The median of the 21 values around each, itself among them.
pub fn medians(values: &[f64]) -> Vec<f64> {
    let around = |at: usize| &values[at.saturating_sub(SIDE)..(at + SIDE + 1).min(values.len())];
    (0..values.len()).map(|at| median(around(at))).collect()
}

/// The rows whose magnitude is more than `times` that of those around them, and above `floor`.
pub fn spikes(series: &Series, times: f64, floor: f64) -> Vec<Spike> {
    let rows: Vec<&Bucket> = series.finite().collect();
    let sizes: Vec<f64> = rows.iter().map(|row| row.mean.abs()).collect();
    let one = |(row, around): (&&Bucket, f64)| Spike {
        steps: row.steps,
        height: row.max.abs().max(row.min.abs()),
        around,
    };
    let all = rows.iter().zip(medians(&sizes)).map(one);
    all.filter(|one| one.height > times * one.around && one.height > floor).collect()
}

/// How many spikes are a habit rather than chance: three, and one in a
/// hundred rows of a long run: gradients and estimates of the KL have heavy tails.
pub fn habit(rows: u64) -> usize {
    3.max(rows.div_ceil(100) as usize)
}

/// The steps from the first spike to the last.
pub fn steps(spikes: &[Spike]) -> [i64; 2] {
    match spikes {
        [first, .., last] => [first.steps[0], last.steps[1]],
        [only] => only.steps,
        [] => [0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[f64]) -> Series {
        let mut series = Series::default();
        for (index, value) in values.iter().enumerate() {
            series.push(Bucket::of(index as u64, 10 * index as i64, index + 1, *value));
        }
        series
    }

    #[test]
    fn the_median_is_of_the_neighbours_that_are_there() {
        let values: Vec<f64> = (0..40).map(f64::from).collect();
        let around = medians(&values);
        assert_eq!((around[0], around[20], around[39]), (5.0, 20.0, 34.0));
    }

    #[test]
    fn one_row_that_stands_out_is_found_where_it_is() {
        let mut values = vec![1.0; 60];
        values[33] = 25.0;
        let found = spikes(&series(&values), 20.0, 0.0);
        assert_eq!(found, [Spike { steps: [330, 330], height: 25.0, around: 1.0 }]);
        assert_eq!((found[0].times(), steps(&found)), (25.0, [330, 330]));
        assert_eq!(spikes(&series(&values), 25.0, 0.0), [], "the limit itself is no spike");
        assert_eq!(spikes(&series(&values), 20.0, 30.0), [], "it is below the floor");
    }

    #[test]
    fn a_step_to_another_level_is_no_spike() {
        let values: Vec<f64> = (0..80).map(|i| if i < 40 { 0.01 } else { 5.0 }).collect();
        assert_eq!(spikes(&series(&values), 20.0, 0.1), []);
        let growing: Vec<f64> = (0..80).map(|i| 1.1_f64.powi(i)).collect();
        assert_eq!(spikes(&series(&growing), 20.0, 0.0), []);
    }

    #[test]
    fn the_largest_value_of_a_merged_bucket_counts() {
        let mut merged = series(&[1.0; 30]);
        merged.buckets[12] = Bucket { max: 50.0, count: 2, ..merged.buckets[12] };
        assert_eq!(spikes(&merged, 20.0, 0.0).len(), 1);
    }

    #[test]
    fn a_long_run_may_have_more() {
        assert_eq!([100, 300, 5000].map(habit), [3, 3, 50]);
    }
}
