//! Counting over seeds: when so many runs failed that chance is no excuse.
//!
//! Nothing is assumed of a component but that its runs with different seeds are independent, and
//! that a right one fails in a run with at most the declared share. A test rejects only where so
//! many failures have a probability below [`ALPHA`]; with at most [`RUNS`] looks at each count and
//! 100 000 tests in one check of a component, more than any check makes, a right component is
//! blamed with a probability below 1e-6. It passes after [`FIRST`] good runs, which costs power on
//! one case and no false alarm. A component without chance gives the same in every run, and is
//! rejected or not by that.

use crate::policy_update::{PolicyUpdate, PolicyUpdateCase, PolicyUpdateOutput};
use shakedown_core::contract::outcome::Stop;
use shakedown_core::contract::probe::Probe;

/// The probability of a false alarm at one look.
const ALPHA: f64 = 1e-14;

/// Runs at the most.
const RUNS: u32 = 160;

/// So many runs without a failure are enough.
const FIRST: u32 = 4;

/// Runs after which a count that may be chance ends the test.
const LOOKS: [u32; 5] = [8, 16, 32, 64, RUNS];

/// How many runs failed, out of how many, and the mean of what was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Count {
    pub(super) failed: u32,
    pub(super) of: u32,
    pub(super) mean: f64,
}

/// A seed that no other run of this test has, but by chance.
pub(super) fn seed(probe: &mut Probe<'_, PolicyUpdate>) -> i64 {
    (probe.pick.bits() >> 33).cast_signed()
}

/// One run of a case, with finite logits: the law `finite` speaks of the others.
pub(super) fn run(
    probe: &mut Probe<'_, PolicyUpdate>,
    case: &PolicyUpdateCase,
) -> Result<PolicyUpdateOutput, Stop> {
    let output = probe.call(case)?;
    if output.logits.iter().all(|z| z.is_finite()) { Ok(output) } else { Err(Stop::Vacuous) }
}

/// Runs until it is clear whether more than `share` of all runs fail; the count where they do. A
/// run says whether it failed, and a number.
pub(super) fn too_many(
    share: f64,
    mut run: impl FnMut() -> Result<(bool, f64), Stop>,
) -> Result<Option<Count>, Stop> {
    let (mut failed, mut sum) = (0, 0.0);
    for of in 1..=RUNS {
        let (bad, number) = run()?;
        failed += u32::from(bad);
        sum += number;
        if at_least(failed, of, share) < ALPHA {
            return Ok(Some(Count { failed, of, mean: sum / f64::from(of) }));
        }
        let few = f64::from(failed) <= share * f64::from(of);
        if (of == FIRST && failed == 0) || (LOOKS.contains(&of) && few) {
            return Ok(None);
        }
    }
    Ok(None)
}

/// The share of runs that may go to one side where nothing pulls to either.
const ONE_SIDE: f64 = 0.75;

/// Runs until it is clear whether nearly all of them go to one side: the count of that side, which
/// is `true` for above. A run gives a number; next to 0 is neither side.
pub(super) fn one_sided(
    mut run: impl FnMut() -> Result<f64, Stop>,
) -> Result<Option<(bool, Count)>, Stop> {
    const NOTHING: f64 = 0.02;
    let (mut sides, mut sum) = ([0_u32; 2], 0.0);
    for of in 1..=RUNS {
        let moved = run()?;
        sum += moved;
        sides[0] += u32::from(moved < -NOTHING);
        sides[1] += u32::from(moved > NOTHING);
        let above = sides[1] > sides[0];
        let most = sides[0].max(sides[1]);
        if at_least(most, of, ONE_SIDE) < ALPHA {
            return Ok(Some((above, Count { failed: most, of, mean: sum / f64::from(of) })));
        }
        let spread = f64::from(most) <= ONE_SIDE * f64::from(of);
        if (of == FIRST && most == 0) || (LOOKS.contains(&of) && spread) {
            return Ok(None);
        }
    }
    Ok(None)
}

