//! Weights that correct for a sampler that is not quite the policy that is trained.
//!
//! Completions come from an inference engine, with other kernels, another precision or older
//! weights than the trainer's policy. Each token is weighted by policy over sampler, held within
//! bounds, and what is too far off is dropped. A weight that is 1 throughout looks like an engine
//! without a fault, and a wrong one trains on, so nobody sees either.
//!
//! ### Source
//! With `d = log_probs - sampler_log_probs` and x the exponent of the level, the weight is
//! `clamp(e^[x]_{-c}^{c})`. verl `compute_rollout_correction_weights` and
//! `compute_rollout_rejection_mask`, TRL (`vllm_importance_sampling_mode`), OpenRLHF and NeMo-RL
//! (`tis`, `icepop`, `seq-mask-tis`), slime (`tis`, `mis`, `opsm`), open-instruct.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use arbitrary::Unstructured;
use ndarray::{Array2, Ix0, Ix1, Ix2};

use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::rows::{Masked, Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::draw::{chance, one};
pub use shakedown_core::numeric::conventions::{EmptyMask, MaskedOutput, MaskedValues};
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `importance-weights`.
    ///
    /// # Shapes
    /// `N` rows of `T` tokens: all `[N, T]`, advantages `[N]`.
    ///
    /// # Units
    /// Log-probabilities in nats.
    pub struct ImportanceWeightsCase {
        /// The log-probability of each token under the policy as it is before the update.
        pub log_probs: A::Float<Ix2>,
        /// The same as the sampler reported it.
        pub sampler_log_probs: A::Float<Ix2>,
        /// True where the token counts.
        pub mask: A::Bool<Ix2>,
        /// The advantage of each row; there where `drift` is.
        pub advantages: Option<A::Float<Ix1>>,
    }
}

record! {
    /// The outputs of `importance-weights`, none of which has a gradient.
    ///
    /// # Shapes
    /// weights, keep and grad_log_probs `[N, T]`; clip_fraction and mismatch_kl are numbers.
    ///
    /// # Units
    /// mismatch_kl in nats.
    pub struct ImportanceWeightsOutput {
        /// The weight of each token.
        pub weights: A::Float<Ix2>,
        /// Whether a token counts and is not dropped.
        pub keep: Option<A::Float<Ix2>>,
        /// The share of tokens that were clamped or dropped.
        pub clip_fraction: Option<A::Float<Ix0>>,
        /// The mean of sampler less policy over the tokens.
        pub mismatch_kl: Option<A::Float<Ix0>>,
        /// The gradient of the summed weights, which is 0.
        pub grad_log_probs: Option<A::Float<Ix2>>,
    }
}

impl From<Array2<f64>> for ImportanceWeightsOutput {
    fn from(weights: Array2<f64>) -> Self {
        Self { weights, keep: None, clip_fraction: None, mismatch_kl: None, grad_log_probs: None }
    }
}

impl From<Array2<f32>> for ImportanceWeightsOutput {
    fn from(weights: Array2<f32>) -> Self {
        weights.mapv(f64::from).into()
    }
}

choice! {
    /// Of what the exponent of a weight is made.
    pub enum Level {
        /// The log-ratio of the token.
        Token = "token",
        /// The sum of its row.
        Sequence = "sequence",
        /// The mean of its row.
        Geometric = "geometric",
    }
}

choice! {
    /// On which level ratios decide what is dropped.
    pub enum Select {
        /// Nothing is dropped for its ratio.
        None = "none",
        /// Tokens, by their own ratio.
        Token = "token",
        /// Rows, by the product of their tokens' ratios.
        Sequence = "sequence",
        /// Rows, by the geometric mean of their tokens' ratios.
        Geometric = "geometric",
    }
}

impl Select {
    /// The level of the ratio.
    fn level(self) -> Option<Level> {
        match self {
            Select::None => None,
            Select::Token => Some(Level::Token),
            Select::Sequence => Some(Level::Sequence),
            Select::Geometric => Some(Level::Geometric),
        }
    }
}

choice! {
    /// The weight of what is dropped.
    pub enum Rejected {
        /// 0.
        Zero = "zero",
        /// The one that it has if it is kept: `keep` tells.
        Unchanged = "unchanged",
    }
}

choice! {
    /// By which mean the weights are divided.
    pub enum Normalize {
        /// By none.
        None = "none",
        /// That over the tokens.
        Tokens = "tokens",
        /// That over the rows with a token, of the means of their tokens.
        Sequences = "sequences",
    }
}

