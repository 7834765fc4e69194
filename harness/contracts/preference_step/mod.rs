//! A whole trainer of preference pairs: the gradient by the logits at each update.
//!
//! The loss of a pair is a component of its own. The bugs of a trainer are in what it is given: the
//! rejected half of a batch without its mask, a reference that is the policy, a chosen completion
//! beside the rejected one of another prompt. So the trainer is handed a model whose logits are a
//! table, one row for each prefix, and what it does to that table is the answer.
//!
//! A prefix that both completions of a pair share has one row: the logits where it comes first
//! hold, the others are not read, and its gradient is there too. Each micro-batch has its mean, and
//! the update the mean of those.
//!
//! The negative log-likelihood of the chosen completions may be added, as ORPO and CPO do. Prompts
//! are of different lengths: behind its first, that of pair p has p + 1 tokens.
//!
//! ### Source
//! DPO is arXiv:2305.18290, CPO arXiv:2401.08417, ORPO arXiv:2403.07691, AlphaPO arXiv:2501.03884;
//! `preference-loss` and `pair-objective` have the sources of the others. The defaults are those of
//! TRL's `DPOConfig`.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use ndarray::{Array2, ArrayView3, ArrayViewD, Ix0, Ix1, Ix3, IxDyn};

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
use crate::pair_objective;
use crate::preference_loss;

record! {
    /// The inputs of `preference-step`.
    ///
    /// # Shapes
    /// `P` pairs of 2 completions, the chosen one first, of `T` tokens; `U` updates, a vocabulary
    /// of `V`: tokens `[P, 2, T]`, logits `[U, P, 2, T, V]`, ref_logits `[P, 2, T, V]`. `U` is
    /// epochs · mini_batches. A row is a completion: that of pair p is row 2·p, and 2·p + 1.
    pub struct PreferenceStepCase {
        /// The ids of each completion up to `eos`, and `pad` behind it.
        pub tokens: A::Int<Ix3>,
        /// The policy's logits for each token, at each update.
        pub logits: A::Float<IxDyn>,
        /// The reference's logits for each token, where there is one.
        pub ref_logits: Option<A::Float<IxDyn>>,
        /// The rows of each micro-batch, `[U, M, B]`, where the trainer chose them: no component is
        /// given them, they are read off its answer.
        pub micro_batches: Option<A::Int<Ix3>>,
    }
}

record! {
    /// The outputs of `preference-step`.
    ///
    /// # Shapes
    /// gradient `[U, P, 2, T, V]`; micro_batches `[U, M, B]`, -1 where a micro-batch has fewer
    /// rows; unknown `[U]`; the others are single numbers.
    pub struct PreferenceStepOutput {
        /// The gradient of the loss at each update, where each prefix comes first; 0 elsewhere.
        pub gradient: A::Float<IxDyn>,
        /// The rows of each micro-batch, in the order in which they were trained.
        pub micro_batches: Option<A::Float<Ix3>>,
        /// The largest gradient at each update on logits that score no token of a completion, such
        /// as those of prompts.
        pub unknown: Option<A::Float<Ix1>>,
        /// The largest gradient on the reference.
        pub ref_gradient: Option<A::Float<Ix0>>,
        /// 1 where the reference was asked in training mode, else 0.
        pub ref_training: Option<A::Float<Ix0>>,
    }
}

choice! {
    /// The loss of a pair.
    pub enum Kind {
        /// As in `preference-loss`: -log σ(βΔ - γ), with smoothing.
        Sigmoid = "sigmoid",
        /// max(0, 1 - βΔ).
        Hinge = "hinge",
        /// (Δ - 1/(2β))².
        Ipo = "ipo",
        /// An unbiased estimate of the sigmoid loss where a share of the pairs is exchanged.
        Robust = "robust",
        /// As in `pair-objective`: the odds of averages, and the chosen side's likelihood.
        Orpo = "orpo",
        /// The difference of averages, less γ.
        Simpo = "simpo",
        /// The sigmoid loss of averages.
        SigmoidNorm = "sigmoid-norm",
        /// The squared distance of averages from 1/(2β).
        IpoNorm = "ipo-norm",
        /// ℓ(βc) + ½·ℓ(-βc) + ½·ℓ(-βr).
        Nca = "nca",
        /// ℓ(βc) + ℓ(-βr).
        BcoPair = "bco-pair",
        /// (c - 1/(2β))² + (r + 1/(2β))².
        SppoHard = "sppo-hard",
        /// σ(-βc) + σ(βr).
        ApoZero = "apo-zero",
        /// σ(βc) + σ(β(r - c)).
        ApoDown = "apo-down",
        /// The divergence of σ(β(c - r)) from 1 - ε.
        Exo = "exo",
        /// Ranks of the policy's differences, against the reference's.
        Aot = "aot",
        /// Ranks of the chosen log-ratios, against the rejected ones.
        AotUnpaired = "aot-unpaired",
    }
}

