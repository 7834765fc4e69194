//! A whole trainer of a critic: the gradient by the value of each token at each update.
//!
//! PPO trains a critic towards returns. The loss is three lines, and the bugs are around it: values
//! that are read one place late, a return that counts on what follows the end, old values that are
//! computed again, a mean of the means of micro-batches. The loss falls all the same. So the
//! trainer is handed a critic whose values are a table, one for each token, and what it does to
//! that table is the answer.
//!
//! The value of a token is that of the state in which it is chosen: of the prompt and the tokens
//! before it. A model has it at the place before the token's own. Old values are those of the
//! first update of a generation, in which its completions are sampled.
//!
//! With `targets: gae` the trainer makes the returns: a token's reward is the score of its
//! completion at the last token, less β times the divergence, and generalised advantage estimation
//! follows. The value behind the last token is 0. With `targets: given` it is handed the returns.
//!
//! ### Source
//! Schulman et al. 2015 (arXiv:1506.02438) for the returns; Ouyang et al. 2022 (arXiv:2203.02155)
//! for the rewards. The loss is that of `value-loss`, as in verl's `compute_value_loss`,
//! OpenRLHF's `ValueLoss` and TRL's PPO. verl and OpenRLHF hand returns to the critic's worker.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use ndarray::{Array2, ArrayViewD, Axis, Ix1, Ix2, Ix3, IxDyn};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::{above, options};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::step::{self, Plan, Shape, Stepped};
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::measure::Measure;
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::numeric::conventions::{EmptyRows, MaskedTokens};
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;
use shakedown_core::value::text::rounded;

use crate::{gae, token_rewards, value_loss};

pub use crate::sft_step::Over;

record! {
    /// The inputs of `critic-step`.
    ///
    /// # Shapes
    /// `N` completions of `T` tokens, each of a prompt of its own, `U` updates: tokens, mask, kls
    /// and returns `[N, T]`, scores `[N]`, values `[U, N, T]`. `U` is generations · epochs ·
    /// mini_batches. Completions come to the generations in order, equally many to each.
    pub struct CriticStepCase {
        /// The ids of each completion up to `eos`, if it comes to its end, and `pad` behind it.
        pub tokens: A::Int<Ix2>,
        /// Which tokens the policy wrote: the first and the last one of each completion, and with
        /// `holes: false` all between them.
        pub mask: A::Bool<Ix2>,
        /// The critic's value of the state before each token, at each update; behind an end that of
        /// the whole completion.
        pub values: A::Float<IxDyn>,
        /// The score of each completion; only with `targets: gae`.
        pub scores: Option<A::Float<Ix1>>,
        /// The divergence of each token, in nats; only with `beta` > 0.
        pub kls: Option<A::Float<Ix2>>,
        /// What the value of each token should be; only with `targets: given`.
        pub returns: Option<A::Float<Ix2>>,
        /// The rows of each micro-batch, `[U, M, B]`, where the trainer chose them: no component is
        /// given them, they are read off its answer.
        pub micro_batches: Option<A::Int<Ix3>>,
    }
}

record! {
    /// The outputs of `critic-step`.
    ///
    /// # Shapes
    /// gradient `[U, N, T]`; micro_batches `[U, M, B]`, -1 where a micro-batch has fewer rows;
    /// unknown `[U]`.
    pub struct CriticStepOutput {
        /// The gradient of the loss by each value at each update.
        pub gradient: A::Float<IxDyn>,
        /// The rows of each micro-batch, in the order in which they were trained.
        pub micro_batches: Option<A::Float<Ix3>>,
        /// The largest gradient at each update on values of anything else, such as a part of a
        /// prompt.
        pub unknown: Option<A::Float<Ix1>>,
    }
}

choice! {
    /// Who makes the returns.
    pub enum Targets {
        /// The trainer, from scores and old values.
        Gae = "gae",
        /// The data has them.
        Given = "given",
    }
}

