//! A whole trainer of KTO: the gradient by the logits at each update.
//!
//! Its data are single completions with a label, desirable or not. The loss compares each one's
//! log-ratio with an estimate of the KL, and the bugs are in that estimate: it has a gradient, it
//! may be negative, it is of one row, or of prompts with their own completions. The loss falls all
//! the same. So the trainer is handed a model whose logits are a table, one row for each prefix,
//! and what it does to that table is the answer.
//!
//! With r the log-ratio of a completion, and z the estimate of the KL, the loss of a row is
//! w · (1 - σ(β(r - z))) where it is desirable, else w · (1 - σ(β(z - r))); w is the weight of its
//! label. z is the mean log-ratio over the micro-batch of every prompt with the completion of
//! another row, 0 at least, without a gradient. Each micro-batch has its mean, and the update the
//! mean of those.
//!
//! Behind a prompt the table has a row for each beginning of its own completion. Beginnings of any
//! other completion have one for each length: those are `kl_logits`.
//!
//! ### Source
//! Ethayarajh et al. 2024 (arXiv:2402.01306), equations 7 and 8; `apo-zero-unpaired` is that of
//! D'Oosterlinck et al. 2024 (arXiv:2408.06266), equation 7, of single completions. The defaults
//! are those of TRL's `KTOConfig`.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use ndarray::{Array2, Array3, ArrayView3, ArrayViewD, Ix0, Ix1, Ix2, Ix3, IxDyn, s};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::{above, options};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::step::{self, Plan, Shape, Stepped};
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::measure::Measure;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

use crate::completion_mask;

record! {
    /// The inputs of `kto-step`.
    ///
    /// # Shapes
    /// `N` completions of `T` tokens, each of a prompt of its own; `U` updates, a vocabulary of
    /// `V`: tokens `[N, T]`, labels `[N]`, logits and kl_logits `[U, N, T, V]`, ref_logits and
    /// ref_kl_logits `[N, T, V]`. `U` is epochs · mini_batches.
    pub struct KtoStepCase {
        /// The ids of each completion up to `eos`, and `pad` behind it.
        pub tokens: A::Int<Ix2>,
        /// Whether each completion is desirable.
        pub labels: A::Bool<Ix1>,
        /// The policy's logits for each token, at each update.
        pub logits: A::Float<IxDyn>,
        /// The reference's logits for each token.
        pub ref_logits: A::Float<Ix3>,
        /// The policy's logits behind each prompt and so many tokens of any completion that begins
        /// otherwise than its own, at each update; with `kto` only.
        pub kl_logits: Option<A::Float<IxDyn>>,
        /// The same of the reference.
        pub ref_kl_logits: Option<A::Float<Ix3>>,
        /// The rows of each micro-batch, `[U, M, B]`, where the trainer chose them: no component is
        /// given them, they are read off its answer.
        pub micro_batches: Option<A::Int<Ix3>>,
    }
}

record! {
    /// The outputs of `kto-step`.
    ///
    /// # Shapes
    /// gradient `[U, N, T, V]`; micro_batches `[U, M, B]`, -1 where a micro-batch has fewer rows;
    /// kl_gradient and unknown `[U]`; the others are single numbers.
    pub struct KtoStepOutput {
        /// The gradient of the loss at each update.
        pub gradient: A::Float<IxDyn>,
        /// The rows of each micro-batch, in the order in which they were trained.
        pub micro_batches: Option<A::Float<Ix3>>,
        /// The largest gradient at each update on `kl_logits`.
        pub kl_gradient: Option<A::Float<Ix1>>,
        /// The largest gradient at each update on logits that score no token of a completion.
        pub unknown: Option<A::Float<Ix1>>,
        /// The largest gradient on the reference.
        pub ref_gradient: Option<A::Float<Ix0>>,
        /// 1 where the reference was asked in training mode, else 0.
        pub ref_training: Option<A::Float<Ix0>>,
    }
}

choice! {
    /// The loss of a completion.
    pub enum Kind {
        /// Its log-ratio is compared with the estimate of the KL.
        Kto = "kto",
        /// Its log-ratio is compared with 0.
        ApoZeroUnpaired = "apo-zero-unpaired",
    }
}

