//! Which groups stay in the batch.
//!
//! A prompt that every completion solves, or none, has nothing to say to a group baseline. DAPO and
//! its heirs drop such groups before the step, and everything that belongs to their rows with them:
//! what is kept must be whole groups, and ids and rewards must still be those of the rows kept.
//!
//! ### Source
//! DAPO: Yu et al. 2025. verl `filter_groups` (`singleton: keep`), slime
//! `check_reward_nonzero_std` (`tolerance: 1e-5`), NeMo-RL's and open-instruct's dynamic sampling
//! (the defaults), OpenRLHF's `dynamic_filtering` (`criterion: range`).

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use ndarray::{Array1, Ix1};

use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::rows::{Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::numeric::groups;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `group-filter`.
    ///
    /// # Shapes
    /// `N` rows, a completion each: all `[N]`.
    pub struct GroupFilterCase {
        /// The reward of each row, which is only carried along.
        pub rewards: A::Float<Ix1>,
        /// What decides: the reward itself, or what it was before it was shaped.
        pub metric: A::Float<Ix1>,
        /// The group of each row; completions of one prompt share a number.
        pub groups: A::Int<Ix1>,
        /// The id of each row, no two alike.
        pub ids: A::Int<Ix1>,
    }
}

record! {
    /// The outputs of `group-filter`.
    ///
    /// # Shapes
    /// `N` rows of which `M` are kept: keep `[N]`, the others `[M]`.
    pub struct GroupFilterOutput {
        /// 1 where the row stays, else 0.
        pub keep: A::Float<Ix1>,
        /// The ids of the rows that stay, in their order.
        pub kept_ids: Option<A::Float<Ix1>>,
        /// The rewards of the same rows.
        pub kept_rewards: Option<A::Float<Ix1>>,
    }
}

impl From<Array1<f64>> for GroupFilterOutput {
    fn from(keep: Array1<f64>) -> Self {
        Self { keep, kept_ids: None, kept_rewards: None }
    }
}

impl From<Array1<f32>> for GroupFilterOutput {
    fn from(keep: Array1<f32>) -> Self {
        keep.mapv(f64::from).into()
    }
}

impl From<Vec<bool>> for GroupFilterOutput {
    fn from(keep: Vec<bool>) -> Self {
        Array1::from(keep).mapv(f64::from).into()
    }
}

choice! {
    /// When a group stays.
    pub enum Criterion {
        /// When its metric differs by more than the tolerance.
        Spread = "spread",
        /// When the mean of its metric lies inside the range, and not on its edge.
        Range = "range",
    }
}

