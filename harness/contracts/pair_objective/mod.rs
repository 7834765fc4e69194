//! Objectives of preference pairs beyond the margin of DPO: averages, odds, sides apart, ranks.
//!
//! Some of these compare log-probabilities averaged over a completion's tokens (ORPO, SimPO, the
//! `-norm` kinds), some treat the chosen and the rejected side apart (NCA, BCO, SPPO, APO), one
//! turns the divergence round (EXO), two match ranks instead of pairs (AOT). Who takes a sum for an
//! average, one side for both or a target for its double gets a loss that still falls in training.
//!
//! ### Source
//! With `ℓ(z) = -log σ(z)`, `ℓ_ε(z) = (1 - ε)·ℓ(z) + ε·ℓ(-z)`, p the policy's log-probability of
//! a side, c and r the log-ratios policy - reference of the sides, and a bar for what is divided
//! by the length: `orpo` is β·ℓ(o(p̄_c) - o(p̄_r)) - p̄_c with o(x) = x - log(1 - eˣ) (Hong et
//! al. 2024), `simpo` ℓ_ε(β·(p̄_c - p̄_r) - γ) (Meng et al. 2024), `sigmoid-norm` ℓ_ε(β·(c̄ -
//! r̄)) (Lambert et al. 2024, Tülu 3), `ipo-norm` (c̄ - r̄ - 1/(2β))² (Azar et al. 2023), `nca`
//! ℓ(βc) + ½·ℓ(-βc) + ½·ℓ(-βr) (Chen et al. 2024), `bco-pair` ℓ(βc) + ℓ(-βr) (Jung et al. 2024),
//! `sppo-hard` (c - 1/(2β))² + (r + 1/(2β))² (Wu et al. 2024), `apo-zero` σ(-βc) + σ(βr) and
//! `apo-down` σ(βc) + σ(β(r - c)) (D'Oosterlinck et al. 2024), `exo` σ(z)·log(σ(z)/(1 - ε)) +
//! σ(-z)·log(σ(-z)/ε) at z = β(c - r) (Ji et al. 2024), `aot` the mean of ℓ_ε(β·(sorted(p_c -
//! p_r) - sorted(reference's p_c - p_r))), `aot-unpaired` that of ℓ_ε(β·(sorted(c) - sorted(r)))
//! (Melnyk et al. 2024). Libraries: TRL, open-instruct, LLaMA-Factory, mlx-lm-lora.

mod faults;
mod generate;
mod invariants;
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
    /// The inputs of `pair-objective`.
    ///
    /// # Shapes
    /// `P` pairs: all `[P]`.
    ///
    /// # Units
    /// Nats: log-probabilities of whole completions, summed over their tokens. Lengths in tokens.
    pub struct PairObjectiveCase {
        /// The log-probability of each chosen completion under the policy.
        pub policy_chosen: A::Float<Ix1>,
        /// That of each rejected completion.
        pub policy_rejected: A::Float<Ix1>,
        /// The log-probability of each chosen completion under the reference.
        pub ref_chosen: A::Float<Ix1>,
        /// That of each rejected completion.
        pub ref_rejected: A::Float<Ix1>,
        /// How many tokens each chosen completion has, at least 1.
        pub chosen_lengths: A::Int<Ix1>,
        /// How many each rejected one has.
        pub rejected_lengths: A::Int<Ix1>,
    }
}

record! {
    /// The outputs of `pair-objective`.
    ///
    /// # Shapes
    /// losses `[P]` with `reduction: none`, loss `[]` with `reduction: mean`; the rest `[P]`.
    pub struct PairObjectiveOutput {
        /// The loss of each pair; required by `reduction: none`.
        pub losses: Option<A::Float<Ix1>>,
        /// The mean loss; required by `reduction: mean`.
        pub loss: Option<A::Float<Ix0>>,
        /// The implicit reward of each chosen completion, β·(policy - reference); β times the
        /// average under the policy for `orpo` and `simpo`.
        pub chosen_rewards: Option<A::Float<Ix1>>,
        /// That of each rejected completion.
        pub rejected_rewards: Option<A::Float<Ix1>>,
        /// The gradient of the loss, or of the summed losses.
        pub grad_policy_chosen: Option<A::Float<Ix1>>,
        /// The same by the other leaf.
        pub grad_policy_rejected: Option<A::Float<Ix1>>,
    }
}