impl Kind {
    /// Whether a reference may count.
    fn has_reference(self) -> bool {
        !matches!(self, Kind::Orpo | Kind::Simpo)
    }

    /// Whether log-probabilities are divided by their lengths.
    fn averages(self) -> bool {
        matches!(self, Kind::Orpo | Kind::Simpo | Kind::SigmoidNorm | Kind::IpoNorm)
    }

    /// Whether ranks are compared, and not pairs.
    fn sorts(self) -> bool {
        matches!(self, Kind::Aot | Kind::AotUnpaired)
    }

    /// Whether ε has a meaning.
    fn is_smoothed(self) -> bool {
        use Kind::{Aot, AotUnpaired, Exo, Robust, Sigmoid, SigmoidNorm, Simpo};
        matches!(self, Sigmoid | Robust | Simpo | SigmoidNorm | Exo | Aot | AotUnpaired)
    }
}

choice! {
    /// Over what the negative log-likelihood of the chosen completions is averaged.
    pub enum Nll {
        /// All their tokens in the micro-batch.
        TokenMean = "token-mean",
        /// The tokens of each, then the pairs.
        SequenceMean = "sequence-mean",
        /// The pairs: that of a completion is a sum.
        SequenceSum = "sequence-sum",
    }
}

choice! {
    /// Which tokens have a negative log-likelihood.
    pub enum NllOver {
        /// Those of the chosen completion.
        Completion = "completion",
        /// Those of its prompt too, but for the first.
        Text = "text",
    }
}

options! {
    rows: Batch;
    check: go_together;

    /// The options of `preference-step`.
    pub struct Options {
        /// The id that ends a completion, from 0 to 15.
        pub eos: i64 = 1, in 0..=15, expected "an id from 0 to 15", draw [1, 2];
        /// The id that fills a completion up, from 0 to 15; may be `eos`.
        pub pad: i64 = 0, in 0..=15, expected "an id from 0 to 15", draw [0, 0, 1];
        /// The loss of a pair, by the sums of its log-probabilities: `sigmoid` (DPO), `hinge`,
        /// `ipo`, `robust` as in `preference-loss`; `orpo`, `simpo`, `sigmoid-norm`, `ipo-norm`
        /// (averages), `nca`, `bco-pair`, `sppo-hard`, `apo-zero`, `apo-down`, `exo`, `aot`,
        /// `aot-unpaired` (ranks in a micro-batch) as in `pair-objective`.
        pub kind: Kind = Kind::Sigmoid;
        /// β > 0, the strength of the pull to the reference, or the scale of a reward.
        pub beta: f64 = 0.1, in above(0.0), draw [0.1, 0.5, 1.0, 0.05];
        /// ε from 0 to below 1, the share of exchanged pairs; `exo` needs more than 0, and `hinge`,
        /// `ipo`, `orpo`, `ipo-norm`, `nca`, `bco-pair`, `sppo-hard` and the `apo` kinds have none.
        pub label_smoothing: f64 = 0.0, in 0.0..1.0, by generate::draw_smoothing;
        /// γ ≥ 0, what β times the difference has to exceed; `sigmoid` and `simpo` only.
        pub gamma: f64 = 0.0, in 0.0.., by generate::draw_gamma;
        /// `true` or `false`: whether log-probabilities are compared with a reference's; `orpo` and
        /// `simpo` have none, whatever this says.
        pub has_reference: bool = true, by generate::draw_reference;
        /// α, where each log-probability x, or average, counts as (1 - e^{-αx})/α, as AlphaPO has
        /// it; 0 leaves it as it is, and is the only one with a reference or `orpo`.
        pub alpha: f64 = 0.0, in -1.0..=1.0, by generate::draw_alpha;
        /// The weight ≥ 0 of the negative log-likelihood of the chosen completions: the α of CPO.
        /// `orpo` has to have one.
        pub nll_weight: f64 = 0.0, in 0.0.., by generate::draw_nll_weight;
        /// `token-mean` (over all tokens of the micro-batch), `sequence-mean` (over those of each
        /// completion, then over pairs) or `sequence-sum`: how that is averaged.
        pub nll: Nll = Nll::TokenMean;
        /// `completion` or `text`: whether prompts have a negative log-likelihood too.
        pub nll_over: NllOver = NllOver::Completion, draw [
            NllOver::Completion, NllOver::Completion, NllOver::Text
        ];
        /// 1 to 16: how many times the pairs are passed.
        pub epochs: u8 = 1, in 1..=16, draw [1, 1, 2];
        /// 1 to 16: how many updates a pass has.
        pub mini_batches: u8 = 1, in 1..=16, draw [1, 2];
        /// 1 to 16: how many micro-batches an update has.
        pub accumulation: u8 = 1, in 1..=16, draw [1, 2];
    }
}