choice! {
    /// Whose completion a prompt has in the estimate of the KL.
    pub enum Mismatched {
        /// That of the row before it in the micro-batch; the first has that of the last.
        Previous = "previous",
        /// That of the row behind it; the last has that of the first.
        Next = "next",
    }
}

options! {
    rows: Batch;

    /// The options of `kto-step`.
    pub struct Options {
        /// The id that ends a completion, from 0 to 15.
        pub eos: i64 = 1, in 0..=15, expected "an id from 0 to 15", draw [1, 2];
        /// The id that fills a completion up, from 0 to 15; may be `eos`.
        pub pad: i64 = 0, in 0..=15, expected "an id from 0 to 15", draw [0, 0, 1];
        /// `kto` or `apo-zero-unpaired`: whether a completion's log-ratio is compared with the
        /// estimate of the KL, or with 0.
        pub kind: Kind = Kind::Kto, draw [Kind::Kto, Kind::Kto, Kind::ApoZeroUnpaired];
        /// `previous` or `next`: of which row of the micro-batch a prompt has the completion in the
        /// estimate of the KL.
        pub mismatched: Mismatched = Mismatched::Previous;
        /// β > 0, the strength of the pull to the reference.
        pub beta: f64 = 0.1, in above(0.0), draw [0.1, 0.5, 1.0, 0.2];
        /// The weight ≥ 0 of the loss of a desirable completion.
        pub desirable_weight: f64 = 1.0, in 0.0.., draw [1.0, 0.75, 1.5];
        /// The weight ≥ 0 of the loss of one that is not.
        pub undesirable_weight: f64 = 1.0, in 0.0.., draw [1.0, 1.25, 0.5];
        /// 1 to 16: how many times the completions are passed.
        pub epochs: u8 = 1, in 1..=16, draw [1, 1, 2];
        /// 1 to 16: how many updates a pass has.
        pub mini_batches: u8 = 1, in 1..=16, draw [1, 2];
        /// 1 to 16: how many micro-batches an update has.
        pub accumulation: u8 = 1, in 1..=16, draw [1, 2];
    }
}

impl Options {
    /// Those of the completion mask.
    pub fn mask(&self) -> completion_mask::Options {
        completion_mask::Options {
            eos: vec![self.eos],
            pad: self.pad,
            ..completion_mask::Options::default()
        }
    }

    /// The weight of a label.
    pub fn weight(&self, is_desirable: bool) -> f64 {
        if is_desirable { self.desirable_weight } else { self.undesirable_weight }
    }

    /// How many updates there are.
    fn plan(&self) -> Plan {
        Plan {
            generations: 1,
            passes: usize::from(self.epochs),
            mini_batches: usize::from(self.mini_batches),
            accumulation: usize::from(self.accumulation),
        }
    }

    /// How many rows a micro-batch has at least: of one alone there is no other completion.
    fn fewest(&self) -> usize {
        match self.kind {
            Kind::Kto => 2,
            Kind::ApoZeroUnpaired => 1,
        }
    }

    /// The row of a micro-batch whose completion the prompt of a row has in the estimate of the KL.
    fn other(&self, of: usize, rows: usize) -> usize {
        match self.mismatched {
            Mismatched::Previous => (of + rows - 1) % rows,
            Mismatched::Next => (of + 1) % rows,
        }
    }
}

/// The contract: a whole trainer of KTO.
#[derive(Clone, Copy, Debug)]
pub struct KtoStep;

impl Definition for KtoStep {
    type Case = KtoStepCase;
    type Output = KtoStepOutput;
    type Options = Options;
}

