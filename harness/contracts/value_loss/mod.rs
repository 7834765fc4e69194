//! The squared error of the critic, clipped around its old values.
//!
//! PPO trains the critic on the returns. With a clip the error that counts is the larger one of
//! the value and of the value held within c of what it was, so a critic that runs away from its
//! old values gains nothing by it.
//!
//! ### Source
//! `factor · agg(max((V - R)², (V_old + [V - V_old]_{-c}^{c} - R)²))`. verl `compute_value_loss`
//! (c 0.5), TRL PPO (c 0.2), OpenRLHF `ValueLoss`, NeMo-RL `MseValueLossFn`: factor ½; slime has
//! none.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use arbitrary::Unstructured;
use ndarray::{Array2, Ix0, Ix2, arr0};

use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::{above, options};
use shakedown_core::contract::rows::{self, Masked, Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::draw::{chance, one};
pub use shakedown_core::numeric::aggregate::Aggregate;
pub use shakedown_core::numeric::conventions::{EmptyMask, EmptyRows, MaskedValues};
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `value-loss`.
    ///
    /// # Shapes
    /// `N` rows of `T` tokens: all `[N, T]`.
    pub struct ValueLossCase {
        /// What the critic gives now; the leaf.
        pub values: A::Float<Ix2>,
        /// What it gave when the batch was made.
        pub old_values: A::Float<Ix2>,
        /// What it should give.
        pub returns: A::Float<Ix2>,
        /// True where the token counts.
        pub mask: A::Bool<Ix2>,
    }
}

record! {
    /// The outputs of `value-loss`.
    ///
    /// # Shapes
    /// loss and clip_fraction are numbers; grad_values `[N, T]`.
    pub struct ValueLossOutput {
        /// The loss.
        pub loss: A::Float<Ix0>,
        /// The share of tokens whose clipped error is the larger.
        pub clip_fraction: Option<A::Float<Ix0>>,
        /// The gradient of the loss.
        pub grad_values: Option<A::Float<Ix2>>,
    }
}

impl From<f64> for ValueLossOutput {
    fn from(loss: f64) -> Self {
        Self { loss: arr0(loss), clip_fraction: None, grad_values: None }
    }
}

impl From<f32> for ValueLossOutput {
    fn from(loss: f32) -> Self {
        f64::from(loss).into()
    }
}

options! {
    check: |options| options.aggregate.check(options.norm_length);
    draw: drawn;

    /// The options of `value-loss`.
    pub struct Options {
        /// Null, or c > 0: how far from its old value a value may move before the clipped error
        /// counts where it is the larger.
        pub clip: Option<f64> = None, in above(0.0);
        /// A number > 0 that multiplies the loss.
        pub factor: f64 = 0.5, in above(0.0);
        /// `token-mean`, `token-sum`, `seq-mean-token-mean`, `seq-mean-token-sum` or
        /// `seq-mean-token-sum-norm` (the last but one, divided by `norm_length`).
        pub aggregate: Aggregate = Aggregate::TokenMean;
        /// The constant of `seq-mean-token-sum-norm`, never derived from the width of the batch.
        pub norm_length: Option<u32> = None;
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

/// The aggregation is drawn first.
fn drawn(u: &mut Unstructured<'_>) -> arbitrary::Result<Options> {
    let aggregate = one(u, Aggregate::ALL)?;
    let normed = aggregate == Aggregate::SeqMeanTokenSumNorm;
    Ok(Options {
        clip: one(u, &[None, Some(0.2), Some(0.5), Some(0.2), Some(1.0), Some(10.0)])?,
        factor: one(u, &[0.5, 1.0, 0.5, 0.1, 0.25])?,
        aggregate,
        norm_length: if normed { Some(one(u, &[8, 1, 4, 1024])?) } else { None },
        empty_mask: one(u, EmptyMask::ALL)?,
        empty_rows: one(u, EmptyRows::ALL)?,
        holes: chance(u, 128)?,
        masked_values: one(u, MaskedValues::ALL)?,
        ..Options::default()
    })
}

/// The contract: the squared error of the critic, clipped around its old values.
#[derive(Clone, Copy, Debug)]
pub struct ValueLoss;

impl Definition for ValueLoss {
    type Case = ValueLossCase;
    type Output = ValueLossOutput;
    type Options = Options;
}

impl Contract for ValueLoss {
    const ID: &'static str = "value-loss";
    const STAGE: Stage = Stage::Loss;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const LEAVES: &'static [&'static str] = &["values"];
    const AXES: Axes = Axes::new(&[
        ("values", "NT"),
        ("old_values", "NT"),
        ("returns", "NT"),
        ("mask", "NT"),
        ("grad_values", "NT"),
    ]);
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::VALUE_LOSS;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::loss,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<ValueLossCase> {
        let palettes: [(&str, &[f64]); 3] = [
            ("values", &[0.0, 1.0, 2.0, 0.1]),
            ("old_values", &[0.0, 1.0]),
            ("returns", &[0.0, 1.0, -1.0]),
        ];
        rows::small::<Self>(&palettes, options, dtype)
    }

    fn refuses(case: &ValueLossCase, options: &Options) -> bool {
        options.empty_mask == EmptyMask::Refuse && is_empty(case)
    }

    fn oracle(case: &ValueLossCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::loss(case, options, dtype)
    }

    fn oracle_gradient(case: &ValueLossCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::gradient(case, options, dtype)
    }

    fn wants_gradient(_: &Options) -> bool {
        true
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for ValueLoss {
    fn independent(_: &Options) -> bool {
        false
    }
}

impl Masked for ValueLoss {
    fn mask(case: &ValueLossCase) -> &Array2<bool> {
        &case.mask
    }

    fn mask_mut(case: &mut ValueLossCase) -> &mut Array2<bool> {
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
fn is_empty(case: &ValueLossCase) -> bool {
    !case.mask.iter().any(|kept| *kept)
}

/// What a token's loss is made of.
#[derive(Clone, Copy, Debug)]
struct Errors {
    /// The value less the return.
    plain: f64,
    /// The clipped value less the return; `plain` where nothing is clipped.
    clipped: f64,
    /// Whether the value is outside the clip range.
    outside: bool,
    /// The magnitude of what was added to make the errors.
    magnitude: f64,
    /// How far the value is from the nearer end of the clip range; infinite without a clip.
    distance: f64,
}

impl Errors {
    fn of(case: &ValueLossCase, options: &Options, at: (usize, usize)) -> Errors {
        let (value, old, target) = (case.values[at], case.old_values[at], case.returns[at]);
        let plain = value - target;
        let Some(clip) = options.clip else {
            let magnitude = value.abs() + target.abs();
            let distance = f64::INFINITY;
            return Errors { plain, clipped: plain, outside: false, magnitude, distance };
        };
        let held = value.clamp(old - clip, old + clip);
        Errors {
            plain,
            clipped: held - target,
            outside: held != value,
            magnitude: value.abs() + target.abs() + old.abs() + clip,
            distance: ((value - old).abs() - clip).abs(),
        }
    }

    /// Whether the clipped error is the larger.
    fn clips(self) -> bool {
        self.clipped * self.clipped > self.plain * self.plain
    }

    /// Whether rounding decides which error is the larger.
    fn is_undecided(self, dtype: Dtype) -> bool {
        let roundoff = 16.0 * dtype.arithmetic().unit_roundoff() * self.magnitude;
        let at_the_end = self.distance <= roundoff;
        let opposite = self.outside && (self.plain + self.clipped).abs() <= roundoff;
        at_the_end || opposite
    }
}
