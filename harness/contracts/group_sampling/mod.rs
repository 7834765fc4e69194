//! In which order prompts and their copies come to be sampled.
//!
//! A method that compares the completions of a prompt with each other needs G of each, side by
//! side or a fixed distance apart, and in one batch. What makes the order is a sampler of a dozen
//! lines that nobody looks at again: a copy too few, a group cut in two or a shuffle that is thrown
//! away raises nothing, and the advantages are still numbers.
//!
//! ### Source
//! Prompts are permuted with `shuffle: true`, then cut into generation batches of
//! `prompts_per_batch`; each batch comes as `group_size` copies of its prompts, and as a whole
//! `repeats` times in a row. TRL `RepeatSampler` (`mini_repeat_count` is `group_size`, `batch_size`
//! is `prompts_per_batch`, `repeat_count` is `repeats`); verl `DataProto.repeat` (`interleave`);
//! OpenRLHF, slime and NeMo-RL interleave.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use std::collections::{HashMap, HashSet};

use ndarray::{Array1, Ix0, Ix1};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::rows::{Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `group-sampling`.
    ///
    /// # Shapes
    /// `B` prompts: `[B]`; seed a single number.
    pub struct GroupSamplingCase {
        /// The id of each prompt of the data, no two of them the same.
        pub prompts: A::Int<Ix1>,
        /// What the permutation depends on, where there is one.
        pub seed: A::Int<Ix0>,
    }
}

record! {
    /// The output of `group-sampling`.
    ///
    /// # Shapes
    /// `M` rows, as many as the prompts that are not dropped times their copies: `[M]`.
    pub struct GroupSamplingOutput {
        /// The id of the prompt of each row to come.
        pub rows: A::Float<Ix1>,
    }
}

impl From<Array1<f64>> for GroupSamplingOutput {
    fn from(rows: Array1<f64>) -> Self {
        Self { rows }
    }
}

impl From<Array1<f32>> for GroupSamplingOutput {
    fn from(rows: Array1<f32>) -> Self {
        rows.mapv(f64::from).into()
    }
}

impl From<Array1<i64>> for GroupSamplingOutput {
    fn from(rows: Array1<i64>) -> Self {
        rows.mapv(|id| id as f64).into()
    }
}

impl From<Vec<i64>> for GroupSamplingOutput {
    fn from(rows: Vec<i64>) -> Self {
        Array1::from(rows).into()
    }
}

choice! {
    /// How the copies of a batch stand.
    pub enum Layout {
        /// Those of a prompt together: `a a b b`.
        Interleave = "interleave",
        /// The batch, again and again: `a b a b`.
        Tile = "tile",
    }
}

options! {
    /// The options of `group-sampling`.
    pub struct Options {
        /// An integer ≥ 1: how many copies of a prompt are sampled.
        pub group_size: i64 = 2, in 1.., draw [2, 3, 1, 4, 2, 8];
        /// `null` (all), or an integer ≥ 1: how many prompts a generation batch has, each counted
        /// once.
        pub prompts_per_batch: Option<i64> = None, in 1..,
            draw [None, Some(2), Some(3), Some(1), Some(4), None, Some(5)];
        /// An integer ≥ 1: how many times in a row a generation batch comes.
        pub repeats: i64 = 1, in 1.., draw [1, 2, 1, 3];
        /// `interleave` (`a a b b`) or `tile` (`a b a b`): how the copies of a batch stand.
        pub layout: Layout = Layout::Interleave;
        /// `true` or `false`: whether prompts are permuted before they are cut into batches.
        pub shuffle: bool = false;
        /// `true` or `false`: whether prompts that do not fill the last batch are left out.
        pub drop_last: bool = true;
    }
}

impl Options {
    /// How many prompts each generation batch of so many has.
    fn batches(&self, prompts: usize) -> Vec<usize> {
        let Some(full) = self.prompts_per_batch else { return vec![prompts] };
        let full = usize::try_from(full).expect("options were checked");
        let mut batches = vec![full; prompts / full];
        let rest = prompts % full;
        if rest > 0 && !self.drop_last {
            batches.push(rest);
        }
        batches
    }

    /// The number of copies.
    fn copies(&self) -> usize {
        usize::try_from(self.group_size).expect("options were checked")
    }

    /// How many times a generation batch comes.
    fn passes(&self) -> usize {
        usize::try_from(self.repeats).expect("options were checked")
    }
}

/// The contract: in which order prompts and their copies come.
#[derive(Clone, Copy, Debug)]
pub struct GroupSampling;

impl Definition for GroupSampling {
    type Case = GroupSamplingCase;
    type Output = GroupSamplingOutput;
    type Options = Options;
}

impl Contract for GroupSampling {
    const ID: &'static str = "group-sampling";
    const STAGE: Stage = Stage::Data;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const WHOLE: &'static [&'static str] = &["rows"];
    const AXES: Axes = Axes::new(&[("prompts", "B")]).rows('B');
    const BLIND: &'static [Blind] = &[
        Blind::at("group_size", 1.0, &[("group_size", "3")]),
        Blind::at("repeats", 1.0, &[("repeats", "2")]),
        Blind::while_equal(["group_size", "prompts_per_batch"], &[("prompts_per_batch", "3")]),
    ];
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::GROUP_SAMPLING;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: |case, _, dtype| generate::valid(case, dtype),
        classes: generate::classes,
        reference: |case, options, _| reference::rows(case, options).into(),
        invariants: invariants::all,
        faults: faults::all,
    };

    fn shapes(case: &GroupSamplingCase, options: &Options) -> Vec<(&'static str, Vec<usize>)> {
        let prompts: usize = options.batches(case.prompts.len()).iter().sum();
        vec![("rows", vec![prompts * options.copies() * options.passes()])]
    }

    fn oracle(case: &GroupSamplingCase, options: &Options, _: Dtype) -> Vec<Expected> {
        // Every permutation is right.
        if options.shuffle { Vec::new() } else { oracle::rows(case, options) }
    }

    fn small(_: &Options, dtype: Dtype) -> Vec<GroupSamplingCase> {
        generate::small(dtype)
    }

    fn simpler(case: &GroupSamplingCase, _: &Options, _: Dtype) -> Vec<GroupSamplingCase> {
        generate::simpler(case)
    }

    fn in_common(
        case: &GroupSamplingCase,
        options: &Options,
        output: &GroupSamplingOutput,
    ) -> Option<GroupSamplingOutput> {
        options.shuffle.then(|| renamed(case, output))
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }

    fn samples(_: &Options, _: Dtype) -> Vec<GroupSamplingCase> {
        generate::samples()
    }
}

/// The rows with prompts numbered in the order in which they come first: the same for every
/// permutation. What is no prompt of the data is -1.
fn renamed(case: &GroupSamplingCase, output: &GroupSamplingOutput) -> GroupSamplingOutput {
    let mut numbers: HashMap<i64, usize> = HashMap::new();
    let known: HashSet<i64> = case.prompts.iter().copied().collect();
    let number = |row: &f64| {
        let id = *row as i64;
        if id as f64 != *row || !known.contains(&id) {
            return -1.0;
        }
        let next = numbers.len();
        *numbers.entry(id).or_insert(next) as f64
    };
    output.rows.iter().map(number).collect::<Array1<f64>>().into()
}

impl Rows for GroupSampling {
    fn independent(_: &Options) -> bool {
        false
    }
}
