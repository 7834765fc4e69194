//! The entropy of the model's distribution at each position.
//!
//! It is the first curve to look at in a run (a collapse shows here before the reward falls), and
//! a bonus in the loss. It comes from logits over the temperature, in one of two forms:
//! -Σ p·log p, or logsumexp(z) - Σ p·z, which cancels two large numbers.
//!
//! ### Source
//! TRL `entropy_from_logits` (the first form); verl `entropy_from_logits`, OpenRLHF, open-instruct,
//! prime-rl and slime (the second). All of them give NaN beside a logit of -∞, where the limit of
//! p·log p is 0: `neg_inf` says which.

mod faults;
pub(crate) mod generate;
mod invariants;
pub(crate) mod oracle;
mod reference;

use ndarray::{Array2, ArrayView1, Axis, Ix2, Ix3};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::{above, options};
use shakedown_core::contract::rows::{self, Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::laws::faults::entropy::OfLogits as _;
use shakedown_core::laws::faults::temperature::Tempered;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The input of `token-entropy`.
    ///
    /// # Shapes
    /// `N` rows of `T` tokens over a vocabulary of `V`: `[N, T, V]`.
    pub struct TokenEntropyCase {
        /// What the model gave. `-inf` where a token cannot come, unless `neg_inf: avoid`.
        pub logits: A::Float<Ix3>,
    }
}

record! {
    /// The outputs of `token-entropy`.
    ///
    /// # Shapes
    /// entropy `[N, T]`; grad_logits `[N, T, V]`.
    ///
    /// # Units
    /// Nats.
    pub struct TokenEntropyOutput {
        /// The entropy at each position.
        pub entropy: A::Float<Ix2>,
        /// The gradient of the summed entropies.
        pub grad_logits: Option<A::Float<Ix3>>,
    }
}

impl From<Array2<f64>> for TokenEntropyOutput {
    fn from(entropy: Array2<f64>) -> Self {
        Self { entropy, grad_logits: None }
    }
}

impl From<Array2<f32>> for TokenEntropyOutput {
    fn from(entropy: Array2<f32>) -> Self {
        entropy.mapv(f64::from).into()
    }
}

choice! {
    /// What a logit of -∞ does.
    pub enum NegInf {
        /// It is never generated.
        Avoid = "avoid",
        /// It contributes 0.
        Zero = "zero",
        /// It makes the entropy of its position NaN.
        Nan = "nan",
    }
}

options! {
    /// The options of `token-entropy`.
    pub struct Options {
        /// A number > 0 that divides the logits.
        pub temperature: f64 = 1.0, in above(0.0), draw [1.0, 0.6, 1.5, 1.0, 0.7, 2.0, 0.1, 0.5];
        /// `avoid` (-inf logits are never generated), `zero` (they contribute 0) or `nan` (they
        /// make the entropy of their position NaN).
        pub neg_inf: NegInf = NegInf::Avoid;
        /// `true` or `false`: whether the gradient by the logits is part of the contract.
        pub gradient: bool = true, chance 200;
    }
}

impl Tempered for Options {
    fn temperature(&mut self) -> &mut f64 {
        &mut self.temperature
    }
}

/// The contract: the entropy of the model's distribution at each position.
#[derive(Clone, Copy, Debug)]
pub struct TokenEntropy;

impl Definition for TokenEntropy {
    type Case = TokenEntropyCase;
    type Output = TokenEntropyOutput;
    type Options = Options;
}

impl Contract for TokenEntropy {
    const ID: &'static str = "token-entropy";
    const STAGE: Stage = Stage::LogProbability;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const LEAVES: &'static [&'static str] = &["logits"];
    const AXES: Axes = Axes::new(&[("logits", "NTV"), ("entropy", "NT"), ("grad_logits", "NTV")]);
    const BLIND: &'static [Blind] = &[Blind::at("temperature", 1.0, &[("temperature", "0.7")])];
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::TOKEN_ENTROPY;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::entropy,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<TokenEntropyCase> {
        rows::small::<Self>(&[("logits", &[0.0, 0.0, 1.0, -1.0, 2.0])], options, dtype)
    }

    fn oracle(case: &TokenEntropyCase, options: &Options, _: Dtype) -> Vec<Expected> {
        oracle::entropy(case, options)
    }

    fn oracle_gradient(case: &TokenEntropyCase, options: &Options, _: Dtype) -> Vec<Expected> {
        oracle::gradient(case, options)
    }

    fn wants_gradient(options: &Options) -> bool {
        options.gradient
    }

    fn on_tape(case: &TokenEntropyCase, options: &Options, dtype: Dtype) -> TokenEntropyOutput {
        Self::mapped(case, options, dtype, |at| at.entropy())
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for TokenEntropy {}

/// The size of the vocabulary.
fn vocabulary(case: &TokenEntropyCase) -> usize {
    case.logits.dim().2
}

/// The positions, row by row, each with its logits.
fn positions(
    case: &TokenEntropyCase,
) -> impl Iterator<Item = ((usize, usize), ArrayView1<'_, f64>)> {
    let (_, columns, _) = case.logits.dim();
    let lanes = case.logits.lanes(Axis(2)).into_iter().enumerate();
    lanes.map(move |(at, logits)| ((at / columns, at % columns), logits))
}
