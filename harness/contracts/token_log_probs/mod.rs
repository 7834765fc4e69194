//! The log-probability of each token under the model's logits.
//!
//! Policy, old and reference log-probabilities all come from here: divide the logits by the
//! temperature, take the log-softmax, pick the token that was sampled. Ratios, KL and losses are
//! made of differences of these numbers, so an error of 0.1 in one of them is an error of 10% in
//! a gradient.
//!
//! ### Source
//! TRL `selective_log_softmax`, verl `logprobs_from_logits`, OpenRLHF `log_probs_from_logits`:
//! one formula. Temperature as in sampling: `log_softmax(logits / temperature)`.

mod faults;
mod generate;
mod invariants;
mod on_tape;
mod oracle;
mod reference;

use ndarray::{Array2, ArrayView1, Axis, Ix2, Ix3};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::{above, options};
use shakedown_core::contract::rows::{Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::measure::Measure;
use shakedown_core::laws::faults::temperature::Tempered;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `token-log-probs`.
    ///
    /// # Shapes
    /// `N` rows of `T` tokens over a vocabulary of `V`: logits `[N, T, V]`, tokens `[N, T]`.
    pub struct TokenLogProbsCase {
        /// What the model gave. `-inf` where a token cannot come; never for a scored token.
        pub logits: A::Float<Ix3>,
        /// The tokens to score, 0 to `V - 1`.
        pub tokens: A::Int<Ix2>,
    }
}

record! {
    /// The outputs of `token-log-probs`.
    ///
    /// # Shapes
    /// log_probs `[N, T]`, or `[N, T - 1]` with `shift: next`; grad_logits `[N, T, V]`.
    ///
    /// # Units
    /// Nats.
    pub struct TokenLogProbsOutput {
        /// The log-probability of each scored token.
        pub log_probs: A::Float<Ix2>,
        /// The gradient of the summed log-probabilities.
        pub grad_logits: Option<A::Float<Ix3>>,
    }
}

impl From<Array2<f64>> for TokenLogProbsOutput {
    fn from(log_probs: Array2<f64>) -> Self {
        Self { log_probs, grad_logits: None }
    }
}

impl From<Array2<f32>> for TokenLogProbsOutput {
    fn from(log_probs: Array2<f32>) -> Self {
        log_probs.mapv(f64::from).into()
    }
}

choice! {
    /// Which token the logits of a position score.
    pub enum Shift {
        /// Logits at t score the token at t.
        None = "none",
        /// Logits at t score the token at t + 1; the output has one column less.
        Next = "next",
    }
}

impl Shift {
    /// How far behind its logits a token stands.
    fn offset(self) -> usize {
        match self {
            Shift::None => 0,
            Shift::Next => 1,
        }
    }
}

options! {
    /// The options of `token-log-probs`.
    pub struct Options {
        /// A number > 0 that divides the logits.
        pub temperature: f64 = 1.0, in above(0.0), draw [1.0, 0.6, 1.5, 1.0, 0.7, 2.0, 0.1, 0.5];
        /// `none` (logits at t score the token at t) or `next` (logits at t score the token at
        /// t + 1, and the output has T - 1 columns).
        pub shift: Shift = Shift::None;
        /// `true` or `false`: whether the gradient by the logits is part of the contract.
        pub gradient: bool = true, chance 200;
    }
}

impl Tempered for Options {
    fn temperature(&mut self) -> &mut f64 {
        &mut self.temperature
    }
}

/// The contract: the log-probability of each token under the model's logits.
#[derive(Clone, Copy, Debug)]
pub struct TokenLogProbs;

impl Definition for TokenLogProbs {
    type Case = TokenLogProbsCase;
    type Output = TokenLogProbsOutput;
    type Options = Options;
}

impl Contract for TokenLogProbs {
    const ID: &'static str = "token-log-probs";
    const STAGE: Stage = Stage::LogProbability;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const LEAVES: &'static [&'static str] = &["logits"];
    const AXES: Axes = Axes::new(&[
        ("logits", "NTV"),
        ("tokens", "NT"),
        ("log_probs", "NT"),
        ("grad_logits", "NTV"),
    ]);
    const BLIND: &'static [Blind] = &[Blind::at("temperature", 1.0, &[("temperature", "0.7")])];
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::TOKEN_LOG_PROBS;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::log_probs,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn simpler(case: &TokenLogProbsCase, _: &Options, _: Dtype) -> Vec<TokenLogProbsCase> {
        generate::simpler(case)
    }

    fn measure(case: &TokenLogProbsCase) -> Measure {
        generate::measure(case)
    }

    fn shapes(case: &TokenLogProbsCase, options: &Options) -> Vec<(&'static str, Vec<usize>)> {
        vec![("log_probs", vec![case.tokens.nrows(), columns(case, options)])]
    }

    fn oracle(case: &TokenLogProbsCase, options: &Options, _: Dtype) -> Vec<Expected> {
        oracle::log_probs(case, options)
    }

    fn oracle_gradient(case: &TokenLogProbsCase, options: &Options, _: Dtype) -> Vec<Expected> {
        oracle::gradient(case, options)
    }

    fn wants_gradient(options: &Options) -> bool {
        options.gradient
    }

    fn on_tape(case: &TokenLogProbsCase, options: &Options, dtype: Dtype) -> TokenLogProbsOutput {
        on_tape::log_probs(case, options, dtype)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for TokenLogProbs {}

/// The number of columns of the output.
fn columns(case: &TokenLogProbsCase, options: &Options) -> usize {
    case.tokens.ncols().saturating_sub(options.shift.offset())
}

/// The size of the vocabulary.
fn vocabulary(case: &TokenLogProbsCase) -> usize {
    case.logits.dim().2
}

/// The logits of a position.
fn position(case: &TokenLogProbsCase, row: usize, column: usize) -> ArrayView1<'_, f64> {
    case.logits.index_axis(Axis(0), row).index_axis_move(Axis(0), column)
}

/// The scored positions, row by row: row, column of the output, token.
fn scored<'a>(
    case: &'a TokenLogProbsCase,
    options: &Options,
) -> impl Iterator<Item = (usize, usize, usize)> + use<'a> {
    let (columns, offset) = (columns(case, options), options.shift.offset());
    (0..case.tokens.nrows()).flat_map(move |row| {
        (0..columns).map(move |column| (row, column, case.tokens[[row, column + offset]] as usize))
    })
}
