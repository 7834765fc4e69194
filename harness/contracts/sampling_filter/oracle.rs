//! The definition of `sampling-filter` in plain f64: how many tokens may be left, and what each of
//! them has then.

use std::collections::BTreeSet;

use ndarray::{Array2, ArrayView1};

use super::{Options, Order, SamplingFilterCase};
use shakedown_core::numeric::tolerance::{Expected, Number, SAFETY, summed};
use shakedown_core::value::place::Dtype;

/// Vocabularies of this many logits of 0 have exact probabilities in every arithmetic, by way of
/// logarithms too: exp(-ln 8) is not 1/8 in f64, exp(-ln 4) and exp(-ln 16) are exact.
const EXACT: [usize; 2] = [4, 16];

/// One row, the most likely token first.
pub(super) struct Row {
    /// The tokens that can come at all.
    pub(super) order: Vec<usize>,
    /// Their logits as the filters see them, over the temperature where it comes first.
    pub(super) z: Vec<f64>,
    /// For each, the first and the last but one of those that rounding may tie with it.
    levels: Vec<(usize, usize)>,
    /// exp(z - max) as the filters see it, summed from the first on; 0 in front.
    seen: Vec<f64>,
    /// exp((logit - max) / temperature).
    weights: Vec<f64>,
    /// The same, summed from the first on; 0 in front.
    masses: Vec<f64>,
    /// How many tokens may be left.
    pub(super) left: Vec<usize>,
    /// The magnitude of what rounds in the exponent of a weight, less the token's own.
    exponent: f64,
    /// The unit roundoff of the arithmetic, with its safety factor.
    unit: f64,
    /// exp of less than minus this is 0 in the arithmetic, or may be.
    vanishing: f64,
}

impl Row {
    pub(super) fn of(logits: ArrayView1<'_, f64>, options: &Options, dtype: Dtype) -> Row {
        let mut order: Vec<usize> =
            (0..logits.len()).filter(|token| logits[*token].is_finite()).collect();
        order.sort_by(|a, b| logits[*b].partial_cmp(&logits[*a]).expect("finite logits"));
        let over = match options.order {
            Order::TemperatureFirst => options.temperature,
            Order::FiltersFirst => 1.0,
        };
        let z: Vec<f64> = order.iter().map(|token| logits[*token] / over).collect();
        let last: Vec<f64> =
            order.iter().map(|token| logits[*token] / options.temperature).collect();
        let weights: Vec<f64> = last.iter().map(|x| (x - last[0]).exp()).collect();
        let arithmetic = dtype.arithmetic();
        let mut row = Row {
            levels: Vec::new(),
            seen: prefix_sums(z.iter().map(|x| (x - z[0]).exp())),
            masses: prefix_sums(weights.iter().copied()),
            left: Vec::new(),
            exponent: exponent(&z, over).max(exponent(&last, options.temperature)),
            unit: SAFETY * arithmetic.unit_roundoff(),
            vanishing: if arithmetic == Dtype::F64 { 700.0 } else { 80.0 },
            order,
            z,
            weights,
        };
        row.levels = row.levels();
        row.left = row.left(options).into_iter().collect();
        row
    }

    /// How many tokens can come at all.
    pub(super) fn size(&self) -> usize {
        self.z.len()
    }

    /// How far apart two logits may be whose probabilities rounding makes equal: the greater.
    pub(super) fn near(&self, z: f64) -> f64 {
        self.unit * (1.0 + 2.0 * (z.abs() + self.z[0].abs()))
    }

    fn levels(&self) -> Vec<(usize, usize)> {
        let mut levels = Vec::with_capacity(self.size());
        while levels.len() < self.size() {
            let start = levels.len();
            let mut end = start + 1;
            while end < self.size() && self.tied(end - 1, end) {
                end += 1;
            }
            levels.resize(end, (start, end));
        }
        levels
    }

    /// Whether neighbours may be tied: in their logits, or because both probabilities are 0.
    fn tied(&self, before: usize, after: usize) -> bool {
        self.z[before] - self.z[after] <= self.near(self.z[after])
            || self.z[0] - self.z[before] > self.vanishing
    }

