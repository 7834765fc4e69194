//! The reference implementation of `critic-step`. A fault replaces one of its parts.

use std::sync::Arc;

use ndarray::{Array1, Array2, Array3, Axis, s};

use super::{CriticStep, CriticStepCase, CriticStepOutput, Options, Targets, sets};
use crate::gae::{Gae, GaeCase, GaeOutput};
use crate::token_rewards::{self, TokenRewards, TokenRewardsCase, TokenRewardsOutput};
use crate::value_loss::{ValueLoss, ValueLossCase};
use shakedown_core::contract::step::{Part, Shape, Stepped, reference};
use shakedown_core::numeric::terms::term;
use shakedown_core::value::place::Dtype;

/// The value of what is no part of a completion, as the stand-in for a critic has it.
pub(super) const UNKNOWN: f64 = -20.0;

/// What there is to choose rows and tokens by.
pub(super) struct Batch<'a> {
    pub(super) case: &'a CriticStepCase,
    pub(super) options: &'a Options,
    pub(super) shape: &'a Shape,
    pub(super) update: usize,
    /// The rows that have one mean.
    pub(super) rows: &'a [usize],
}

/// The place whose value is taken for a token's; `None` where it is no part of the completion.
pub(super) type Read = fn(usize) -> Option<usize>;

