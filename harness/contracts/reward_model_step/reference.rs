//! The reference implementation of `reward-model-step`. A fault replaces one of its parts.

use std::sync::Arc;

use ndarray::{Array1, Array4, IxDyn};

use super::{
    Options, RewardModelStep, RewardModelStepCase, RewardModelStepOutput, as_preferences, ends,
};
use crate::preference_loss::PreferenceLoss;
use crate::step;
use shakedown_core::contract::step::{Part, Stepped, reference};
use shakedown_core::value::place::Dtype;

/// The score of what is no completion of the case, as the stand-in for a model has it.
pub(super) const UNKNOWN: f64 = -20.0;

/// What there is to choose a token by, whose score is that of a row.
pub(super) struct Rows<'a> {
    /// The place of each row's end.
    pub(super) ends: &'a [usize],
    /// The rows of the micro-batch.
    pub(super) batch: &'a [usize],
    /// The places of each row.
    pub(super) width: usize,
    pub(super) options: &'a Options,
}

/// The place whose score is that of a row; `None` where it is no token of the completion.
pub(super) type Pooling = Arc<dyn Fn(&Rows<'_>, usize) -> Option<usize> + Send + Sync>;

/// What a step is made of.
pub(super) struct Parts {
    pub(super) pooled: Pooling,
    /// What is made of a score, and the slope of it.
    pub(super) seen: fn(f64) -> [f64; 2],
    /// The rows that are taken for the chosen and the rejected ones, of the pairs of a micro-batch.
    pub(super) sides: fn(&[usize]) -> [Vec<usize>; 2],
    /// The loss without its centre.
    pub(super) loss: Part<PreferenceLoss>,
    /// The slopes of the centre by a chosen and a rejected score, for a coefficient of 1.
    pub(super) center: fn([f64; 2], usize) -> [f64; 2],
    /// What the gradient of a micro-batch is multiplied by, given its place in the update.
    pub(super) factor: fn(&Options, usize) -> f64,
}

/// All parts right.
pub(super) fn right() -> Parts {
    Parts {
        pooled: Arc::new(at_the_end),
        seen: |score| [score, 1.0],
        sides: |pairs| [0, 1].map(|side| pairs.iter().map(|pair| 2 * pair + side).collect()),
        loss: reference::<PreferenceLoss>(),
        center: |[chosen, rejected], pairs| [2.0 * (chosen + rejected) / pairs as f64; 2],
        factor: |_, _| 1.0,
    }
}

/// The place of a row's score.
pub(super) fn at_the_end(rows: &Rows<'_>, row: usize) -> Option<usize> {
    rows.ends[row].checked_sub(usize::from(rows.options.skips_the_end()))
}

/// The gradients of all updates.
pub(super) fn step(
    case: &RewardModelStepCase,
    options: &Options,
    dtype: Dtype,
    parts: &Parts,
) -> RewardModelStepOutput {
    let f = |x: f64| dtype.arithmetic().round(x);
    let (shape, updates) = (RewardModelStep::shape(case, options), options.plan().updates());
    let ends = ends(case, options);
    let mut gradient = Array4::zeros((updates, shape.all_rows(), shape.width(), 1));
    let mut unknown = Array1::zeros(updates);
    for update in 0..updates {
        let scores = shape.logits(&case.scores, update);
        let batches = shape.micro_batches(update);
        for (at, batch) in batches.iter().enumerate() {
            let share = (parts.factor)(options, at) / batches.len() as f64;
            let rows = Rows { ends: &ends, batch, width: shape.width(), options };
            let pooled = |row| (parts.pooled)(&rows, row).filter(|place| *place < rows.width);
            let score = |row| pooled(row).map_or(UNKNOWN, |place| scores[[row, place, 0]]);
            let pairs = step::pairs(batch);
            let sides = (parts.sides)(&pairs);
            let seen = |row: &usize| f((parts.seen)(score(*row))[0]);
            let values = [0, 1].map(|side| sides[side].iter().map(seen).collect());
            let asked = as_preferences(case, &pairs, values);
            let output = (parts.loss)(&asked, &options.loss(), dtype);
            let by_score = [output.grad_policy_chosen, output.grad_policy_rejected]
                .map(|gradient| gradient.expect("the reference gives its gradient"));
            for of in 0..pairs.len() {
                let both = [asked.policy_chosen[of], asked.policy_rejected[of]];
                let center = (parts.center)(both, pairs.len());
                for side in 0..2 {
                    let row = sides[side][of];
                    let [_, slope] = (parts.seen)(score(row));
                    let by_score = f(by_score[side][of] + f(options.center * center[side]));
                    let sum = match pooled(row).map(|place| shape.home(row, place)) {
                        Some([home, place]) => &mut gradient[[update, home, place, 0]],
                        None => &mut unknown[update],
                    };
                    *sum = f(*sum + f(by_score * slope) * share);
                }
            }
        }
    }
    let gradient = gradient.into_dyn().into_shape_with_order(IxDyn(case.scores.shape()));
    RewardModelStepOutput {
        gradient: gradient.expect("a score for each token"),
        micro_batches: Some(shape.all_micro_batches()),
        unknown: Some(unknown.mapv(f64::abs)),
    }
}
