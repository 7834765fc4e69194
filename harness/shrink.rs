//! Shrinking on values: a failing case walks to simpler ones for as long as it fails.

use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::contract::{Contract, round};
use crate::cuts;
use crate::place::Dtype;

/// How complex a case is, compared from the first part on: dimensions, distinct values, then the
/// complexity of the numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Measure(pub Vec<u64>);

/// How complex a number is: 0 is the simplest, then 1, -1, small integers, few decimals, the rest.
pub fn complexity(x: f64) -> u64 {
    let sign = u64::from(x.is_sign_negative());
    let magnitude = x.abs();
    if x.is_nan() {
        return 5_000_000;
    }
    if magnitude.is_infinite() {
        return 4_000_000 + sign;
    }
    if magnitude.fract() == 0.0 && magnitude < 1e5 {
        return 2 * magnitude as u64 + sign;
    }
    if magnitude.fract() == 0.0 {
        return 300_000 + magnitude.log10() as u64 * 2 + sign;
    }
    for decimals in 1..=6_u32 {
        let scaled = magnitude * f64::from(10_u32.pow(decimals));
        let whole = scaled.round();
        let close = (scaled - whole).abs() <= 1e-6 * whole.max(1e-30);
        if close && whole < 1e6 && whole > 0.0 {
            return 400_000 * u64::from(decimals) + 2 * (whole as u64).min(190_000) + sign;
        }
    }
    3_000_000 + sign + 2 * (magnitude.log2().abs() as u64).min(2000)
}

/// Simpler numbers than `x`, the simplest first.
pub fn simpler_numbers(x: f64) -> Vec<f64> {
    let mut candidates = vec![0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 10.0, -10.0, 0.5, -0.5, 0.1];
    if x.is_finite() {
        candidates.extend([x.abs(), x.trunc(), (x / 2.0).trunc(), x.trunc() - x.signum()]);
        for decimals in 1..=4 {
            let scale = 10_f64.powi(decimals);
            candidates.push((x * scale).round() / scale);
        }
        if x != 0.0 {
            let scale = 10_f64.powf(x.abs().log10().floor());
            candidates.extend([x.signum() * scale, (x / scale).round() * scale]);
        }
    }
    let limit = complexity(x);
    candidates.retain(|candidate| complexity(*candidate) < limit);
    candidates.sort_by(|a, b| complexity(*a).cmp(&complexity(*b)).then(a.total_cmp(b)));
    candidates.dedup();
    candidates
}

/// A minimal case: no simpler candidate fails.
pub struct Minimal<Case> {
    /// The case.
    pub case: Case,
    /// How many candidates were tried.
    pub tried: u64,
}

/// Walks from a failing case to a minimal one. `fails` says whether a candidate still fails, or
/// `None` to stop the search. Where one of the contract's own corners or small cases fails and is
/// simpler, the walk goes there first: so the minimum does not depend on where it began. A case
/// as large as a production batch is cut along its axes before its numbers are looked at.
pub fn minimise<C: Contract>(
    case: &C::Case,
    options: &C::Options,
    dtype: Dtype,
    mut fails: impl FnMut(&C::Case) -> Option<bool>,
) -> Minimal<C::Case> {
    let mut minimal = Minimal { case: case.clone(), tried: 0 };
    let mut candidates = C::corners(options, dtype);
    candidates.extend(C::small(options, dtype));
    candidates.iter_mut().for_each(|corner| round(corner, dtype));
    candidates.sort_by_cached_key(C::measure);
    let mut only_corners_tried = true;
    loop {
        let limit = C::measure(&minimal.case);
        let simpler = candidates.into_iter().find_map(|candidate| {
            if C::measure(&candidate) >= limit || C::valid(&candidate, options, dtype).is_err() {
                return None;
            }
            minimal.tried += 1;
            match fails(&candidate) {
                Some(true) => Some(Some(candidate)),
                Some(false) => None,
                None => Some(None),
            }
        });
        match simpler {
            Some(Some(simpler)) => minimal.case = simpler,
            Some(None) => return minimal,
            None if only_corners_tried => {}
            None => return minimal,
        }
        only_corners_tried = false;
        if cuts::is_large(&minimal.case) {
            cuts::cut_down::<C>(&mut minimal, options, dtype, &mut fails);
            if cuts::is_large(&minimal.case) {
                return minimal;
            }
        }
        candidates = rounded_simpler::<C>(&minimal.case, options, dtype);
    }
}

