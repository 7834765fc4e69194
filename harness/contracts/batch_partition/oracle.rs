//! The definition of `batch-partition`: what is refused, and how many parts there may be.
//!
//! Of the parts themselves there is no definition: of many right answers none is expected.

use ndarray::Array1;

use super::{BatchPartitionCase, Mode, Options, Oversized};
use shakedown_core::numeric::tolerance::{Expected, Number};

/// Why there is no partition of these rows, where there is none.
pub(super) fn refused(case: &BatchPartitionCase, options: &Options) -> Option<String> {
    let rows = case.lengths.len() as i64;
    match options.mode {
        Mode::Count if rows < options.parts => {
            Some(format!("{rows} rows are fewer than {} parts", options.parts))
        }
        Mode::Count if options.equal_size && rows % options.parts != 0 => {
            Some(format!("{rows} rows give no {} parts of one size", options.parts))
        }
        Mode::Capacity if options.oversized == Oversized::Refuse => {
            let longest = case.lengths.iter().find(|length| options.is_oversized(**length));
            longest.map(|length| {
                format!("a row of {length} tokens, and a part holds {}", options.capacity)
            })
        }
        _ => None,
    }
}

/// How many parts there may be at the most with `mode: capacity`. Two neighbours of any packing
/// that is not broken hold more than one part does, else they would be one; what is beyond is for
/// rows that stand alone, and for the declared number of parts.
pub(super) fn most_parts(case: &BatchPartitionCase, options: &Options) -> i64 {
    raised(packed(case, options), options)
}

/// How many rows are enough for any packing to become the declared number of parts.
pub(super) fn enough_rows(case: &BatchPartitionCase, options: &Options) -> i64 {
    raised(packed(case, options).min(case.lengths.len() as i64), options)
}

/// The same bound before the declared number of parts is looked at.
fn packed(case: &BatchPartitionCase, options: &Options) -> i64 {
    let oversized = case.lengths.iter().filter(|length| options.is_oversized(**length)).count();
    2 * (case.lengths.sum() / options.capacity) + 1 + oversized as i64
}

/// Raised to the least number of parts, and rounded up to a multiple.
fn raised(parts: i64, options: &Options) -> i64 {
    let multiple = options.multiple_of;
    (parts.max(options.min_parts) + multiple - 1) / multiple * multiple
}

/// What came back of the values: they did, bit for bit.
pub(super) fn restored(case: &BatchPartitionCase) -> Vec<Expected> {
    let numbers: Array1<Number> = case.values.mapv(|value| Number::new(value, 0.0));
    vec![Expected { field: "restored", numbers: numbers.into_dyn(), terms: 1 }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(lengths: &[i64]) -> BatchPartitionCase {
        let values = Array1::zeros(lengths.len());
        BatchPartitionCase { lengths: lengths.to_vec().into(), values }
    }

    #[test]
    fn a_multiple_is_rounded_up_after_the_least_number() {
        let options = Options {
            mode: Mode::Capacity,
            capacity: 10,
            min_parts: 3,
            multiple_of: 2,
            ..Options::default()
        };
        assert_eq!(most_parts(&case(&[1, 1, 1, 1]), &options), 4);
        assert_eq!(most_parts(&case(&[10, 10, 10]), &options), 8);
        assert_eq!(enough_rows(&case(&[10, 10, 10]), &options), 4);
    }

    #[test]
    fn two_neighbours_hold_more_than_a_part_and_what_is_too_long_stands_alone() {
        let options = Options { mode: Mode::Capacity, capacity: 10, ..Options::default() };
        // 28 tokens fill two parts: 2 · 2 + 1, and one more for the row of 25.
        assert_eq!(most_parts(&case(&[25, 3]), &options), 6);
        assert_eq!(most_parts(&case(&[9, 10, 9]), &options), 5);
    }

    #[test]
    fn rows_that_make_no_parts_are_refused() {
        let two = Options::default();
        assert!(refused(&case(&[5]), &two).is_some() && refused(&case(&[5, 5]), &two).is_none());
        let equal = Options { equal_size: true, ..two.clone() };
        assert!(refused(&case(&[1, 1, 1]), &equal).is_some());
        let capacity = Options { mode: Mode::Capacity, capacity: 4, ..two };
        assert!(refused(&case(&[5]), &capacity).is_none());
        let strict = Options { oversized: Oversized::Refuse, ..capacity };
        assert!(refused(&case(&[5]), &strict).is_some() && refused(&case(&[4]), &strict).is_none());
    }
}
