//! `value-loss` on tensors: the squared error of the value function, clipped around its old values.

use shakedown::author::Component;
use shakedown::contracts::value_loss as contract;
use shakedown::contracts::value_loss::{Options, ValueLossOutput};
use shakedown_tch::tch;
use tch::Tensor;

use crate::arithmetic;
use crate::masked::{Reduction, mean, under};

/// The function below as a component.
pub fn component(options: Options) -> impl Component<contract::ValueLoss> {
    tch::<contract::ValueLoss>(move |case| {
        let ValueLoss { loss, clip_fraction } =
            value_loss(&case.values, &case.old_values, &case.returns, &case.mask, &options);
        ValueLossOutput { loss, clip_fraction, grad_values: None }
    })
}

/// What [`value_loss()`] gives: scalars, of which the loss alone has a gradient.
#[derive(Debug)]
pub struct ValueLoss {
    /// To be minimised.
    pub loss: Tensor,
    /// The share of tokens at which the clipped error is the larger one; with `clip` alone.
    pub clip_fraction: Option<Tensor>,
}

/// The loss of the value function against the returns; differentiable by `values`.
///
/// # Shapes
/// `N` rows of `T` tokens: values, old values, returns and mask `[N, T]`; the results are scalars.
///
/// # Units
/// The square of those of the returns. Half formats are answered in f32.
///
/// # Errors
/// Panics where `norm_length` is missing, and without a token with `empty_mask: refuse`.
///
/// # Source
/// The PPO implementation of Dhariwal et al. 2017, OpenAI Baselines; verl `compute_value_loss`.
pub fn value_loss(
    values: &Tensor,
    old_values: &Tensor,
    returns: &Tensor,
    mask: &Tensor,
    options: &Options,
) -> ValueLoss {
    let kind = arithmetic(values.kind());
    let counted = |numbers: &Tensor| under(mask, &numbers.to_kind(kind));
    let values = counted(values);
    let old_values = counted(&old_values.detach());
    let returns = counted(&returns.detach());
    let reduction = Reduction {
        aggregate: options.aggregate,
        norm_length: options.norm_length,
        empty_rows: options.empty_rows,
        empty_mask: options.empty_mask,
    };

    let plain = (&values - &returns).square();
    let Some(clip) = options.clip else {
        let loss = reduction.of(&plain, mask) * options.factor;
        return ValueLoss { loss, clip_fraction: None };
    };
    let near = values.clamp_tensor(Some(&old_values - clip), Some(&old_values + clip));
    let clipped = (near - returns).square();
    let larger = clipped.gt_tensor(&plain);
    ValueLoss {
        loss: reduction.of(&clipped.where_self(&larger, &plain), mask) * options.factor,
        clip_fraction: Some(mean(&larger.to_kind(kind), mask, options.empty_mask)),
    }
}
