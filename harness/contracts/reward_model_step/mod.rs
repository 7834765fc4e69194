//! A whole trainer of reward models: the gradient by the score of each token at each update.
//!
//! The loss is one line, and the bugs are around it: a score that is read at a pad, at the end of
//! the longest row or before the end; a margin with the other sign; a rejected completion of
//! another pair. The accuracy rises all the same. So the trainer is handed a model whose scores
//! are a table, one for each token, and what it does to that table is the answer.
//!
//! A score is one of all tokens up to its own. Where both completions of a pair begin alike, the
//! scores of the chosen one hold, the others are not read, and the gradient is there too. Behind
//! an end each pad has a score of its own, which no right trainer reads.
//!
//! The loss of an update is the mean over its pairs of -log σ(r - s - margin) + center · (r + s)²,
//! with r the score of the chosen completion and s that of the rejected one. All micro-batches are
//! of one size, so the mean of their means is the same.
//!
//! ### Source
//! Ouyang et al. 2022 (arXiv:2203.02155), equation 1; the margin is of Touvron et al. 2023
//! (arXiv:2307.09288), section 3.2.2, the centre of Eisenstein et al. 2023 (arXiv:2312.09244),
//! equation 2. The defaults are those of TRL's `RewardConfig`.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use ndarray::{Array1, Array2, Array3, ArrayView3, ArrayViewD, Ix1, Ix3, IxDyn};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::step::{self, Plan, Shape, Stepped};
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::measure::Measure;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;
use shakedown_core::value::text::rounded;

use crate::preference_loss::{self, PreferenceLossCase};

record! {
    /// The inputs of `reward-model-step`.
    ///
    /// # Shapes
    /// `P` pairs of 2 completions, the chosen one first, of `T` tokens; `U` updates: tokens
    /// `[P, 2, T]`, scores `[U, P, 2, T]`, margins `[P]`. `U` is epochs · mini_batches. A row is a
    /// completion: that of pair p is row 2·p, and 2·p + 1.
    pub struct RewardModelStepCase {
        /// The ids of each completion up to `eos`, and `pad` behind it.
        pub tokens: A::Int<Ix3>,
        /// The model's score of all tokens up to each one, at each update.
        pub scores: A::Float<IxDyn>,
        /// What the difference of a pair's scores has to exceed, with `has_margins`.
        pub margins: Option<A::Float<Ix1>>,
        /// The rows of each micro-batch, `[U, M, B]`, where the trainer chose them: no component is
        /// given them, they are read off its answer.
        pub micro_batches: Option<A::Int<Ix3>>,
    }
}

record! {
    /// The outputs of `reward-model-step`.
    ///
    /// # Shapes
    /// gradient `[U, P, 2, T]`; micro_batches `[U, M, B]`, -1 where a micro-batch has fewer rows;
    /// unknown `[U]`.
    pub struct RewardModelStepOutput {
        /// The gradient of the loss at each update, where the same tokens come first; 0 elsewhere.
        pub gradient: A::Float<IxDyn>,
        /// The rows of each micro-batch, in the order in which they were trained.
        pub micro_batches: Option<A::Float<Ix3>>,
        /// The largest gradient at each update on scores of anything else: prompts without a
        /// completion, tokens behind pads.
        pub unknown: Option<A::Float<Ix1>>,
    }
}

choice! {
    /// Which token's score is that of a completion.
    pub enum Pooled {
        /// Its end.
        End = "end",
        /// The last token that is not the pad.
        LastNonPad = "last-non-pad",
    }
}

options! {
    rows: Batch;

    /// The options of `reward-model-step`.
    pub struct Options {
        /// The id that ends a completion, from 0 to 15.
        pub eos: i64 = 1, in 0..=15, expected "an id from 0 to 15", draw [1, 2];
        /// The id that fills a completion up, from 0 to 15; may be `eos`.
        pub pad: i64 = 0, in 0..=15, expected "an id from 0 to 15", draw [0, 0, 1];
        /// `end` or `last-non-pad`: which token's score is that of a completion, its end, or the
        /// last one that is not `pad`, as transformers' `AutoModelForSequenceClassification` has
        /// it. The two differ where `pad` is `eos`: then it is the one before the end.
        pub pooled: Pooled = Pooled::End;
        /// The coefficient ≥ 0 of the squared sum of a pair's scores, which pulls them to 0.
        pub center: f64 = 0.0, in 0.0.., draw [0.0, 0.01, 0.5];
        /// `true` or `false`: whether each pair has a margin, in `margins`.
        pub has_margins: bool = false;
        /// 1 to 16: how many times the pairs are passed.
        pub epochs: u8 = 1, in 1..=16, draw [1, 1, 2];
        /// 1 to 16: how many updates a pass has.
        pub mini_batches: u8 = 1, in 1..=16, draw [1, 2];
        /// 1 to 16: how many micro-batches an update has.
        pub accumulation: u8 = 1, in 1..=16, draw [1, 2];
    }
}

