//! One step goes up the gradient, as far as the learning rate says.
//!
//! ### Claim
//! Over a few seeds a step goes up the gradient, with a quarter of the learning rate a quarter as
//! far.
//!
//! ### Why it matters
//! One step is what a trainer repeats. A loop that ends one too early, a warm-up that begins with
//! nothing, or a rate that enters twice is lost among many steps, and is all there is in one.
//!
//! ### Does not hold for
//! Cases of several steps, or without a clear signal: equal rewards, better arms that are hardly
//! ever sampled, steps that rounding hides. `beta` pulls to nowhere yet.
//!
//! ### Bugs it has caught
//! Schedules that are advanced after the step that they were made for, and start at 0.
//!
//! ### Example
//! ```diff
//! -    for _ in range(1, steps):
//! +    for _ in range(steps):
//! ```

use ndarray::arr0;

use crate::policy_update::{PolicyUpdate, PolicyUpdateCase, generate, trials};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyUpdate> = Rule::new(
    Pitfall::Configuration,
    &["one-step-short", "learning-rate-of-another-power", "learning-rate-ignored", "sign-flipped"],
    check,
);

/// Seeds that one look sums over: a group may hold equal rewards only.
const SEEDS: usize = 8;

/// The learning rate at which steps are compared, at most: with larger ones the ratio of a learner
/// that goes over its samples several times is clipped. Exact in every format.
const LARGEST_RATE: f64 = 0.0625;

/// By how much the learning rate is divided.
const SLOWER: f64 = 4.0;

/// How many times as far a step may go with the rate as with the divided one.
const FARTHER: std::ops::RangeInclusive<f64> = 2.5..=6.5;

fn check(probe: &mut Probe<'_, PolicyUpdate>) -> Outcome {
    let (case, share) = (probe.case, probe.options.tolerance);
    let gradient = generate::one_step(case, probe.place.dtype).ok_or(Stop::Vacuous)?;
    let rate = case.learning_rate[()].min(LARGEST_RATE);
    let with = |rate: f64| PolicyUpdateCase { learning_rate: arr0(rate), ..case.clone() };
    let [faster, slower] = [with(rate), with(rate / SLOWER)];
    // How far a step goes along the gradient, as a part of it.
    let along = |probe: &mut Probe<'_, PolicyUpdate>, case: &PolicyUpdateCase| {
        let moved = trials::run(probe, case)?.logits - &case.logits;
        Ok::<f64, Stop>(moved.dot(&gradient) / gradient.dot(&gradient))
    };
    let count = trials::too_many(share, || {
        let mut sum = 0.0;
        for _ in 0..SEEDS {
            let seed = trials::seed(probe);
            sum += along(probe, &case.seeded(seed))?;
        }
        Ok((sum <= 0.0, sum / SEEDS as f64))
    })?;
    if let Some(count) = count {
        broken!(
            "one step goes {} times the gradient, on average over {SEEDS} seeds; it did not go up \
             in {} of {} rounds, expected at most a share of {share}",
            rounded(count.mean),
            count.failed,
            count.of,
        );
    }
    let count = trials::too_many(share, || {
        let mut sums = [0.0; 2];
        for _ in 0..SEEDS {
            let seed = trials::seed(probe);
            for (sum, case) in sums.iter_mut().zip([&faster, &slower]) {
                *sum += along(probe, &case.seeded(seed))?;
            }
        }
        let farther = sums[0] / sums[1];
        Ok((!FARTHER.contains(&farther), farther))
    })?;
    if let Some(count) = count {
        broken!(
            "with a learning rate of {rate} one step goes {} times as far as with a quarter of it, \
             on average, expected 4 times; it was not near that in {} of {} rounds, expected at \
             most a share of {share}",
            rounded(count.mean),
            count.failed,
            count.of,
        );
    }
    Ok(())
}
