//! The per-token estimate of how far the policy has moved from the reference.
//!
//! The tokens are sampled from the current policy, and each estimator of KL(π‖ref) is a function of
//! one number, the log-ratio `d = log_probs - ref_log_probs`. Its direction, a factor of 2, the
//! clamps and the gradient differ between libraries, and a wrong one still looks like a KL: it is 0
//! at the start and grows.
//!
//! ### Source
//! k1, k2 and k3 as in Schulman, "Approximating KL divergence" (2020): d, d²/2, e^{-d} - 1 + d.
//! `gradient: k2` is verl's `k1+`, `k3+` and `abs+`; `log_ratio_clamp` and `clamp` are those of
//! verl (20 and 10), NeMo-RL, OpenRLHF (10) and open-instruct (40).

mod faults;
mod generate;
mod invariants;
mod on_tape;
mod oracle;
mod reference;

use ndarray::{Array2, Ix2};

use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::{above, options};
use shakedown_core::contract::rows::{Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `kl-estimate`.
    ///
    /// # Shapes
    /// `N` rows of `T` tokens, sampled from the current policy: both `[N, T]`.
    ///
    /// # Units
    /// Nats.
    pub struct KlEstimateCase {
        /// The log-probability of each token under the current policy.
        pub log_probs: A::Float<Ix2>,
        /// The same under the reference.
        pub ref_log_probs: A::Float<Ix2>,
    }
}

record! {
    /// The output of `kl-estimate`.
    ///
    /// # Shapes
    /// Both `[N, T]`.
    ///
    /// # Units
    /// Nats.
    pub struct KlEstimateOutput {
        /// The estimate at each token.
        pub kl: A::Float<Ix2>,
        /// The gradient of the summed estimates.
        pub grad_log_probs: Option<A::Float<Ix2>>,
    }
}

impl From<Array2<f64>> for KlEstimateOutput {
    fn from(kl: Array2<f64>) -> Self {
        Self { kl, grad_log_probs: None }
    }
}

impl From<Array2<f32>> for KlEstimateOutput {
    fn from(kl: Array2<f32>) -> Self {
        kl.mapv(f64::from).into()
    }
}

choice! {
    /// Which function of the log-ratio d estimates the KL.
    pub enum Estimator {
        /// e^{-d} - 1 + d: never negative, and right on average.
        K3 = "k3",
        /// d: right on average, of either sign.
        K1 = "k1",
        /// d²/2.
        K2 = "k2",
        /// |d|.
        Abs = "abs",
    }
}

choice! {
    /// What the gradient by `log_probs` is.
    pub enum Gradient {
        /// That of the value.
        Value = "value",
        /// d, as k2 has it: passed straight through, and never clamped.
        K2 = "k2",
        /// No part of the contract.
        None = "none",
    }
}

choice! {
    /// How large the generated log-ratios are.
    pub enum ExtremeRatios {
        /// Within ±80, at f16 within ±10.
        Avoid = "avoid",
        /// Up to ±120, wherever the exact value and gradient are finite in the dtype.
        Finite = "finite",
    }
}

impl ExtremeRatios {
    /// The largest magnitude of a log-ratio.
    pub(crate) fn limit(self, dtype: Dtype) -> f64 {
        match (self, dtype) {
            (ExtremeRatios::Finite, _) => 120.0,
            (ExtremeRatios::Avoid, Dtype::F16) => 10.0,
            (ExtremeRatios::Avoid, _) => 80.0,
        }
    }
}

options! {
    check: clamp_holds_zero;

    /// The options of `kl-estimate`.
    pub struct Options {
        /// `k3` (e^{-d} - 1 + d), `k1` (d), `k2` (d²/2) or `abs` (|d|), where d is
        /// `log_probs` - `ref_log_probs`.
        pub estimator: Estimator = Estimator::K3;
        /// `null`, or c > 0: d is clamped to ±c first. Beyond it the value is that at ±c, and the
        /// derivative 0.
        pub log_ratio_clamp: Option<f64> = None, in above(0.0),
            draw [None, None, Some(20.0), Some(40.0), Some(5.0), Some(0.7)];
        /// `avoid` (generated log-ratios stay within ±80, at f16 within ±10) or `finite` (up to
        /// ±120 wherever the exact value and gradient are finite in the dtype); beyond that as far
        /// as a clamp needs to act.
        pub extreme_ratios: ExtremeRatios = ExtremeRatios::Avoid;
        /// `null`, or `[lo, hi]` with lo ≤ 0 ≤ hi: the result is clamped, and its derivative is 0
        /// beyond.
        pub clamp: Option<[f64; 2]> = None,
            draw [None, None, Some([-10.0, 10.0]), Some([-0.3, 5.0]), Some([0.0, 10.0])];
        /// `value` (the derivative of the value), `k2` (d, straight through and never clamped) or
        /// `none` (no part of the contract).
        pub gradient: Gradient = Gradient::Value;
    }
}

/// A clamp holds 0, which is the estimate where both policies agree.
fn clamp_holds_zero(options: &Options) -> Result<(), (&'static str, String)> {
    match options.clamp {
        Some([lo, hi]) if !(lo <= 0.0 && 0.0 <= hi && lo < hi && (hi - lo).is_finite()) => {
            let expected = "null or [lo, hi] with lo ≤ 0 ≤ hi and lo < hi";
            Err(("clamp", format!("expected {expected}, found [{lo}, {hi}]")))
        }
        _ => Ok(()),
    }
}

/// The contract: the per-token estimate of the KL to the reference.
#[derive(Clone, Copy, Debug)]
pub struct KlEstimate;

impl Definition for KlEstimate {
    type Case = KlEstimateCase;
    type Output = KlEstimateOutput;
    type Options = Options;
}

impl Contract for KlEstimate {
    const ID: &'static str = "kl-estimate";
    const STAGE: Stage = Stage::LogProbability;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const LEAVES: &'static [&'static str] = &["log_probs"];
    const AXES: Axes = Axes::new(&[
        ("log_probs", "NT"),
        ("ref_log_probs", "NT"),
        ("kl", "NT"),
        ("grad_log_probs", "NT"),
    ]);
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::KL_ESTIMATE;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::kl,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<KlEstimateCase> {
        generate::small(options, dtype)
    }

    fn oracle(case: &KlEstimateCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::kl(case, options, dtype)
    }

    fn oracle_gradient(case: &KlEstimateCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::gradient(case, options, dtype)
    }

    fn wants_gradient(options: &Options) -> bool {
        options.gradient != Gradient::None
    }

    fn gradient_is_slope(options: &Options) -> bool {
        options.gradient == Gradient::Value
    }

    fn on_tape(case: &KlEstimateCase, options: &Options, dtype: Dtype) -> KlEstimateOutput {
        on_tape::kl(case, options, dtype)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for KlEstimate {}
