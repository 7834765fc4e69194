//! The reference implementation of `sft-step`. A fault replaces one of its parts.

use ndarray::{Array1, Array2, Array4, Axis, IxDyn};

use super::{Loss, Options, Over, SftStep, SftStepCase, SftStepOutput};
use crate::token_log_probs::{self, TokenLogProbs, TokenLogProbsCase};
use shakedown_core::contract::step::{Part, Stepped, reference};
use shakedown_core::numeric::conventions::EmptyRows;
use shakedown_core::value::place::Dtype;

/// What a step is made of.
pub(super) struct Parts {
    pub(super) log_probs: Part<TokenLogProbs>,
    /// What the gradient of an update is multiplied by.
    pub(super) factor: fn(&Options) -> f64,
    /// What a token's gradient is multiplied by, given its log-probability.
    pub(super) slope: fn(&Options, f64) -> f64,
    /// How many tokens are counted, given which are trained and those of the case.
    pub(super) counted: fn(&Array2<bool>, &Array2<i64>, &Options) -> f64,
}

/// All parts right.
pub(super) fn right() -> Parts {
    Parts {
        log_probs: reference::<TokenLogProbs>(),
        factor: |_| 1.0,
        slope: |options, log_prob| match options.loss {
            Loss::Nll => 1.0,
            Loss::Dft => log_prob.exp(),
        },
        counted: |mask, _, _| mask.iter().filter(|trained| **trained).count() as f64,
    }
}

/// The gradients of all updates.
pub(super) fn step(
    case: &SftStepCase,
    options: &Options,
    dtype: Dtype,
    parts: &Parts,
) -> SftStepOutput {
    let (shape, plan) = (SftStep::shape(case, options), options.plan());
    let (updates, vocabulary) = (plan.updates(), case.logits.shape()[3]);
    let mut gradient = Array4::zeros((updates, shape.all_rows(), shape.width(), vocabulary));
    for update in 0..updates {
        let tokens = shape.tokens.clone();
        let scored = TokenLogProbsCase { logits: shape.logits(&case.logits, update), tokens };
        let scored = (parts.log_probs)(&scored, &token_log_probs::Options::default(), dtype);
        let slopes = scored.grad_logits.expect("the reference gives its gradient");
        let batches = shape.micro_batches(update);
        let (sets, share) = match options.over {
            Over::Update => (vec![batches.concat()], 1.0),
            Over::MicroBatch => (batches.clone(), 1.0 / batches.len() as f64),
        };
        for rows in sets {
            let mask = case.mask.select(Axis(0), &rows);
            let Some(weights) = options.aggregate.weights(&mask, EmptyRows::Count, None) else {
                continue;
            };
            let tokens = shape.tokens.select(Axis(0), &rows);
            let trained = mask.iter().filter(|trained| **trained).count() as f64;
            let recounted = trained / (parts.counted)(&mask, &tokens, options);
            let share = share * recounted * (parts.factor)(options);
            shape.add(&mut gradient, update, &rows, |[of, at], [row, id]| {
                let slope = (parts.slope)(options, scored.log_probs[[row, at]]);
                -weights[[of, at]] * share * slope * slopes[[row, at, id]]
            });
        }
    }
    let gradient = gradient.into_dyn().into_shape_with_order(IxDyn(case.logits.shape()));
    SftStepOutput {
        gradient: gradient.expect("a row of the table for each place"),
        micro_batches: Some(shape.all_micro_batches()),
        unknown: Some(Array1::zeros(updates)),
    }
}
