//! A whole trainer of supervised fine-tuning: the gradient by the logits at each update.
//!
//! The loss is one line, and the bugs are around it: labels that are shifted twice, prompts that
//! are trained, an end that is taken for a pad, a mean of the means of unequal micro-batches. The
//! loss falls all the same. So the trainer is handed a model whose logits are a table, one row for
//! each prefix, and what it does to that table is the answer.
//!
//! Every sequence begins with the same token, which is not among `tokens`: it is the prefix of the
//! first one. A prefix that several sequences share has one row: the logits where it comes first
//! hold, the others are not read, and its gradient is there too.
//!
//! ### Source
//! The likelihood of the trained tokens, as in arXiv:2203.02155; `dft` is arXiv:2508.05629. The
//! defaults are those of TRL's `SFTConfig`.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use ndarray::{Array2, ArrayViewD, Ix1, Ix2, Ix3, IxDyn};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::step::{self, Plan, Shape, Stepped};
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::measure::Measure;
pub use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

record! {
    /// The inputs of `sft-step`.
    ///
    /// # Shapes
    /// `N` sequences of `T` tokens behind the first, `U` updates, a vocabulary of `V`: tokens and
    /// mask `[N, T]`, logits `[U, N, T, V]`. `U` is epochs · mini_batches.
    pub struct SftStepCase {
        /// The ids of each sequence up to `eos`, and `pad` behind it.
        pub tokens: A::Int<Ix2>,
        /// Which tokens are trained. Equal sequences have equal masks.
        pub mask: A::Bool<Ix2>,
        /// The model's logits for each token, at each update.
        pub logits: A::Float<IxDyn>,
        /// The rows of each micro-batch, `[U, M, B]`, where the trainer chose them: no component is
        /// given them, they are read off its answer.
        pub micro_batches: Option<A::Int<Ix3>>,
    }
}

record! {
    /// The outputs of `sft-step`.
    ///
    /// # Shapes
    /// gradient `[U, N, T, V]`; micro_batches `[U, M, B]`, -1 where a micro-batch has fewer rows;
    /// unknown `[U]`.
    pub struct SftStepOutput {
        /// The gradient of the loss at each update, where each prefix comes first; 0 elsewhere.
        pub gradient: A::Float<IxDyn>,
        /// The rows of each micro-batch, in the order in which they were trained.
        pub micro_batches: Option<A::Float<Ix3>>,
        /// The largest gradient at each update on logits that score no token of a sequence.
        pub unknown: Option<A::Float<Ix1>>,
    }
}

choice! {
    /// Which tokens of a sequence the data wants trained.
    pub enum Trained {
        /// Those behind a prompt.
        Completion = "completion",
        /// All.
        Text = "text",
        /// Those of some turns.
        Turns = "turns",
    }
}

choice! {
    /// What is minimised.
    pub enum Loss {
        /// The negative log-probability of each token.
        Nll = "nll",
        /// The same, times the token's probability, which has no gradient.
        Dft = "dft",
    }
}

choice! {
    /// Over which rows the mean of the losses is taken.
    pub enum Over {
        /// Each micro-batch has its mean, and the update the mean of those.
        MicroBatch = "micro-batch",
        /// All rows of an update.
        Update = "update",
    }
}

options! {
    rows: Batch;
    check: go_together;

    /// The options of `sft-step`.
    pub struct Options {
        /// The id that ends a sequence, from 0 to 15.
        pub eos: i64 = 1, in 0..=15, expected "an id from 0 to 15", draw [1, 2];
        /// The id that fills a sequence up, from 0 to 15; may be `eos`.
        pub pad: i64 = 0, in 0..=15, expected "an id from 0 to 15", draw [0, 0, 1];
        /// `completion`, `text` or `turns`: which tokens the data wants trained, those behind a
        /// prompt, all, or those of some turns. `mask` has them.
        pub trained: Trained = Trained::Completion;
        /// `nll` or `dft`: whether a token's loss is multiplied by its probability.
        pub loss: Loss = Loss::Nll;
        /// `token-mean`, `token-sum`, `seq-mean-token-mean` or `seq-mean-token-sum`.
        pub aggregate: Aggregate = Aggregate::TokenMean, by generate::draw_aggregate;
        /// `update` or `micro-batch`: over which rows the mean is taken.
        pub over: Over = Over::Update;
        /// 1 to 16: how many times the sequences are passed.
        pub epochs: u8 = 1, in 1..=16, draw [1, 1, 2];
        /// 1 to 16: how many updates a pass has.
        pub mini_batches: u8 = 1, in 1..=16, draw [1, 2];
        /// 1 to 16: how many micro-batches an update has.
        pub accumulation: u8 = 1, in 1..=16, draw [1, 2];
    }
}