    /// The first token of the level to which the token belongs, and where the level ends.
    pub(super) fn level(&self, place: usize) -> (usize, usize) {
        self.levels[place]
    }

    /// The numbers of tokens that may be left: filter after filter, for each number that may have
    /// come in.
    fn left(&self, options: &Options) -> BTreeSet<usize> {
        let keep = options.min_keep as usize;
        let mut left = BTreeSet::from([self.size()]);
        if let Some(k) = options.top_k {
            left = left.iter().flat_map(|n| self.some(k as usize, k as usize, keep, *n)).collect();
        }
        if let Some(p) = options.top_p {
            left = left.iter().flat_map(|n| self.top_p(p, keep, *n)).collect();
        }
        if let Some(p) = options.min_p {
            let [least, most] = self.min_p(p);
            left = left.iter().flat_map(|n| self.some(least, most, keep, *n)).collect();
        }
        left
    }

    /// Of `n` tokens from `least` to `most`, and what is tied with the last of them.
    fn some(&self, least: usize, most: usize, keep: usize, n: usize) -> Vec<usize> {
        let least = least.max(keep).min(n);
        let most = most.max(keep).min(n);
        let (_, end) = self.levels[most - 1];
        (least..=end.min(n)).collect()
    }

    /// Whether the first `n` tokens have exact probabilities, and `p` is one of their sums.
    pub(super) fn is_exact(&self, n: usize, p: f64) -> bool {
        let zeros = || self.z[..n].iter().all(|z| *z == 0.0);
        EXACT.contains(&n) && (p * n as f64).fract() == 0.0 && zeros()
    }

    /// How far off a sum of the first `n` probabilities may be, whose exponents were rounded.
    pub(super) fn rounding_of_masses(&self, n: usize) -> f64 {
        self.unit * (n as f64 + self.rounds())
    }

    /// The magnitude of what rounds in a probability besides its own exponent.
    pub(super) fn rounds(&self) -> f64 {
        2.0 + self.exponent
    }

    /// What top-p may leave of `n` tokens.
    fn top_p(&self, p: f64, keep: usize, n: usize) -> Vec<usize> {
        let reached = |mass: f64| {
            let short = self.seen[1..=n].partition_point(|sum| sum / self.seen[n] < mass);
            (short + 1).min(n)
        };
        if self.is_exact(n, p) {
            return vec![((p * n as f64) as usize).max(keep).min(n), n];
        }
        let rounding = self.rounding_of_masses(n);
        self.some(reached(p - rounding), reached(p + rounding), keep, n)
    }

    /// How many tokens are at least, and at most, as likely as a share of the most likely one.
    fn min_p(&self, share: f64) -> [usize; 2] {
        let threshold = self.z[0] + share.ln();
        let surely = |z: f64| z == self.z[0] || z > threshold + 2.0 * self.near(z);
        let maybe = |z: f64| z >= threshold - 2.0 * self.near(z);
        [self.z.partition_point(|z| surely(*z)), self.z.partition_point(|z| maybe(*z))]
    }

    /// The probability of the token at a place in this order, if `left` tokens are left and it is
    /// one of them.
    pub(super) fn probability(&self, place: usize, left: usize) -> f64 {
        self.weights[place] / self.masses[left]
    }

    /// What is expected of the token at a place in this order: a number, or where ties leave a
    /// choice the middle of all that it may be.
    fn number(&self, place: usize) -> Number {
        let (start, end) = self.levels[place];
        let first = self.left.partition_point(|left| *left <= start);
        let Some(fewest) = self.left.get(first) else { return Number::new(0.0, 0.0) };
        let most = self.left[self.left.len() - 1];
        let highest = if self.z[0] - self.z[start] > self.vanishing {
            // Tied as 0 to the filters, and a later temperature may tell them apart again.
            self.weights[place] / (self.masses[start] + self.weights[place])
        } else {
            self.probability(place, *fewest)
        };
        let surely = self.left[0] >= end;
        let lowest = if surely { self.probability(place, most) } else { 0.0 };
        let gap = self.z[0] - self.z[place];
        let scale = highest * (summed(self.size()) + self.rounds() + 2.0 * gap);
        Number { slack: (highest - lowest) / 2.0, ..Number::new((highest + lowest) / 2.0, scale) }
    }
}

