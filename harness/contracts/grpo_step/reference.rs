//! The reference implementation of `grpo-step`: the references of its components, one after the
//! other. A fault replaces one of them.

use std::sync::Arc;

use ndarray::{Array1, Array2, Array3, ArrayD, Axis, IxDyn, arr0, s};

use super::shape::Shape;
use super::{GrpoStepCase, GrpoStepOutput, Options, Over};
use crate::completion_mask::{CompletionMask, CompletionMaskCase};
use crate::group_advantage::{GroupAdvantage, GroupAdvantageCase};
use crate::policy_loss::{KlEstimator, PolicyLoss, PolicyLossCase, Ratio};
use crate::reward_combination::{RewardCombination, RewardCombinationCase};
use crate::token_log_probs::{TokenLogProbs, TokenLogProbsCase};
use shakedown_core::contract::Contract;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::fault::Variant;
use shakedown_core::value::place::Dtype;

/// A component of a step: the reference, or a wrong one.
pub(super) type Component<C> = Arc<
    dyn Fn(
            &<C as Definition>::Case,
            &<C as Definition>::Options,
            Dtype,
        ) -> <C as Definition>::Output
        + Send
        + Sync,
>;

/// What a step is made of.
#[derive(Clone)]
pub(super) struct Components {
    pub(super) mask: Component<CompletionMask>,
    pub(super) reward: Component<RewardCombination>,
    pub(super) advantage: Component<GroupAdvantage>,
    /// The log-probabilities of the policy at an update.
    pub(super) log_probs: Component<TokenLogProbs>,
    /// Those of the policy that sampled.
    pub(super) old_log_probs: Component<TokenLogProbs>,
    /// Those of the reference.
    pub(super) ref_log_probs: Component<TokenLogProbs>,
    pub(super) loss: Component<PolicyLoss>,
    /// Which row each row of an update has its advantage from.
    pub(super) advantage_of: Companion,
    /// Which row each row of an update has its old log-probabilities from.
    pub(super) old_of: Companion,
    /// What the gradient of an update is multiplied by.
    pub(super) factor: fn(&Options) -> f64,
}

