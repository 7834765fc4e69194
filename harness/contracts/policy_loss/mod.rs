//! The loss of a policy gradient step: from log-probabilities and advantages to one number.
//!
//! PPO, GRPO, DAPO, Dr. GRPO, GSPO, CISPO and REINFORCE differ in four choices: what weights a
//! token, where the weight is clipped, how the tokens are added up, and what holds the policy near
//! a reference. Each choice is an option here. Training follows the gradient, so a right value
//! with a wrong gradient is as wrong as a wrong value.
//!
//! ### Source
//! Schulman et al. 2017 (clipped objective), Ye et al. 2020 (dual clip), Shao et al. 2024 (GRPO),
//! Zheng et al. 2025 (sequence ratios), MiniMax 2025 (CISPO). As options: TRL `_compute_loss`,
//! verl `compute_policy_loss_*` and `agg_loss`, OpenRLHF `PolicyLoss`, NeMo-RL `ClippedPGLossFn`,
//! slime, torchtune and open-instruct.

mod faults;
mod generate;
mod invariants;
mod on_tape;
mod oracle;
mod reference;

use arbitrary::Unstructured;
use ndarray::{Array0, Array2, Ix0, Ix2, IxDyn};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::{above, options};
use shakedown_core::contract::rows::{Masked, Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::draw::{chance, one};
pub use shakedown_core::numeric::aggregate::Aggregate;
pub use shakedown_core::numeric::conventions::{EmptyMask, EmptyRows, MaskedValues};
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `policy-loss`.
    ///
    /// # Shapes
    /// `N` rows of `T` tokens: all `[N, T]`; advantages `[N]` with `advantage_shape: row`.
    ///
    /// # Units
    /// Log-probabilities in nats.
    pub struct PolicyLossCase {
        /// The log-probabilities of the policy that learns.
        pub log_probs: A::Float<Ix2>,
        /// Those of the policy that sampled.
        pub old_log_probs: A::Float<Ix2>,
        /// The advantage of each token, or of each row.
        pub advantages: A::Float<IxDyn>,
        /// True where the token counts.
        pub mask: A::Bool<Ix2>,
        /// Those of the reference policy, where `beta` > 0.
        pub ref_log_probs: Option<A::Float<Ix2>>,
    }
}

record! {
    /// The outputs of `policy-loss`.
    ///
    /// # Shapes
    /// A single number each; grad_log_probs `[N, T]`.
    pub struct PolicyLossOutput {
        /// What is minimised.
        pub loss: A::Float<Ix0>,
        /// The share of the tokens whose gradient the clipping takes away.
        pub clip_fraction: Option<A::Float<Ix0>>,
        /// The mean divergence of the old policy from the new one.
        pub approx_kl: Option<A::Float<Ix0>>,
        /// The divergence from the reference, aggregated as the loss and not scaled.
        pub kl: Option<A::Float<Ix0>>,
        /// The gradient of the loss.
        pub grad_log_probs: Option<A::Float<Ix2>>,
    }
}

impl From<f64> for PolicyLossOutput {
    fn from(loss: f64) -> Self {
        let loss = Array0::from_elem((), loss);
        Self { loss, clip_fraction: None, approx_kl: None, kl: None, grad_log_probs: None }
    }
}

impl From<f32> for PolicyLossOutput {
    fn from(loss: f32) -> Self {
        f64::from(loss).into()
    }
}

choice! {
    /// What is done with a token's ratio.
    pub enum Objective {
        /// The ratio times the advantage, clipped.
        PpoClip = "ppo-clip",
        /// The log-probability times the advantage; no ratio.
        Reinforce = "reinforce",
        /// The log-probability times the advantage, weighted by the clipped ratio.
        Cispo = "cispo",
    }
}

choice! {
    /// What a ratio is taken of.
    pub enum Ratio {
        /// Each token has its own.
        Token = "token",
        /// All tokens of a row share that of the row, through which the gradient flows.
        Sequence = "sequence",
        /// The same value, with the gradient of each token through its own log-probability.
        SequenceToken = "sequence-token",
    }
}

choice! {
    /// What `clip_high` is counted from.
    pub enum ClipBounds {
        /// The ratio is clipped to [1 - clip_low, 1 + clip_high].
        Relative = "relative",
        /// The ratio is clipped to at most clip_high.
        Absolute = "absolute",
    }
}