/// The magnitude of what rounds when an exponent is made, weighted: twice the largest, the mean
/// distance from it and the logarithm of the number. A temperature of 1 rounds nothing itself.
fn exponent(z: &[f64], temperature: f64) -> f64 {
    let gaps = z.iter().map(|x| z[0] - x);
    let weights: f64 = gaps.clone().map(|gap| (-gap).exp()).sum();
    let mean = gaps.map(|gap| gap * (-gap).exp()).sum::<f64>() / weights;
    let largest = z[0].abs() + (z.len() as f64).ln();
    if temperature == 1.0 { largest + mean } else { 2.0 * (largest + mean) }
}

fn prefix_sums(numbers: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sums = vec![0.0];
    let mut sum = 0.0;
    sums.extend(numbers.map(|x| {
        sum += x;
        sum
    }));
    sums
}

/// What the definition gives.
pub(super) fn probs(case: &SamplingFilterCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    let mut numbers = Array2::from_elem(case.logits.dim(), Number::new(0.0, 0.0));
    for (logits, mut numbers) in case.logits.rows().into_iter().zip(numbers.rows_mut()) {
        let row = Row::of(logits, options, dtype);
        for (place, token) in row.order.iter().enumerate() {
            numbers[*token] = row.number(place);
        }
    }
    vec![Expected { field: "probs", numbers: numbers.into_dyn(), terms: case.logits.ncols() }]
}

#[cfg(test)]
mod tests {
    use std::f64::consts::LN_2;

    use ndarray::{Axis, arr1};

    use super::*;

    const NONE: f64 = f64::NEG_INFINITY;

    fn options(yaml: &str) -> Options {
        shakedown_core::value::yaml::parse(yaml).unwrap()
    }

    fn row(logits: &[f64], yaml: &str) -> Row {
        Row::of(arr1(logits).view(), &options(yaml), Dtype::F64)
    }

    fn left(logits: &[f64], yaml: &str) -> Vec<usize> {
        row(logits, yaml).left
    }

    fn numbers(logits: &[f64], yaml: &str) -> Vec<Number> {
        let logits = arr1(logits).insert_axis(Axis(0));
        let case = SamplingFilterCase { logits };
        probs(&case, &options(yaml), Dtype::F64)[0].numbers.iter().copied().collect()
    }