/// Which row something of a row is taken from, at an update: itself where all is right.
pub(super) type Companion = fn(&Shape<'_>, usize) -> Vec<usize>;

/// The reference of a component.
fn reference<C: Contract>() -> Component<C> {
    Arc::new(|case, options, dtype| (C::PARTS.reference)(case, options, dtype))
}

/// A component that does what a fault of it does.
pub(super) fn wrong<C: Contract>(variant: Variant<C>) -> Component<C> {
    match variant {
        Variant::Gives(function) => Arc::new(function.0),
        Variant::AsIf(others) => Arc::new(move |case, options, dtype| {
            (C::PARTS.reference)(case, &others(options.clone()), dtype)
        }),
        Variant::On(change) => Arc::new(move |case, options, dtype| {
            let mut case = case.clone();
            change(&mut case, options);
            (C::PARTS.reference)(&case, options, dtype)
        }),
    }
}

/// All components right.
pub(super) fn right() -> Components {
    Components {
        mask: reference::<CompletionMask>(),
        reward: reference::<RewardCombination>(),
        advantage: reference::<GroupAdvantage>(),
        log_probs: reference::<TokenLogProbs>(),
        old_log_probs: reference::<TokenLogProbs>(),
        ref_log_probs: reference::<TokenLogProbs>(),
        loss: reference::<PolicyLoss>(),
        advantage_of: |shape, _| (0..shape.all_rows).collect(),
        old_of: |shape, _| (0..shape.all_rows).collect(),
        factor: |_| 1.0,
    }
}

/// The gradients of all updates.
pub(super) fn step(
    case: &GrpoStepCase,
    options: &Options,
    dtype: Dtype,
    parts: &Components,
) -> GrpoStepOutput {
    let shape = Shape::of(case, options);
    let tokens = shape.tokens();
    let mask = CompletionMaskCase { tokens: tokens.clone() };
    let mask = (parts.mask)(&mask, &options.mask(), dtype).mask.mapv(|flag| flag != 0.0);
    let log_probs = |component: &Component<TokenLogProbs>, logits: Array3<f64>| {
        let case = TokenLogProbsCase { logits, tokens: tokens.clone() };
        component(&case, &options.log_probs(), dtype)
    };
    let ref_log_probs = shape.ref_logits().map(|z| log_probs(&parts.ref_log_probs, z).log_probs);
    // What a row got when it was sampled, it keeps.
    let mut advantages = Array1::zeros(shape.all_rows);
    let mut old_log_probs = Array2::zeros(tokens.raw_dim());
    for generation in 0..usize::from(options.generations) {
        let rows = shape.rows_of(generation);
        let own = self::advantages(&shape, generation, options, dtype, parts);
        advantages.slice_mut(s![rows.clone()]).assign(&own);
        let old = log_probs(&parts.old_log_probs, shape.logits(shape.first_update(generation)));
        old_log_probs.slice_mut(s![rows.clone(), ..]).assign(&old.log_probs.slice(s![rows, ..]));
    }
    let mut gradient = ArrayD::zeros(IxDyn(case.logits.shape()));
    for update in 0..options.updates() {
        let current = log_probs(&parts.log_probs, shape.logits(update));
        let slopes = current.grad_logits.expect("the reference gives its gradient");
        let advantage_of = (parts.advantage_of)(&shape, update);
        let old_of = (parts.old_of)(&shape, update);
        for (rows, factor) in batches(&shape, update, &mask, options) {
            let row_of = |array: &Array2<f64>| array.select(Axis(0), &rows);
            let of = |from: &[usize]| -> Vec<usize> { rows.iter().map(|row| from[*row]).collect() };
            let policy = PolicyLossCase {
                log_probs: row_of(&current.log_probs),
                old_log_probs: old_log_probs.select(Axis(0), &of(&old_of)),
                advantages: advantages.select(Axis(0), &of(&advantage_of)).into_dyn(),
                mask: mask.select(Axis(0), &rows),
                ref_log_probs: ref_log_probs.as_ref().map(row_of),
            };
            let by_token = loss_gradient(&policy, options, dtype, parts);
            let factor = factor * (parts.factor)(options);
            for (place, row) in rows.iter().enumerate() {
                for at in 0..shape.width {
                    let home = shape.home(*row, at);
                    let slope = by_token[[place, at]] * factor;
                    for (id, by_logit) in
                        slopes.index_axis(Axis(0), *row).row(at).iter().enumerate()
                    {
                        let (prompt, own) = (home / shape.group, home % shape.group);
                        gradient[[update, prompt, own, at, id]] += slope * by_logit;
                    }
                }
            }
        }
    }
    GrpoStepOutput {
        gradient,
        micro_batches: Some(shape.all_micro_batches()),
        unknown: Some(Array1::zeros(options.updates())),
        ref_gradient: Some(arr0(0.0)),
        ref_training: Some(arr0(0.0)),
        scored: Some(Array3::ones(case.rewards.raw_dim())),
    }
}

/// The advantages of the rows of a generation.
fn advantages(
    shape: &Shape<'_>,
    generation: usize,
    options: &Options,
    dtype: Dtype,
    parts: &Components,
) -> Array1<f64> {
    let rows = shape.rows_of(generation);
    let groups = shape.groups(rows.clone());
    let rewards = RewardCombinationCase { rewards: shape.rewards(rows), groups: groups.clone() };
    let rewards = (parts.reward)(&rewards, &options.reward(), dtype).combined;
    let case = GroupAdvantageCase { rewards, groups };
    (parts.advantage)(&case, &options.advantage(), dtype).advantages
}

/// The sets of rows whose losses are added up at once, and what each set's loss is multiplied by.
fn batches(
    shape: &Shape<'_>,
    update: usize,
    mask: &Array2<bool>,
    options: &Options,
) -> Vec<(Vec<usize>, f64)> {
    let batches = shape.micro_batches(update);
    let share = 1.0 / batches.len() as f64;
    match options.over {
        Over::MicroBatch => batches.into_iter().map(|rows| (rows, share)).collect(),
        Over::Update => vec![(batches.concat(), 1.0)],
        Over::Generation => {
            let count = |rows: &[usize]| -> f64 {
                let kept = rows.iter().map(|row| mask.row(*row).iter().filter(|m| **m).count());
                kept.sum::<usize>() as f64
            };
            let rows = batches.concat();
            let all: Vec<usize> = shape.rows_of(shape.generation(update)).collect();
            let mean = count(&all) / f64::from(options.mini_batches);
            let factor = if mean > 0.0 { count(&rows) / mean } else { 0.0 };
            vec![(rows, factor)]
        }
    }
}

/// The gradient of a loss by the log-probabilities, with the divergence that is declared.
fn loss_gradient(
    case: &PolicyLossCase,
    options: &Options,
    dtype: Dtype,
    parts: &Components,
) -> Array2<f64> {
    let gradient = |case: &PolicyLossCase, beta: f64| {
        let output = (parts.loss)(case, &options.loss(beta), dtype);
        output.grad_log_probs.expect("the reference gives its gradient")
    };
    if !options.kl_weighted || options.beta == 0.0 {
        return gradient(case, options.beta);
    }
    let alone = PolicyLossCase { ref_log_probs: None, ..case.clone() };
    gradient(&alone, 0.0) + weighted_kl(case, options) * options.beta
}

/// The gradient of the divergence where each token's is multiplied by its ratio: k·r by the product
/// rule. The ratio of a row passes its share on to each of its tokens.
fn weighted_kl(case: &PolicyLossCase, options: &Options) -> Array2<f64> {
    let weights = options.aggregate.weights(&case.mask, options.empty_rows, options.norm_length);
    let Some(weights) = weights else { return Array2::zeros(case.mask.raw_dim()) };
    let reference = case.ref_log_probs.as_ref().expect("a divergence has a reference");
    let mut gradient = Array2::zeros(case.mask.raw_dim());
    for row in 0..case.mask.nrows() {
        let kept: Vec<usize> = (0..case.mask.ncols()).filter(|at| case.mask[[row, *at]]).collect();
        let log_ratio = |at: usize| case.log_probs[[row, at]] - case.old_log_probs[[row, at]];
        let mean = kept.iter().map(|at| log_ratio(*at)).sum::<f64>() / kept.len() as f64;
        let ratio = |at: usize| match options.ratio {
            Ratio::Token => log_ratio(at).exp(),
            Ratio::Sequence | Ratio::SequenceToken => mean.exp(),
        };
        let mut through_ratios = 0.0;
        for at in kept.iter().copied() {
            let d = case.log_probs[[row, at]] - reference[[row, at]];
            let (value, slope) = divergence(d, options.kl_estimator);
            gradient[[row, at]] = weights[[row, at]] * ratio(at) * slope;
            match options.ratio {
                Ratio::Sequence => through_ratios += weights[[row, at]] * ratio(at) * value,
                _ => gradient[[row, at]] += weights[[row, at]] * ratio(at) * value,
            }
        }
        for at in kept.iter().copied() {
            gradient[[row, at]] += through_ratios / kept.len() as f64;
        }
    }
    gradient
}

/// The estimate of a divergence, and its slope by the policy's log-probability.
fn divergence(d: f64, estimator: KlEstimator) -> (f64, f64) {
    match estimator {
        KlEstimator::K3 => ((-d).exp() - 1.0 + d, 1.0 - (-d).exp()),
        KlEstimator::K1 => (d, 1.0),
        KlEstimator::K2 => (d * d / 2.0, d),
        KlEstimator::Abs if d == 0.0 => (0.0, 0.0),
        KlEstimator::Abs => (d.abs(), d.signum()),
    }
}