/// Which tokens of the rows of a batch have a loss.
pub(super) type Masking = Arc<dyn Fn(&Batch<'_>) -> Array2<bool> + Send + Sync>;

/// What a step is made of.
pub(super) struct Parts {
    /// Where old values are read, and where those that are trained are.
    pub(super) reads: [Read; 2],
    pub(super) rewards: Part<TokenRewards>,
    pub(super) gae: Part<Gae>,
    /// The critic's targets, of advantages, returns and old values.
    pub(super) targets: fn(GaeOutput, &Array2<f64>) -> Array2<f64>,
    pub(super) loss: Part<ValueLoss>,
    /// The update whose values are the old ones of an update in the loss, and in the returns.
    pub(super) old: [fn(&Shape, &Options, usize) -> usize; 2],
    pub(super) mask: Masking,
    /// The rows whose old values, and whose targets, the rows of a batch are given.
    pub(super) companions: [fn(&Batch<'_>) -> Vec<usize>; 2],
    /// What the gradient of a micro-batch is multiplied by, given its place in the update.
    pub(super) factor: fn(&Options, usize) -> f64,
}

/// All parts right.
pub(super) fn right() -> Parts {
    Parts {
        reads: [Some; 2],
        rewards: Arc::new(of_tokens),
        gae: reference::<Gae>(),
        targets: |output, _| output.returns,
        loss: reference::<ValueLoss>(),
        old: [|shape, _, update| shape.first_update(shape.generation(update)); 2],
        mask: Arc::new(|batch| batch.case.mask.select(Axis(0), batch.rows)),
        companions: [|batch| batch.rows.to_vec(); 2],
        factor: |_, _| 1.0,
    }
}

/// The rewards of tokens whose divergences are handed over, in the place of log-probabilities.
fn of_tokens(
    case: &TokenRewardsCase,
    options: &token_rewards::Options,
    dtype: Dtype,
) -> TokenRewardsOutput {
    let f = |x: f64| dtype.arithmetic().round(x);
    let beta = f(options.beta);
    let mut rewards = case.log_probs.mapv(|kl| term("KL penalty", f(-beta * kl)));
    for (row, score) in case.scores.iter().enumerate() {
        let last = case.mask.row(row).iter().rposition(|kept| *kept);
        let reward = &mut rewards[[row, last.expect("a completion has a token")]];
        *reward = f(*reward + term("score", *score));
    }
    rewards.into()
}

/// The values of all rows at an update, as they are read.
pub(super) fn values(
    shape: &Shape,
    case: &CriticStepCase,
    update: usize,
    read: Read,
) -> Array2<f64> {
    let held = shape.logits(&case.values, update);
    Array2::from_shape_fn(case.tokens.dim(), |(row, at)| {
        read(at).and_then(|place| held.get([row, place, 0])).copied().unwrap_or(UNKNOWN)
    })
}

/// The rewards of the tokens of some rows.
pub(super) fn rewards(
    case: &CriticStepCase,
    rows: &[usize],
    options: &Options,
    dtype: Dtype,
    part: &Part<TokenRewards>,
) -> Array2<f64> {
    let scores = case.scores.as_ref().expect("rewards are made of scores");
    let mask = case.mask.select(Axis(0), rows);
    let none = Array2::zeros(mask.dim());
    let kls = case.kls.as_ref().map(|kls| kls.select(Axis(0), rows));
    let asked = TokenRewardsCase {
        scores: scores.select(Axis(0), rows),
        log_probs: kls.unwrap_or_else(|| none.clone()),
        ref_log_probs: none,
        mask,
        finished: None,
    };
    part(&asked, &options.rewards(), dtype).rewards
}

/// The targets of all rows of a generation, and zeros for all others.
fn targets(batch: &Batch<'_>, dtype: Dtype, parts: &Parts) -> Array2<f64> {
    let Batch { case, options, shape, update, .. } = *batch;
    if let Some(returns) = case.returns.as_ref().filter(|_| options.targets == Targets::Given) {
        let old = values(shape, case, (parts.old[1])(shape, options, update), parts.reads[0]);
        let advantages = returns - &old;
        return (parts.targets)(GaeOutput { advantages, returns: returns.clone() }, &old);
    }
    let rows: Vec<usize> = shape.rows_of(shape.generation(update)).collect();
    let old = values(shape, case, (parts.old[1])(shape, options, update), parts.reads[0]);
    let asked = GaeCase {
        rewards: rewards(case, &rows, options, dtype, &parts.rewards),
        values: old.select(Axis(0), &rows),
        mask: case.mask.select(Axis(0), &rows),
    };
    let output = (parts.gae)(&asked, &options.gae(), dtype);
    let mut targets = Array2::zeros(case.tokens.dim());
    let own = s![rows[0]..rows[0] + rows.len(), ..];
    targets.slice_mut(own).assign(&(parts.targets)(output, &asked.values));
    targets
}

/// The gradients of all updates.
pub(super) fn step(
    case: &CriticStepCase,
    options: &Options,
    dtype: Dtype,
    parts: &Parts,
) -> CriticStepOutput {
    let (shape, updates) = (CriticStep::shape(case, options), options.plan().updates());
    let mut gradient = Array3::zeros((updates, shape.all_rows(), shape.width()));
    let mut unknown = Array1::zeros(updates);
    for update in 0..updates {
        let now = values(&shape, case, update, parts.reads[1]);
        let first = (parts.old[0])(&shape, options, update);
        let old = values(&shape, case, first, parts.reads[0]);
        let batches = shape.micro_batches(update);
        for (rows, share) in sets(&shape, update, options) {
            let batch = Batch { case, options, shape: &shape, update, rows: &rows };
            let [of_old, of_targets] = parts.companions.map(|companions| companions(&batch));
            let mask = (parts.mask)(&batch);
            let asked = ValueLossCase {
                values: now.select(Axis(0), &rows),
                old_values: old.select(Axis(0), &of_old),
                returns: targets(&batch, dtype, parts).select(Axis(0), &of_targets),
                mask,
            };
            let output = (parts.loss)(&asked, &options.loss(), dtype);
            let slopes = output.grad_values.expect("the reference gives its gradient");
            for ((of, at), slope) in slopes.indexed_iter() {
                let row = rows[of];
                let batch = batches.iter().position(|batch| batch.contains(&row)).unwrap_or(0);
                let slope = slope * share * (parts.factor)(options, batch);
                let place = (parts.reads[1])(at).filter(|place| *place < shape.width());
                match place.map(|place| shape.home(row, place)) {
                    Some([home, place]) => gradient[[update, home, place]] += slope,
                    None => unknown[update] += slope,
                }
            }
        }
    }
    CriticStepOutput {
        gradient: gradient.into_dyn(),
        micro_batches: Some(shape.all_micro_batches()),
        unknown: Some(unknown.mapv(f64::abs)),
    }
}
