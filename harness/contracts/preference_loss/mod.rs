//! The loss of a preference pair: how far the policy prefers the chosen completion.
//!
//! DPO and its relatives look at one number of each pair, the margin
//! `Δ = (policy_chosen - policy_rejected) - (ref_chosen - ref_rejected)`. A sign, a factor β or a
//! side that is exchanged leaves a loss that starts at ln 2 and moves, in the wrong direction.
//!
//! ### Source
//! With z = βΔ: `sigmoid` is -(1 - ε)·log σ(z - γ) - ε·log σ(γ - z) (Rafailov et al. 2023;
//! smoothing ε as in cDPO, margin γ as in SimPO), `hinge` is max(0, 1 - z) (SLiC), `ipo` is
//! (Δ - 1/(2β))² (Azar et al. 2023), `robust` is (-(1 - ε)·log σ(z) + ε·log σ(-z)) / (1 - 2ε)
//! (Chowdhury et al. 2024). Libraries: TRL, OpenRLHF, torchtune, open-instruct, NeMo-RL.

mod faults;
mod generate;
mod invariants;
mod on_tape;
mod oracle;
mod reference;

use arbitrary::Unstructured;
use ndarray::{Array1, Ix0, Ix1, arr0};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::{above, options};
use shakedown_core::contract::rows::{Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `preference-loss`.
    ///
    /// # Shapes
    /// `P` pairs: all `[P]`.
    ///
    /// # Units
    /// Nats: log-probabilities of whole completions, summed or averaged over their tokens.
    pub struct PreferenceLossCase {
        /// The log-probability of each chosen completion under the policy.
        pub policy_chosen: A::Float<Ix1>,
        /// That of each rejected completion.
        pub policy_rejected: A::Float<Ix1>,
        /// The log-probability of each chosen completion under the reference.
        pub ref_chosen: A::Float<Ix1>,
        /// That of each rejected completion.
        pub ref_rejected: A::Float<Ix1>,
    }
}

record! {
    /// The outputs of `preference-loss`.
    ///
    /// # Shapes
    /// losses `[P]` with `reduction: none`, loss `[]` with `reduction: mean`; the rest `[P]`.
    pub struct PreferenceLossOutput {
        /// The loss of each pair; required by `reduction: none`.
        pub losses: Option<A::Float<Ix1>>,
        /// The mean loss; required by `reduction: mean`.
        pub loss: Option<A::Float<Ix0>>,
        /// The implicit reward of each chosen completion, β·(policy - reference).
        pub chosen_rewards: Option<A::Float<Ix1>>,
        /// That of each rejected completion.
        pub rejected_rewards: Option<A::Float<Ix1>>,
        /// The gradient of the loss, or of the summed losses.
        pub grad_policy_chosen: Option<A::Float<Ix1>>,
        /// The same by the other leaf.
        pub grad_policy_rejected: Option<A::Float<Ix1>>,
    }
}

impl PreferenceLossOutput {
    /// Nothing at all.
    fn empty() -> Self {
        Self {
            losses: None,
            loss: None,
            chosen_rewards: None,
            rejected_rewards: None,
            grad_policy_chosen: None,
            grad_policy_rejected: None,
        }
    }
}

impl From<Array1<f64>> for PreferenceLossOutput {
    fn from(losses: Array1<f64>) -> Self {
        Self { losses: Some(losses), ..Self::empty() }
    }
}

impl From<Vec<f64>> for PreferenceLossOutput {
    fn from(losses: Vec<f64>) -> Self {
        Array1::from(losses).into()
    }
}

impl From<Vec<f32>> for PreferenceLossOutput {
    fn from(losses: Vec<f32>) -> Self {
        losses.into_iter().map(f64::from).collect::<Array1<f64>>().into()
    }
}

impl From<f64> for PreferenceLossOutput {
    fn from(loss: f64) -> Self {
        Self { loss: Some(arr0(loss)), ..Self::empty() }
    }
}

impl From<f32> for PreferenceLossOutput {
    fn from(loss: f32) -> Self {
        f64::from(loss).into()
    }
}

choice! {
    /// What becomes of the margin.
    pub enum Kind {
        /// -log σ(βΔ - γ), with smoothing.
        Sigmoid = "sigmoid",
        /// max(0, 1 - βΔ).
        Hinge = "hinge",
        /// (Δ - 1/(2β))².
        Ipo = "ipo",
        /// An unbiased estimate of the sigmoid loss where a share ε of the pairs is exchanged.
        Robust = "robust",
    }
}

choice! {
    /// What is returned.
    pub enum Reduction {
        /// The loss of each pair.
        None = "none",
        /// Their mean.
        Mean = "mean",
    }
}

