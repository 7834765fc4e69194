//! One outcome reward per completion, normalised inside its group.
//!
//! GRPO, Dr. GRPO, RLOO, and REINFORCE with a group baseline turn the rewards of the completions
//! of one prompt into advantages: what is taken off (the baseline) and what it is divided by (the
//! scale) are conventions, and every library has its own.
//!
//! ### Source
//! GRPO: Shao et al. 2024, DeepSeekMath. Dr. GRPO: Liu et al. 2025, Understanding R1-Zero-Like
//! Training. RLOO: Ahmadian et al. 2024, Back to Basics; Kool et al. 2019.

mod faults;
pub(super) mod generate;
mod invariants;
pub(super) mod oracle;
pub(super) mod reference;

use ndarray::{Array1, Ix1};

use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::rows::{Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::measure::Measure;
use shakedown_core::generate::pick::Pick;
use shakedown_core::numeric::groups;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `group-advantage`.
    ///
    /// # Shapes
    /// `N` completions: rewards `[N]`, groups `[N]`.
    pub struct GroupAdvantageCase {
        /// One reward per completion. NaN where it could not be scored (`unscored: exclude`).
        pub rewards: A::Float<Ix1>,
        /// The group of each completion; completions of one prompt share a number.
        pub groups: A::Int<Ix1>,
    }
}

record! {
    /// The outputs of `group-advantage`.
    ///
    /// # Shapes
    /// `N` completions: advantages `[N]`.
    pub struct GroupAdvantageOutput {
        /// One advantage per completion.
        pub advantages: A::Float<Ix1>,
    }
}

impl From<Array1<f64>> for GroupAdvantageOutput {
    fn from(advantages: Array1<f64>) -> Self {
        Self { advantages }
    }
}

impl From<Vec<f64>> for GroupAdvantageOutput {
    fn from(advantages: Vec<f64>) -> Self {
        Self { advantages: advantages.into() }
    }
}

impl From<Vec<f32>> for GroupAdvantageOutput {
    fn from(advantages: Vec<f32>) -> Self {
        Self { advantages: advantages.into_iter().map(f64::from).collect() }
    }
}

choice! {
    /// What is taken off a reward.
    pub enum Baseline {
        /// The mean of the group.
        Mean = "mean",
        /// The mean of the other completions of the group.
        LeaveOneOut = "leave-one-out",
        /// Nothing.
        None = "none",
    }
}

choice! {
    /// What the difference is divided by.
    pub enum Scale {
        /// The deviation of the group's rewards.
        Std = "std",
        /// The deviation of the whole batch's rewards.
        BatchStd = "batch-std",
        /// The deviation of the other rows of the group; where 0 or undefined, nothing.
        LooStd = "loo-std",
        /// Nothing.
        None = "none",
    }
}

choice! {
    /// How ε protects the division.
    pub enum EpsilonMode {
        /// σ + ε.
        Add = "add",
        /// max(σ, ε).
        Clamp = "clamp",
    }
}

