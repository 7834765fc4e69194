//! The distribution that is sampled from: a softmax of filtered logits.
//!
//! A rollout is drawn from this distribution and scored with another one wherever the two do not
//! agree on temperature and filters. It is checked as a distribution: nothing is sampled, so a
//! finding needs no statistics.
//!
//! Tokens of equal logits at the end of what a filter keeps are a choice of the implementation:
//! all of them, some, or as few as the filter asks for. So is the token at which the mass comes
//! within rounding of `top_p`. One boundary is exact in any arithmetic, and decided: 4 or 16 logits
//! of 0 and no others, with `top_p` on a prefix sum, leave `top_p`·V of them, or all.
//!
//! ### Source
//! transformers `TemperatureLogitsWarper`, `TopKLogitsWarper`, `TopPLogitsWarper` (Holtzman et al.,
//! 2020) and `MinPLogitsWarper` (Nguyen et al., 2024), in this order. A filter that is off is null;
//! elsewhere it is 0 (TRL), -1 (verl, vLLM), a top-p of 1 or a top-k of V.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use ndarray::{Array2, Ix2};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::{above, options};
use shakedown_core::contract::rows::{self, Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::laws::faults::temperature::Tempered;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The input of `sampling-filter`.
    ///
    /// # Shapes
    /// `N` rows over a vocabulary of `V`: `[N, V]`.
    pub struct SamplingFilterCase {
        /// What the model gave; `-inf` where a token cannot come, which is never a whole row.
        pub logits: A::Float<Ix2>,
    }
}

record! {
    /// The output of `sampling-filter`.
    ///
    /// # Shapes
    /// `[N, V]`.
    pub struct SamplingFilterOutput {
        /// The probability of each token to be drawn.
        pub probs: A::Float<Ix2>,
    }
}

impl From<Array2<f64>> for SamplingFilterOutput {
    fn from(probs: Array2<f64>) -> Self {
        Self { probs }
    }
}

impl From<Array2<f32>> for SamplingFilterOutput {
    fn from(probs: Array2<f32>) -> Self {
        probs.mapv(f64::from).into()
    }
}

choice! {
    /// Where the temperature stands.
    pub enum Order {
        /// Before the filters: they see the logits over the temperature.
        TemperatureFirst = "temperature-first",
        /// After the filters: they see the logits, and the temperature what they left.
        FiltersFirst = "filters-first",
    }
}

/// The masses of top-p that are drawn.
const TOP_P: [Option<f64>; 12] = [
    None,
    Some(0.75),
    None,
    Some(0.9),
    Some(0.5),
    Some(0.95),
    Some(0.0),
    Some(1e-6),
    Some(0.8),
    Some(0.25),
    Some(1.0),
    Some(0.1),
];

options! {
    /// The options of `sampling-filter`.
    pub struct Options {
        /// A number > 0 that divides the logits.
        pub temperature: f64 = 1.0, in above(0.0), draw [1.0, 0.6, 1.5, 1.0, 0.7, 2.0, 0.1, 0.01];
        /// `null`, or a whole number ≥ 1: so many of the most likely tokens are kept.
        pub top_k: Option<i64> = None, in 1.., expected "null (off) or a whole number ≥ 1",
            draw [None, Some(2), None, Some(3), Some(1), Some(5), Some(50), Some(4)];
        /// `null`, or a number from 0 to 1: of what top-k left, renormalised, the smallest set of
        /// most likely tokens with this mass is kept.
        pub top_p: Option<f64> = None, in 0.0..=1.0, expected "null (off) or a number from 0 to 1",
            draw TOP_P;
        /// `null`, or a number from 0 to 1: tokens less likely than this share of the most likely
        /// one are taken away.
        pub min_p: Option<f64> = None, in 0.0..=1.0, expected "null (off) or a number from 0 to 1",
            draw [None, Some(0.1), None, Some(0.05), Some(0.5), Some(1.0), None, Some(0.0)];
        /// `temperature-first` (temperature, top-k, top-p, min-p) or `filters-first` (the
        /// temperature last).
        pub order: Order = Order::TemperatureFirst;
        /// A whole number ≥ 1: so many tokens survive every filter, or all that there are.
        pub min_keep: i64 = 1, in 1.., expected "a whole number ≥ 1", draw [1, 1, 1, 2, 1, 3, 1, 5];
    }
}

impl Tempered for Options {
    fn temperature(&mut self) -> &mut f64 {
        &mut self.temperature
    }
}

/// The contract: the distribution that is sampled from.
#[derive(Clone, Copy, Debug)]
pub struct SamplingFilter;

impl Definition for SamplingFilter {
    type Case = SamplingFilterCase;
    type Output = SamplingFilterOutput;
    type Options = Options;
}

impl Contract for SamplingFilter {
    const ID: &'static str = "sampling-filter";
    const STAGE: Stage = Stage::Decoding;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const AXES: Axes = Axes::new(&[("logits", "NV"), ("probs", "NV")]);
    const BLIND: &'static [Blind] = &[Blind::at("temperature", 1.0, &[("temperature", "0.7")])];
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::SAMPLING_FILTER;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: |case, options, dtype| reference::filter(case, options, dtype).into(),
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<SamplingFilterCase> {
        rows::small::<Self>(&[("logits", &[0.0, 1.0, -1.0, 2.0, 3.0])], options, dtype)
    }

    fn oracle(case: &SamplingFilterCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::probs(case, options, dtype)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for SamplingFilter {}
