//! Generalised advantage estimation over the tokens of completions.
//!
//! PPO with a critic credits each token with the discounted sum of the TD errors that follow it.
//! The recursion runs from the end of a row to its start: the value after the last token is 0, a
//! gap between two turns is carried over or costs time as declared, and nothing that stands under
//! the mask takes part. The critic's targets, `returns`, are made before any whitening.
//!
//! ### Source
//! Schulman et al. 2015: `δ_t = r_t + γ·V_{t+1} − V_t`, `A_t = δ_t + γλ·A_{t+1}`,
//! `returns = A + V`. verl `compute_gae_advantage_return` (`skip`: masked tokens are no
//! transitions), OpenRLHF `get_advantages_and_returns` (`zero`: they are steps without reward or
//! value). Whitening as in verl and TRL PPO: `(A − mean)/√(var + 1e-8)` with ddof 1 over all
//! tokens of the batch, which needs two of them.

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
pub use shakedown_core::numeric::conventions::{
    EmptyMask, MaskedOutput, MaskedTokens, MaskedValues,
};
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `gae`.
    ///
    /// # Shapes
    /// `N` rows of `T` tokens: all `[N, T]`.
    pub struct GaeCase {
        /// The reward of each token.
        pub rewards: A::Float<Ix2>,
        /// The critic's value of the state in which each token is chosen.
        pub values: A::Float<Ix2>,
        /// True where the token counts.
        pub mask: A::Bool<Ix2>,
    }
}

record! {
    /// The output of `gae`.
    ///
    /// # Shapes
    /// Both `[N, T]`.
    pub struct GaeOutput {
        /// The advantage of each token, whitened where that is declared.
        pub advantages: A::Float<Ix2>,
        /// The critic's target for each token: the advantage before whitening, and the value.
        pub returns: A::Float<Ix2>,
    }
}

impl From<(Array2<f64>, Array2<f64>)> for GaeOutput {
    /// Advantages, then returns.
    fn from((advantages, returns): (Array2<f64>, Array2<f64>)) -> Self {
        Self { advantages, returns }
    }
}

impl From<(Array2<f32>, Array2<f32>)> for GaeOutput {
    /// Advantages, then returns.
    fn from((advantages, returns): (Array2<f32>, Array2<f32>)) -> Self {
        (advantages.mapv(f64::from), returns.mapv(f64::from)).into()
    }
}

options! {
    /// The options of `gae`.
    pub struct Options {
        /// The discount of one step, 0 to 1.
        pub gamma: f64 = 1.0, in 0.0..=1.0, draw [1.0, 0.99, 0.9, 0.5, 0.0];
        /// λ, how far ahead rewards are trusted over values: 0 (TD error) to 1 (return − value).
        pub lam: f64 = 0.95, in 0.0..=1.0, draw [0.95, 1.0, 0.0, 0.5, 0.97];
        /// `skip` (masked tokens are no transitions: the recursion carries over them) or `zero`
        /// (they are steps with reward and value 0: time passes).
        pub masked: MaskedTokens = MaskedTokens::Skip;
        /// `false` or `true`: whether the advantages are whitened over the tokens of the batch.
        pub whiten: bool = false, chance 96;
        /// `zero`, `nan`, `refuse` or `avoid`: what whitening gives for fewer than two tokens.
        pub empty_mask: EmptyMask = EmptyMask::Zero;
        /// `false` or `true`: whether a mask may have gaps inside a row.
        pub holes: bool = false;
        /// `finite` or `any`: what may stand under the mask.
        pub masked_values: MaskedValues = MaskedValues::Finite;
        /// `zero` or `any`: what stands at masked positions of the outputs.
        pub masked_output: MaskedOutput = MaskedOutput::Zero;
    }
}

impl Options {
    /// Whether whitening has too few tokens here.
    fn too_few(&self, case: &GaeCase) -> bool {
        self.whiten && case.mask.iter().filter(|kept| **kept).count() < 2
    }
}

/// The contract: generalised advantage estimation over tokens.
#[derive(Clone, Copy, Debug)]
pub struct Gae;

impl Definition for Gae {
    type Case = GaeCase;
    type Output = GaeOutput;
    type Options = Options;
}

impl Contract for Gae {
    const ID: &'static str = "gae";
    const STAGE: Stage = Stage::Advantage;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const AXES: Axes = Axes::new(&[
        ("rewards", "NT"),
        ("values", "NT"),
        ("mask", "NT"),
        ("advantages", "NT"),
        ("returns", "NT"),
    ]);
    const BLIND: &'static [Blind] = &[
        Blind::while_equal(["gamma", "lam"], &[("gamma", "0.9"), ("lam", "0.7")]),
        Blind::at("gamma", 1.0, &[("gamma", "0.9")]),
        Blind::at("lam", 1.0, &[("lam", "0.9")]),
    ];
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::GAE;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::gae,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<GaeCase> {
        // A spread of 0.01 tells ε inside the root from ε beside it.
        let rewards: &[f64] = if options.whiten { &[0.0, 1.0, 0.01] } else { &[0.0, 1.0, 2.0] };
        let palette = [("rewards", rewards), ("values", &[0.0, 0.0, 1.0, 2.0][..])];
        rows::small::<Self>(&palette, options, dtype)
    }

    fn refuses(case: &GaeCase, options: &Options) -> bool {
        options.empty_mask == EmptyMask::Refuse && options.too_few(case)
    }

    fn oracle(case: &GaeCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::gae(case, options, dtype)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for Gae {
    fn independent(options: &Options) -> bool {
        !options.whiten
    }
}

impl Masked for Gae {
    fn mask(case: &GaeCase) -> &Array2<bool> {
        &case.mask
    }

    fn mask_mut(case: &mut GaeCase) -> &mut Array2<bool> {
        &mut case.mask
    }

    fn masked_values(options: &Options) -> MaskedValues {
        options.masked_values
    }

    fn holes(options: &Options) -> bool {
        options.holes
    }

    fn empty_batches(options: &Options) -> bool {
        !(options.whiten && options.empty_mask == EmptyMask::Avoid)
    }
}