choice! {
    /// How large the generated log-ratios are.
    pub enum ExtremeRatios {
        /// Within ±80, at f16 within ±10.
        Avoid = "avoid",
        /// Up to ±120, wherever the exact weight is finite in the dtype.
        Finite = "finite",
    }
}

options! {
    check: bounds_hold_a_ratio;
    draw: drawn;

    /// The options of `importance-weights`.
    pub struct Options {
        /// `token`, `sequence` or `geometric`: whether the exponent of a weight is the token's
        /// log-ratio, the sum of those of its row, or their mean.
        pub level: Level = Level::Token;
        /// `null` or a number: weights are at least this.
        pub clamp_low: Option<f64> = None, in 0.0..=MOST;
        /// `null` or a number: weights are at most this.
        pub clamp_high: Option<f64> = Some(2.0), in LEAST..=MOST;
        /// `none`, `token`, `sequence` or `geometric`: which ratio must be from `select_low` to
        /// `select_high`, so that the token, or for the last two the row, is not dropped.
        pub select: Select = Select::None;
        /// `null` or the least ratio that is kept.
        pub select_low: Option<f64> = None, in 0.0..=MOST;
        /// `null` or the largest ratio that is kept.
        pub select_high: Option<f64> = None, in LEAST..=MOST;
        /// `null`, or v in (0, 1): a row is dropped for one token whose own ratio is below v.
        pub veto: Option<f64> = None, in LEAST..1.0, expected "null or a number > 0 and below 1";
        /// `null`, or δ: a row of negative advantage is dropped if the mean of sampler less policy
        /// over its tokens is more than δ.
        pub drift: Option<f64> = None, in -1000.0..=1000.0;
        /// `zero` or `unchanged`: whether what is dropped weighs 0, or as much as if it were kept.
        pub rejected: Rejected = Rejected::Zero;
        /// `none`, `tokens` or `sequences`: the weights are divided last by their mean over the
        /// tokens, or over the rows with a token of their row means, where that is positive.
        pub normalize: Normalize = Normalize::None;
        /// `null`, or c > 0: the exponent is clamped to ±c, that of the weight and that of
        /// `select`.
        pub log_ratio_clamp: Option<f64> = None, in LEAST..=MOST, expected "null or a number > 0";
        /// `avoid` (generated log-ratios stay within ±80, at f16 within ±10) or `finite` (up to
        /// ±120 wherever the exact weight is finite in the dtype); beyond that as far as a clamp
        /// needs to act, and within ±3 where the weights are divided by a mean.
        pub extreme_ratios: ExtremeRatios = ExtremeRatios::Avoid;
        /// `zero`, `nan`, `refuse` or `avoid`: what a batch without a token gives for
        /// `clip_fraction` and `mismatch_kl`.
        pub empty_mask: EmptyMask = EmptyMask::Zero;
        /// `true` or `false`: whether a mask may have gaps inside a row.
        pub holes: bool = false;
        /// `finite` or `any`: what may stand under the mask.
        pub masked_values: MaskedValues = MaskedValues::Finite;
        /// `zero` or `any`: what stands at masked positions of the outputs.
        pub masked_output: MaskedOutput = MaskedOutput::Zero;
    }
}

/// The least and the largest bound of a ratio: f32 holds both, and their squares no longer.
const LEAST: f64 = 1e-30;
const MOST: f64 = 1e30;

/// There is a ratio between the two bounds, and f32 can tell a lower one from 0.
fn bounds_hold_a_ratio(options: &Options) -> Result<(), (&'static str, String)> {
    let pairs = [
        ("clamp_low", "clamp_high", options.clamp_low, options.clamp_high),
        ("select_low", "select_high", options.select_low, options.select_high),
    ];
    for (name, other, low, high) in pairs {
        if low.is_some_and(|low| low > 0.0 && low < LEAST) {
            let expected = format!("expected null, 0 or a number from {LEAST:e} to {MOST:e}");
            return Err((name, format!("{expected}, found {low:?}")));
        }
        if let (Some(low), Some(high)) = (low, high)
            && low >= high
        {
            return Err((name, format!("expected less than `{other}`, {high}, found {low}")));
        }
    }
    Ok(())
}

