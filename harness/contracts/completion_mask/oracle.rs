//! The definition of `completion-mask`: how long each row is, by the first id that ends it.

use ndarray::Array2;

use super::{CompletionMaskCase, Options, Unfinished};
use shakedown_core::numeric::tolerance::{Expected, Number};

/// How many tokens of a row count; they are its first ones.
pub(super) fn length(row: &[i64], options: &Options) -> usize {
    match options.first_eos(row) {
        Some(first) => first + usize::from(options.include_eos),
        None => match options.unfinished {
            Unfinished::Keep => {
                row.iter().rposition(|id| *id != options.pad).map_or(0, |at| at + 1)
            }
            Unfinished::All => row.len(),
            Unfinished::Drop => 0,
        },
    }
}

/// What the definition gives: nothing is computed, so nothing is rounded.
pub(super) fn mask(case: &CompletionMaskCase, options: &Options) -> Vec<Expected> {
    let lengths: Vec<usize> =
        case.tokens.rows().into_iter().map(|row| length(&row.to_vec(), options)).collect();
    let numbers = Array2::from_shape_fn(case.tokens.dim(), |(row, token)| {
        Number::new(f64::from(token < lengths[row]), 0.0)
    });
    vec![Expected { field: "mask", numbers: numbers.into_dyn(), terms: 1 }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(options: &Options, rows: &[&[i64]]) -> Vec<usize> {
        rows.iter().map(|row| length(row, options)).collect()
    }

    #[test]
    fn the_first_end_of_a_row_is_its_last_token() {
        let rows: &[&[i64]] = &[&[7, 8, 2, 0], &[2, 7, 2, 0], &[7, 0, 8, 2], &[0, 0, 7, 2]];
        assert_eq!(lengths(&Options::default(), rows), [3, 1, 4, 4]);
        let without = Options { include_eos: false, ..Options::default() };
        assert_eq!(lengths(&without, rows), [2, 0, 3, 3]);
        let two = Options { eos: vec![8, 2], ..Options::default() };
        assert_eq!(lengths(&two, rows), [2, 1, 3, 4]);
    }

    #[test]
    fn a_row_without_an_end_is_what_the_option_says() {
        let rows: &[&[i64]] = &[&[7, 8, 9], &[7, 0, 8, 0, 0], &[0, 0], &[]];
        let options = |unfinished| Options { unfinished, ..Options::default() };
        assert_eq!(lengths(&options(Unfinished::Keep), rows), [3, 3, 0, 0]);
        assert_eq!(lengths(&options(Unfinished::All), rows), [3, 5, 2, 0]);
        assert_eq!(lengths(&options(Unfinished::Drop), rows), [0, 0, 0, 0]);
    }

    #[test]
    fn where_the_pad_is_an_end_the_first_one_counts() {
        let options = Options { pad: 2, ..Options::default() };
        assert_eq!(lengths(&options, &[&[7, 8, 2, 2], &[2, 2], &[7, 8]]), [3, 1, 2]);
    }
}
