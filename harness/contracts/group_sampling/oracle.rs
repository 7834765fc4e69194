//! The definition of `group-sampling` without a shuffle: which prompt each row is of.

use ndarray::Array1;

use super::{GroupSamplingCase, Layout, Options};
use shakedown_core::numeric::tolerance::{Expected, Number};

/// What the definition gives: ids are copied, so nothing is rounded.
pub(super) fn rows(case: &GroupSamplingCase, options: &Options) -> Vec<Expected> {
    let prompts = case.prompts.len();
    let full = options.prompts_per_batch.map_or(prompts, |full| full as usize);
    let (copies, passes) = (options.group_size as usize, options.repeats as usize);
    let left = if options.drop_last { prompts - prompts % full } else { prompts };
    let numbers = Array1::from_shape_fn(left * copies * passes, |row| {
        // Only the last batch may be smaller than the others.
        let batch = row / (full * copies * passes);
        let size = full.min(prompts - batch * full);
        let within = row % (full * copies * passes) % (size * copies);
        let place = match options.layout {
            Layout::Interleave => within / copies,
            Layout::Tile => within % size,
        };
        Number::new(case.prompts[batch * full + place] as f64, 0.0)
    });
    vec![Expected { field: "rows", numbers: numbers.into_dyn(), terms: 1 }]
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, arr0};

    use super::*;

    fn of(prompts: &[i64], options: &Options) -> Vec<f64> {
        let prompts = Array1::from(prompts.to_vec());
        let expected = rows(&GroupSamplingCase { prompts, seed: arr0(0) }, options);
        expected[0].numbers.iter().map(|number| number.value).collect()
    }

    #[test]
    fn copies_stand_together_or_the_batch_comes_again() {
        let tiled = Options { layout: Layout::Tile, ..Options::default() };
        assert_eq!(of(&[7, 8], &Options::default()), [7.0, 7.0, 8.0, 8.0]);
        assert_eq!(of(&[7, 8], &tiled), [7.0, 8.0, 7.0, 8.0]);
        let three = Options { group_size: 3, ..tiled };
        assert_eq!(of(&[7, 8], &three), [7.0, 8.0, 7.0, 8.0, 7.0, 8.0]);
    }

    #[test]
    fn a_batch_comes_again_before_the_next_one_begins() {
        let options =
            Options { group_size: 1, prompts_per_batch: Some(2), repeats: 2, ..Options::default() };
        assert_eq!(of(&[1, 2, 3, 4], &options), [1.0, 2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 4.0]);
        let kept = Options { drop_last: false, ..options.clone() };
        assert_eq!(of(&[1, 2, 3], &kept), [1.0, 2.0, 1.0, 2.0, 3.0, 3.0]);
        assert_eq!(of(&[1, 2, 3], &options), [1.0, 2.0, 1.0, 2.0]);
    }

    #[test]
    fn fewer_prompts_than_a_batch_are_dropped_or_a_batch_of_their_own() {
        let options = Options { prompts_per_batch: Some(3), ..Options::default() };
        assert_eq!(of(&[5, 4], &options), [0.0; 0]);
        let kept = Options { drop_last: false, layout: Layout::Tile, ..options };
        assert_eq!(of(&[5, 4], &kept), [5.0, 4.0, 5.0, 4.0]);
    }
}