choice! {
    /// The estimator of the divergence from the reference, d = log_probs - ref_log_probs.
    pub enum KlEstimator {
        /// exp(-d) - 1 + d.
        K3 = "k3",
        /// d.
        K1 = "k1",
        /// d² / 2.
        K2 = "k2",
        /// |d|.
        Abs = "abs",
    }
}

choice! {
    /// The estimator that the metric `approx_kl` is the mean of, x = log_probs - old_log_probs.
    pub enum ApproxKl {
        /// -x.
        K1 = "k1",
        /// x² / 2.
        K2 = "k2",
        /// exp(x) - 1 - x.
        K3 = "k3",
    }
}

choice! {
    /// Whether advantages come for each token or for each row.
    pub enum AdvantageShape {
        /// `[N, T]`.
        Token = "token",
        /// `[N]`.
        Row = "row",
    }
}

choice! {
    /// How far apart the policies may be.
    pub enum ExtremeRatios {
        /// Log-ratios stay within ±80, at f16 within ±10.
        Avoid = "avoid",
        /// Up to ±120, and what is finite by the definition must be.
        Finite = "finite",
    }
}

options! {
    check: goes_together;
    draw: drawn;

    /// The options of `policy-loss`.
    pub struct Options {
        /// `ppo-clip` (the larger of -A·ratio and -A·clipped ratio), `reinforce` (-A·log_probs) or
        /// `cispo` (-clipped ratio·A·log_probs, no gradient through the ratio).
        pub objective: Objective = Objective::PpoClip;
        /// `token` (each token's own), `sequence` (exp of the row's mean log-ratio, differentiated
        /// through the mean; advantages constant along a row) or `sequence-token` (the same
        /// value, the gradient through each token's own log-probability).
        pub ratio: Ratio = Ratio::Token;
        /// The lower bound of the ratio is 1 - clip_low; 0 to 1.
        pub clip_low: f64 = 0.2, in 0.0..=1.0;
        /// The upper bound of the ratio is 1 + clip_high; a number ≥ 0.
        pub clip_high: f64 = 0.2, in 0.0..;
        /// `relative` or, with `cispo`, `absolute` (the upper bound is clip_high itself, and there
        /// is no lower one).
        pub clip_bounds: ClipBounds = ClipBounds::Relative;
        /// `null`, or c > 1: with A < 0 a token's loss is at most -c·A (`ppo-clip`).
        pub dual_clip: Option<f64> = None, in above(1.0);
        /// The weight of the divergence from the reference, ≥ 0; with 0 there is no reference.
        pub beta: f64 = 0.0, in 0.0..;
        /// `k3`, `k1`, `k2` or `abs`: the estimator of that divergence, with the gradient of its
        /// value.
        pub kl_estimator: KlEstimator = KlEstimator::K3;
        /// `null`, or c > 0: the log-ratio to the reference is clamped to ±c.
        pub kl_log_ratio_clamp: Option<f64> = None, in above(0.0);
        /// `null`, or `[lo, hi]`: a token's divergence from the reference is clamped to it.
        pub kl_clamp: Option<[f64; 2]> = None;
        /// `token` (advantages `[N, T]`) or `row` (`[N]`).
        pub advantage_shape: AdvantageShape = AdvantageShape::Token;
        /// `k1`, `k2` or `k3`: what the metric `approx_kl` is the mean of.
        pub approx_kl: ApproxKl = ApproxKl::K1;
        /// `token-mean`, `token-sum`, `seq-mean-token-mean`, `seq-mean-token-sum` or
        /// `seq-mean-token-sum-norm` (the sum over tokens, divided by norm_length).
        pub aggregate: Aggregate = Aggregate::TokenMean;
        /// An integer > 0: the constant of `seq-mean-token-sum-norm`.
        pub norm_length: Option<u32> = None;
        /// `null`, or c > 0: the exponent of a ratio is clamped to ±c, where the derivative is 0
        /// beyond.
        pub log_ratio_clamp: Option<f64> = None, in above(0.0);
        /// `avoid` (log-ratios within ±80, at f16 within ±10) or `finite` (up to ±120, where
        /// loss and gradient must be finite wherever the exact ones are); beyond that as far as a
        /// clamp needs to act.
        pub extreme_ratios: ExtremeRatios = ExtremeRatios::Avoid;
        /// `zero`, `nan`, `refuse` or `avoid`: what a batch without a token gives.
        pub empty_mask: EmptyMask = EmptyMask::Zero;
        /// `skip` or `count`: whether a row without a token counts in the number of rows.
        pub empty_rows: EmptyRows = EmptyRows::Skip;
        /// `true` or `false`: whether a mask may have gaps inside a row.
        pub holes: bool = false;
        /// `finite` or `any`: what may stand under the mask.
        pub masked_values: MaskedValues = MaskedValues::Finite;
    }
}

