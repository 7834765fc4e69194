//! A whole GRPO trainer: the gradient by the logits at each update, from completions and rewards.
//!
//! Most bugs of a trainer are in no function of its own: advantages that stay behind when their
//! rows are shuffled, old log-probabilities of the wrong policy, micro-batches that are averaged
//! twice, a temperature that one of two passes forgets. Each component is right, and the update is
//! wrong. So nothing is taken out of the trainer. It is handed a model whose logits are a table,
//! one row for each prefix, and what it does to that table is the answer.
//!
//! A prefix that several completions share has one row: the logits where it comes first hold, the
//! others are not read, and its gradient is there too.
//!
//! ### Source
//! GRPO is arXiv:2402.03300, with the clipping of PPO, arXiv:1707.06347; DAPO, arXiv:2503.14476, is
//! the mean over all tokens and two clip ranges, Dr. GRPO, arXiv:2503.20783, no deviation and a
//! constant length. The defaults are those of TRL's `GRPOConfig` with `loss_type: grpo`. RLOO,
//! arXiv:2402.14740, is `action: completion`, `kl_in: reward` and `baseline: leave-one-out`.

mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use ndarray::{Array1, Array2, Array3, ArrayViewD, Ix0, Ix1, Ix3, IxDyn, s};

use shakedown_core::contract::blind::Blind;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::{Options as _, above, options};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::step::{self, Plan, Shape, Stepped};
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::measure::Measure;
pub use shakedown_core::numeric::aggregate::Aggregate;
pub use shakedown_core::numeric::conventions::EmptyRows;
use shakedown_core::numeric::tolerance::Expected;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;

use crate::completion_mask::{self, Unfinished};
use crate::group_advantage::{self, Baseline, Scale};
use crate::policy_loss::{self, ClipBounds, KlEstimator, Objective, Ratio};
use crate::reward_combination::{self, Unscored};

record! {
    /// The inputs of `grpo-step`.
    ///
    /// # Shapes
    /// `P` prompts of `G` completions of `T` tokens, `K` reward functions, `U` updates, a
    /// vocabulary of `V`: tokens `[P, G, T]`, rewards `[P, G, K]`, logits `[U, P, G, T, V]`,
    /// ref_logits `[P, G, T, V]`. `U` is generations · iterations · mini_batches. Prompts come to
    /// the generations in order, equally many to each. A row is a completion: the g-th of the p-th
    /// prompt is row p·G + g.
    pub struct GrpoStepCase {
        /// The ids of each completion up to the first of `eos`, and `pad` behind it.
        pub tokens: A::Int<Ix3>,
        /// What each reward function gives; NaN where it does not score. Equal completions of a
        /// prompt have equal rewards.
        pub rewards: A::Float<Ix3>,
        /// The policy's logits for each token, at each update. Those of a generation's first update
        /// are those that its completions were sampled from.
        pub logits: A::Float<IxDyn>,
        /// The reference's logits for each token, with `beta` > 0.
        pub ref_logits: Option<A::Float<IxDyn>>,
        /// The rows of each micro-batch, `[U, M, B]`, where the trainer chose them: no component is
        /// given them, they are read off its answer.
        pub micro_batches: Option<A::Int<Ix3>>,
    }
}

record! {
    /// The outputs of `grpo-step`.
    ///
    /// # Shapes
    /// gradient `[U, P, G, T, V]`; micro_batches `[U, M, B]`, -1 where a micro-batch has fewer
    /// rows; unknown `[U]`; scored `[P, G, K]`; the others are single numbers.
    pub struct GrpoStepOutput {
        /// The gradient of the loss at each update, where each prefix comes first; 0 elsewhere.
        pub gradient: A::Float<IxDyn>,
        /// The rows of each micro-batch, in the order in which they were trained.
        pub micro_batches: Option<A::Float<Ix3>>,
        /// The largest gradient at each update on logits that score no token of a completion.
        pub unknown: Option<A::Float<Ix1>>,
        /// The largest gradient on the reference.
        pub ref_gradient: Option<A::Float<Ix0>>,
        /// 1 where the reference was asked in training mode, else 0.
        pub ref_training: Option<A::Float<Ix0>>,
        /// How often each reward function was asked about each completion.
        pub scored: Option<A::Float<Ix3>>,
    }
}

choice! {
    /// Over which rows the mean of the losses is taken.
    pub enum Over {
        /// Each micro-batch has its mean, and the update the mean of those.
        MicroBatch = "micro-batch",
        /// All rows of an update.
        Update = "update",
        /// All tokens of a generation, as many as an update has in the mean.
        Generation = "generation",
    }
}