options! {
    rows: Batch;
    check: go_together;

    /// The options of `critic-step`.
    pub struct Options {
        /// The id that ends a completion, from 0 to 15.
        pub eos: i64 = 1, in 0..=15, expected "an id from 0 to 15", draw [1, 2];
        /// The id that fills a completion up, from 0 to 15; may be `eos`.
        pub pad: i64 = 0, in 0..=15, expected "an id from 0 to 15", draw [0, 0, 1];
        /// `gae` or `given`: whether the trainer makes the returns, from scores and old values, or
        /// is handed them.
        pub targets: Targets = Targets::Gae;
        /// With `targets: gae`, the discount of one token, 0 to 1.
        pub gamma: f64 = 1.0, in 0.0..=1.0, draw [1.0, 0.99, 0.9, 0.5];
        /// With `targets: gae`, λ, how far ahead rewards are trusted over values: 0 to 1.
        pub lam: f64 = 0.95, in 0.0..=1.0, draw [0.95, 1.0, 0.0, 0.5];
        /// With `targets: gae`, the weight ≥ 0 of the divergence, in `kls`, in the rewards.
        pub beta: f64 = 0.0, in 0.0.., by generate::draw_beta;
        /// `false` or `true`: whether there are tokens between those of the policy, such as those
        /// of a tool, which are not trained.
        pub holes: bool = false;
        /// `skip` (tokens that are not the policy's are no transitions) or `zero` (they are steps
        /// with reward and value 0: time passes).
        pub masked: MaskedTokens = MaskedTokens::Skip;
        /// Null, or c > 0: how far from its old value a value may move before the clipped error
        /// counts where it is the larger.
        pub clip: Option<f64> = None, in above(0.0), draw [None, Some(0.2), Some(0.5), Some(1.0)];
        /// A number > 0 that multiplies the loss.
        pub factor: f64 = 0.5, in above(0.0), draw [0.5, 1.0, 0.5, 0.1];
        /// `token-mean`, `token-sum`, `seq-mean-token-mean` or `seq-mean-token-sum`.
        pub aggregate: Aggregate = Aggregate::TokenMean, by generate::draw_aggregate;
        /// `update` or `micro-batch`: over which rows the mean is taken.
        pub over: Over = Over::Update;
        /// 1 to 16: how many times completions are sampled.
        pub generations: u8 = 1, in 1..=16, draw [1, 1, 2];
        /// 1 to 16: how many times the completions of a generation are passed.
        pub epochs: u8 = 1, in 1..=16, draw [1, 2];
        /// 1 to 16: how many updates a pass has.
        pub mini_batches: u8 = 1, in 1..=16, draw [1, 2];
        /// 1 to 16: how many micro-batches an update has.
        pub accumulation: u8 = 1, in 1..=16, draw [1, 2];
    }
}

/// Rewards belong to returns that the trainer makes, a constant length to policy losses.
fn go_together(options: &Options) -> Result<(), (&'static str, String)> {
    if options.targets == Targets::Given && options.beta > 0.0 {
        return Err(("beta", "expected 0 with `targets: given`, which has no rewards".to_owned()));
    }
    if options.aggregate == Aggregate::SeqMeanTokenSumNorm {
        let why = "`seq-mean-token-sum-norm` goes with policy losses only";
        return Err(("aggregate", why.to_owned()));
    }
    Ok(())
}

impl Options {
    /// How the rewards of tokens are made.
    fn rewards(&self) -> token_rewards::Options {
        token_rewards::Options { beta: self.beta, holes: self.holes, ..Default::default() }
    }

    /// How the returns are made of them.
    fn gae(&self) -> gae::Options {
        let Options { gamma, lam, masked, holes, .. } = *self;
        gae::Options { gamma, lam, masked, holes, ..Default::default() }
    }

    /// The loss of a set of rows.
    fn loss(&self) -> value_loss::Options {
        let Options { clip, factor, aggregate, holes, .. } = *self;
        value_loss::Options { clip, factor, aggregate, holes, ..Default::default() }
    }

    /// How many updates there are.
    fn plan(&self) -> Plan {
        Plan {
            generations: usize::from(self.generations),
            passes: usize::from(self.epochs),
            mini_batches: usize::from(self.mini_batches),
            accumulation: usize::from(self.accumulation),
        }
    }
}

/// The contract: a whole trainer of a critic.
#[derive(Clone, Copy, Debug)]
pub struct CriticStep;

impl Definition for CriticStep {
    type Case = CriticStepCase;
    type Output = CriticStepOutput;
    type Options = Options;
}

