//! The scores of several reward functions, made into one number per completion.
//!
//! Correctness, format, length: each function scores every completion, or some, and the trainer
//! weighs and adds. Whether a function is first normalised inside its group, what becomes of a
//! score that is missing, and whether the sum is whitened at the end are conventions.
//!
//! ### Source
//! TRL `GRPOTrainer` with several `reward_funcs` (`sum_then_normalize`, `normalize_then_sum`);
//! GDPO: Liu et al. 2026, Group reward-Decoupled Normalization Policy Optimization, as verl and
//! NeMo-RL have it; verifiers `Rubric` for the weighted sum.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use ndarray::{Array1, Ix0, Ix1, Ix2};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::rows::{self, Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::pick::Pick;
use shakedown_core::numeric::groups;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::numeric::tolerance::apart;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `reward-combination`.
    ///
    /// # Shapes
    /// `N` completions, `K` reward functions: rewards `[N, K]`, groups `[N]`.
    pub struct RewardCombinationCase {
        /// One column per reward function. NaN where it did not score (`unscored: skip`).
        pub rewards: A::Float<Ix2>,
        /// The group of each completion; completions of one prompt share a number.
        pub groups: A::Int<Ix1>,
    }
}

record! {
    /// The outputs of `reward-combination`.
    ///
    /// # Shapes
    /// `N` completions, `K` reward functions: combined `[N]`, function_means `[K]`.
    pub struct RewardCombinationOutput {
        /// One number per completion.
        pub combined: A::Float<Ix1>,
        /// The mean of the weighted raw rewards over the rows that some function scored; NaN
        /// where there is none.
        pub reward_mean: Option<A::Float<Ix0>>,
        /// The mean of each function over the rows that it scored; NaN where there is none.
        pub function_means: Option<A::Float<Ix1>>,
    }
}

impl From<Array1<f64>> for RewardCombinationOutput {
    fn from(combined: Array1<f64>) -> Self {
        Self { combined, reward_mean: None, function_means: None }
    }
}

impl From<Vec<f64>> for RewardCombinationOutput {
    fn from(combined: Vec<f64>) -> Self {
        Array1::from(combined).into()
    }
}

impl From<Vec<f32>> for RewardCombinationOutput {
    fn from(combined: Vec<f32>) -> Self {
        combined.into_iter().map(f64::from).collect::<Array1<f64>>().into()
    }
}

choice! {
    /// What the weights are divided by.
    pub enum WeightNorm {
        /// Nothing.
        None = "none",
        /// Their sum.
        Sum = "sum",
    }
}

choice! {
    /// What happens to rewards that are NaN.
    pub enum Unscored {
        /// Never generated.
        Avoid = "avoid",
        /// They add nothing, and count in no statistic.
        Skip = "skip",
    }
}

choice! {
    /// What a row gets that no function scored.
    pub enum Nothing {
        /// NaN.
        Nan = "nan",
        /// 0.
        Zero = "zero",
    }
}

choice! {
    /// What is done to the scores of a function before they are weighed.
    pub enum Normalise {
        /// Nothing.
        None = "none",
        /// They are normalised inside each group.
        Group = "group",
    }
}

choice! {
    /// What a function that scored one row of a group is normalised to.
    pub enum Singleton {
        /// 0.
        Zero = "zero",
        /// Its score.
        Reward = "reward",
        /// Never generated.
        Avoid = "avoid",
    }
}

choice! {
    /// How the sums are whitened over the batch at the end.
    pub enum Final {
        /// Not at all.
        None = "none",
        /// (x - μ)/(σ + ε).
        Add = "add",
        /// (x - μ)/√(σ² + ε).
        Root = "root",
    }
}

choice! {
    /// How rows are laid out.
    pub enum Layout {
        /// Rows of a group anywhere, groups of any size.
        Any = "any",
        /// Equal-sized groups in adjacent rows.
        Contiguous = "contiguous",
    }
}

/// The ε that are drawn.
const EPSILONS: [f64; 6] = [1e-4, 1e-6, 1e-8, 0.0, 1e-3, 1e-2];

/// The largest magnitude of all weights together.
const LARGEST_WEIGHTS: f64 = 1000.0;

/// Weights whose sum is a smaller part of their magnitudes cancel: nothing can be divided by it.
const CANCELLED: f64 = 0.01;