/// The simpler cases of a case, rounded to the dtype.
pub fn rounded_simpler<C: Contract>(
    case: &C::Case,
    options: &C::Options,
    dtype: Dtype,
) -> Vec<C::Case> {
    let mut candidates = C::simpler(case, options, dtype);
    candidates.iter_mut().for_each(|candidate| round(candidate, dtype));
    candidates
}

/// The cases of a contract as a proptest [`Strategy`], for `proptest!` properties of your own.
/// They shrink as everywhere in shakedown: by value, to the same minimum.
pub fn cases<C: Contract>(options: C::Options, dtype: Dtype) -> Cases<C> {
    Cases { options, dtype }
}

/// See [`cases`].
pub struct Cases<C: Contract> {
    options: C::Options,
    dtype: Dtype,
}

impl<C: Contract> std::fmt::Debug for Cases<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cases({}, {:?})", C::ID, self.options)
    }
}

impl<C: Contract> Strategy for Cases<C> {
    type Tree = CaseTree<C>;
    type Value = C::Case;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let case = crate::stream::draw::<C>(runner.rng(), &self.options, self.dtype);
        Ok(CaseTree {
            current: case.clone(),
            failing: case,
            candidates: None,
            options: self.options.clone(),
            dtype: self.dtype,
        })
    }
}

/// A walk among the simpler cases of a failing one.
pub struct CaseTree<C: Contract> {
    current: C::Case,
    failing: C::Case,
    candidates: Option<std::vec::IntoIter<C::Case>>,
    options: C::Options,
    dtype: Dtype,
}

impl<C: Contract> CaseTree<C> {
    fn next_candidate(&mut self) -> bool {
        let limit = C::measure(&self.failing);
        let candidates = self.candidates.get_or_insert_with(|| {
            rounded_simpler::<C>(&self.failing, &self.options, self.dtype).into_iter()
        });
        let next = candidates.find(|candidate| {
            C::measure(candidate) < limit && C::valid(candidate, &self.options, self.dtype).is_ok()
        });
        match next {
            Some(candidate) => {
                self.current = candidate;
                true
            }
            None => {
                self.current = self.failing.clone();
                false
            }
        }
    }
}

impl<C: Contract> ValueTree for CaseTree<C> {
    type Value = C::Case;

    fn current(&self) -> C::Case {
        self.current.clone()
    }

    fn simplify(&mut self) -> bool {
        self.failing = self.current.clone();
        self.candidates = None;
        self.next_candidate()
    }

    fn complicate(&mut self) -> bool {
        self.next_candidate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simpler_numbers_are_simpler_and_end() {
        for x in [0.1, -3.7, 1e-3, 12345.678, 1e9, f64::NAN, f64::INFINITY, -0.0, 9.7] {
            let mut x = x;
            for _ in 0..10_000 {
                match simpler_numbers(x).last() {
                    None => break,
                    Some(next) => {
                        assert!(complexity(*next) < complexity(x), "{next} from {x}");
                        x = *next;
                    }
                }
            }
            assert_eq!(x.to_bits(), 0.0_f64.to_bits());
        }
    }

    #[test]
    fn zero_then_units_then_decimals() {
        let ordered = [0.0, -0.0, 1.0, -1.0, 2.0, 10.0, 0.5, 0.25, 0.123_456_789, f64::INFINITY];
        assert!(ordered.windows(2).all(|pair| complexity(pair[0]) < complexity(pair[1])));
    }
}