impl PairObjectiveOutput {
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

impl From<Array1<f64>> for PairObjectiveOutput {
    fn from(losses: Array1<f64>) -> Self {
        Self { losses: Some(losses), ..Self::empty() }
    }
}

impl From<Vec<f64>> for PairObjectiveOutput {
    fn from(losses: Vec<f64>) -> Self {
        Array1::from(losses).into()
    }
}

impl From<Vec<f32>> for PairObjectiveOutput {
    fn from(losses: Vec<f32>) -> Self {
        losses.into_iter().map(f64::from).collect::<Array1<f64>>().into()
    }
}

impl From<f64> for PairObjectiveOutput {
    fn from(loss: f64) -> Self {
        Self { loss: Some(arr0(loss)), ..Self::empty() }
    }
}

impl From<f32> for PairObjectiveOutput {
    fn from(loss: f32) -> Self {
        f64::from(loss).into()
    }
}

choice! {
    /// The objective.
    pub enum Kind {
        /// β·ℓ of the log odds ratio of the averages, and the chosen side's own likelihood.
        Orpo = "orpo",
        /// ℓ_ε of the difference of averages under the policy, less γ.
        Simpo = "simpo",
        /// ℓ_ε of the difference of averaged log-ratios.
        SigmoidNorm = "sigmoid-norm",
        /// The squared distance of that difference from 1/(2β).
        IpoNorm = "ipo-norm",
        /// ℓ(βc) + ½·ℓ(-βc) + ½·ℓ(-βr).
        Nca = "nca",
        /// ℓ(βc) + ℓ(-βr).
        BcoPair = "bco-pair",
        /// (c - 1/(2β))² + (r + 1/(2β))².
        SppoHard = "sppo-hard",
        /// σ(-βc) + σ(βr).
        ApoZero = "apo-zero",
        /// σ(βc) + σ(β(r - c)).
        ApoDown = "apo-down",
        /// The divergence of σ(β(c - r)) from 1 - ε.
        Exo = "exo",
        /// ℓ_ε of the policy's sorted differences, less the reference's.
        Aot = "aot",
        /// ℓ_ε of the sorted chosen log-ratios, less the rejected ones.
        AotUnpaired = "aot-unpaired",
    }
}

impl Kind {
    /// Whether log-probabilities are divided by their lengths.
    fn averages(self) -> bool {
        matches!(self, Kind::Orpo | Kind::Simpo | Kind::SigmoidNorm | Kind::IpoNorm)
    }

    /// Whether the reference counts.
    fn has_reference(self) -> bool {
        !matches!(self, Kind::Orpo | Kind::Simpo)
    }

    /// Whether ranks are compared, and not pairs.
    fn sorts(self) -> bool {
        matches!(self, Kind::Aot | Kind::AotUnpaired)
    }

