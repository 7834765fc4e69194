//! One outcome for each completion, given on its tokens, normalised inside its group.
//!
//! Trainers that keep rewards token by token write the score of a completion to its last token, or
//! spread it; what counts is the sum under the mask. The advantage of that outcome is the one of
//! `group-advantage`, and it stands at every token of the row.
//!
//! ### Source
//! verl `compute_grpo_outcome_advantage` and its vectorised, Dr. GRPO and RLOO siblings. NeMo-RL
//! leaves rows without a token out of the statistics (`empty_rows: exclude`).

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use ndarray::{Array1, Array2, Ix1, Ix2};

pub use super::group_advantage::{Baseline, EpsilonMode, Layout, Scale, Singleton, Unscored};

use super::group_advantage::{
    self, EPSILONS, GroupAdvantage, GroupAdvantageCase, REWARD_RANGES, check_range, members,
};
use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::rows::{self, Masked, Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::pick::Pick;
pub use shakedown_core::numeric::conventions::{MaskedOutput, MaskedValues};
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `outcome-advantage`.
    ///
    /// # Shapes
    /// `N` rows of `T` tokens: token_rewards and mask `[N, T]`, groups `[N]`.
    pub struct OutcomeAdvantageCase {
        /// The reward of each token; the outcome of a row is their sum under the mask. NaN where a
        /// row could not be scored (`unscored: exclude`).
        pub token_rewards: A::Float<Ix2>,
        /// True where the token counts.
        pub mask: A::Bool<Ix2>,
        /// The group of each row; completions of one prompt share a number.
        pub groups: A::Int<Ix1>,
    }
}

record! {
    /// The output of `outcome-advantage`.
    ///
    /// # Shapes
    /// `[N, T]`.
    pub struct OutcomeAdvantageOutput {
        /// The advantage of its row, at each token.
        pub advantages: A::Float<Ix2>,
    }
}

impl From<Array2<f64>> for OutcomeAdvantageOutput {
    fn from(advantages: Array2<f64>) -> Self {
        Self { advantages }
    }
}

impl From<Array2<f32>> for OutcomeAdvantageOutput {
    fn from(advantages: Array2<f32>) -> Self {
        advantages.mapv(f64::from).into()
    }
}

choice! {
    /// Whether a row without a token has a part in the statistics of its group.
    pub enum EmptyRows {
        /// It does, with outcome 0.
        Count = "count",
        /// It does not.
        Exclude = "exclude",
    }
}

options! {
    check: |options| check_range(options.reward_range);

    /// The options of `outcome-advantage`.
    pub struct Options {
        /// `mean`, `leave-one-out` or `none`: what is taken off an outcome.
        pub baseline: Baseline = Baseline::Mean;
        /// `std`, `batch-std`, `loo-std` or `none`: divide by the deviation of the group's
        /// outcomes, of the whole batch's, of the other rows of the group (rows for which that is
        /// 0 or undefined are not divided), or not at all.
        pub scale: Scale = Scale::Std;
        /// `1` or `0`: unbiased or biased variance.
        pub ddof: u8 = 1, in 0..=1, expected "0 or 1", chance 160;
        /// A number ≥ 0 that protects the division.
        pub epsilon: f64 = 1e-4, in 0.0.., expected "a finite number ≥ 0", draw EPSILONS;
        /// `add` (σ + ε) or `clamp` (max(σ, ε)).
        pub epsilon_mode: EpsilonMode = EpsilonMode::Add;
        /// `zero`, `reward` (its outcome) or `avoid`: what a group of one row gets. Also a group
        /// of which `unscored` and `empty_rows: exclude` leave one row, and with `batch-std` a
        /// batch of one row. With `baseline: none` it is a row like any other.
        pub singleton: Singleton = Singleton::Zero;
        /// `any` or `contiguous` (equal-sized groups in adjacent rows).
        pub layout: Layout = Layout::Any;
        /// `avoid` or `exclude`: NaN rewards that count are never generated, or their rows are
        /// left out of the statistics and get advantage 0.
        pub unscored: Unscored = Unscored::Avoid;
        /// `[lo, hi]`: the outcomes generated.
        pub reward_range: [f64; 2] = [-10.0, 10.0], draw REWARD_RANGES;
        /// `count` or `exclude`: whether a row without a token has a part in the statistics of its
        /// group, with outcome 0.
        pub empty_rows: EmptyRows = EmptyRows::Count;
        /// `true` or `false`: whether a mask may have gaps inside a row.
        pub holes: bool = false;
        /// `finite` or `any`: what may stand under the mask.
        pub masked_values: MaskedValues = MaskedValues::Finite;
        /// `zero` or `any`: what stands at masked positions of the output.
        pub masked_output: MaskedOutput = MaskedOutput::Zero;
    }
}

