//! The loss of one step whose batch comes in several micro-batches, and the gradient it applies.
//!
//! A batch that does not fit into memory is cut into micro-batches, over time (gradient
//! accumulation) or over devices (data parallelism). The step must not depend on where it was
//! cut: the denominators are those of the whole batch. A mean of means weights the tokens of short
//! micro-batches more, and is the most repeated bug of this field.
//!
//! ### Source
//! `token-mean`: Σ S_k / Σ n_k with S_k the sum of the token losses of micro-batch k and n_k its
//! tokens; `seq-mean-*`: the same with rows. TRL's `dapo`, verl with a global token count, NeMo-RL
//! `global_valid_toks`. A normaliser of each micro-batch (TRL `bnpo`) is another objective.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use arbitrary::Unstructured;
use ndarray::{Array2, Ix0, Ix2, arr0};

use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::draw::one;
use shakedown_core::generate::measure::Measure;
pub use shakedown_core::numeric::aggregate::Aggregate;
pub use shakedown_core::numeric::conventions::{EmptyMask, EmptyRows, MaskedValues};
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::{item, record};

record! {
    /// One micro-batch.
    ///
    /// # Shapes
    /// `n` rows of `T` tokens, both of its own: `[n, T]`.
    pub struct MicroBatch {
        /// The loss of each token.
        pub token_losses: A::Float<Ix2>,
        /// True where the token counts.
        pub mask: A::Bool<Ix2>,
    }
}

record! {
    /// The inputs of `accumulated-loss`.
    ///
    /// # Shapes
    /// `[n, T]` in a micro-batch of `n` rows of `T` tokens, both of its own.
    pub struct AccumulatedLossCase {
        /// The micro-batches of one step, in order.
        pub micro_batches: Vec<MicroBatch<A>>,
    }
}

record! {
    /// The gradient by one micro-batch.
    ///
    /// # Shapes
    /// `[n, T]`, as the micro-batch.
    pub struct MicroBatchGradient {
        /// The gradient of the loss by each token's loss.
        pub token_losses: A::Float<Ix2>,
    }
}

record! {
    /// The outputs of `accumulated-loss`.
    ///
    /// # Shapes
    /// A single number; `[n, T]` for each micro-batch.
    pub struct AccumulatedLossOutput {
        /// The loss of the whole batch.
        pub loss: A::Float<Ix0>,
        /// What the step applies; no item where there is no gradient.
        pub grad_micro_batches: Vec<MicroBatchGradient<A>>,
    }
}

impl From<f64> for AccumulatedLossOutput {
    fn from(loss: f64) -> Self {
        Self { loss: arr0(loss), grad_micro_batches: Vec::new() }
    }
}

impl From<f32> for AccumulatedLossOutput {
    fn from(loss: f32) -> Self {
        f64::from(loss).into()
    }
}

options! {
    check: |options| options.aggregate.check(options.norm_length);

    /// The options of `accumulated-loss`.
    pub struct Options {
        /// `token-mean`, `token-sum`, `seq-mean-token-mean`, `seq-mean-token-sum` or
        /// `seq-mean-token-sum-norm`: how the losses of tokens are added up.
        pub aggregate: Aggregate = Aggregate::TokenMean;
        /// An integer > 0 by which `seq-mean-token-sum-norm` divides, and which it requires.
        pub norm_length: Option<u32> = None, by drawn_norm_length;
        /// `zero`, `nan`, `refuse` or `avoid`: what a batch without a token gives.
        pub empty_mask: EmptyMask = EmptyMask::Zero;
        /// `skip` or `count`: whether a row without a token counts in the number of rows.
        pub empty_rows: EmptyRows = EmptyRows::Skip;
        /// `true` or `false`: whether a mask may have gaps inside a row.
        pub holes: bool = false;
        /// `finite` or `any`: what may stand under the mask.
        pub masked_values: MaskedValues = MaskedValues::Finite;
    }
}