/// Smoothing and margin go with some kinds only.
fn go_together(options: &Options) -> Result<(), (&'static str, String)> {
    let Options { kind, label_smoothing, gamma, alpha, nll_weight, .. } = *options;
    let halves = matches!(kind, Kind::Sigmoid | Kind::Robust);
    if label_smoothing != 0.0 && !kind.is_smoothed() {
        Err(("label_smoothing", "has no meaning with this `kind`".to_owned()))
    } else if label_smoothing == 0.0 && kind == Kind::Exo {
        Err(("label_smoothing", "expected a number > 0 with `exo`, found 0".to_owned()))
    } else if label_smoothing >= 0.5 && halves {
        Err(("label_smoothing", "expected less than 0.5 with this `kind`".to_owned()))
    } else if gamma != 0.0 && !matches!(kind, Kind::Sigmoid | Kind::Simpo) {
        Err(("gamma", "goes with `sigmoid` and `simpo` only".to_owned()))
    } else if alpha != 0.0 && (options.uses_reference() || kind == Kind::Orpo) {
        Err(("alpha", "goes with `has_reference: false` and `simpo` only".to_owned()))
    } else if nll_weight == 0.0 && kind == Kind::Orpo {
        let expected = "expected a number > 0 with `orpo`, found 0: its paper has 1";
        Err(("nll_weight", expected.to_owned()))
    } else {
        Ok(())
    }
}

/// The component that the loss of a micro-batch's pairs is.
pub enum PairLoss {
    /// One that looks at the margin.
    Margin(preference_loss::Options),
    /// One of the others.
    Objective(pair_objective::Options),
}

/// The options of a step's components.
impl Options {
    /// Those of the completion mask.
    pub fn mask(&self) -> completion_mask::Options {
        completion_mask::Options {
            eos: vec![self.eos],
            pad: self.pad,
            ..completion_mask::Options::default()
        }
    }

    /// The loss of the pairs of a micro-batch, and its options.
    pub fn loss(&self) -> PairLoss {
        use pair_objective::Kind as Objective;
        use preference_loss::Kind as Margin;
        let Options { beta, label_smoothing, gamma, .. } = *self;
        let margin = |kind| {
            PairLoss::Margin(preference_loss::Options {
                kind,
                beta,
                label_smoothing,
                margin: gamma,
                reduction: preference_loss::Reduction::Mean,
                ..preference_loss::Options::default()
            })
        };
        let objective = |kind| {
            let defaults = pair_objective::Options::default();
            PairLoss::Objective(pair_objective::Options {
                kind,
                beta,
                label_smoothing,
                gamma: if kind == Objective::Simpo { gamma } else { defaults.gamma },
                sft: kind != Objective::Orpo,
                reduction: pair_objective::Reduction::Mean,
                ..defaults
            })
        };
        match self.kind {
            Kind::Sigmoid => margin(Margin::Sigmoid),
            Kind::Hinge => margin(Margin::Hinge),
            Kind::Ipo => margin(Margin::Ipo),
            Kind::Robust => margin(Margin::Robust),
            Kind::Orpo => objective(Objective::Orpo),
            Kind::Simpo => objective(Objective::Simpo),
            Kind::SigmoidNorm => objective(Objective::SigmoidNorm),
            Kind::IpoNorm => objective(Objective::IpoNorm),
            Kind::Nca => objective(Objective::Nca),
            Kind::BcoPair => objective(Objective::BcoPair),
            Kind::SppoHard => objective(Objective::SppoHard),
            Kind::ApoZero => objective(Objective::ApoZero),
            Kind::ApoDown => objective(Objective::ApoDown),
            Kind::Exo => objective(Objective::Exo),
            Kind::Aot => objective(Objective::Aot),
            Kind::AotUnpaired => objective(Objective::AotUnpaired),
        }
    }

    /// Whether log-probabilities are compared with a reference's.
    pub fn uses_reference(&self) -> bool {
        self.has_reference && self.kind.has_reference()
    }

    /// Whether log-probabilities are divided by the numbers of their tokens.
    pub fn averages(&self) -> bool {
        self.kind.averages()
    }

    /// What a log-probability counts as, given the number of its tokens; and the slope of it.
    pub fn reward(&self, log_prob: f64, length: f64) -> [f64; 2] {
        if self.alpha == 0.0 {
            return [log_prob, 1.0];
        }
        let length = if self.averages() { length } else { 1.0 };
        let slope = (-self.alpha * log_prob / length).exp();
        [length * (1.0 - slope) / self.alpha, slope]
    }