choice! {
    /// What one action is: what a ratio, a bound and a loss are of.
    pub enum Action {
        /// A token.
        Token = "token",
        /// A completion. Its log-probability is the sum of those of its trained tokens.
        Completion = "completion",
    }
}

choice! {
    /// What the divergence from the reference is a part of.
    pub enum KlIn {
        /// The loss, with the gradient of the policy.
        Loss = "loss",
        /// The reward: summed over the completion, of the policy that sampled it.
        Reward = "reward",
    }
}

options! {
    rows: Batch;
    check: go_together;

    /// The options of `grpo-step`.
    pub struct Options {
        /// The ids that end a completion, one at least.
        pub eos: Vec<i64> = vec![1], by generate::draw_eos;
        /// The id that fills a completion up; may be one of `eos`.
        pub pad: i64 = 0, draw [0, 0, 1];
        /// `keep` or `drop`: whether a completion without an end is trained.
        pub unfinished: Unfinished = Unfinished::Keep, draw [Unfinished::Keep, Unfinished::Drop];
        /// One weight per reward function; `null`: all are 1.
        pub weights: Option<Vec<f64>> = None, draw [None, None, Some(vec![2.0, 0.5])];
        /// `avoid` or `skip`: NaN rewards are never generated, or add nothing.
        pub unscored: Unscored = Unscored::Avoid;
        /// `mean`, `leave-one-out` or `none`: what is taken off a reward.
        pub baseline: Baseline = Baseline::Mean, draw [Baseline::Mean, Baseline::LeaveOneOut];
        /// `std`, `batch-std`, `loo-std` or `none`: divide by the deviation of the group's rewards,
        /// of the generation's, of the other rows of the group, or not at all.
        pub scale: Scale = Scale::Std, draw [Scale::Std, Scale::BatchStd, Scale::None];
        /// `1` or `0`: unbiased or biased variance.
        pub ddof: u8 = 1, in 0..=1, expected "0 or 1", chance 160;
        /// A number ≥ 0 that is added to the deviation.
        pub epsilon: f64 = 1e-4, in 0.0.., expected "a finite number ≥ 0", draw [1e-4, 1e-6, 1e-3];
        /// A number > 0 that divides the logits, of the reference too.
        pub temperature: f64 = 1.0, in above(0.0), draw [1.0, 0.7, 1.5];
        /// `ppo-clip`, `reinforce` or `cispo`, as in `policy-loss`.
        pub objective: Objective = Objective::PpoClip;
        /// `token`, `sequence` or `sequence-token`: what a ratio is taken of, as in `policy-loss`.
        pub ratio: Ratio = Ratio::Token, draw [Ratio::Token, Ratio::Token, Ratio::Sequence];
        /// The lower bound of the ratio is 1 - clip_low; 0 to 1.
        pub clip_low: f64 = 0.2, in 0.0..=1.0, draw [0.2, 0.1];
        /// The upper bound of the ratio is 1 + clip_high; a number ≥ 0.
        pub clip_high: f64 = 0.2, in 0.0.., draw [0.2, 0.28];
        /// `relative` or, with `cispo`, `absolute` (at most clip_high itself).
        pub clip_bounds: ClipBounds = ClipBounds::Relative, draw [ClipBounds::Relative];
        /// `null`, or c > 1: with A < 0 a token's loss is at most -c·A.
        pub dual_clip: Option<f64> = None, in above(1.0), draw [None, None, Some(1.5)];
        /// The weight of the divergence from the reference, ≥ 0; with 0 there is no reference.
        pub beta: f64 = 0.0, in 0.0.., draw [0.0, 0.04, 0.5];
        /// `k3`, `k1`, `k2` or `abs`: the estimator of that divergence.
        pub kl_estimator: KlEstimator = KlEstimator::K3, draw [KlEstimator::K3, KlEstimator::K1];
        /// `true` or `false`: whether a token's divergence is multiplied by its ratio, through
        /// which the gradient flows too (TRL's `use_bias_correction_kl`).
        pub kl_weighted: bool = false, chance 96;
        /// `loss` or `reward`: whether the divergence is added to the loss, or taken off the reward
        /// of the completion, summed over it and of the policy that sampled.
        pub kl_in: KlIn = KlIn::Loss, by generate::draw_kl_in;
        /// `token-mean`, `token-sum`, `seq-mean-token-mean`, `seq-mean-token-sum` or
        /// `seq-mean-token-sum-norm` (divided by norm_length).
        pub aggregate: Aggregate = Aggregate::SeqMeanTokenMean;
        /// `micro-batch`, `update` or, with `token-mean`, `generation`: over which rows the mean is
        /// taken. `generation`: the sum over an update, divided by the number of tokens that an
        /// update of its generation has in the mean.
        pub over: Over = Over::MicroBatch, by generate::draw_over;
        /// An integer > 0: the constant of `seq-mean-token-sum-norm`.
        pub norm_length: Option<u32> = None, by generate::draw_norm_length;
        /// `count` or `skip`: whether a completion without a trained token counts in the number of
        /// rows.
        pub empty_rows: EmptyRows = EmptyRows::Count;
        /// `token` or `completion`: what a ratio and a loss are of. The log-probability of a
        /// completion is the sum of those of its tokens; needs `ratio: token`.
        pub action: Action = Action::Token, by generate::draw_action;
        /// 1 to 16: how many times completions are sampled.
        pub generations: u8 = 1, in 1..=16, draw [1, 1, 2];
        /// 1 to 16: how many times the completions of a generation are passed.
        pub iterations: u8 = 1, in 1..=16, draw [1, 1, 2];
        /// 1 to 16: how many updates a pass has.
        pub mini_batches: u8 = 1, in 1..=16, draw [1, 2];
        /// 1 to 16: how many micro-batches an update has.
        pub accumulation: u8 = 1, in 1..=16, draw [1, 2];
    }
}