/// The constant of the one aggregation that needs it.
fn drawn_norm_length(u: &mut Unstructured<'_>, drawn: &Options) -> arbitrary::Result<Option<u32>> {
    let norm = drawn.aggregate == Aggregate::SeqMeanTokenSumNorm;
    Ok(if norm { Some(one(u, &[4, 1, 10, 1024])?) } else { None })
}

/// The contract: the loss of a batch that comes in micro-batches.
#[derive(Clone, Copy, Debug)]
pub struct AccumulatedLoss;

impl Definition for AccumulatedLoss {
    type Case = AccumulatedLossCase;
    type Output = AccumulatedLossOutput;
    type Options = Options;
}

impl Contract for AccumulatedLoss {
    const ID: &'static str = "accumulated-loss";
    const STAGE: Stage = Stage::Loss;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const LEAVES: &'static [&'static str] = &["micro_batches.*.token_losses"];
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::ACCUMULATED_LOSS;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: reference::loss,
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, dtype: Dtype) -> Vec<AccumulatedLossCase> {
        generate::small(options, dtype)
    }

    fn refuses(case: &AccumulatedLossCase, options: &Options) -> bool {
        options.empty_mask == EmptyMask::Refuse && tokens(case) == 0
    }

    fn simpler(case: &AccumulatedLossCase, _: &Options, _: Dtype) -> Vec<AccumulatedLossCase> {
        generate::simpler(case)
    }

    fn measure(case: &AccumulatedLossCase) -> Measure {
        generate::measure(case)
    }

    fn shapes(_: &AccumulatedLossCase, _: &Options) -> Vec<(&'static str, Vec<usize>)> {
        vec![("loss", vec![])]
    }

    fn oracle(case: &AccumulatedLossCase, options: &Options, _: Dtype) -> Vec<Expected> {
        oracle::loss(case, options)
    }

    fn oracle_gradient(case: &AccumulatedLossCase, options: &Options, _: Dtype) -> Vec<Expected> {
        oracle::gradient(case, options)
    }

    fn wants_gradient(_: &Options) -> bool {
        true
    }
}

/// The number of tokens that count.
fn tokens(case: &AccumulatedLossCase) -> usize {
    case.micro_batches.iter().map(kept).sum()
}

/// The number of tokens of a micro-batch that count.
fn kept(micro_batch: &MicroBatch) -> usize {
    micro_batch.mask.iter().filter(|kept| **kept).count()
}

/// The name of the gradient by a micro-batch.
fn gradient_field(index: usize) -> &'static str {
    item("grad_micro_batches", index, "token_losses")
}

/// The whole batch as one micro-batch: all rows, each with masked columns up to the widest.
fn joined(case: &AccumulatedLossCase) -> MicroBatch {
    let rows: usize = case.micro_batches.iter().map(|part| part.mask.nrows()).sum();
    let columns = case.micro_batches.iter().map(|part| part.mask.ncols()).max().unwrap_or(0);
    let mut token_losses = Array2::zeros((rows, columns));
    let mut mask = Array2::from_elem((rows, columns), false);
    let mut first = 0;
    for part in &case.micro_batches {
        for ((row, column), loss) in part.token_losses.indexed_iter() {
            token_losses[[first + row, column]] = *loss;
            mask[[first + row, column]] = part.mask[[row, column]];
        }
        first += part.mask.nrows();
    }
    MicroBatch { token_losses, mask }
}

/// What belongs to the rows of the whole batch, micro-batch by micro-batch.
fn parted(case: &AccumulatedLossCase, whole: &Array2<f64>) -> Vec<Array2<f64>> {
    let mut first = 0;
    let parts = case.micro_batches.iter().map(|part| {
        let start = first;
        first += part.mask.nrows();
        Array2::from_shape_fn(part.mask.dim(), |(row, column)| whole[[start + row, column]])
    });
    parts.collect()
}