    /// Numbers that are certain.
    fn near(found: &[Number], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found.value - expected).abs() < 1e-12 && found.slack == 0.0, "{found:?}");
        }
    }

    #[test]
    fn without_filters_it_is_the_softmax_over_the_temperature() {
        let logits = [0.3, -1.2, NONE, 2.0];
        for (yaml, temperature) in [
            ("{}", 1.0_f64),
            ("{top_k: 4, top_p: 1.0, min_p: 0.0}", 1.0),
            ("{temperature: 0.7}", 0.7),
            ("{temperature: 0.7, order: filters-first, top_k: 9}", 0.7),
        ] {
            let weights = logits.map(|x: f64| (x / temperature).exp());
            let sum: f64 = weights.iter().sum();
            near(&numbers(&logits, yaml), &weights.map(|x| x / sum));
        }
    }

    #[test]
    fn filters_renormalise_what_they_leave() {
        let logits = [1.0_f64, 3.0, 0.0, 2.0].map(f64::ln);
        near(&numbers(&logits, "{top_k: 2}"), &[0.0, 0.6, 0.0, 0.4]);
        near(&numbers(&logits, "{top_p: 0.6}"), &[0.0, 0.6, 0.0, 0.4]);
        near(&numbers(&logits, "{min_p: 0.5}"), &[0.0, 0.6, 0.0, 0.4]);
        near(&numbers(&logits, "{top_p: 0.4}"), &[0.0, 1.0, 0.0, 0.0]);
        near(&numbers(&logits, "{top_k: 1, min_keep: 2}"), &[0.0, 0.6, 0.0, 0.4]);
        // Of 3 : 2 the first alone has 0.6; of 3 : 2 : 1 it has a half.
        near(&numbers(&logits, "{top_k: 2, top_p: 0.55}"), &[0.0, 1.0, 0.0, 0.0]);
        near(&numbers(&logits, "{top_p: 0.55}"), &[0.0, 0.6, 0.0, 0.4]);
    }

    #[test]
    fn the_order_says_what_the_filters_see() {
        let logits = [0.0, LN_2, NONE];
        let squared = "{temperature: 0.5, top_p: 0.7}";
        near(&numbers(&logits, squared), &[0.0, 1.0, 0.0]);
        let plain = "{temperature: 0.5, top_p: 0.7, order: filters-first}";
        near(&numbers(&logits, plain), &[0.2, 0.8, 0.0]);
    }

    #[test]
    fn ties_leave_a_choice() {
        assert_eq!(left(&[1.0, 0.0, 1.0, 1.0], "{top_k: 2}"), [2, 3]);
        assert_eq!(left(&[1.0; 6], "{top_p: 0.6}"), [4, 5, 6]);
        assert_eq!(left(&[1.0, 0.0, 0.0], "{min_p: 0.9, min_keep: 2}"), [2, 3]);
        let [kept, tied, other] = numbers(&[1.0, 0.0, 0.0], "{top_k: 2}")[..] else { panic!() };
        assert_eq!(tied, other);
        let [two, three] = [1.0 + f64::exp(-1.0), 1.0 + 2.0 * f64::exp(-1.0)];
        assert!((kept.value + kept.slack - 1.0 / two).abs() < 1e-15);
        assert!((kept.value - kept.slack - 1.0 / three).abs() < 1e-15);
        assert!((tied.value + tied.slack - f64::exp(-1.0) / two).abs() < 1e-15);
        assert_eq!(tied.value, tied.slack);
    }

    #[test]
    fn a_mass_within_rounding_of_top_p_is_open_and_an_exact_one_is_not() {
        let halves = [-LN_2, -2.0 * LN_2, -3.0 * LN_2, -3.0 * LN_2];
        assert_eq!(left(&halves, "{top_p: 0.75}"), [2, 3, 4]);
        assert_eq!(left(&halves, "{top_p: 0.74}"), [2]);
        assert_eq!(left(&[0.0; 4], "{top_p: 0.5}"), [2, 4]);
        assert_eq!(left(&[0.0; 16], "{top_p: 0.75}"), [12, 16]);
        assert_eq!(left(&[0.0, 0.0, NONE, 0.0, 0.0], "{top_p: 0.25}"), [1, 4]);
        assert_eq!(left(&[0.0, -9.0, 0.0, 0.0, 0.0], "{top_p: 0.5, top_k: 4}"), [2, 4]);
        // exp(-ln 8) is not 1/8 in f64.
        assert_eq!(left(&[0.0; 8], "{top_p: 0.75}"), [6, 7, 8]);
    }

    #[test]
    fn some_always_survive_and_the_support_never_grows() {
        assert_eq!(left(&[2.0, 1.0, 0.0], "{top_p: 0.0}"), [1]);
        assert_eq!(left(&[2.0, 1.0, 0.0], "{top_p: 1.0e-6, min_keep: 2}"), [2]);
        assert_eq!(left(&[2.0, NONE, 0.0], "{top_k: 1, top_p: 0.0, min_keep: 3}"), [2]);
        assert_eq!(left(&[2.0, 1.0, 2.0], "{min_p: 1.0}"), [2]);
        near(&numbers(&[NONE, 5.0, NONE], "{top_k: 3}"), &[0.0, 1.0, 0.0]);
    }

    #[test]
    fn tokens_that_vanish_are_tied() {
        let logits = [0.0, -800.0, -900.0];
        assert_eq!(left(&logits, "{top_k: 2}"), [2, 3]);
        let last = numbers(&logits, "{temperature: 1000, order: filters-first, top_k: 2}");
        assert!(last[1].slack > 0.1 && last[2].slack > 0.1);
    }

    #[test]
    fn a_small_temperature_is_greedy() {
        let found = numbers(&[0.5, 1.0, 0.0], "{temperature: 0.01}");
        near(&found, &[0.0, 1.0, 0.0]);
    }
}