impl Options {
    /// The bounds to which ratios are clipped.
    fn bounds(&self) -> (f64, f64) {
        match self.clip_bounds {
            ClipBounds::Relative => (1.0 - self.clip_low, 1.0 + self.clip_high),
            ClipBounds::Absolute => (0.0, self.clip_high),
        }
    }

    /// The bound of a token's loss with A < 0, where the objective has one.
    fn dual(&self) -> Option<f64> {
        self.dual_clip.filter(|_| self.objective == Objective::PpoClip)
    }

    /// Whether the metric `clip_fraction` is part of the contract.
    fn counts_clipped(&self) -> bool {
        self.objective == Objective::PpoClip && self.ratio == Ratio::Token
    }

    /// Whether the divergence has its least value, 0, and no slope where both policies agree.
    fn kl_has_a_minimum(&self) -> bool {
        let free = self.kl_clamp.is_none_or(|[lo, hi]| lo <= 0.0 && hi >= 0.0);
        self.kl_estimator != KlEstimator::K1 && free
    }
}

/// Options that only some others go with, and the order of the ends of `kl_clamp`.
fn goes_together(options: &Options) -> Result<(), (&'static str, String)> {
    if options.clip_bounds == ClipBounds::Absolute && options.objective != Objective::Cispo {
        Err(("clip_bounds", "`absolute` goes with `objective: cispo` only".to_owned()))
    } else if let Some([lo, hi]) =
        options.kl_clamp.filter(|[lo, hi]| lo.partial_cmp(hi).is_none_or(|o| o.is_gt()))
    {
        Err(("kl_clamp", format!("expected null or [lo, hi], found [{lo}, {hi}]")))
    } else {
        options.aggregate.check(options.norm_length)
    }
}

/// The bounds of the ratio are drawn together, and for `cispo` from others.
fn drawn(u: &mut Unstructured<'_>) -> arbitrary::Result<Options> {
    let objective = one(u, &[0, 0, 1, 2]).map(|index: usize| Objective::ALL[index])?;
    let aggregate = one(u, Aggregate::ALL)?;
    let (clip_low, clip_high) =
        one(u, &[(0.2, 0.2), (0.2, 0.28), (0.1, 0.1), (0.2, 0.272), (3e-4, 4e-4)])?;
    let mut options = Options {
        objective,
        ratio: one(u, &[0, 0, 1, 2]).map(|index: usize| Ratio::ALL[index])?,
        clip_low,
        clip_high,
        dual_clip: one(u, &[None, None, Some(3.0), Some(1.5)])?,
        beta: one(u, &[0.0, 0.04, 0.5, 0.0, 1.0, 0.1])?,
        kl_estimator: one(u, KlEstimator::ALL)?,
        kl_log_ratio_clamp: one(u, &[None, None, Some(20.0), Some(1.0)])?,
        kl_clamp: one(u, &[None, None, Some([-10.0, 10.0]), Some([0.0, 0.5])])?,
        advantage_shape: one(u, AdvantageShape::ALL)?,
        approx_kl: one(u, ApproxKl::ALL)?,
        aggregate,
        norm_length: (aggregate == Aggregate::SeqMeanTokenSumNorm).then_some(6),
        log_ratio_clamp: one(u, &[None, None, Some(20.0), Some(10.0)])?,
        extreme_ratios: one(u, &[0, 0, 1]).map(|index: usize| ExtremeRatios::ALL[index])?,
        empty_mask: one(u, EmptyMask::ALL)?,
        empty_rows: one(u, EmptyRows::ALL)?,
        holes: chance(u, 128)?,
        masked_values: one(u, MaskedValues::ALL)?,
        ..Options::default()
    };
    if objective == Objective::Cispo {
        let (clip_low, clip_high, clip_bounds) = one(
            u,
            &[
                (0.2, 0.2, ClipBounds::Relative),
                (1.0, 4.0, ClipBounds::Relative),
                (0.2, 5.0, ClipBounds::Absolute),
                (0.2, 0.2, ClipBounds::Absolute),
            ],
        )?;
        options = Options { clip_low, clip_high, clip_bounds, ..options };
    }
    Ok(options)
}