    /// How many tokens of a pair's prompt have a negative log-likelihood.
    pub fn prompt_tokens(&self, pair: usize) -> usize {
        match self.nll_over {
            NllOver::Completion => 0,
            NllOver::Text => pair + 1,
        }
    }

    /// What a token's log-probability is multiplied by in the negative log-likelihood of a
    /// micro-batch, for each pair; given how many tokens of each count.
    fn nll_weights(&self, lengths: &[usize]) -> Vec<f64> {
        let pairs = lengths.len() as f64;
        let share = |length: usize| match self.nll {
            Nll::TokenMean => 1.0 / lengths.iter().sum::<usize>().max(1) as f64,
            Nll::SequenceMean => 1.0 / (length.max(1) as f64 * pairs),
            Nll::SequenceSum => 1.0 / pairs,
        };
        lengths.iter().map(|length| -self.nll_weight * share(*length)).collect()
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
}

/// The contract: a whole trainer of preference pairs.
#[derive(Clone, Copy, Debug)]
pub struct PreferenceStep;

impl Definition for PreferenceStep {
    type Case = PreferenceStepCase;
    type Output = PreferenceStepOutput;
    type Options = Options;
}

impl Contract for PreferenceStep {
    const ID: &'static str = "preference-step";
    const STAGE: Stage = Stage::Step;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const WHOLE: &'static [&'static str] = &["micro_batches", "ref_training"];
    const AXES: Axes = Axes::new(&[
        ("tokens", "PST"),
        ("logits", "UPSTV"),
        ("ref_logits", "PSTV"),
        ("gradient", "UPSTV"),
    ])
    .rows('P');
    const BLIND: &'static [Blind] = &[
        Blind::at("beta", 1.0, &[("beta", "0.2")]),
        Blind::at("mini_batches", 1.0, &[("mini_batches", "2")]),
        Blind::at("accumulation", 1.0, &[("accumulation", "2")]),
    ];
    const REGRESSIONS: &'static [(&'static str, &'static str)] =
        crate::regressions::PREFERENCE_STEP;
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

    fn oracle(case: &PreferenceStepCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::expected(case, options, dtype)
    }

    fn settled(
        case: &PreferenceStepCase,
        options: &Options,
        output: &PreferenceStepOutput,
    ) -> Option<PreferenceStepCase> {
        let chosen = step::settled::<Self>(case, options, output.micro_batches.as_ref())?;
        Some(PreferenceStepCase { micro_batches: Some(chosen), ..case.clone() })
    }

    fn meaning(
        case: &PreferenceStepCase,
        options: &Options,
        found: ArrayViewD<'_, f64>,
        expected: &Expected,
        at: &[usize],
    ) -> Option<String> {
        step::weights::<Self>(case, &case.logits, options, found, expected, at)
    }

    fn small(options: &Options, dtype: Dtype) -> Vec<PreferenceStepCase> {
        generate::small(options, dtype)
    }

    fn simpler(case: &PreferenceStepCase, options: &Options, _: Dtype) -> Vec<PreferenceStepCase> {
        generate::simpler(case, options)
    }

    fn measure(case: &PreferenceStepCase) -> Measure {
        generate::measure(case)
    }
}

impl Stepped for PreferenceStep {
    fn shape(case: &PreferenceStepCase, options: &Options) -> Shape {
        let (pairs, sides, width) = case.tokens.dim();
        let tokens = case.tokens.to_shape((pairs * sides, width)).expect("a row is a completion");
        let chosen = case.micro_batches.as_ref();
        Shape::new(options.plan(), tokens.into_owned(), sides, &[options.eos], chosen)
    }

    fn trained(case: &PreferenceStepCase, options: &Options) -> Array2<bool> {
        let tokens = Self::shape(case, options).tokens;
        let mut trained = Array2::from_elem(tokens.raw_dim(), false);
        for (tokens, mut trained) in tokens.rows().into_iter().zip(trained.rows_mut()) {
            let end = tokens.iter().position(|id| *id == options.eos).expect("every row ends");
            trained.iter_mut().take(end + 1).for_each(|flag| *flag = true);
        }
        trained
    }

    fn row(_: &PreferenceStepCase, row: usize) -> String {
        crate::step::side(row)
    }

    fn partition(
        case: &PreferenceStepCase,
        options: &Options,
        micro_batches: ArrayView3<'_, f64>,
    ) -> Result<(), String> {
        let (shape, named) = (Self::shape(case, options), |row| Self::row(case, row));
        shape.check_partition(micro_batches, named)?;
        shape.check_pairs(micro_batches, named)
    }
}