choice! {
    /// What becomes of a group of one row, which has no spread.
    pub enum Singleton {
        /// It goes.
        Drop = "drop",
        /// It stays.
        Keep = "keep",
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

options! {
    check: |options| check_range(options.range);

    /// The options of `group-filter`.
    pub struct Options {
        /// `spread` (a group stays when the largest of its metric exceeds the least by more than
        /// `tolerance`) or `range` (when their mean lies strictly inside `range`).
        pub criterion: Criterion = Criterion::Spread;
        /// A number from 0 to 1 that a spread must exceed. What is generated is 0, or 0.001 and
        /// 100 times as much at least, so that a deviation decides as a spread does.
        pub tolerance: f64 = 0.0, in 0.0..=1.0, draw [0.0, 0.0, 1e-5, 1e-3, 0.01];
        /// `[lo, hi]`, 0.01 apart at least and within ±100: where a mean must lie.
        pub range: [f64; 2] = [0.0, 1.0], draw RANGES;
        /// `drop`, `keep` or `avoid`: what becomes of a group of one row (`criterion: spread`).
        pub singleton: Singleton = Singleton::Drop;
        /// `null`, or an integer ≥ 0: no more groups stay than this, in the order in which they
        /// first appear.
        pub limit: Option<i64> = None, in 0_i64..,
            draw [None, None, None, Some(1), Some(2), Some(0), Some(3)];
        /// `any` or `contiguous` (equal-sized groups in adjacent rows).
        pub layout: Layout = Layout::Any;
    }
}

/// The ranges that are drawn.
const RANGES: [[f64; 2]; 5] = [[0.0, 1.0], [0.0, 1.0], [0.2, 0.8], [-1.0, 1.0], [0.0, 10.0]];

/// Why a mean cannot be told to lie in a range.
fn check_range([lo, hi]: [f64; 2]) -> Result<(), (&'static str, String)> {
    if hi - lo >= 0.01 && lo >= -100.0 && hi <= 100.0 {
        Ok(())
    } else {
        let expected = "[lo, hi] with hi - lo ≥ 0.01, within ±100";
        Err(("range", format!("expected {expected}, found [{lo}, {hi}]")))
    }
}

/// The contract: which groups stay in the batch.
#[derive(Clone, Copy, Debug)]
pub struct GroupFilter;

impl Definition for GroupFilter {
    type Case = GroupFilterCase;
    type Output = GroupFilterOutput;
    type Options = Options;
}

impl Contract for GroupFilter {
    const ID: &'static str = "group-filter";
    const STAGE: Stage = Stage::Advantage;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const WHOLE: &'static [&'static str] = &["keep", "kept_ids"];
    const AXES: Axes = Axes::new(&[
        ("rewards", "N"),
        ("metric", "N"),
        ("groups", "N"),
        ("ids", "N"),
        ("keep", "N"),
        ("kept_ids", "M"),
        ("kept_rewards", "M"),
    ]);
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::GROUP_FILTER;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: |case, options, _| generate::valid(case, options),
        classes: generate::classes,
        reference: |case, options, _| reference::filter(case, options),
        invariants: invariants::all,
        faults: faults::all,
    };

    fn check_form(
        _: &GroupFilterCase,
        _: &Options,
        output: &GroupFilterOutput,
    ) -> Result<(), String> {
        if !output.keep.iter().all(|keep| [0.0, 1.0].contains(keep)) {
            return Ok(()); // What is no flag counts no rows; other laws say so.
        }
        let count = output.keep.sum() as usize;
        let lists = [("kept_ids", &output.kept_ids), ("kept_rewards", &output.kept_rewards)];
        for (name, list) in lists {
            let length = list.as_ref().map_or(count, Array1::len);
            if length != count {
                return Err(format!("`{name}` has length {length}, but `keep` has {count} ones"));
            }
        }
        Ok(())
    }

    fn small(options: &Options, dtype: Dtype) -> Vec<GroupFilterCase> {
        generate::small(options, dtype)
    }

    fn simpler(case: &GroupFilterCase, options: &Options, _: Dtype) -> Vec<GroupFilterCase> {
        generate::simpler(case, options)
    }

    fn oracle(case: &GroupFilterCase, options: &Options, _: Dtype) -> Vec<Expected> {
        oracle::filter(case, options)
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for GroupFilter {
    fn independent(options: &Options) -> bool {
        options.limit.is_none()
    }

    fn parts(case: &GroupFilterCase) -> Vec<Vec<usize>> {
        members(case)
    }
}

/// The rows of each group, groups in order of their first row.
fn members(case: &GroupFilterCase) -> Vec<Vec<usize>> {
    groups::members(&case.groups)
}

/// How far the metric of some rows is apart.
fn spread(case: &GroupFilterCase, rows: &[usize]) -> f64 {
    let metric = || rows.iter().map(|row| case.metric[*row]);
    metric().fold(f64::NEG_INFINITY, f64::max) - metric().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use ndarray::arr1;

    use super::*;
    use shakedown_core::contract::options::Options as _;

    #[test]
    fn ranges_in_which_no_mean_can_be_told_to_lie_are_refused() {
        for range in [[1.0, 0.0], [0.0, 0.0], [0.0, 0.001], [0.0, 101.0], [f64::NAN, 1.0]] {
            let options = Options { range, ..Options::default() };
            assert_eq!(options.check().unwrap_err().0, "range");
        }
        let options = Options { limit: Some(-1), ..Options::default() };
        assert_eq!(options.check().unwrap_err().0, "limit");
        assert_eq!(Options { limit: Some(0), ..Options::default() }.check(), Ok(()));
    }

    #[test]
    fn lists_are_as_long_as_rows_are_kept() {
        let case = GroupFilterCase {
            rewards: arr1(&[0.0, 1.0]),
            metric: arr1(&[0.0, 1.0]),
            groups: arr1(&[0, 0]),
            ids: arr1(&[3, 4]),
        };
        let form = |keep: [f64; 2], ids: &[f64]| {
            let output = GroupFilterOutput {
                keep: arr1(&keep),
                kept_ids: Some(arr1(ids)),
                kept_rewards: None,
            };
            GroupFilter::check_form(&case, &Options::default(), &output)
        };
        assert_eq!(form([1.0, 1.0], &[3.0, 4.0]), Ok(()));
        assert_eq!(form([0.0, 0.0], &[]), Ok(()));
        assert!(form([1.0, 0.0], &[3.0, 4.0]).unwrap_err().contains("length 2"));
        assert_eq!(form([f64::NAN, 0.0], &[3.0, 4.0]), Ok(()));
    }
}
