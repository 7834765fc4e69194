//! The reference implementation of `grpo-step`: the references of its components, one after the
//! other. A fault replaces one of them.

use ndarray::{Array1, Array2, Array3, Array4, Axis, Zip, arr0, s};

use super::{Action, GrpoStep, GrpoStepCase, GrpoStepOutput, KlIn, Options, Over, groups, rows};
use crate::completion_mask::{CompletionMask, CompletionMaskCase};
use crate::group_advantage::{GroupAdvantage, GroupAdvantageCase};
use crate::policy_loss::{KlEstimator, PolicyLoss, PolicyLossCase, Ratio};
use crate::reward_combination::{RewardCombination, RewardCombinationCase};
use crate::token_log_probs::{TokenLogProbs, TokenLogProbsCase};
use shakedown_core::contract::step::{Part, Shape, Stepped, reference};
use shakedown_core::value::place::Dtype;

/// What a step is made of.
#[derive(Clone)]
pub(super) struct Parts {
    pub(super) mask: Part<CompletionMask>,
    pub(super) reward: Part<RewardCombination>,
    pub(super) advantage: Part<GroupAdvantage>,
    /// The log-probabilities of the policy at an update.
    pub(super) log_probs: Part<TokenLogProbs>,
    /// Those of the policy that sampled.
    pub(super) old_log_probs: Part<TokenLogProbs>,
    /// Those of the reference.
    pub(super) ref_log_probs: Part<TokenLogProbs>,
    pub(super) loss: Part<PolicyLoss>,
    /// Which row each row of an update has its advantage from.
    pub(super) advantage_of: Companion,
    /// Which row each row of an update has its old log-probabilities from.
    pub(super) old_of: Companion,
    /// What is taken off a row's reward, times `beta`.
    pub(super) penalty: Penalty,
    /// What the gradient of an update is multiplied by.
    pub(super) factor: fn(&Options) -> f64,
}

/// Which row something of a row is taken from, at an update: itself where all is right.
pub(super) type Companion = fn(&Shape, usize) -> Vec<usize>;

/// The divergence of a row, given the mask and the log-probabilities of both policies.
pub(super) type Penalty = fn(&Array2<bool>, &Array2<f64>, &Array2<f64>, &Options, usize) -> f64;

/// All components right.
pub(super) fn right() -> Parts {
    Parts {
        mask: reference::<CompletionMask>(),
        reward: reference::<RewardCombination>(),
        advantage: reference::<GroupAdvantage>(),
        log_probs: reference::<TokenLogProbs>(),
        old_log_probs: reference::<TokenLogProbs>(),
        ref_log_probs: reference::<TokenLogProbs>(),
        loss: reference::<PolicyLoss>(),
        advantage_of: |shape, _| (0..shape.all_rows()).collect(),
        old_of: |shape, _| (0..shape.all_rows()).collect(),
        penalty,
        factor: |_| 1.0,
    }
}