options! {
    rows: Batch;
    check: check_weights;

    /// The options of `reward-combination`.
    pub struct Options {
        /// One weight per function, in the order of the columns; `null`: all are 1. Weights of 0
        /// and negative ones are legal.
        pub weights: Option<Vec<f64>> = None, by generate::draw_weights;
        /// `none` or `sum`: weights are taken as they are, or divided by their sum first.
        pub weight_norm: WeightNorm = WeightNorm::None;
        /// `avoid` or `skip`: NaN rewards are never generated, or add nothing and count in no
        /// statistic.
        pub unscored: Unscored = Unscored::Avoid;
        /// `nan` or `zero`: what a row gets that no function scored.
        pub nothing: Nothing = Nothing::Nan;
        /// `none` or `group`: each function is taken as it is, or normalised inside its group
        /// before it is weighed (GDPO).
        pub normalise: Normalise = Normalise::None;
        /// `true` or `false`: whether normalising divides by σ + ε, or only takes the mean off.
        pub divide: bool = true;
        /// `1` or `0`: unbiased or biased variance of a function inside its group.
        pub ddof: u8 = 1, in 0..=1, expected "0 or 1", chance 160;
        /// A number ≥ 0 that is added to that deviation.
        pub epsilon: f64 = 1e-4, in 0.0.., expected "a finite number ≥ 0", draw EPSILONS;
        /// `zero`, `reward` or `avoid`: what a function is normalised to that scored one row of
        /// a group.
        pub singleton: Singleton = Singleton::Zero;
        /// `none`, `add` or `root`: the sums stay as they are, or are whitened over the rows
        /// that some function scored, by σ + ε or √(σ² + ε).
        pub r#final: Final = Final::None;
        /// `1` or `0`: unbiased or biased variance of the sums.
        pub final_ddof: u8 = 1, in 0..=1, expected "0 or 1", chance 160;
        /// A number ≥ 0 that protects that division.
        pub final_epsilon: f64 = 1e-4, in 0.0.., expected "a finite number ≥ 0", draw EPSILONS;
        /// `any` or `contiguous` (equal-sized groups in adjacent rows).
        pub layout: Layout = Layout::Any;
    }
}

/// Why no reward can be weighed like this.
fn check_weights(options: &Options) -> Result<(), (&'static str, String)> {
    let Some(weights) = &options.weights else { return Ok(()) };
    let magnitude: f64 = weights.iter().map(|w| w.abs()).sum();
    if weights.is_empty() || apart(magnitude, 0.0, LARGEST_WEIGHTS) {
        let expected = format!("one weight per function, of magnitude {LARGEST_WEIGHTS} together");
        return Err(("weights", format!("expected {expected} at most, found {weights:?}")));
    }
    let sum: f64 = weights.iter().sum();
    if options.weight_norm == WeightNorm::Sum && sum.abs() <= CANCELLED * magnitude {
        let expected = "weights that do not cancel, as they are divided by their sum";
        return Err(("weights", format!("expected {expected}, found {weights:?}")));
    }
    Ok(())
}

impl Options {
    /// The weights as they are declared, for so many functions.
    fn raw_weights(&self, functions: usize) -> Vec<f64> {
        self.weights.clone().unwrap_or_else(|| vec![1.0; functions])
    }
}

/// The contract: the scores of several reward functions, made into one number per completion.
#[derive(Clone, Copy, Debug)]
pub struct RewardCombination;

impl Definition for RewardCombination {
    type Case = RewardCombinationCase;
    type Output = RewardCombinationOutput;
    type Options = Options;
}

impl Contract for RewardCombination {
    const ID: &'static str = "reward-combination";
    const STAGE: Stage = Stage::Reward;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const AXES: Axes = Axes::new(&[
        ("rewards", "NK"),
        ("groups", "N"),
        ("combined", "N"),
        ("function_means", "K"),
    ]);
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::REWARD_COMBINATION;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::combination,
        invariants: invariants::all,
        faults: faults::all,
    };
    const BLIND: &'static [Blind] = &[
        Blind::while_equal(
            ["ddof", "final_ddof"],
            &[("normalise", "group"), ("final", "add"), ("ddof", "1"), ("final_ddof", "0")],
        ),
        Blind::while_equal(
            ["epsilon", "final_epsilon"],
            &[
                ("normalise", "group"),
                ("final", "add"),
                ("epsilon", "0.0001"),
                ("final_epsilon", "0.1"),
            ],
        ),
    ];

    fn may_give_nan(options: &Options) -> bool {
        options.unscored == Unscored::Skip
    }

    fn oracle(case: &RewardCombinationCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::combination(case, options, dtype)
    }

    fn simpler(
        case: &RewardCombinationCase,
        options: &Options,
        _: Dtype,
    ) -> Vec<RewardCombinationCase> {
        generate::simpler(case, options)
    }

    fn small(options: &Options, dtype: Dtype) -> Vec<RewardCombinationCase> {
        let scored = [0.0, 1.0, -1.0, 2.0];
        let skipped = [0.0, 1.0, f64::NAN, 2.0];
        let values = if options.unscored == Unscored::Skip { &skipped } else { &scored };
        rows::small::<Self>(&[("rewards", values)], options, dtype)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for RewardCombination {
    fn independent(options: &Options) -> bool {
        options.r#final == Final::None
    }

    fn parts(case: &RewardCombinationCase) -> Vec<Vec<usize>> {
        members(case)
    }

    fn permutation(case: &RewardCombinationCase, options: &Options, pick: &mut Pick) -> Vec<usize> {
        match options.layout {
            Layout::Any => pick.shuffled(case.groups.len()),
            Layout::Contiguous => {
                let groups = members(case);
                let order = pick.shuffled(groups.len());
                order.into_iter().flat_map(|group| groups[group].clone()).collect()
            }
        }
    }
}

/// The rows of each group, groups in order of their first row.
fn members(case: &RewardCombinationCase) -> Vec<Vec<usize>> {
    groups::members(&case.groups)
}

/// Those of some rows that a function scored.
fn scored(case: &RewardCombinationCase, rows: &[usize], function: usize) -> Vec<usize> {
    rows.iter().copied().filter(|row| !case.rewards[[*row, function]].is_nan()).collect()
}

/// Whether some function scored a row.
fn has_score(case: &RewardCombinationCase, row: usize) -> bool {
    case.rewards.row(row).iter().any(|reward| !reward.is_nan())
}
