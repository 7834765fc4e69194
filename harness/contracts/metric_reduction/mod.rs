//! One number from all ranks: mean, extremes, deviation, sum and count of a batch in shards.
//!
//! What a dashboard shows of a step is reduced twice, on each rank and over the ranks, and the
//! ranks never hold as many tokens each. A metric is right where it is that of all numbers
//! together, wherever the batch was cut: a wrong one hides the bugs that it is there to show.
//!
//! ### Source
//! verl `masked_mean`, `masked_var` and `compute_data_metrics`; TRL `nanmean`, `nanmin` and
//! `nanmax` over gathered metrics; NeMo-RL `masked_mean` with a global factor. The variance in one
//! pass and in two: Chan, Golub and LeVeque 1983, Algorithms for Computing the Sample Variance.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use ndarray::{Array2, Ix0, Ix2, arr0};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::measure::Measure;
pub use shakedown_core::numeric::conventions::{EmptyMask, MaskedValues};
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// What one rank holds, or one micro-batch.
    ///
    /// # Shapes
    /// `n` rows of `T` tokens, both of its own: `[n, T]`.
    pub struct Shard {
        /// The number of each token: a loss, a reward, an estimated value. NaN where it could not
        /// be scored (`unscored: skip` or `zero`).
        pub values: A::Float<Ix2>,
        /// What the values are to explain: the return of each token.
        pub targets: A::Float<Ix2>,
        /// True where the token counts.
        pub mask: A::Bool<Ix2>,
    }
}

record! {
    /// The inputs of `metric-reduction`.
    ///
    /// # Shapes
    /// `[n, T]` in a shard of `n` rows of `T` tokens, both of its own.
    pub struct MetricReductionCase {
        /// The shards of one step, in order.
        pub shards: Vec<Shard<A>>,
    }
}

record! {
    /// The outputs of `metric-reduction`: any of them.
    ///
    /// # Shapes
    /// Single numbers.
    ///
    /// # Units
    /// Those of the values; `count` is in tokens, or in rows.
    pub struct MetricReductionOutput {
        /// The mean of all numbers.
        pub mean: Option<A::Float<Ix0>>,
        /// The least of them.
        pub min: Option<A::Float<Ix0>>,
        /// The largest of them.
        pub max: Option<A::Float<Ix0>>,
        /// Their standard deviation.
        pub std: Option<A::Float<Ix0>>,
        /// Their sum; 0 of none.
        pub sum: Option<A::Float<Ix0>>,
        /// How many there are.
        pub count: Option<A::Float<Ix0>>,
        /// 1 - Var(target - value) / (Var(target) + ε); NaN for equal targets and no ε, and for no
        /// more than `ddof` numbers.
        pub explained_variance: Option<A::Float<Ix0>>,
    }
}

impl MetricReductionOutput {
    /// Nothing at all.
    fn empty() -> Self {
        Self {
            mean: None,
            min: None,
            max: None,
            std: None,
            sum: None,
            count: None,
            explained_variance: None,
        }
    }
}

impl From<f64> for MetricReductionOutput {
    fn from(mean: f64) -> Self {
        Self { mean: Some(arr0(mean)), ..Self::empty() }
    }
}

impl From<f32> for MetricReductionOutput {
    fn from(mean: f32) -> Self {
        f64::from(mean).into()
    }
}

choice! {
    /// What is one number.
    pub enum Unit {
        /// A token.
        Token = "token",
        /// The mean of a row with a token.
        RowMean = "row-mean",
        /// The sum of a row with a token.
        RowSum = "row-sum",
    }
}

choice! {
    /// The deviation of no more than `ddof` numbers.
    pub enum One {
        /// NaN.
        Nan = "nan",
        /// 0.
        Zero = "zero",
        /// It raises.
        Refuse = "refuse",
    }
}

choice! {
    /// What happens to values that are NaN.
    pub enum Unscored {
        /// Never generated.
        Avoid = "avoid",
        /// Left out.
        Skip = "skip",
        /// Counted as 0.
        Zero = "zero",
    }
}

/// The ε that are drawn.
const EPSILONS: [f64; 4] = [0.0, 1e-5, 1e-8, 1e-2];

options! {
    /// The options of `metric-reduction`.
    pub struct Options {
        /// `token`, `row-mean` or `row-sum`: what one number is, of values and of targets. A row
        /// without a token that counts is none.
        pub unit: Unit = Unit::Token;
        /// `1` or `0`: unbiased or biased variance, of `std` and of both variances of
        /// `explained_variance`.
        pub ddof: u8 = 1, in 0..=1, expected "0 or 1", chance 160;
        /// `nan`, `zero` or `refuse`: the `std` of no more than `ddof` numbers.
        pub one: One = One::Nan;
        /// `avoid`, `skip` or `zero`: values that are NaN are never generated, are left out (with
        /// their targets), or count as 0.
        pub unscored: Unscored = Unscored::Avoid;
        /// A number ≥ 0 that is added to the variance of the targets.
        pub ev_epsilon: f64 = 0.0, in 0.0.., expected "a finite number ≥ 0", draw EPSILONS;
        /// `zero`, `nan`, `refuse` or `avoid`: what all but `sum` and `count` are where there is
        /// no number at all. Those two are 0.
        pub empty_mask: EmptyMask = EmptyMask::Zero;
        /// `true` or `false`: whether a mask may have gaps inside a row.
        pub holes: bool = false;
        /// `finite` or `any`: what may stand under the mask.
        pub masked_values: MaskedValues = MaskedValues::Finite;
    }
}