/// A constant length belongs to policy losses.
fn go_together(options: &Options) -> Result<(), (&'static str, String)> {
    if options.aggregate == Aggregate::SeqMeanTokenSumNorm {
        let why = "`seq-mean-token-sum-norm` goes with policy losses only";
        return Err(("aggregate", why.to_owned()));
    }
    Ok(())
}

impl Options {
    /// How many updates there are.
    fn plan(&self) -> Plan {
        Plan {
            generations: 1,
            passes: usize::from(self.epochs),
            mini_batches: usize::from(self.mini_batches),
            accumulation: usize::from(self.accumulation),
        }
    }
}

/// The contract: a whole trainer of supervised fine-tuning.
#[derive(Clone, Copy, Debug)]
pub struct SftStep;

impl Definition for SftStep {
    type Case = SftStepCase;
    type Output = SftStepOutput;
    type Options = Options;
}

impl Contract for SftStep {
    const ID: &'static str = "sft-step";
    const STAGE: Stage = Stage::Step;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const WHOLE: &'static [&'static str] = &["micro_batches"];
    const AXES: Axes =
        Axes::new(&[("tokens", "NT"), ("mask", "NT"), ("logits", "UNTV"), ("gradient", "UNTV")])
            .rows('N');
    const BLIND: &'static [Blind] = &[
        Blind::at("mini_batches", 1.0, &[("mini_batches", "2")]),
        Blind::at("accumulation", 1.0, &[("accumulation", "2")]),
    ];
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::SFT_STEP;
    const PARTS: Parts<Self> = Parts {
        draw: generate::draw,
        corners: generate::corners,
        valid: generate::valid,
        classes: generate::classes,
        reference: |case, options, dtype| {
            reference::step(case, options, dtype, &reference::right())
        },
        invariants: invariants::all,
        faults: faults::all,
    };

    fn oracle(case: &SftStepCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::expected(case, options, dtype)
    }

    fn settled(
        case: &SftStepCase,
        options: &Options,
        output: &SftStepOutput,
    ) -> Option<SftStepCase> {
        let chosen = step::settled::<Self>(case, options, output.micro_batches.as_ref())?;
        Some(SftStepCase { micro_batches: Some(chosen), ..case.clone() })
    }

    fn meaning(
        case: &SftStepCase,
        options: &Options,
        found: ArrayViewD<'_, f64>,
        expected: &Expected,
        at: &[usize],
    ) -> Option<String> {
        step::weights::<Self>(case, &case.logits, options, found, expected, at)
    }

    fn small(options: &Options, dtype: Dtype) -> Vec<SftStepCase> {
        generate::small(options, dtype)
    }

    fn simpler(case: &SftStepCase, options: &Options, _: Dtype) -> Vec<SftStepCase> {
        generate::simpler(case, options)
    }

    fn measure(case: &SftStepCase) -> Measure {
        generate::measure(case)
    }
}

impl Stepped for SftStep {
    fn shape(case: &SftStepCase, options: &Options) -> Shape {
        let (tokens, all) = (case.tokens.clone(), case.tokens.nrows());
        Shape::new(options.plan(), tokens, all, &[options.eos], case.micro_batches.as_ref())
    }

    fn trained(case: &SftStepCase, _: &Options) -> Array2<bool> {
        case.mask.clone()
    }

    fn row(_: &SftStepCase, row: usize) -> String {
        format!("sequence {row}")
    }
}
