//! Rewards that cannot rise any more.

use crate::runs::Run;
use crate::runs::statistics::TREND_POINTS;

/// Whether there is nothing left to gain: the task is solved, or the reward stays at a ceiling.
pub fn is_reached(run: &Run) -> bool {
    run.is_solved() || stays(run)
}

/// Whether the reward has risen to the largest mean of any batch and stays there without scatter,
/// as it only does at a ceiling.
pub fn stays(run: &Run) -> bool {
    let Some(reward) = run.statistics("reward.mean") else { return false };
    let highest = reward.values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let lowest = reward.values.iter().copied().fold(f64::INFINITY, f64::min);
    let is_highest = reward.last >= highest - 0.01 * (highest - lowest);
    reward.n() >= TREND_POINTS && reward.last > reward.first && is_highest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::rules::trial2::{noise, run};

    #[test]
    fn a_reward_that_stays_at_its_highest_has_reached_it() {
        let learnt = run(100, &[("reward.mean", &|i| (0.02 * i as f64).min(1.0))]);
        assert!(is_reached(&learnt));
    }

    #[test]
    fn a_plateau_that_scatters_a_rise_and_a_constant_have_not() {
        for seed in 0..12 {
            let plateau = |i: usize| (0.02 * i as f64).min(1.0) + 0.03 * noise(seed, i);
            assert!(!is_reached(&run(100, &[("reward.mean", &plateau)])), "seed {seed}");
        }
        assert!(!is_reached(&run(100, &[("reward.mean", &|i| i as f64)])));
        assert!(!is_reached(&run(100, &[("reward.mean", &|_| 0.0)])));
        assert!(!is_reached(&run(100, &[("loss", &|_| 0.0)])));
    }
}
