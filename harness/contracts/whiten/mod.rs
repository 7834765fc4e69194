//! Values shifted to mean 0 and stretched to variance 1, over the tokens of a mask.
//!
//! PPO whitens advantages and sometimes rewards; REINFORCE++ whitens returns over the batch. What
//! is under the mask must be no part of mean and deviation, and what is too little for a deviation
//! needs a rule of its own.
//!
//! ### Source
//! `(v - mean) / √(var + ε)`. verl and TRL `masked_whiten`; torchtune `whiten`, whose `shift_mean`
//! has the opposite sense; slime `distributed_masked_whiten`. OpenRLHF `masked_normalize` takes
//! each row by itself (`rows: independent`).

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use arbitrary::Unstructured;
use ndarray::{Array2, Ix2};

pub use super::group_advantage::EpsilonMode;

use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::{RowInfluence, options};
use shakedown_core::contract::rows::{self, Masked, Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::draw::{chance, one};
pub use shakedown_core::numeric::conventions::{EmptyMask, MaskedOutput, MaskedValues};
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `whiten`.
    ///
    /// # Shapes
    /// `N` rows of `T` tokens: both `[N, T]`.
    pub struct WhitenCase {
        /// The value of each token.
        pub values: A::Float<Ix2>,
        /// True where the token counts.
        pub mask: A::Bool<Ix2>,
    }
}

record! {
    /// The output of `whiten`.
    ///
    /// # Shapes
    /// `[N, T]`.
    pub struct WhitenOutput {
        /// The whitened value of each token.
        pub whitened: A::Float<Ix2>,
    }
}

impl From<Array2<f64>> for WhitenOutput {
    fn from(whitened: Array2<f64>) -> Self {
        Self { whitened }
    }
}

impl From<Array2<f32>> for WhitenOutput {
    fn from(whitened: Array2<f32>) -> Self {
        whitened.mapv(f64::from).into()
    }
}

options! {
    rows: Batch;
    draw: drawn;

    /// The options of `whiten`. With `rows: batch` mean and variance are those of all tokens, with
    /// `independent` those of each row by itself.
    pub struct Options {
        /// `1` or `0`: unbiased or biased variance.
        pub ddof: u8 = 1, in 0..=1, expected "0 or 1";
        /// A number ≥ 0 inside the root that protects the division. With 0 no set of equal values
        /// is generated.
        pub epsilon: f64 = 1e-8, in 0.0.., expected "a finite number ≥ 0";
        /// `add` (√(var + ε)) or `clamp` (√max(var, ε)).
        pub epsilon_mode: EpsilonMode = EpsilonMode::Add;
        /// `true` or `false`: whether the mean becomes 0, or is added again after the division.
        pub shift_mean: bool = true;
        /// `zero`, `nan`, `refuse` or `avoid`: what fewer than `ddof` + 1 tokens give. `zero`
        /// keeps the value where the mean is kept (`shift_mean: false`).
        pub empty_mask: EmptyMask = EmptyMask::Zero;
        /// `true` or `false`: whether a mask may have gaps inside a row.
        pub holes: bool = false;
        /// `finite` or `any`: what may stand under the mask.
        pub masked_values: MaskedValues = MaskedValues::Finite;
        /// `zero` or `any`: what stands at masked positions of the output.
        pub masked_output: MaskedOutput = MaskedOutput::Zero;
    }
}

/// `rows` is drawn too, before what to do with an empty mask.
fn drawn(u: &mut Unstructured<'_>) -> arbitrary::Result<Options> {
    Ok(Options {
        ddof: u8::from(chance(u, 160)?),
        epsilon: one(u, &[1e-8, 1e-5, 1e-8, 1e-3, 1e-12, 0.0])?,
        epsilon_mode: one(u, EpsilonMode::ALL)?,
        shift_mean: chance(u, 160)?,
        rows: one(u, &[RowInfluence::Batch, RowInfluence::Independent])?,
        empty_mask: one(u, EmptyMask::ALL)?,
        holes: chance(u, 128)?,
        masked_values: one(u, MaskedValues::ALL)?,
        masked_output: one(u, MaskedOutput::ALL)?,
        ..Options::default()
    })
}

/// The contract: values shifted to mean 0 and stretched to variance 1.
#[derive(Clone, Copy, Debug)]
pub struct Whiten;

impl Definition for Whiten {
    type Case = WhitenCase;
    type Output = WhitenOutput;
    type Options = Options;
}

impl Contract for Whiten {
    const ID: &'static str = "whiten";
    const STAGE: Stage = Stage::Advantage;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const AXES: Axes = Axes::new(&[("values", "NT"), ("mask", "NT"), ("whitened", "NT")]);
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::WHITEN;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::whitened,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<WhitenCase> {
        rows::small::<Self>(&[("values", &[0.0, 1.0, 2.0])], options, dtype)
    }

    fn refuses(case: &WhitenCase, options: &Options) -> bool {
        options.empty_mask == EmptyMask::Refuse && has_few(case, options)
    }

    fn simpler(case: &WhitenCase, _: &Options, _: Dtype) -> Vec<WhitenCase> {
        generate::simpler(case)
    }

    fn oracle(case: &WhitenCase, options: &Options, _: Dtype) -> Vec<Expected> {
        oracle::whitened(case, options)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for Whiten {
    fn independent(options: &Options) -> bool {
        options.rows == RowInfluence::Independent
    }
}

impl Masked for Whiten {
    fn mask(case: &WhitenCase) -> &Array2<bool> {
        &case.mask
    }

    fn mask_mut(case: &mut WhitenCase) -> &mut Array2<bool> {
        &mut case.mask
    }

    fn masked_values(options: &Options) -> MaskedValues {
        options.masked_values
    }

    fn holes(options: &Options) -> bool {
        options.holes
    }

    fn empty_batches(options: &Options) -> bool {
        options.empty_mask != EmptyMask::Avoid
    }
}

/// The tokens that are whitened together: all of the batch, or those of each row.
fn sets(case: &WhitenCase, options: &Options) -> Vec<Vec<(usize, usize)>> {
    let row = |row: usize| {
        let mask = case.mask.row(row);
        let tokens: Vec<usize> = (0..mask.len()).filter(|token| mask[*token]).collect();
        tokens.into_iter().map(move |token| (row, token))
    };
    let rows = 0..case.mask.nrows();
    match options.rows {
        RowInfluence::Batch => vec![rows.flat_map(row).collect()],
        RowInfluence::Independent => rows.map(|number| row(number).collect()).collect(),
    }
}

/// Whether so many tokens are too few for a variance.
fn is_few(count: usize, options: &Options) -> bool {
    count < usize::from(options.ddof) + 1
}

/// Whether a set has too few tokens.
fn has_few(case: &WhitenCase, options: &Options) -> bool {
    sets(case, options).iter().any(|set| is_few(set.len(), options))
}

/// What the deviation is once ε protects it.
fn protected(variance: f64, options: &Options) -> f64 {
    match options.epsilon_mode {
        EpsilonMode::Add => (variance + options.epsilon).sqrt(),
        EpsilonMode::Clamp => variance.max(options.epsilon).sqrt(),
    }
}

/// Mean and variance of some values, exact for equal ones.
fn statistics(values: &[f64], ddof: u8) -> (f64, f64) {
    let count = values.len() as f64;
    let constant = values.windows(2).all(|pair| pair[0] == pair[1]);
    let mean = if constant { values[0] } else { values.iter().sum::<f64>() / count };
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (mean, squares / (count - f64::from(ddof)))
}
