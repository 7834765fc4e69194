//! The discounted return of each token: its reward and the discounted ones that follow.
//!
//! REINFORCE++ and PPO without a critic weigh each token by what came after it. The recursion runs
//! from the end of a row to its start, and must neither take in what stands under the mask nor
//! stop at a gap: a tool's output in the middle of a completion carries the return over.
//!
//! ### Source
//! `R_t = r_t + γ·R_{t+1}`. verl REINFORCE++ (`skip`: masked tokens are no steps), OpenRLHF
//! `get_cumulative_returns` (`zero`: they are steps without reward).

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use ndarray::{Array2, Ix2};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::rows::{self, Masked, Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
pub use shakedown_core::numeric::conventions::{MaskedOutput, MaskedTokens, MaskedValues};
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `returns`.
    ///
    /// # Shapes
    /// `N` rows of `T` tokens: both `[N, T]`.
    pub struct ReturnsCase {
        /// The reward of each token.
        pub rewards: A::Float<Ix2>,
        /// True where the token counts.
        pub mask: A::Bool<Ix2>,
    }
}

record! {
    /// The output of `returns`.
    ///
    /// # Shapes
    /// `[N, T]`.
    pub struct ReturnsOutput {
        /// The return of each token.
        pub returns: A::Float<Ix2>,
    }
}

impl From<Array2<f64>> for ReturnsOutput {
    fn from(returns: Array2<f64>) -> Self {
        Self { returns }
    }
}

impl From<Array2<f32>> for ReturnsOutput {
    fn from(returns: Array2<f32>) -> Self {
        returns.mapv(f64::from).into()
    }
}

options! {
    /// The options of `returns`.
    pub struct Options {
        /// The discount of one step, 0 to 1.
        pub gamma: f64 = 1.0, in 0.0..=1.0, draw [1.0, 0.99, 0.9, 0.5, 0.0];
        /// `skip` (masked tokens are no steps: the return carries over them) or `zero` (they are
        /// steps with reward 0: time passes).
        pub masked: MaskedTokens = MaskedTokens::Skip;
        /// `true` or `false`: whether a mask may have gaps inside a row.
        pub holes: bool = false;
        /// `finite` or `any`: what may stand under the mask.
        pub masked_values: MaskedValues = MaskedValues::Finite;
        /// `zero` or `any`: what stands at masked positions of the output.
        pub masked_output: MaskedOutput = MaskedOutput::Zero;
    }
}

/// The contract: the discounted return of each token.
#[derive(Clone, Copy, Debug)]
pub struct Returns;

impl Definition for Returns {
    type Case = ReturnsCase;
    type Output = ReturnsOutput;
    type Options = Options;
}

impl Contract for Returns {
    const ID: &'static str = "returns";
    const STAGE: Stage = Stage::Advantage;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const AXES: Axes = Axes::new(&[("rewards", "NT"), ("mask", "NT"), ("returns", "NT")]);
    const BLIND: &'static [Blind] = &[Blind::at("gamma", 1.0, &[("gamma", "0.9")])];
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::RETURNS;
    const PARTS: Parts<Self> = Parts {
        draw: |u, options, _| generate::draw(u, options),
        corners: generate::corners,
        valid: |case, options, _| generate::valid(case, options),
        classes: generate::classes,
        reference: |case, options, dtype| reference::returns(case, options, dtype).into(),
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<ReturnsCase> {
        rows::small::<Self>(&[("rewards", &[0.0, 1.0, 2.0])], options, dtype)
    }

    fn oracle(case: &ReturnsCase, options: &Options, _: Dtype) -> Vec<Expected> {
        oracle::returns(case, options)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for Returns {}

impl Masked for Returns {
    fn mask(case: &ReturnsCase) -> &Array2<bool> {
        &case.mask
    }

    fn mask_mut(case: &mut ReturnsCase) -> &mut Array2<bool> {
        &mut case.mask
    }

    fn masked_values(options: &Options) -> MaskedValues {
        options.masked_values
    }

    fn holes(options: &Options) -> bool {
        options.holes
    }
}