/// The contract: one number from all ranks.
#[derive(Clone, Copy, Debug)]
pub struct MetricReduction;

impl Definition for MetricReduction {
    type Case = MetricReductionCase;
    type Output = MetricReductionOutput;
    type Options = Options;
}

impl Contract for MetricReduction {
    const ID: &'static str = "metric-reduction";
    const STAGE: Stage = Stage::Metrics;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const WHOLE: &'static [&'static str] = &["count"];
    const BLIND: &'static [Blind] = &[Blind::at("ev_epsilon", 0.0, &[("ev_epsilon", "1.0e-2")])];
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::METRIC_REDUCTION;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::metrics,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<MetricReductionCase> {
        generate::small(options, dtype)
    }

    fn refuses(case: &MetricReductionCase, options: &Options) -> bool {
        match count(case, options) {
            0 => options.empty_mask == EmptyMask::Refuse,
            count => options.one == One::Refuse && count <= usize::from(options.ddof),
        }
    }

    fn simpler(case: &MetricReductionCase, _: &Options, _: Dtype) -> Vec<MetricReductionCase> {
        generate::simpler(case)
    }

    fn measure(case: &MetricReductionCase) -> Measure {
        generate::measure(case)
    }

    fn shapes(_: &MetricReductionCase, _: &Options) -> Vec<(&'static str, Vec<usize>)> {
        Vec::new()
    }

    fn oracle(case: &MetricReductionCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::metrics(case, options, dtype)
    }
}

/// Where a token counts: not under the mask, nor where it is left out for want of a score.
fn counted(part: &Shard, options: &Options) -> Array2<bool> {
    let mut counted = part.mask.clone();
    if options.unscored == Unscored::Skip {
        counted.zip_mut_with(&part.values, |counted, value| *counted &= !value.is_nan());
    }
    counted
}

/// The value of a token that counts, which is 0 where none could be scored.
fn scored(value: f64, options: &Options) -> f64 {
    if value.is_nan() && options.unscored == Unscored::Zero { 0.0 } else { value }
}

/// The tokens of each number of a shard: value and target of each.
fn sets(part: &Shard, options: &Options) -> Vec<Vec<[f64; 2]>> {
    let counted = counted(part, options);
    let row = |row: usize| -> Vec<[f64; 2]> {
        let columns = (0..counted.ncols()).filter(|column| counted[[row, *column]]);
        let token = |at: [usize; 2]| [scored(part.values[at], options), part.targets[at]];
        columns.map(|column| token([row, column])).collect()
    };
    let rows = (0..counted.nrows()).map(row).filter(|row| !row.is_empty());
    match options.unit {
        Unit::Token => rows.flatten().map(|token| vec![token]).collect(),
        Unit::RowMean | Unit::RowSum => rows.collect(),
    }
}

/// The numbers of a shard, each with its target.
fn numbers(part: &Shard, options: &Options) -> Vec<[f64; 2]> {
    let number = |set: &Vec<[f64; 2]>| {
        let divisor = if options.unit == Unit::RowMean { set.len() as f64 } else { 1.0 };
        [0, 1].map(|which| set.iter().map(|token| token[which]).sum::<f64>() / divisor)
    };
    sets(part, options).iter().map(number).collect()
}

/// How many numbers there are.
fn count(case: &MetricReductionCase, options: &Options) -> usize {
    case.shards.iter().map(|part| sets(part, options).len()).sum()
}

/// How many tokens are not masked.
fn kept(part: &Shard) -> usize {
    part.mask.iter().filter(|kept| **kept).count()
}

/// The whole batch as one shard: all rows, each with masked columns up to the widest.
fn joined(case: &MetricReductionCase) -> Shard {
    let rows: usize = case.shards.iter().map(|part| part.mask.nrows()).sum();
    let columns = case.shards.iter().map(|part| part.mask.ncols()).max().unwrap_or(0);
    let shape = (rows, columns);
    let mut values = Array2::zeros(shape);
    let mut targets = Array2::zeros(shape);
    let mut mask = Array2::from_elem(shape, false);
    let mut first = 0;
    for part in &case.shards {
        for ((row, column), kept) in part.mask.indexed_iter() {
            let at = [first + row, column];
            values[at] = part.values[[row, column]];
            targets[at] = part.targets[[row, column]];
            mask[at] = *kept;
        }
        first += part.mask.nrows();
    }
    Shard { values, targets, mask }
}