/// The contract: the loss of a policy gradient step.
#[derive(Clone, Copy, Debug)]
pub struct PolicyLoss;

impl PolicyLoss {
    /// A random case of this many rows and tokens.
    ///
    /// # Errors
    /// Never for lack of bytes: what is missing counts as 0.
    pub fn draw_shaped(
        u: &mut Unstructured<'_>,
        options: &Options,
        dtype: Dtype,
        shape: (usize, usize),
    ) -> arbitrary::Result<PolicyLossCase> {
        generate::draw_shaped(u, options, dtype, shape)
    }
}

impl Definition for PolicyLoss {
    type Case = PolicyLossCase;
    type Output = PolicyLossOutput;
    type Options = Options;
}

impl Contract for PolicyLoss {
    const ID: &'static str = "policy-loss";
    const STAGE: Stage = Stage::Loss;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const LEAVES: &'static [&'static str] = &["log_probs"];
    const AXES: Axes = Axes::new(&[
        ("log_probs", "NT"),
        ("old_log_probs", "NT"),
        ("advantages", "NT"),
        ("mask", "NT"),
        ("ref_log_probs", "NT"),
        ("grad_log_probs", "NT"),
    ]);
    const BLIND: &'static [Blind] = &[Blind::while_equal(
        ["clip_low", "clip_high"],
        &[("clip_low", "0.1"), ("clip_high", "0.3")],
    )];
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::POLICY_LOSS;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::policy_loss,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<PolicyLossCase> {
        generate::small(options, dtype)
    }

    fn refuses(case: &PolicyLossCase, options: &Options) -> bool {
        options.empty_mask == EmptyMask::Refuse && !case.mask.iter().any(|kept| *kept)
    }

    fn oracle(case: &PolicyLossCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::outputs(case, options, dtype)
    }

    fn oracle_gradient(case: &PolicyLossCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::gradient(case, options, dtype)
    }

    fn wants_gradient(_: &Options) -> bool {
        true
    }

    fn gradient_is_slope(options: &Options) -> bool {
        match options.objective {
            Objective::PpoClip => options.ratio != Ratio::SequenceToken,
            Objective::Reinforce => true,
            Objective::Cispo => false,
        }
    }

    fn on_tape(case: &PolicyLossCase, options: &Options, dtype: Dtype) -> PolicyLossOutput {
        on_tape::policy_loss(case, options, dtype)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for PolicyLoss {}

impl Masked for PolicyLoss {
    const POISON: &'static [f64] = &[0.0, 1.0, -1.0, 0.5, -7.0, 30.0, -30.0];

    fn mask(case: &PolicyLossCase) -> &Array2<bool> {
        &case.mask
    }

    fn mask_mut(case: &mut PolicyLossCase) -> &mut Array2<bool> {
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

/// The advantages, token by token, whatever their shape.
#[derive(Clone, Copy)]
struct Advantages<'a> {
    values: &'a [f64],
    row: usize,
    token: usize,
}

impl<'a> Advantages<'a> {
    fn of(case: &'a PolicyLossCase) -> Advantages<'a> {
        let (row, token) =
            if case.advantages.ndim() == 1 { (1, 0) } else { (case.mask.ncols(), 1) };
        Advantages { values: flat(&case.advantages), row, token }
    }

    fn at(&self, row: usize, token: usize) -> f64 {
        self.values[row * self.row + token * self.token]
    }
}

/// The elements of an array row by row.
fn flat<T, D: ndarray::Dimension>(array: &ndarray::Array<T, D>) -> &[T] {
    array.as_slice().expect("the arrays of a record are in standard layout")
}
