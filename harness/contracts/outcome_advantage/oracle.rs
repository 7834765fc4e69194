//! The definition of `outcome-advantage` in plain f64: sums, then `group-advantage` of the sums.

use super::super::group_advantage::oracle::{Reward, of, sums_exactly};
use super::{EmptyRows, Options, OutcomeAdvantageCase, groups, is_empty, kept, spread};
use shakedown_core::numeric::tolerance::outside;
use shakedown_core::numeric::tolerance::{Expected, Number, summed};

/// What the definition gives.
pub(super) fn advantages(case: &OutcomeAdvantageCase, options: &Options) -> Vec<Expected> {
    let numbers = spread(&case.mask, &by_row(case, options), outside(options.masked_output));
    vec![Expected { field: "advantages", numbers: numbers.into_dyn(), terms: case.groups.len() }]
}

/// The advantage of each row. An outcome may be off by what its sum loses: its magnitude is that
/// of all rewards that were added.
pub(super) fn by_row(case: &OutcomeAdvantageCase, options: &Options) -> Vec<Number> {
    let outcome = |row: usize| {
        if options.empty_rows == EmptyRows::Exclude && is_empty(case, row) {
            return Reward { value: f64::NAN, magnitude: 0.0, exact: true };
        }
        let added: f64 = kept(case, row).map(f64::abs).sum();
        let value: f64 = kept(case, row).sum();
        let count = kept(case, row).count();
        let exact = is_exact(case, row);
        let magnitude = if exact { value.abs() } else { added * summed(count) };
        Reward { value, magnitude, exact }
    };
    let outcomes: Vec<Reward> = (0..case.groups.len()).map(outcome).collect();
    of(&outcomes, &groups(case), &options.of_outcomes())
}

/// Whether the outcome of a row is the same in every order of additions, in f32 as well.
fn is_exact(case: &OutcomeAdvantageCase, row: usize) -> bool {
    kept(case, row).filter(|reward| *reward != 0.0).count() <= 1
        || kept(case, row).all(sums_exactly)
}

#[cfg(test)]
mod tests {
    use ndarray::arr2;

    use super::*;
    use crate::outcome_advantage::{Baseline, Scale};

    fn case(
        token_rewards: &[[f64; 2]],
        mask: &[[bool; 2]],
        groups: &[i64],
    ) -> OutcomeAdvantageCase {
        OutcomeAdvantageCase {
            token_rewards: arr2(token_rewards),
            mask: arr2(mask),
            groups: groups.to_vec().into(),
        }
    }

    fn values(case: &OutcomeAdvantageCase, options: &Options) -> Vec<f64> {
        advantages(case, options)[0].numbers.iter().map(|number| number.value).collect()
    }

    #[test]
    fn rewards_under_the_mask_are_no_part_of_an_outcome() {
        let case = case(&[[1.0, 1.0], [1.0, 0.0]], &[[true, false], [true, true]], &[0, 0]);
        assert_eq!(values(&case, &Options::default()), [0.0; 4]);
    }

    #[test]
    fn a_pair_is_one_over_the_root_of_two_apart_from_its_mean() {
        let case = case(&[[0.5, 0.5], [0.0, 0.0]], &[[true, true], [true, false]], &[7, 7]);
        let found = values(&case, &Options { epsilon: 0.0, ..Options::default() });
        let half = 0.5_f64.sqrt();
        for (found, expected) in found.iter().zip([half, half, -half, 0.0]) {
            assert!((found - expected).abs() < 1e-15, "{found} {expected}");
        }
    }

    #[test]
    fn rows_without_tokens_take_part_or_do_not() {
        let column = [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0]];
        let mask = [[true, false], [false, false], [true, false], [true, false]];
        let case = case(&column, &mask, &[0; 4]);
        let options = Options { scale: Scale::None, ..Options::default() };
        let first = |options: &Options| -> Vec<f64> {
            values(&case, options).into_iter().step_by(2).collect()
        };
        assert_eq!(first(&options), [0.75, 0.0, -0.25, -0.25]);
        let options = Options { empty_rows: EmptyRows::Exclude, ..options };
        let third = 1.0 / 3.0;
        for (found, expected) in first(&options).iter().zip([2.0 * third, 0.0, -third, -third]) {
            assert!((found - expected).abs() < 1e-15, "{found} {expected}");
        }
        let options = Options { baseline: Baseline::LeaveOneOut, ..options };
        assert_eq!(first(&options), [1.0, 0.0, -0.5, -0.5]);
    }
}