options! {
    check: goes_with_kind;
    draw: drawn;

    /// The options of `preference-loss`.
    pub struct Options {
        /// `sigmoid` (-log σ(βΔ - γ)), `hinge` (max(0, 1 - βΔ)), `ipo` ((Δ - 1/(2β))²) or
        /// `robust` ((-(1 - ε)·log σ(βΔ) + ε·log σ(-βΔ)) / (1 - 2ε)).
        pub kind: Kind = Kind::Sigmoid;
        /// β > 0, the strength of the pull to the reference.
        pub beta: f64 = 0.1, in above(0.0);
        /// ε from 0 to below 0.5, the share of exchanged pairs; `sigmoid` and `robust` only.
        pub label_smoothing: f64 = 0.0, in 0.0..0.5;
        /// γ ≥ 0, what βΔ has to exceed; `sigmoid` only.
        pub margin: f64 = 0.0, in 0.0..;
        /// `true` or `false`: whether the loss ignores the reference, which is passed all the same.
        pub reference_free: bool = false;
        /// `none` (`losses`, one for each pair) or `mean` (`loss`, one number).
        pub reduction: Reduction = Reduction::None;
    }
}

impl Options {
    /// The number that the loss gives: of each pair, or their mean.
    fn output(&self) -> &'static str {
        match self.reduction {
            Reduction::None => "losses",
            Reduction::Mean => "loss",
        }
    }
}

/// Smoothing and margin go with some kinds only.
fn goes_with_kind(options: &Options) -> Result<(), (&'static str, String)> {
    let Options { kind, label_smoothing, margin, .. } = *options;
    if label_smoothing != 0.0 && !matches!(kind, Kind::Sigmoid | Kind::Robust) {
        Err(("label_smoothing", "goes with `sigmoid` and `robust` only".to_owned()))
    } else if margin != 0.0 && kind != Kind::Sigmoid {
        Err(("margin", "goes with `sigmoid` only".to_owned()))
    } else {
        Ok(())
    }
}

/// Smoothing and margin are drawn first, for the kinds that have them.
fn drawn(u: &mut Unstructured<'_>) -> arbitrary::Result<Options> {
    let kind = one(u, Kind::ALL)?;
    let smoothing = one(u, &[0.0, 0.1, 0.0, 0.3])?;
    let margin = one(u, &[0.0, 0.0, 0.5, 1.4])?;
    Ok(Options {
        kind,
        beta: one(u, &[0.1, 0.5, 1.0, 0.05, 2.0])?,
        label_smoothing: match kind {
            Kind::Sigmoid | Kind::Robust => smoothing,
            Kind::Hinge | Kind::Ipo => 0.0,
        },
        margin: if kind == Kind::Sigmoid { margin } else { 0.0 },
        reference_free: chance(u, 80)?,
        reduction: one(u, Reduction::ALL)?,
        ..Options::default()
    })
}

/// The contract: the loss of preference pairs.
#[derive(Clone, Copy, Debug)]
pub struct PreferenceLoss;

impl Definition for PreferenceLoss {
    type Case = PreferenceLossCase;
    type Output = PreferenceLossOutput;
    type Options = Options;
}

impl Contract for PreferenceLoss {
    const ID: &'static str = "preference-loss";
    const STAGE: Stage = Stage::Loss;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const LEAVES: &'static [&'static str] = &["policy_chosen", "policy_rejected"];
    const AXES: Axes = Axes::new(&[
        ("policy_chosen", "P"),
        ("policy_rejected", "P"),
        ("ref_chosen", "P"),
        ("ref_rejected", "P"),
        ("losses", "P"),
        ("chosen_rewards", "P"),
        ("rejected_rewards", "P"),
        ("grad_policy_chosen", "P"),
        ("grad_policy_rejected", "P"),
    ])
    .rows('P');
    const BLIND: &'static [Blind] = &[Blind::at("beta", 1.0, &[("beta", "0.2")])];
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::PREFERENCE_LOSS;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::loss,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<PreferenceLossCase> {
        generate::small(options, dtype)
    }

    fn shapes(case: &PreferenceLossCase, options: &Options) -> Vec<(&'static str, Vec<usize>)> {
        let shape = match options.reduction {
            Reduction::None => vec![case.policy_chosen.len()],
            Reduction::Mean => vec![],
        };
        vec![(options.output(), shape)]
    }

    fn oracle(case: &PreferenceLossCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::outputs(case, options, dtype)
    }

    fn oracle_gradient(
        case: &PreferenceLossCase,
        options: &Options,
        dtype: Dtype,
    ) -> Vec<Expected> {
        oracle::gradient(case, options, dtype)
    }

    fn wants_gradient(_: &Options) -> bool {
        true
    }

    fn on_tape(case: &PreferenceLossCase, options: &Options, dtype: Dtype) -> PreferenceLossOutput {
        on_tape::loss(case, options, dtype)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for PreferenceLoss {
    fn independent(options: &Options) -> bool {
        options.reduction == Reduction::None
    }
}
