//! The definition of `returns` in plain f64: every return is a discounted sum over its steps.

use ndarray::Array2;

use super::{Options, ReturnsCase};
use shakedown_core::numeric::conventions::MaskedTokens;
use shakedown_core::numeric::tolerance::outside;
use shakedown_core::numeric::tolerance::{Expected, discounted};

/// What the definition gives.
///
/// A reward that is d steps ahead has passed through d products and sums on its way, each of which
/// may round it once: its part of the scale is 1 + d times its magnitude.
pub(super) fn returns(case: &ReturnsCase, options: &Options) -> Vec<Expected> {
    let (rows, tokens) = case.rewards.dim();
    let mut numbers = Array2::from_elem((rows, tokens), outside(options.masked_output));
    let passes = options.masked == MaskedTokens::Zero;
    for row in 0..rows {
        let kept = |token: &usize| case.mask[[row, *token]];
        let steps: Vec<usize> = (0..tokens).filter(|token| kept(token) || passes).collect();
        let reward = |token: &usize| if kept(token) { case.rewards[[row, *token]] } else { 0.0 };
        let rewards: Vec<(f64, f64)> =
            steps.iter().map(reward).map(|reward| (reward, reward.abs())).collect();
        for (token, sum) in steps.iter().zip(discounted(&rewards, options.gamma, 1.0)) {
            if kept(token) {
                numbers[[row, *token]] = sum;
            }
        }
    }
    vec![Expected { field: "returns", numbers: numbers.into_dyn(), terms: 1 }]
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, arr2};

    use super::*;

    fn values(case: &ReturnsCase, options: &Options) -> Vec<f64> {
        returns(case, options)[0].numbers.iter().map(|number| number.value).collect()
    }

    #[test]
    fn constant_rewards_give_a_geometric_series() {
        let case = ReturnsCase {
            rewards: Array2::from_elem((1, 6), 1.0),
            mask: Array2::from_elem((1, 6), true),
        };
        for gamma in [0.5, 0.9] {
            let found = values(&case, &Options { gamma, ..Options::default() });
            for (token, found) in found.iter().enumerate() {
                let left = 6 - token as i32;
                assert!((found - (1.0 - gamma.powi(left)) / (1.0 - gamma)).abs() < 1e-14);
            }
        }
        assert_eq!(values(&case, &Options::default()), [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
    }

    #[test]
    fn a_gap_costs_time_only_where_time_passes() {
        let case = ReturnsCase {
            rewards: arr2(&[[0.0, 0.0, 7.0, 7.0, 0.0, 1.0]]),
            mask: arr2(&[[true, true, false, false, true, true]]),
        };
        let options = Options { gamma: 0.5, holes: true, ..Options::default() };
        assert_eq!(values(&case, &options), [0.125, 0.25, 0.0, 0.0, 0.5, 1.0]);
        let options = Options { masked: MaskedTokens::Zero, ..options };
        assert_eq!(values(&case, &options), [0.03125, 0.0625, 0.0, 0.0, 0.5, 1.0]);
    }
}
