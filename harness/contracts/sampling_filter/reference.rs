//! The reference implementation of `sampling-filter`, as a trainer would write it.

use ndarray::{Array1, Array2};

use super::{Options, Order, SamplingFilterCase};
use shakedown_core::value::place::Dtype;

/// One row on its way through the filters, in the arithmetic of the dtype.
pub(super) struct Row<'a> {
    /// The logits as they came.
    pub(super) logits: Vec<f64>,
    /// The logits as they are now: `-inf` where a token was taken away.
    pub(super) z: Vec<f64>,
    pub(super) options: &'a Options,
    arithmetic: Dtype,
}

impl<'a> Row<'a> {
    pub(super) fn new(logits: Vec<f64>, options: &'a Options, dtype: Dtype) -> Row<'a> {
        Row { z: logits.clone(), logits, options, arithmetic: dtype.arithmetic() }
    }

    /// Rounded to the arithmetic.
    pub(super) fn f(&self, x: f64) -> f64 {
        self.arithmetic.round(x)
    }

    /// How many tokens survive every filter.
    pub(super) fn keep(&self) -> usize {
        (self.options.min_keep as usize).min(self.z.len())
    }

    /// The tokens, the least likely first.
    pub(super) fn ascending(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.z.len()).collect();
        order.sort_by(|a, b| self.z[*a].total_cmp(&self.z[*b]));
        order
    }

    /// Takes the tokens at these places away.
    pub(super) fn take_away(&mut self, tokens: &[usize]) {
        tokens.iter().for_each(|token| self.z[*token] = f64::NEG_INFINITY);
    }

    pub(super) fn divide(&mut self, temperature: f64) {
        let temperature = self.f(temperature);
        self.z = self.z.iter().map(|z| self.f(z / temperature)).collect();
    }

    pub(super) fn temper(&mut self) {
        self.divide(self.options.temperature);
    }

    /// The k-th largest logit, where top-k is on.
    pub(super) fn kth(&self) -> Option<f64> {
        let k = (self.options.top_k? as usize).max(self.keep()).min(self.z.len());
        let mut sorted = self.z.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        Some(sorted[k - 1])
    }

    /// Ties with the k-th are all kept.
    pub(super) fn top_k(&mut self) {
        let Some(threshold) = self.kth() else { return };
        self.z.iter_mut().filter(|z| **z < threshold).for_each(|z| *z = f64::NEG_INFINITY);
    }

    /// Takes from the least likely end whatever the mass of 1 - p covers.
    pub(super) fn top_p(&mut self) {
        let Some(p) = self.options.top_p else { return };
        let rest = self.f(1.0 - p);
        let mut masses = self.masses(&self.ascending());
        masses.truncate(masses.len() - self.keep());
        let gone = masses.iter().filter(|(_, _, mass)| *mass <= rest).map(|(token, ..)| *token);
        self.take_away(&gone.collect::<Vec<_>>());
    }

    /// The tokens in an order, each with the mass in front of it and the mass with it.
    pub(super) fn masses(&self, order: &[usize]) -> Vec<(usize, f64, f64)> {
        let probs = self.softmax();
        let mut mass = 0.0;
        let with_masses = order.iter().map(|token| {
            let before = mass;
            mass = self.f(mass + probs[*token]);
            (*token, before, mass)
        });
        with_masses.collect()
    }

    pub(super) fn min_p(&mut self) {
        let Some(share) = self.options.min_p else { return };
        let probs = self.softmax();
        let largest = probs.iter().fold(0.0, |a: f64, b| a.max(*b));
        let threshold = self.f(self.f(share) * largest);
        self.above(&probs, threshold);
    }

    /// Takes away what is less likely than a threshold.
    pub(super) fn above(&mut self, probs: &[f64], threshold: f64) {
        let order = self.ascending();
        let may_go = &order[..order.len() - self.keep()];
        let gone: Vec<usize> =
            may_go.iter().copied().filter(|token| probs[*token] < threshold).collect();
        self.take_away(&gone);
    }

    pub(super) fn softmax(&self) -> Vec<f64> {
        let largest = self.z.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        let weights: Vec<f64> = self.z.iter().map(|z| self.f(self.f(z - largest).exp())).collect();
        self.normalised(&weights)
    }

    pub(super) fn normalised(&self, weights: &[f64]) -> Vec<f64> {
        let sum = weights.iter().fold(0.0, |sum, weight| self.f(sum + weight));
        weights.iter().map(|weight| self.f(weight / sum)).collect()
    }

    /// The steps in their order.
    fn filtered(mut self) -> Vec<f64> {
        if self.options.order == Order::TemperatureFirst {
            self.temper();
        }
        self.top_k();
        self.top_p();
        self.min_p();
        if self.options.order == Order::FiltersFirst {
            self.temper();
        }
        self.softmax()
    }
}

/// What each row gives.
pub(super) fn each_row(
    case: &SamplingFilterCase,
    options: &Options,
    dtype: Dtype,
    probs: impl Fn(Row<'_>) -> Vec<f64>,
) -> Array2<f64> {
    let mut all = Array2::zeros(case.logits.dim());
    for (logits, mut row) in case.logits.rows().into_iter().zip(all.rows_mut()) {
        row.assign(&Array1::from(probs(Row::new(logits.to_vec(), options, dtype))));
    }
    all
}

/// The probabilities, computed in the arithmetic of the dtype.
pub(super) fn filter(case: &SamplingFilterCase, options: &Options, dtype: Dtype) -> Array2<f64> {
    each_row(case, options, dtype, |row| row.filtered())
}