impl Contract for KtoStep {
    const ID: &'static str = "kto-step";
    const STAGE: Stage = Stage::Step;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const WHOLE: &'static [&'static str] = &["micro_batches", "ref_training"];
    const AXES: Axes = Axes::new(&[
        ("tokens", "NT"),
        ("labels", "N"),
        ("logits", "UNTV"),
        ("ref_logits", "NTV"),
        ("kl_logits", "UNTV"),
        ("ref_kl_logits", "NTV"),
        ("gradient", "UNTV"),
    ])
    .rows('N');
    const BLIND: &'static [Blind] = &[
        Blind::at("beta", 1.0, &[("beta", "0.2")]),
        Blind::while_equal(
            ["desirable_weight", "undesirable_weight"],
            &[("desirable_weight", "1.5"), ("undesirable_weight", "0.75")],
        ),
        Blind::at("mini_batches", 1.0, &[("mini_batches", "2")]),
        Blind::at("accumulation", 1.0, &[("accumulation", "2")]),
    ];
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::KTO_STEP;
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

    fn oracle(case: &KtoStepCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::expected(case, options, dtype)
    }

    fn settled(
        case: &KtoStepCase,
        options: &Options,
        output: &KtoStepOutput,
    ) -> Option<KtoStepCase> {
        let chosen = step::settled::<Self>(case, options, output.micro_batches.as_ref())?;
        Some(KtoStepCase { micro_batches: Some(chosen), ..case.clone() })
    }

    fn meaning(
        case: &KtoStepCase,
        options: &Options,
        found: ArrayViewD<'_, f64>,
        expected: &Expected,
        at: &[usize],
    ) -> Option<String> {
        step::weights::<Self>(case, &case.logits, options, found, expected, at)
    }

    fn small(options: &Options, dtype: Dtype) -> Vec<KtoStepCase> {
        generate::small(options, dtype)
    }

    fn simpler(case: &KtoStepCase, options: &Options, _: Dtype) -> Vec<KtoStepCase> {
        generate::simpler(case, options)
    }

    fn measure(case: &KtoStepCase) -> Measure {
        generate::measure(case)
    }
}

impl Stepped for KtoStep {
    fn shape(case: &KtoStepCase, options: &Options) -> Shape {
        let chosen = case.micro_batches.as_ref();
        Shape::new(options.plan(), case.tokens.clone(), 1, &[options.eos], chosen)
    }

    fn trained(case: &KtoStepCase, options: &Options) -> Array2<bool> {
        until_the_end(&case.tokens, options)
    }

    fn row(_: &KtoStepCase, row: usize) -> String {
        format!("completion {row}")
    }
}

/// Which tokens are those of a completion: all up to its end.
fn until_the_end(tokens: &Array2<i64>, options: &Options) -> Array2<bool> {
    let mut kept = Array2::from_elem(tokens.raw_dim(), false);
    for (tokens, mut kept) in tokens.rows().into_iter().zip(kept.rows_mut()) {
        let end = tokens.iter().position(|id| *id == options.eos).expect("every row ends");
        kept.iter_mut().take(end + 1).for_each(|flag| *flag = true);
    }
    kept
}

/// The prompts of some rows with completions of other rows.
struct Behind {
    rows: Vec<usize>,
    /// Those of the other rows.
    tokens: Array2<i64>,
    /// At which places the prompt's own completion began with the same tokens.
    is_own: Array2<bool>,
}

impl Behind {
    /// The prompts of rows, each with the completion of the other row.
    fn new(case: &KtoStepCase, rows: &[usize], others: &[usize]) -> Behind {
        let tokens = case.tokens.select(ndarray::Axis(0), others);
        let is_own = Array2::from_shape_fn(tokens.raw_dim(), |(of, at)| {
            tokens.slice(s![of, ..at]) == case.tokens.slice(s![rows[of], ..at])
        });
        Behind { rows: rows.to_vec(), tokens, is_own }
    }

    /// The logits that hold at each place, given those of the prompts' own completions and of
    /// others.
    fn held(&self, own: ArrayView3<'_, f64>, others: ArrayView3<'_, f64>) -> Array3<f64> {
        let shape = (self.tokens.nrows(), self.tokens.ncols(), own.dim().2);
        Array3::from_shape_fn(shape, |(of, at, id)| {
            let table = if self.is_own[[of, at]] { own } else { others };
            table[[self.rows[of], at, id]]
        })
    }
}