    /// Whether ε has a meaning.
    fn is_smoothed(self) -> bool {
        matches!(self, Kind::Simpo | Kind::SigmoidNorm | Kind::Exo) || self.sorts()
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

    /// The options of `pair-objective`.
    pub struct Options {
        /// The objective, to be declared: `orpo`, `simpo`, `sigmoid-norm`, `ipo-norm` (averages
        /// over tokens), `nca`, `bco-pair`, `sppo-hard`, `apo-zero`, `apo-down` (the sides apart),
        /// `exo` (the divergence turned round), `aot` or `aot-unpaired` (ranks).
        pub kind: Kind = Kind::Simpo;
        /// β > 0, the strength of the pull to the reference, or the scale of a reward.
        pub beta: f64 = 0.1, in above(0.0);
        /// γ ≥ 0, what β times the difference of averages has to exceed; `simpo` only.
        pub gamma: f64 = 0.5, in 0.0..;
        /// ε from 0 to below 1, the share of exchanged pairs; `simpo`, `sigmoid-norm`, `aot` and
        /// `aot-unpaired` only, and `exo`, which needs more than 0.
        pub label_smoothing: f64 = 0.0, in 0.0..1.0;
        /// `true` or `false`: whether the chosen side's negative average log-probability is added;
        /// `orpo` only.
        pub sft: bool = true;
        /// `none` (`losses`, one for each pair) or `mean` (`loss`, one number; the only one for
        /// `aot` and `aot-unpaired`).
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

    /// Where `ipo-norm` and `sppo-hard` have their minimum.
    fn target(&self) -> f64 {
        0.5 / self.beta
    }
}

/// γ, ε, the likelihood term and the losses of pairs go with some kinds only.
fn goes_with_kind(options: &Options) -> Result<(), (&'static str, String)> {
    let Options { kind, gamma, label_smoothing, sft, reduction, .. } = *options;
    let only = |option, which: &str| Err((option, format!("goes with {which} only")));
    if gamma != Options::default().gamma && kind != Kind::Simpo {
        only("gamma", "`simpo`")
    } else if label_smoothing != 0.0 && !kind.is_smoothed() {
        only("label_smoothing", "`simpo`, `sigmoid-norm`, `exo`, `aot` and `aot-unpaired`")
    } else if label_smoothing == 0.0 && kind == Kind::Exo {
        Err(("label_smoothing", "expected a number > 0 with `exo`, found 0".to_owned()))
    } else if !sft && kind != Kind::Orpo {
        only("sft", "`orpo`")
    } else if kind.sorts() && reduction != Reduction::Mean {
        let expected = "expected `mean` with `aot` and `aot-unpaired`, whose losses are of ranks";
        Err(("reduction", expected.to_owned()))
    } else {
        Ok(())
    }
}

/// The kind is drawn first, the others as they go with it.
fn drawn(u: &mut Unstructured<'_>) -> arbitrary::Result<Options> {
    let kind = one(u, Kind::ALL)?;
    let beta = one(u, &[0.1, 0.5, 1.0, 0.05, 2.0])?;
    let gamma = one(u, &[0.5, 0.0, 1.0, 1.4])?;
    let smoothing = one(u, &[0.0, 0.1, 0.0, 0.3])?;
    let sft = chance(u, 128)?;
    let reduction = one(u, Reduction::ALL)?;
    let defaults = Options::default();
    Ok(Options {
        kind,
        beta,
        gamma: if kind == Kind::Simpo { gamma } else { defaults.gamma },
        label_smoothing: match kind {
            Kind::Exo => one(u, &[0.1, 0.001, 0.3, 0.6])?,
            _ if kind.is_smoothed() => smoothing,
            _ => 0.0,
        },
        sft: sft || kind != Kind::Orpo,
        reduction: if kind.sorts() { Reduction::Mean } else { reduction },
        ..defaults
    })
}

/// The contract: objectives of preference pairs.
#[derive(Clone, Copy, Debug)]
pub struct PairObjective;

impl Definition for PairObjective {
    type Case = PairObjectiveCase;
    type Output = PairObjectiveOutput;
    type Options = Options;
}

impl Contract for PairObjective {
    const ID: &'static str = "pair-objective";
    const STAGE: Stage = Stage::Loss;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const LEAVES: &'static [&'static str] = &["policy_chosen", "policy_rejected"];
    const AXES: Axes = Axes::new(&[
        ("policy_chosen", "P"),
        ("policy_rejected", "P"),
        ("ref_chosen", "P"),
        ("ref_rejected", "P"),
        ("chosen_lengths", "P"),
        ("rejected_lengths", "P"),
        ("losses", "P"),
        ("chosen_rewards", "P"),
        ("rejected_rewards", "P"),
        ("grad_policy_chosen", "P"),
        ("grad_policy_rejected", "P"),
    ])
    .rows('P');
    const BLIND: &'static [Blind] = &[
        Blind::at("beta", 1.0, &[("beta", "0.2")]),
        Blind::at("gamma", 0.0, &[("gamma", "0.7")]),
        Blind::at("label_smoothing", 0.0, &[("label_smoothing", "0.1")]),
        Blind::at("label_smoothing", 0.5, &[("label_smoothing", "0.2")]),
    ];
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::PAIR_OBJECTIVE;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::loss,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<PairObjectiveCase> {
        generate::small(options, dtype)
    }

    fn shapes(case: &PairObjectiveCase, options: &Options) -> Vec<(&'static str, Vec<usize>)> {
        let shape = match options.reduction {
            Reduction::None => vec![case.policy_chosen.len()],
            Reduction::Mean => vec![],
        };
        vec![(options.output(), shape)]
    }

    fn oracle(case: &PairObjectiveCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::outputs(case, options, dtype)
    }

    fn oracle_gradient(case: &PairObjectiveCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::gradient(case, options, dtype)
    }

    fn wants_gradient(_: &Options) -> bool {
        true
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for PairObjective {
    fn independent(options: &Options) -> bool {
        options.reduction == Reduction::None
    }
}