choice! {
    /// What a group of one completion gets.
    pub enum Singleton {
        /// Advantage 0.
        Zero = "zero",
        /// Its reward.
        Reward = "reward",
        /// Never generated.
        Avoid = "avoid",
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

choice! {
    /// What happens to rewards that are NaN.
    pub enum Unscored {
        /// Never generated.
        Avoid = "avoid",
        /// Left out of the statistics, with advantage 0.
        Exclude = "exclude",
    }
}

/// The ε that are drawn.
pub(super) const EPSILONS: [f64; 6] = [1e-4, 1e-6, 1e-8, 0.0, 1e-3, 1e-9];

/// The ranges of rewards that are drawn.
pub(super) const REWARD_RANGES: [[f64; 2]; 4] =
    [[-10.0, 10.0], [0.0, 1.0], [-1.0, 1.0], [0.0, 100.0]];

options! {
    check: |options| check_range(options.reward_range);

    /// The options of `group-advantage`.
    pub struct Options {
        /// `mean`, `leave-one-out` or `none`: what is taken off a reward.
        pub baseline: Baseline = Baseline::Mean;
        /// `std`, `batch-std`, `loo-std` or `none`: divide by the deviation of the group's
        /// rewards, of the whole batch's, of the other rows of the group (rows for which that is
        /// 0 or undefined are not divided), or not at all.
        pub scale: Scale = Scale::Std;
        /// `1` or `0`: unbiased or biased variance.
        pub ddof: u8 = 1, in 0..=1, expected "0 or 1", chance 160;
        /// A number ≥ 0 that protects the division.
        pub epsilon: f64 = 1e-4, in 0.0.., expected "a finite number ≥ 0", draw EPSILONS;
        /// `add` (σ + ε) or `clamp` (max(σ, ε)).
        pub epsilon_mode: EpsilonMode = EpsilonMode::Add;
        /// `zero`, `reward` or `avoid`: what a group of one completion gets. Also a group of
        /// which `unscored: exclude` leaves one row, and with `batch-std` a batch of one row.
        /// With `baseline: none` it is a row like any other.
        pub singleton: Singleton = Singleton::Zero;
        /// `any` or `contiguous` (equal-sized groups in adjacent rows).
        pub layout: Layout = Layout::Any;
        /// `avoid` or `exclude`: NaN rewards are never generated, or are left out of the
        /// statistics and get advantage 0.
        pub unscored: Unscored = Unscored::Avoid;
        /// `[lo, hi]`: the rewards generated.
        pub reward_range: [f64; 2] = [-10.0, 10.0], draw REWARD_RANGES;
    }
}

/// Why no rewards can be generated in a range.
pub(super) fn check_range([lo, hi]: [f64; 2]) -> Result<(), (&'static str, String)> {
    if lo < hi && lo.is_finite() && hi.is_finite() {
        Ok(())
    } else {
        Err(("reward_range", format!("expected [lo, hi] with lo < hi, found [{lo}, {hi}]")))
    }
}

/// The contract: one outcome reward per completion, normalised inside its group.
#[derive(Clone, Copy, Debug)]
pub struct GroupAdvantage;

impl Definition for GroupAdvantage {
    type Case = GroupAdvantageCase;
    type Output = GroupAdvantageOutput;
    type Options = Options;
}

impl Contract for GroupAdvantage {
    const ID: &'static str = "group-advantage";
    const STAGE: Stage = Stage::Advantage;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const AXES: Axes = Axes::new(&[("rewards", "N"), ("groups", "N"), ("advantages", "N")]);
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::GROUP_ADVANTAGE;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::advantages,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn simpler(case: &GroupAdvantageCase, options: &Options, _: Dtype) -> Vec<GroupAdvantageCase> {
        generate::simpler(case, options)
    }

    fn measure(case: &GroupAdvantageCase) -> Measure {
        generate::measure(case)
    }

    fn oracle(case: &GroupAdvantageCase, options: &Options, _: Dtype) -> Vec<Expected> {
        oracle::advantages(case, options)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for GroupAdvantage {
    fn independent(options: &Options) -> bool {
        options.scale != Scale::BatchStd
    }

    fn parts(case: &GroupAdvantageCase) -> Vec<Vec<usize>> {
        members(case)
    }

    fn permutation(case: &GroupAdvantageCase, options: &Options, pick: &mut Pick) -> Vec<usize> {
        match options.layout {
            Layout::Any => pick.shuffled(case.rewards.len()),
            Layout::Contiguous => {
                let groups = members(case);
                let order = pick.shuffled(groups.len());
                order.into_iter().flat_map(|group| groups[group].clone()).collect()
            }
        }
    }
}

/// The rows of each group, groups in order of their first row.
pub(super) fn members(case: &GroupAdvantageCase) -> Vec<Vec<usize>> {
    groups::members(&case.groups)
}