/// Options that only some others go with.
fn go_together(options: &Options) -> Result<(), (&'static str, String)> {
    generate::check_ids(options)?;
    options.mask().check()?;
    options.reward().check()?;
    options.loss(options.beta).check()?;
    if options.over == Over::Generation && options.aggregate != Aggregate::TokenMean {
        return Err(("over", "`generation` goes with `aggregate: token-mean` only".to_owned()));
    }
    if options.kl_weighted && options.kl_in == KlIn::Reward {
        return Err(("kl_in", "`reward` goes with `kl_weighted: false` only".to_owned()));
    }
    if options.action == Action::Completion && !options.may_be_of_completions() {
        let why = "`completion` goes with `ratio: token` and `kl_weighted: false`, and not with \
                   `over: generation`";
        return Err(("action", why.to_owned()));
    }
    Ok(())
}

/// The options of a step's components.
impl Options {
    /// Those of the completion mask.
    pub fn mask(&self) -> completion_mask::Options {
        completion_mask::Options {
            eos: self.eos.clone(),
            pad: self.pad,
            unfinished: self.unfinished,
            ..completion_mask::Options::default()
        }
    }

    /// Those of the sum of rewards.
    pub fn reward(&self) -> reward_combination::Options {
        reward_combination::Options {
            weights: self.weights.clone(),
            unscored: self.unscored,
            nothing: reward_combination::Nothing::Zero,
            layout: reward_combination::Layout::Contiguous,
            ..reward_combination::Options::default()
        }
    }

    /// Those of the advantage.
    pub fn advantage(&self) -> group_advantage::Options {
        group_advantage::Options {
            baseline: self.baseline,
            scale: self.scale,
            ddof: self.ddof,
            epsilon: self.epsilon,
            layout: group_advantage::Layout::Contiguous,
            ..group_advantage::Options::default()
        }
    }

    /// Those of every log-probability.
    pub fn log_probs(&self) -> crate::token_log_probs::Options {
        crate::token_log_probs::Options {
            temperature: self.temperature,
            ..crate::token_log_probs::Options::default()
        }
    }

    /// Whether whole completions may be its actions.
    fn may_be_of_completions(&self) -> bool {
        self.ratio == Ratio::Token && !self.kl_weighted && self.over != Over::Generation
    }

    /// The weight of the divergence in the loss.
    pub fn beta_of_the_loss(&self) -> f64 {
        if self.kl_in == KlIn::Loss { self.beta } else { 0.0 }
    }

    /// Those of the loss, with the divergence weighed by `beta`.
    pub fn loss(&self, beta: f64) -> policy_loss::Options {
        policy_loss::Options {
            objective: self.objective,
            ratio: self.ratio,
            clip_low: self.clip_low,
            clip_high: self.clip_high,
            clip_bounds: self.clip_bounds,
            dual_clip: self.dual_clip,
            beta,
            kl_estimator: self.kl_estimator,
            advantage_shape: policy_loss::AdvantageShape::Row,
            aggregate: self.aggregate,
            norm_length: self.norm_length,
            empty_rows: self.empty_rows,
            ..policy_loss::Options::default()
        }
    }

