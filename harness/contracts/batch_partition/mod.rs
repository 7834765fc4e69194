//! Which row goes to which worker or micro-batch, so that each has about as many tokens.
//!
//! There are many right answers, so none is expected. What is asked of a partition is what every
//! reasonable algorithm keeps and no broken one does: each row in one part, no part without a row,
//! and bounds on the tokens of a part and on the number of parts. Optimality is never asked.
//!
//! The first output is an array of part numbers, as integers or floats.
//!
//! ### Source
//! verl `get_seqlen_balanced_partitions`, and OpenRLHF and slime in `seqlen_balancing.py`:
//! Karmarkar-Karp into k parts (`count`), of equal size or not. slime `first_fit_pack`, OpenRLHF
//! `get_minimum_num_micro_batch_size` and NeMo-RL's packers, first fit among them: as many parts as
//! `capacity` asks for. verl `restore_dynamic_batch` brings results back into their order.
//! Graham 1969, Bounds on Multiprocessing Timing Anomalies: the bound on the largest sum.
//!
//! Balance of squared lengths or of operations is no option: declare `balance: false`. Nor are
//! groups of rows that must stay together.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use arbitrary::Unstructured;
use ndarray::{Array1, Ix1};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `batch-partition`.
    ///
    /// # Shapes
    /// `N` rows: both `[N]`.
    ///
    /// # Units
    /// Tokens, 1 to 100000 a row.
    pub struct BatchPartitionCase {
        /// How many tokens each row has.
        pub lengths: A::Int<Ix1>,
        /// A result for each row, to be carried through the parts and back.
        pub values: A::Float<Ix1>,
    }
}

record! {
    /// The outputs of `batch-partition`.
    ///
    /// # Shapes
    /// `N` rows: both `[N]`.
    pub struct BatchPartitionOutput {
        /// The part of each row: 0, 1, …
        pub parts: A::Float<Ix1>,
        /// The values after they went through the parts in order, and back.
        pub restored: Option<A::Float<Ix1>>,
    }
}

impl From<Array1<f64>> for BatchPartitionOutput {
    fn from(parts: Array1<f64>) -> Self {
        Self { parts, restored: None }
    }
}

impl From<Vec<usize>> for BatchPartitionOutput {
    fn from(parts: Vec<usize>) -> Self {
        parts.into_iter().map(|part| part as f64).collect::<Array1<f64>>().into()
    }
}

impl From<Vec<i64>> for BatchPartitionOutput {
    fn from(parts: Vec<i64>) -> Self {
        parts.into_iter().map(|part| part as f64).collect::<Array1<f64>>().into()
    }
}

choice! {
    /// What decides how many parts there are.
    pub enum Mode {
        /// The option `parts`.
        Count = "count",
        /// As many as are needed for `capacity`.
        Capacity = "capacity",
    }
}

choice! {
    /// What becomes of a row that is longer than a part may be.
    pub enum Oversized {
        /// It is never generated.
        Avoid = "avoid",
        /// It is a part of its own.
        Alone = "alone",
        /// It is an error.
        Refuse = "refuse",
    }
}

options! {
    rows: Batch;
    draw: drawn;

    /// The options of `batch-partition`.
    pub struct Options {
        /// `count` or `capacity`: exactly `parts` parts, or as many as `capacity` asks for.
        pub mode: Mode = Mode::Count;
        /// How many parts there are, with `mode: count`. Fewer rows are refused: they raise.
        pub parts: i64 = 2, in 1..=1024;
        /// `true` or `false`: whether every part holds as many rows, with `mode: count`. A number
        /// of rows that gives no such parts is refused.
        pub equal_size: bool = false;
        /// `true` or `false`: whether parts of about as many tokens are claimed, with
        /// `mode: count`. Nothing is claimed of `equal_size` and `contiguous` together, which
        /// leave no choice.
        pub balance: bool = true;
        /// How many tokens a part may have, with `mode: capacity`.
        pub capacity: i64 = 100, in 1..=1_000_000_000;
        /// `avoid`, `alone` or `refuse`: a row longer than `capacity` is never generated, a part
        /// of its own, or an error.
        pub oversized: Oversized = Oversized::Avoid;
        /// There are so many parts at least, with `mode: capacity`.
        pub min_parts: i64 = 1, in 1..=1024;
        /// The number of parts is a multiple of it, with `mode: capacity`.
        pub multiple_of: i64 = 1, in 1..=1024;
        /// `true` or `false`: whether parts are runs of rows, in order.
        pub contiguous: bool = false;
    }
}

impl Options {
    /// Whether a row is longer than a part may be.
    fn is_oversized(&self, length: i64) -> bool {
        self.mode == Mode::Capacity && length > self.capacity
    }

    /// Whether `parts` parts of as many rows each are asked for.
    fn is_equal(&self) -> bool {
        self.mode == Mode::Count && self.equal_size
    }
}

/// Options of one mode, those of the other at their defaults.
fn drawn(u: &mut Unstructured<'_>) -> arbitrary::Result<Options> {
    let mode = one(u, Mode::ALL)?;
    let contiguous = chance(u, 64)?;
    let options = Options { mode, contiguous, ..Options::default() };
    Ok(match mode {
        Mode::Count => Options {
            parts: one(u, &[2, 3, 4, 8, 5, 1, 7])?,
            equal_size: chance(u, 96)?,
            balance: !chance(u, 64)?,
            ..options
        },
        Mode::Capacity => Options {
            capacity: one(u, &[100, 4, 10, 7, 1, 2, 16, 4096, 100_000, 250_000])?,
            oversized: one(u, Oversized::ALL)?,
            min_parts: one(u, &[1, 1, 2, 3, 4])?,
            multiple_of: one(u, &[1, 1, 2, 4, 3])?,
            ..options
        },
    })
}

/// The contract: which row goes to which part.
#[derive(Clone, Copy, Debug)]
pub struct BatchPartition;

impl Definition for BatchPartition {
    type Case = BatchPartitionCase;
    type Output = BatchPartitionOutput;
    type Options = Options;
}

impl Contract for BatchPartition {
    const ID: &'static str = "batch-partition";
    const STAGE: Stage = Stage::Data;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const WHOLE: &'static [&'static str] = &["parts"];
    const AXES: Axes =
        Axes::new(&[("lengths", "N"), ("values", "N"), ("parts", "N"), ("restored", "N")]);
    const BLIND: &'static [Blind] = &[
        Blind::at("min_parts", 1.0, &[("mode", "capacity"), ("min_parts", "3")]),
        Blind::at("multiple_of", 1.0, &[("mode", "capacity"), ("multiple_of", "2")]),
    ];
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::BATCH_PARTITION;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: |case, options, _| generate::valid(case, options),
        classes: generate::classes,
        reference: |case, options, _| reference::partition(case, options),
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, _: Dtype) -> Vec<BatchPartitionCase> {
        generate::small(options)
    }

    fn simpler(case: &BatchPartitionCase, _: &Options, _: Dtype) -> Vec<BatchPartitionCase> {
        generate::simpler(case)
    }

    fn oracle(case: &BatchPartitionCase, _: &Options, _: Dtype) -> Vec<Expected> {
        oracle::restored(case)
    }

    fn refuses(case: &BatchPartitionCase, options: &Options) -> bool {
        oracle::refused(case, options).is_some()
    }
}