impl Options {
    /// The loss of a micro-batch's pairs, but for the centre.
    pub fn loss(&self) -> preference_loss::Options {
        preference_loss::Options {
            beta: 1.0,
            reduction: preference_loss::Reduction::Mean,
            ..preference_loss::Options::default()
        }
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

    /// Whether the end of a completion is not its score's token.
    fn skips_the_end(&self) -> bool {
        self.pooled == Pooled::LastNonPad && self.pad == self.eos
    }
}

/// The contract: a whole trainer of reward models.
#[derive(Clone, Copy, Debug)]
pub struct RewardModelStep;

impl Definition for RewardModelStep {
    type Case = RewardModelStepCase;
    type Output = RewardModelStepOutput;
    type Options = Options;
}

impl Contract for RewardModelStep {
    const ID: &'static str = "reward-model-step";
    const STAGE: Stage = Stage::Step;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const WHOLE: &'static [&'static str] = &["micro_batches"];
    const AXES: Axes =
        Axes::new(&[("tokens", "PST"), ("scores", "UPST"), ("margins", "P"), ("gradient", "UPST")])
            .rows('P');
    const BLIND: &'static [Blind] = &[
        Blind::at("center", 0.0, &[("center", "0.1")]),
        Blind::at("mini_batches", 1.0, &[("mini_batches", "2")]),
        Blind::at("accumulation", 1.0, &[("accumulation", "2")]),
    ];
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::REWARD_MODEL_STEP;
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

    fn oracle(case: &RewardModelStepCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::expected(case, options, dtype)
    }

    fn settled(
        case: &RewardModelStepCase,
        options: &Options,
        output: &RewardModelStepOutput,
    ) -> Option<RewardModelStepCase> {
        let chosen = step::settled::<Self>(case, options, output.micro_batches.as_ref())?;
        Some(RewardModelStepCase { micro_batches: Some(chosen), ..case.clone() })
    }

    fn meaning(
        case: &RewardModelStepCase,
        options: &Options,
        found: ArrayViewD<'_, f64>,
        expected: &Expected,
        at: &[usize],
    ) -> Option<String> {
        let [_, pair, side, token] = at else { return None };
        let row = 2 * pair + side;
        let weight = |x: f64| rounded((x * 1e4).round() / 1e4);
        let [found, expected] = [found[at], expected.numbers[at].value].map(weight);
        (found != expected).then(|| {
            let is_pooled = pooled(case, options)[row] == *token;
            let which = if is_pooled { "is" } else { "is not" };
            let row = Self::row(case, row);
            format!(
                "token {token} of {row}, whose score {which} that of the completion, has a weight \
                 of {found} in the loss, expected {expected}"
            )
        })
    }

    fn small(options: &Options, dtype: Dtype) -> Vec<RewardModelStepCase> {
        generate::small(options, dtype)
    }

    fn simpler(
        case: &RewardModelStepCase,
        options: &Options,
        _: Dtype,
    ) -> Vec<RewardModelStepCase> {
        generate::simpler(case, options)
    }

    fn measure(case: &RewardModelStepCase) -> Measure {
        generate::measure(case)
    }
}

impl Stepped for RewardModelStep {
    const TABLE: &'static str = "score";

    fn shape(case: &RewardModelStepCase, options: &Options) -> Shape {
        let chosen = case.micro_batches.as_ref();
        Shape::of_scores(options.plan(), by_row(&case.tokens), 2, chosen)
    }

    fn trained(case: &RewardModelStepCase, options: &Options) -> Array2<bool> {
        let pooled = pooled(case, options);
        let shape = (pooled.len(), case.tokens.dim().2);
        Array2::from_shape_fn(shape, |(row, at)| pooled[row] == at)
    }

    fn row(_: &RewardModelStepCase, row: usize) -> String {
        crate::step::side(row)
    }

    fn partition(
        case: &RewardModelStepCase,
        options: &Options,
        micro_batches: ArrayView3<'_, f64>,
    ) -> Result<(), String> {
        let (shape, named) = (Self::shape(case, options), |row| Self::row(case, row));
        shape.check_partition(micro_batches, named)?;
        shape.check_pairs(micro_batches, named)
    }
}

/// The tokens of all rows.
fn by_row(tokens: &Array3<i64>) -> Array2<i64> {
    let (pairs, sides, width) = tokens.dim();
    let rows = tokens.to_shape((pairs * sides, width)).expect("a row is a completion");
    rows.into_owned()
}

/// The place of each row's end.
fn ends(case: &RewardModelStepCase, options: &Options) -> Vec<usize> {
    let rows = case.tokens.rows().into_iter();
    let end = |row: ndarray::ArrayView1<'_, i64>| row.iter().position(|id| *id == options.eos);
    rows.map(|row| end(row).expect("every row ends")).collect()
}

/// The place whose score is that of each row.
fn pooled(case: &RewardModelStepCase, options: &Options) -> Vec<usize> {
    let back = usize::from(options.skips_the_end());
    ends(case, options).into_iter().map(|end| end - back).collect()
}

/// The scores of some pairs as what `preference-loss` is asked: what a reference prefers is taken
/// off, and so is a margin.
fn as_preferences(
    case: &RewardModelStepCase,
    pairs: &[usize],
    [policy_chosen, policy_rejected]: [Array1<f64>; 2],
) -> PreferenceLossCase {
    let margin = |pair: &usize| case.margins.as_ref().map_or(0.0, |margins| margins[*pair]);
    PreferenceLossCase {
        policy_chosen,
        policy_rejected,
        ref_chosen: pairs.iter().map(margin).collect(),
        ref_rejected: Array1::zeros(pairs.len()),
    }
}