    /// How many updates there are.
    fn plan(&self) -> Plan {
        Plan {
            generations: usize::from(self.generations),
            passes: usize::from(self.iterations),
            mini_batches: usize::from(self.mini_batches),
            accumulation: usize::from(self.accumulation),
        }
    }
}

/// The contract: a whole GRPO trainer.
#[derive(Clone, Copy, Debug)]
pub struct GrpoStep;

impl Definition for GrpoStep {
    type Case = GrpoStepCase;
    type Output = GrpoStepOutput;
    type Options = Options;
}

impl Contract for GrpoStep {
    const ID: &'static str = "grpo-step";
    const STAGE: Stage = Stage::Step;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const WHOLE: &'static [&'static str] = &["micro_batches", "ref_training", "scored"];
    const AXES: Axes = Axes::new(&[
        ("tokens", "PGT"),
        ("rewards", "PGK"),
        ("logits", "UPGTV"),
        ("ref_logits", "PGTV"),
        ("gradient", "UPGTV"),
        ("scored", "PGK"),
    ])
    .rows('P');
    const BLIND: &'static [Blind] = &[
        Blind::at("temperature", 1.0, &[("temperature", "0.7")]),
        Blind::at("beta", 0.0, &[("beta", "0.04")]),
        Blind::at("mini_batches", 1.0, &[("mini_batches", "2")]),
        Blind::at("accumulation", 1.0, &[("accumulation", "2")]),
        Blind::while_equal(
            ["clip_low", "clip_high"],
            &[("clip_low", "0.2"), ("clip_high", "0.28"), ("mini_batches", "2")],
        ),
    ];
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::GRPO_STEP;
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

    fn oracle(case: &GrpoStepCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
        oracle::expected(case, options, dtype)
    }

    fn settled(
        case: &GrpoStepCase,
        options: &Options,
        output: &GrpoStepOutput,
    ) -> Option<GrpoStepCase> {
        let chosen = step::settled::<Self>(case, options, output.micro_batches.as_ref())?;
        Some(GrpoStepCase { micro_batches: Some(chosen), ..case.clone() })
    }

    fn meaning(
        case: &GrpoStepCase,
        options: &Options,
        found: ArrayViewD<'_, f64>,
        expected: &Expected,
        at: &[usize],
    ) -> Option<String> {
        step::weights::<Self>(case, &case.logits, options, found, expected, at)
    }

    fn small(options: &Options, dtype: Dtype) -> Vec<GrpoStepCase> {
        generate::small(options, dtype)
    }

    fn simpler(case: &GrpoStepCase, options: &Options, _: Dtype) -> Vec<GrpoStepCase> {
        generate::simpler(case, options)
    }

    fn measure(case: &GrpoStepCase) -> Measure {
        generate::measure(case)
    }
}

impl Stepped for GrpoStep {
    fn shape(case: &GrpoStepCase, options: &Options) -> Shape {
        let (tokens, group) = (rows(&case.tokens), case.tokens.dim().1);
        Shape::new(options.plan(), tokens, group, &options.eos, case.micro_batches.as_ref())
    }

    fn temperature(options: &Options) -> f64 {
        options.temperature
    }

    fn trained(case: &GrpoStepCase, options: &Options) -> Array2<bool> {
        let mut trained = Array2::from_elem(rows(&case.tokens).raw_dim(), false);
        for (completion, mut trained) in case.tokens.rows().into_iter().zip(trained.rows_mut()) {
            let kept = match completion.iter().position(|id| options.eos.contains(id)) {
                Some(end) => end + 1,
                None if options.unfinished == Unfinished::Drop => 0,
                None => completion.len(),
            };
            trained.slice_mut(s![..kept]).fill(true);
        }
        trained
    }

    fn row(case: &GrpoStepCase, row: usize) -> String {
        let group = case.tokens.dim().1;
        format!("completion {} of prompt {}", row % group, row / group)
    }
}

/// What each prompt has of each completion, a row for each completion.
fn rows<N: Clone>(by_prompt: &Array3<N>) -> Array2<N> {
    let (prompts, group, width) = by_prompt.dim();
    let rows = by_prompt.to_shape((prompts * group, width));
    rows.expect("a row is a completion").into_owned()
}

/// The prompt of each of some rows.
fn groups(shape: &Shape, generation: usize) -> Array1<i64> {
    shape.rows_of(generation).map(|row| (row / shape.group) as i64).collect()
}
