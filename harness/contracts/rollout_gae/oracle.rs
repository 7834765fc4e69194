//! The definition of `rollout-gae` in plain f64: every advantage is a discounted sum of the TD
//! errors up to the end of its episode or of the window.

use ndarray::Array2;

use super::{Options, RolloutGaeCase};
use shakedown_core::numeric::tolerance::{Expected, Number, discounted};

/// What the definition gives.
///
/// A TD error that is d steps ahead has passed through d products and sums on its way, and its
/// coefficient through as many: its part of the scale is 1 + 2d times its magnitude.
pub(super) fn rollout_gae(case: &RolloutGaeCase, options: &Options) -> Vec<Expected> {
    let ends = case.ends(options);
    let (steps, envs) = case.rewards.dim();
    let mut advantages = Array2::from_elem((steps, envs), Number::new(0.0, 0.0));
    let mut returns = advantages.clone();
    for env in 0..envs {
        let next = |step: usize| match step + 1 {
            _ if ends[[step, env]] => 0.0,
            next if next == steps => case.last_values[env],
            next => case.values[[next, env]],
        };
        let errors: Vec<(f64, f64)> = (0..steps)
            .map(|step| {
                let (reward, value) = (case.rewards[[step, env]], case.values[[step, env]]);
                let next = options.gamma * next(step);
                (reward + next - value, reward.abs() + next.abs() + value.abs())
            })
            .collect();
        let mut start = 0;
        while start < steps {
            let last = (start..steps).find(|step| ends[[*step, env]]).unwrap_or(steps - 1);
            let sums = discounted(&errors[start..=last], options.gamma * options.lam, 2.0);
            for (step, sum) in (start..).zip(sums) {
                let own = case.values[[step, env]];
                advantages[[step, env]] = sum;
                returns[[step, env]] = Number::new(sum.value + own, sum.scale + own.abs());
            }
            start = last + 1;
        }
    }
    [("advantages", advantages), ("returns", returns)]
        .map(|(field, numbers)| Expected { field, numbers: numbers.into_dyn(), terms: 1 })
        .into()
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array2, arr1, arr2};

    use super::super::DoneConvention;
    use super::*;

    fn values(case: &RolloutGaeCase, options: &Options) -> [Vec<f64>; 2] {
        let expected = rollout_gae(case, options);
        [0, 1].map(|field: usize| expected[field].numbers.iter().map(|x| x.value).collect())
    }

    fn all_close(found: &[f64], expected: &[f64]) -> bool {
        found.len() == expected.len()
            && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    /// `n` steps of one environment.
    fn constant(reward: f64, value: f64, done: bool, n: usize) -> RolloutGaeCase {
        RolloutGaeCase {
            rewards: Array2::from_elem((n, 1), reward),
            values: Array2::from_elem((n, 1), value),
            dones: Array2::from_elem((n, 1), done),
            last_values: Array1::from_elem(1, value),
            last_dones: Array1::from_elem(1, done),
        }
    }

    #[test]
    fn episodes_of_one_step_give_the_reward_less_the_value() {
        for done_convention in [DoneConvention::After, DoneConvention::Before] {
            let options = Options { done_convention, ..Options::default() };
            let [advantages, returns] = values(&constant(3.0, 1.0, true, 4), &options);
            assert!(all_close(&advantages, &[2.0; 4]) && all_close(&returns, &[3.0; 4]));
        }
    }

    #[test]
    fn values_that_pay_for_themselves_leave_no_advantage() {
        let options = Options { gamma: 0.9, ..Options::default() };
        let [advantages, returns] = values(&constant(0.5, 5.0, false, 6), &options);
        assert!(all_close(&advantages, &[0.0; 6]) && all_close(&returns, &[5.0; 6]));
    }

    #[test]
    fn without_values_and_ends_rewards_add_up_discounted() {
        let options = Options { gamma: 0.5, lam: 1.0, ..Options::default() };
        let [advantages, _] = values(&constant(1.0, 0.0, false, 4), &options);
        assert!(all_close(&advantages, &[1.875, 1.75, 1.5, 1.0]));
    }

    #[test]
    fn an_episode_ends_where_its_convention_says() {
        // The example of SB3 #105: flags stored after the step, read as beginnings.
        let case = |dones: [bool; 4]| RolloutGaeCase {
            rewards: arr2(&[[0.0], [1.0], [0.0], [0.0]]),
            values: arr2(&[[0.0], [0.0], [10.0], [10.0]]),
            dones: Array2::from_shape_fn((4, 1), |(step, _)| dones[step]),
            last_values: arr1(&[10.0]),
            last_dones: arr1(&[false]),
        };
        let options = Options { gamma: 1.0, lam: 1.0, ..Options::default() };
        let [advantages, _] = values(&case([false, true, false, false]), &options);
        assert!(all_close(&advantages, &[1.0, 1.0, 0.0, 0.0]), "{advantages:?}");
        let options = Options { done_convention: DoneConvention::Before, ..options };
        let [advantages, _] = values(&case([true, false, true, false]), &options);
        assert!(all_close(&advantages, &[1.0, 1.0, 0.0, 0.0]), "{advantages:?}");
    }

    #[test]
    fn the_last_value_stands_for_what_follows_a_cut() {
        let mut case = constant(0.0, 2.0, false, 1);
        case.last_values = arr1(&[6.0]);
        let options = Options { gamma: 0.5, ..Options::default() };
        assert_eq!(values(&case, &options)[0], [1.0]);
        case.last_dones.fill(true);
        case.dones.fill(true);
        assert_eq!(values(&case, &options)[0], [-2.0]);
    }
}
