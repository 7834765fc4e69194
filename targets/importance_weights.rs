//! `importance-weights` on tensors: what corrects for a sampler that is not quite the policy.

use shakedown::author::Component;
use shakedown::author::conventions::EmptyMask;
use shakedown::contracts::importance_weights as contract;
use shakedown::contracts::importance_weights::{
    ImportanceWeightsOutput, Level, Normalize, Options, Rejected, Select,
};
use shakedown_tch::tch;
use tch::{Kind, Tensor};

use crate::arithmetic;
use crate::masked::{mean, under};

/// The function below as a component.
pub fn component(options: Options) -> impl Component<contract::ImportanceWeights> {
    tch::<contract::ImportanceWeights>(move |case| {
        let ImportanceWeights { weights, keep, clip_fraction, mismatch_kl } = importance_weights(
            &case.log_probs,
            &case.sampler_log_probs,
            &case.mask,
            case.advantages.as_ref(),
            &options,
        );
        ImportanceWeightsOutput {
            weights,
            keep: Some(keep),
            clip_fraction: Some(clip_fraction),
            mismatch_kl: Some(mismatch_kl),
            grad_log_probs: None,
        }
    })
}

/// What [`importance_weights()`] gives, without a gradient.
#[derive(Debug)]
pub struct ImportanceWeights {
    /// What the loss of each token is multiplied by, `[N, T]`.
    pub weights: Tensor,
    /// Which tokens count and are not dropped, `[N, T]`.
    pub keep: Tensor,
    /// The share of tokens that are clamped or dropped.
    pub clip_fraction: Tensor,
    /// The mean of sampler less policy.
    pub mismatch_kl: Tensor,
}

/// Weights for tokens that an inference engine sampled, as if the policy had.
///
/// # Shapes
/// `N` rows of `T` tokens: both log-probabilities and the mask `[N, T]`, advantages `[N]`; weights
/// and keep `[N, T]`, 0 where masked, and two scalars.
///
/// # Units
/// Log-probabilities and `mismatch_kl` in nats. Half formats are answered in f32.
///
/// # Errors
/// Panics with `drift` where there are no advantages, and without a token with
/// `empty_mask: refuse`.
///
/// # Source
/// Yao et al. 2025, Your Efficient RL Framework Secretly Brings You Off-Policy RL Training, for
/// truncated weights; verl `rollout_corr_helper.py` for levels, bounds and the division by a mean.
pub fn importance_weights(
    log_probs: &Tensor,
    sampler_log_probs: &Tensor,
    mask: &Tensor,
    advantages: Option<&Tensor>,
    options: &Options,
) -> ImportanceWeights {
    let kind = arithmetic(log_probs.kind());
    let policy = under(mask, &log_probs.detach().to_kind(kind));
    let sampler = under(mask, &sampler_log_probs.detach().to_kind(kind));
    let gaps = policy - sampler;
    let lengths = mask.sum_dim_intlist(1, true, kind).clamp_min(1.0);
    let row_means = gaps.sum_dim_intlist(1, true, None) / &lengths;

    let ratio = ratios(&gaps, &lengths, options.level, options);
    let mut weights = ratio.shallow_clone();
    if let Some(low) = options.clamp_low {
        weights = weights.clamp_min(low);
    }
    if let Some(high) = options.clamp_high {
        weights = weights.clamp_max(high);
    }
    let clamped = weights.ne_tensor(&ratio);

    let mut dropped = outside(&gaps, &lengths, options);
    if let Some(v) = options.veto {
        let unlikely = gaps.exp().lt(v).logical_and(mask);
        dropped = dropped.logical_or(&unlikely.any_dim(1, true));
    }
    if let Some(limit) = options.drift {
        let advantages = advantages.expect("`drift` asks for advantages").unsqueeze(1);
        let drifted = (-row_means).gt(limit).logical_and(&advantages.lt(0.0));
        dropped = dropped.logical_or(&drifted);
    }
    let keep = mask.logical_and(&dropped.logical_not());
    let counted = match options.rejected {
        Rejected::Zero => &keep,
        Rejected::Unchanged => mask,
    };
    // Replaced, not multiplied: the ratio of what is dropped may be infinite.
    let weights = normalized(&under(counted, &weights), mask, options.normalize);

    let clipped = clamped.logical_or(&dropped).to_kind(kind);
    ImportanceWeights {
        weights,
        clip_fraction: mean(&clipped, mask, options.empty_mask),
        mismatch_kl: mean(&-gaps, mask, options.empty_mask),
        keep,
    }
}

/// The ratios on a level, at each token.
fn ratios(gaps: &Tensor, lengths: &Tensor, level: Level, options: &Options) -> Tensor {
    let exponent = match level {
        Level::Token => gaps.shallow_clone(),
        Level::Sequence => gaps.sum_dim_intlist(1, true, None).expand_as(gaps),
        Level::Geometric => (gaps.sum_dim_intlist(1, true, None) / lengths).expand_as(gaps),
    };
    match options.log_ratio_clamp {
        Some(limit) => exponent.clamp(-limit, limit).exp(),
        None => exponent.exp(),
    }
}

/// Which tokens are outside the bounds of the ratio that selects.
fn outside(gaps: &Tensor, lengths: &Tensor, options: &Options) -> Tensor {
    let level = match options.select {
        Select::None => return gaps.zeros_like().to_kind(Kind::Bool),
        Select::Token => Level::Token,
        Select::Sequence => Level::Sequence,
        Select::Geometric => Level::Geometric,
    };
    let ratio = ratios(gaps, lengths, level, options);
    let below = ratio.lt(options.select_low.unwrap_or(0.0));
    match options.select_high {
        Some(high) => below.logical_or(&ratio.gt(high)),
        None => below,
    }
}

/// The weights divided by their mean, where that is positive.
fn normalized(weights: &Tensor, mask: &Tensor, normalize: Normalize) -> Tensor {
    let mean = match normalize {
        Normalize::None => return weights.shallow_clone(),
        Normalize::Tokens => mean(weights, mask, EmptyMask::Zero),
        Normalize::Sequences => {
            let lengths = mask.sum_dim_intlist(1, false, weights.kind());
            let sums = weights.sum_dim_intlist(1, false, None);
            mean(&(sums / lengths.clamp_min(1.0)), &lengths.gt(0.0), EmptyMask::Zero)
        }
    };
    let divisor = mean.where_self(&mean.gt(0.0), &mean.ones_like());
    weights / divisor
}