/// Bounds are drawn in pairs, and no option is drawn so often that little is left to weigh.
fn drawn(u: &mut Unstructured<'_>) -> arbitrary::Result<Options> {
    let clamps = [
        (None, Some(2.0)),
        (None, None),
        (Some(0.5), Some(2.0)),
        (None, Some(5.0)),
        (Some(0.1), None),
        (Some(0.0), Some(2.0)),
        (Some(0.9), Some(1.1)),
    ];
    let bounds = [
        (Some(0.5), Some(5.0)),
        (None, Some(2.5)),
        (Some(0.5), Some(2.0)),
        (Some(0.1), None),
        (Some(0.99), Some(1.01)),
        (None, None),
    ];
    let (clamp_low, clamp_high) = one(u, &clamps)?;
    let (select_low, select_high) = one(u, &bounds)?;
    let selects = [Select::None, Select::None, Select::Token, Select::Sequence, Select::Geometric];
    let means = [Normalize::None, Normalize::None, Normalize::Tokens, Normalize::Sequences];
    Ok(Options {
        level: one(u, Level::ALL)?,
        clamp_low,
        clamp_high,
        select: one(u, &selects)?,
        select_low,
        select_high,
        veto: one(u, &[None, None, None, Some(0.1), Some(0.5), Some(1e-4)])?,
        drift: one(u, &[None, None, None, Some(0.5), Some(0.1), Some(0.0), Some(-0.25)])?,
        rejected: one(u, Rejected::ALL)?,
        normalize: one(u, &means)?,
        log_ratio_clamp: one(u, &[None, None, Some(20.0), Some(10.0), Some(5.0), Some(0.7)])?,
        extreme_ratios: one(u, ExtremeRatios::ALL)?,
        empty_mask: one(u, EmptyMask::ALL)?,
        holes: chance(u, 128)?,
        masked_values: one(u, MaskedValues::ALL)?,
        masked_output: one(u, MaskedOutput::ALL)?,
        ..Options::default()
    })
}

/// The contract: weights that correct for a sampler that is not quite the policy.
#[derive(Clone, Copy, Debug)]
pub struct ImportanceWeights;

impl Definition for ImportanceWeights {
    type Case = ImportanceWeightsCase;
    type Output = ImportanceWeightsOutput;
    type Options = Options;
}

impl Contract for ImportanceWeights {
    const ID: &'static str = "importance-weights";
    const STAGE: Stage = Stage::Loss;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const LEAVES: &'static [&'static str] = &["log_probs"];
    const WHOLE: &'static [&'static str] = &["keep"];
    const AXES: Axes = Axes::new(&[
        ("log_probs", "NT"),
        ("sampler_log_probs", "NT"),
        ("mask", "NT"),
        ("advantages", "N"),
        ("weights", "NT"),
        ("keep", "NT"),
        ("grad_log_probs", "NT"),
    ]);
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::IMPORTANCE_WEIGHTS;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::weights,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<ImportanceWeightsCase> {
        generate::small(options, dtype)
    }

    fn refuses(case: &ImportanceWeightsCase, options: &Options) -> bool {
        options.empty_mask == EmptyMask::Refuse && is_empty(case)
    }

    fn oracle(case: &ImportanceWeightsCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::outputs(case, options, dtype)
    }

    fn oracle_gradient(case: &ImportanceWeightsCase, _: &Options, _: Dtype) -> Vec<Expected> {
        oracle::gradient(case)
    }

    fn wants_gradient(_: &Options) -> bool {
        true
    }

    /// The weights have a slope, of which the graph must know nothing.
    fn gradient_is_slope(_: &Options) -> bool {
        false
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for ImportanceWeights {
    fn independent(options: &Options) -> bool {
        options.normalize == Normalize::None
    }
}

impl Masked for ImportanceWeights {
    fn mask(case: &ImportanceWeightsCase) -> &Array2<bool> {
        &case.mask
    }

    fn mask_mut(case: &mut ImportanceWeightsCase) -> &mut Array2<bool> {
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

/// Whether no token counts.
fn is_empty(case: &ImportanceWeightsCase) -> bool {
    !case.mask.iter().any(|kept| *kept)
}

/// The columns of the tokens of a row that count.
fn tokens_of(case: &ImportanceWeightsCase, row: usize) -> Vec<usize> {
    let mask = case.mask.row(row);
    (0..mask.len()).filter(|column| mask[*column]).collect()
}