/// Runs of two kinds until it is clear whether their numbers have another distribution: the means
/// where they do. Numbers within `near` of the common median are on neither side of it.
pub(super) fn apart(
    near: f64,
    mut run: impl FnMut(usize) -> Result<f64, Stop>,
) -> Result<Option<[f64; 2]>, Stop> {
    let mut numbers: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    for of in [FIRST, 8, 16, 32, 64] {
        for (kind, numbers) in numbers.iter_mut().enumerate() {
            while numbers.len() < of as usize {
                numbers.push(run(kind)?);
            }
        }
        let mut all = numbers.concat();
        all.sort_by(f64::total_cmp);
        let median = (all[all.len() / 2 - 1] + all[all.len() / 2]) / 2.0;
        let beyond = |side: f64| {
            let count = |numbers: &Vec<f64>| {
                numbers.iter().filter(|x| side * (**x - median) > near).count() as u32
            };
            [count(&numbers[0]), count(&numbers[1])]
        };
        let sides = [beyond(1.0), beyond(-1.0)];
        if sides.iter().any(|[a, b]| split_like_this(*a.max(b), *a.min(b), of) < ALPHA) {
            let mean = |numbers: &Vec<f64>| numbers.iter().sum::<f64>() / numbers.len() as f64;
            return Ok(Some([mean(&numbers[0]), mean(&numbers[1])]));
        }
        if sides.iter().all(|[a, b]| a.abs_diff(*b) <= of / 2) {
            return Ok(None);
        }
    }
    Ok(None)
}

/// The probability of `failed` failures or more in so many runs that each fail with `share`.
fn at_least(failed: u32, of: u32, share: f64) -> f64 {
    let term = |k: u32| {
        let (good, bad) = (f64::from(of - k), f64::from(k));
        (ln_choose(of, k) + bad * share.ln() + good * (-share).ln_1p()).exp()
    };
    (failed..=of).map(term).sum()
}

/// The probability that of `a + b` numbers `a` or more are of one kind, both kinds having `of`
/// numbers and the same distribution (Fisher's exact test, one side).
fn split_like_this(a: u32, b: u32, of: u32) -> f64 {
    let both = a + b;
    let all = ln_choose(2 * of, both);
    let term = |a: u32| (ln_choose(of, a) + ln_choose(of, both - a) - all).exp();
    (a..=both.min(of)).map(term).sum()
}

/// ln of n over k.
fn ln_choose(n: u32, k: u32) -> f64 {
    (1..=k.min(n - k)).map(|i| (f64::from(n - k.min(n - k) + i) / f64::from(i)).ln()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_the_tables() {
        assert!((at_least(0, 10, 0.3) - 1.0).abs() < 1e-12);
        assert!((at_least(10, 10, 0.1) - 1e-10).abs() < 1e-22);
        assert!((at_least(2, 3, 0.5) - 0.5).abs() < 1e-12);
        assert!((split_like_this(3, 0, 3) - 1.0 / 20.0).abs() < 1e-12);
        assert!((split_like_this(2, 1, 3) - 0.5).abs() < 1e-12);
        assert!((ln_choose(64, 32).exp() / 1.832_624_140_942_59e18 - 1.0).abs() < 1e-10);
    }

    #[test]
    fn a_share_that_is_allowed_passes_and_a_larger_one_does_not() {
        let mut pick = shakedown_core::generate::pick::Pick::seeded(7);
        let mut rejected = |share: f64| {
            let runs = (0..400).filter(|_| {
                let run = || Ok((pick.below(1000) < (1000.0 * share) as usize, 0.0));
                too_many(0.1, run).unwrap().is_some()
            });
            runs.count()
        };
        assert_eq!([rejected(0.0), rejected(0.05), rejected(0.1)], [0, 0, 0]);
        assert!(rejected(0.5) > 250);
        assert_eq!(rejected(1.0), 400);
    }

    #[test]
    fn two_kinds_of_one_distribution_are_not_apart() {
        let mut pick = shakedown_core::generate::pick::Pick::seeded(3);
        let mut number = move || pick.below(1000) as f64 / 1000.0;
        for _ in 0..400 {
            assert_eq!(apart(0.02, |_| Ok(number())), Ok(None));
        }
        assert!(apart(0.02, |kind| Ok(0.3 * number() + kind as f64)).unwrap().is_some());
        assert_eq!(apart(0.02, |kind| Ok(0.7 + 1e-9 * kind as f64)), Ok(None));
    }

    #[test]
    fn what_goes_to_both_sides_is_not_one_sided() {
        let mut pick = shakedown_core::generate::pick::Pick::seeded(5);
        let mut number = move || pick.below(1000) as f64 / 500.0 - 1.0;
        for _ in 0..400 {
            assert_eq!(one_sided(|| Ok(number())), Ok(None));
        }
        let (above, count) = one_sided(|| Ok(-number().abs() - 0.1)).unwrap().unwrap();
        assert!(!above && count.failed == count.of && count.mean < -0.1);
        assert_eq!(one_sided(|| Ok(1e-6)), Ok(None));
    }
}