impl Contract for CriticStep {
    const ID: &'static str = "critic-step";
    const STAGE: Stage = Stage::Step;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const WHOLE: &'static [&'static str] = &["micro_batches"];
    const AXES: Axes = Axes::new(&[
        ("tokens", "NT"),
        ("mask", "NT"),
        ("values", "UNT"),
        ("scores", "N"),
        ("kls", "NT"),
        ("returns", "NT"),
        ("gradient", "UNT"),
    ]);
    const BLIND: &'static [Blind] = &[
        Blind::while_equal(["gamma", "lam"], &[("gamma", "0.9"), ("lam", "0.7")]),
        Blind::at("gamma", 1.0, &[("gamma", "0.9")]),
        Blind::at("lam", 1.0, &[("lam", "0.9")]),
        Blind::at("beta", 0.0, &[("beta", "0.1")]),
        Blind::at("mini_batches", 1.0, &[("mini_batches", "2")]),
        Blind::at("accumulation", 1.0, &[("accumulation", "2")]),
    ];
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::CRITIC_STEP;
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

    fn oracle(case: &CriticStepCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::expected(case, options, dtype)
    }

    fn settled(
        case: &CriticStepCase,
        options: &Options,
        output: &CriticStepOutput,
    ) -> Option<CriticStepCase> {
        let chosen = step::settled::<Self>(case, options, output.micro_batches.as_ref())?;
        Some(CriticStepCase { micro_batches: Some(chosen), ..case.clone() })
    }

    fn meaning(
        case: &CriticStepCase,
        options: &Options,
        found: ArrayViewD<'_, f64>,
        expected: &Expected,
        at: &[usize],
    ) -> Option<String> {
        let [update, row, token] = *at else { return None };
        let (rows, _) = sets(&Self::shape(case, options), update, options)
            .into_iter()
            .find(|(rows, _)| rows.contains(&row))?;
        let of = rows.iter().position(|other| *other == row)?;
        let mask = case.mask.select(Axis(0), &rows);
        let weights = options.aggregate.weights(&mask, EmptyRows::Count, None)?;
        let slope = 2.0 * options.factor * weights[[of, token]];
        // A slope of 2 · weight · (value - return) tells which return it comes from.
        let target =
            |gradient: f64| rounded(((case.values[at] - gradient / slope) * 1e4).round() / 1e4);
        let [found, expected] = [found[at], expected.numbers[at].value].map(target);
        (slope > 0.0 && options.over == Over::Update && found != expected).then(|| {
            let row = Self::row(case, row);
            format!("token {token} of {row} is trained towards {found}, expected {expected}")
        })
    }

    fn small(options: &Options, dtype: Dtype) -> Vec<CriticStepCase> {
        generate::small(options, dtype)
    }

    fn simpler(case: &CriticStepCase, options: &Options, _: Dtype) -> Vec<CriticStepCase> {
        generate::simpler(case, options)
    }

    fn measure(case: &CriticStepCase) -> Measure {
        generate::measure(case)
    }
}

impl Stepped for CriticStep {
    const TABLE: &'static str = "value";

    fn shape(case: &CriticStepCase, options: &Options) -> Shape {
        let (tokens, chosen) = (case.tokens.clone(), case.micro_batches.as_ref());
        Shape::new(options.plan(), tokens, 1, &[options.eos], chosen)
    }

    fn trained(case: &CriticStepCase, _: &Options) -> Array2<bool> {
        case.mask.clone()
    }

    fn row(_: &CriticStepCase, row: usize) -> String {
        format!("completion {row}")
    }
}

/// How many tokens a completion has.
fn length(case: &CriticStepCase, options: &Options, row: usize) -> usize {
    let tokens = case.tokens.row(row);
    tokens.iter().position(|id| *id == options.eos).map_or(tokens.len(), |end| end + 1)
}

/// The sets of rows of an update that have one mean, and the share of each.
fn sets(shape: &Shape, update: usize, options: &Options) -> Vec<(Vec<usize>, f64)> {
    let batches = shape.micro_batches(update);
    match options.over {
        Over::Update => vec![(batches.concat(), 1.0)],
        Over::MicroBatch => {
            let share = 1.0 / batches.len() as f64;
            batches.into_iter().map(|rows| (rows, share)).collect()
        }
    }
}