impl Options {
    /// The options of `group-advantage` under which the outcomes are normalised.
    fn of_outcomes(&self) -> group_advantage::Options {
        let unscored = match self.empty_rows {
            EmptyRows::Count => self.unscored,
            EmptyRows::Exclude => Unscored::Exclude,
        };
        group_advantage::Options { unscored, ..self.as_declared() }
    }

    /// The options that both contracts have.
    fn as_declared(&self) -> group_advantage::Options {
        group_advantage::Options {
            baseline: self.baseline,
            scale: self.scale,
            ddof: self.ddof,
            epsilon: self.epsilon,
            epsilon_mode: self.epsilon_mode,
            singleton: self.singleton,
            layout: self.layout,
            unscored: self.unscored,
            reward_range: self.reward_range,
            rows: self.rows,
            deterministic: self.deterministic,
        }
    }
}

/// The contract: one outcome for each completion, given on its tokens.
#[derive(Clone, Copy, Debug)]
pub struct OutcomeAdvantage;

impl Definition for OutcomeAdvantage {
    type Case = OutcomeAdvantageCase;
    type Output = OutcomeAdvantageOutput;
    type Options = Options;
}

impl Contract for OutcomeAdvantage {
    const ID: &'static str = "outcome-advantage";
    const STAGE: Stage = Stage::Advantage;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const AXES: Axes = Axes::new(&[
        ("token_rewards", "NT"),
        ("mask", "NT"),
        ("groups", "N"),
        ("advantages", "NT"),
    ]);
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::OUTCOME_ADVANTAGE;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::advantages,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<OutcomeAdvantageCase> {
        rows::small::<Self>(&[("token_rewards", &[0.0, 1.0, 2.0])], options, dtype)
    }

    fn simpler(
        case: &OutcomeAdvantageCase,
        options: &Options,
        _: Dtype,
    ) -> Vec<OutcomeAdvantageCase> {
        generate::simpler(case, options)
    }

    fn oracle(case: &OutcomeAdvantageCase, options: &Options, _: Dtype) -> Vec<Expected> {
        oracle::advantages(case, options)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for OutcomeAdvantage {
    fn independent(options: &Options) -> bool {
        GroupAdvantage::independent(&options.as_declared())
    }

    fn parts(case: &OutcomeAdvantageCase) -> Vec<Vec<usize>> {
        groups(case)
    }

    fn permutation(case: &OutcomeAdvantageCase, options: &Options, pick: &mut Pick) -> Vec<usize> {
        let ids_only = GroupAdvantageCase {
            rewards: Array1::zeros(case.groups.len()),
            groups: case.groups.clone(),
        };
        GroupAdvantage::permutation(&ids_only, &options.as_declared(), pick)
    }
}

impl Masked for OutcomeAdvantage {
    fn mask(case: &OutcomeAdvantageCase) -> &Array2<bool> {
        &case.mask
    }

    fn mask_mut(case: &mut OutcomeAdvantageCase) -> &mut Array2<bool> {
        &mut case.mask
    }

    fn masked_values(options: &Options) -> MaskedValues {
        options.masked_values
    }

    fn holes(options: &Options) -> bool {
        options.holes
    }
}

/// The rows of each group, groups in order of their first row.
fn groups(case: &OutcomeAdvantageCase) -> Vec<Vec<usize>> {
    let groups = case.groups.clone();
    members(&GroupAdvantageCase { rewards: Array1::zeros(groups.len()), groups })
}

/// The rewards that count in a row.
fn kept(case: &OutcomeAdvantageCase, row: usize) -> impl Iterator<Item = f64> + '_ {
    let tokens = case.token_rewards.row(row).into_iter().zip(case.mask.row(row));
    tokens.filter(|(_, kept)| **kept).map(|(reward, _)| *reward)
}

/// Whether no token of a row counts.
fn is_empty(case: &OutcomeAdvantageCase, row: usize) -> bool {
    !case.mask.row(row).iter().any(|kept| *kept)
}

/// The outcomes as a case of `group-advantage`, each made by `sum` from the rewards that count;
/// NaN for a row that is left out.
fn outcomes(
    case: &OutcomeAdvantageCase,
    options: &Options,
    sum: impl Fn(&mut dyn Iterator<Item = f64>) -> f64,
) -> GroupAdvantageCase {
    let outcome = |row: usize| match options.empty_rows {
        EmptyRows::Exclude if is_empty(case, row) => f64::NAN,
        _ => sum(&mut kept(case, row)),
    };
    GroupAdvantageCase {
        rewards: (0..case.groups.len()).map(outcome).collect(),
        groups: case.groups.clone(),
    }
}

/// One number for each row, at its tokens; 0 elsewhere.
fn spread<T: Copy>(mask: &Array2<bool>, rows: &[T], masked: T) -> Array2<T> {
    Array2::from_shape_fn(
        mask.dim(),
        |(row, token)| {
            if mask[[row, token]] { rows[row] } else { masked }
        },
    )
}
