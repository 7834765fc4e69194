//! How the losses of tokens become one loss: the exact weight of each token, for oracles.

use ndarray::Array2;

use crate::numeric::conventions::EmptyRows;
use crate::value::choice::choice;

choice! {
    /// How the losses of tokens are added up.
    pub enum Aggregate {
        /// The mean over all tokens of the batch.
        TokenMean = "token-mean",
        /// The sum over all tokens.
        TokenSum = "token-sum",
        /// The mean over rows of each row's mean.
        SeqMeanTokenMean = "seq-mean-token-mean",
        /// The mean over rows of each row's sum.
        SeqMeanTokenSum = "seq-mean-token-sum",
        /// The mean over rows of each row's sum, over the constant `norm_length`.
        SeqMeanTokenSumNorm = "seq-mean-token-sum-norm",
    }
}

impl Aggregate {
    /// Why `norm_length` does not go with this, where it does not.
    ///
    /// # Errors
    /// The option's name and what is expected.
    pub fn check(self, norm_length: Option<u32>) -> Result<(), (&'static str, String)> {
        match (self, norm_length) {
            (Aggregate::SeqMeanTokenSumNorm, None) => {
                Err(("norm_length", "required by `seq-mean-token-sum-norm`".to_owned()))
            }
            (_, Some(0)) => Err(("norm_length", "expected an integer > 0, found 0".to_owned())),
            _ => Ok(()),
        }
    }

    /// The weight of each token, so that the loss is Σ weight · token loss; masked tokens weigh 0.
    /// `None` where no token counts.
    ///
    /// # Panics
    /// If `norm_length` is missing where it is required.
    pub fn weights(
        self,
        mask: &Array2<bool>,
        empty_rows: EmptyRows,
        norm_length: Option<u32>,
    ) -> Option<Array2<f64>> {
        let lengths: Vec<f64> =
            mask.rows().into_iter().map(|row| row.iter().filter(|m| **m).count() as f64).collect();
        let tokens: f64 = lengths.iter().sum();
        if tokens == 0.0 {
            return None;
        }
        let rows = match empty_rows {
            EmptyRows::Skip => lengths.iter().filter(|length| **length > 0.0).count(),
            EmptyRows::Count => lengths.len(),
        } as f64;
        let norm = || f64::from(norm_length.expect("options were checked"));
        Some(Array2::from_shape_fn(mask.dim(), |(row, column)| {
            if !mask[[row, column]] {
                return 0.0;
            }
            match self {
                Aggregate::TokenMean => 1.0 / tokens,
                Aggregate::TokenSum => 1.0,
                Aggregate::SeqMeanTokenMean => 1.0 / (lengths[row] * rows),
                Aggregate::SeqMeanTokenSum => 1.0 / rows,
                Aggregate::SeqMeanTokenSumNorm => 1.0 / (rows * norm()),
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use ndarray::arr2;

    use super::*;

    #[test]
    fn a_constant_loss_keeps_its_value_in_means_and_grows_with_the_length_in_sums() {
        let mask = arr2(&[[true, true, true, true], [true, false, false, false], [false; 4]]);
        let total = |aggregate: Aggregate, empty_rows| {
            aggregate.weights(&mask, empty_rows, Some(10)).unwrap().sum()
        };
        for (aggregate, skip, count) in [
            (Aggregate::TokenMean, 1.0, 1.0),
            (Aggregate::TokenSum, 5.0, 5.0),
            (Aggregate::SeqMeanTokenMean, 1.0, 2.0 / 3.0),
            (Aggregate::SeqMeanTokenSum, 2.5, 5.0 / 3.0),
            (Aggregate::SeqMeanTokenSumNorm, 0.25, 1.0 / 6.0),
        ] {
            assert!((total(aggregate, EmptyRows::Skip) - skip).abs() < 1e-15, "{aggregate:?}");
            assert!((total(aggregate, EmptyRows::Count) - count).abs() < 1e-15, "{aggregate:?}");
        }
        let none = Array2::from_elem((2, 2), false);
        assert_eq!(Aggregate::TokenMean.weights(&none, EmptyRows::Count, None), None);
    }
}