/// The gradients of all updates.
pub(super) fn step(
    case: &GrpoStepCase,
    options: &Options,
    dtype: Dtype,
    parts: &Parts,
) -> GrpoStepOutput {
    let (shape, plan) = (GrpoStep::shape(case, options), options.plan());
    let mask = CompletionMaskCase { tokens: shape.tokens.clone() };
    let mask = (parts.mask)(&mask, &options.mask(), dtype).mask.mapv(|flag| flag != 0.0);
    let log_probs = |part: &Part<TokenLogProbs>, logits: Array3<f64>| {
        let case = TokenLogProbsCase { logits, tokens: shape.tokens.clone() };
        part(&case, &options.log_probs(), dtype)
    };
    let reference = case.ref_logits.as_ref();
    let reference = reference
        .map(|logits| log_probs(&parts.ref_log_probs, shape.held(logits.view())).log_probs);
    // What a row got when it was sampled, it keeps.
    let mut advantages = Array1::zeros(shape.all_rows());
    let mut old_log_probs = Array2::zeros(shape.tokens.raw_dim());
    for generation in 0..plan.generations {
        let rows = shape.rows_of(generation);
        let sampled = shape.logits(&case.logits, shape.first_update(generation));
        let old = log_probs(&parts.old_log_probs, sampled).log_probs;
        let mut rewards = self::rewards(case, &shape, generation, options, dtype, parts);
        let penalized = reference.as_ref().filter(|_| options.kl_in == KlIn::Reward);
        if let Some(reference) = penalized {
            let of_row = |row: usize| (parts.penalty)(&mask, &old, reference, options, row);
            rewards -= &(Array1::from_iter(rows.clone().map(of_row)) * options.beta);
        }
        let own = GroupAdvantageCase { rewards, groups: groups(&shape, generation) };
        let own = (parts.advantage)(&own, &options.advantage(), dtype).advantages;
        advantages.slice_mut(s![rows.clone()]).assign(&own);
        old_log_probs.slice_mut(s![rows.clone(), ..]).assign(&old.slice(s![rows, ..]));
    }
    let (updates, vocabulary) = (plan.updates(), case.logits.shape()[4]);
    let mut gradient = Array4::zeros((updates, shape.all_rows(), shape.width(), vocabulary));
    for update in 0..updates {
        let current = log_probs(&parts.log_probs, shape.logits(&case.logits, update));
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
                ref_log_probs: reference.as_ref().map(row_of),
            };
            let by_token = match options.action {
                Action::Token => loss_gradient(&policy, options, dtype, parts),
                Action::Completion => {
                    let whole = loss_gradient(&of_completions(&policy), options, dtype, parts);
                    policy.mask.mapv(|kept| f64::from(u8::from(kept))) * whole
                }
            };
            let factor = factor * (parts.factor)(options);
            shape.add(&mut gradient, update, &rows, |[of, at], [row, id]| {
                by_token[[of, at]] * factor * slopes[[row, at, id]]
            });
        }
    }
    let gradient = gradient.into_dyn().to_shape(case.logits.shape()).expect("as many").into_owned();
    GrpoStepOutput {
        gradient,
        micro_batches: Some(shape.all_micro_batches()),
        unknown: Some(Array1::zeros(updates)),
        ref_gradient: Some(arr0(0.0)),
        ref_training: Some(arr0(0.0)),
        scored: Some(Array3::ones(case.rewards.raw_dim())),
    }
}

/// The sum of rewards of each row of a generation.
fn rewards(
    case: &GrpoStepCase,
    shape: &Shape,
    generation: usize,
    options: &Options,
    dtype: Dtype,
    parts: &Parts,
) -> Array1<f64> {
    let groups = groups(shape, generation);
    let rewards = rows(&case.rewards).slice(s![shape.rows_of(generation), ..]).to_owned();
    let rewards = RewardCombinationCase { rewards, groups };
    (parts.reward)(&rewards, &options.reward(), dtype).combined
}

/// The divergence of a completion from the reference, summed over its trained tokens.
pub(super) fn penalty(
    mask: &Array2<bool>,
    old: &Array2<f64>,
    reference: &Array2<f64>,
    options: &Options,
    row: usize,
) -> f64 {
    let kept = (0..mask.ncols()).filter(|at| mask[[row, *at]]);
    kept.map(|at| divergence(old[[row, at]] - reference[[row, at]], options.kl_estimator).0).sum()
}

/// The sets of rows whose losses are added up at once, and what each set's loss is multiplied by.
fn batches(
    shape: &Shape,
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

/// The same with a column for each completion: its log-probabilities are sums over its tokens.
fn of_completions(case: &PolicyLossCase) -> PolicyLossCase {
    let summed = |log_probs: &Array2<f64>| {
        let kept = Zip::from(log_probs)
            .and(&case.mask)
            .map_collect(|x, kept| if *kept { *x } else { 0.0 });
        kept.sum_axis(Axis(1)).insert_axis(Axis(1))
    };
    let any = case.mask.map_axis(Axis(1), |row| row.iter().any(|kept| *kept));
    PolicyLossCase {
        log_probs: summed(&case.log_probs),
        old_log_probs: summed(&case.old_log_probs),
        advantages: case.advantages.clone(),
        mask: any.insert_axis(Axis(1)),
        ref_log_probs: case.ref_log_probs.as_ref().map(summed),
    }
}

/// The gradient of a loss by the log-probabilities, with the divergence that is declared.
fn loss_gradient(
    case: &PolicyLossCase,
    options: &Options,
    dtype: Dtype,
    parts: &Parts,
) -> Array2<f64> {
    let gradient = |case: &PolicyLossCase, beta: f64| {
        let output = (parts.loss)(case, &options.loss(beta), dtype);
        output.grad_log_probs.expect("the reference gives its gradient")
    };
    let beta = options.beta_of_the_loss();
    if beta == 0.0 {
        let alone = PolicyLossCase { ref_log_probs: None, ..case.clone() };
        return gradient(&alone, 0.0);
    }
    if !options.kl_weighted {
        return gradient(case, beta);
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
