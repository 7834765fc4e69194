//! `policy-loss` on tensors: clipped PPO, REINFORCE and CISPO, by token or by sequence, with KL.

use shakedown::author::Component;
use shakedown::contracts::kl_estimate;
use shakedown::contracts::kl_estimate::Estimator;
use shakedown::contracts::policy_loss as contract;
use shakedown::contracts::policy_loss::{
    ApproxKl, ClipBounds, KlEstimator, Objective, Options, PolicyLossOutput, Ratio,
};
use shakedown_tch::tch;
use tch::Tensor;

use crate::arithmetic;
use crate::kl::kl_estimate;
use crate::masked::{Reduction, mean, under};

/// The function below as a component.
pub fn component(options: Options) -> impl Component<contract::PolicyLoss> {
    tch::<contract::PolicyLoss>(move |case| {
        let inputs = Inputs {
            log_probs: &case.log_probs,
            old_log_probs: &case.old_log_probs,
            ref_log_probs: case.ref_log_probs.as_ref(),
            advantages: &case.advantages,
            mask: &case.mask,
        };
        let PolicyLoss { loss, clip_fraction, approx_kl, kl } = policy_loss(&inputs, &options);
        PolicyLossOutput {
            loss,
            clip_fraction,
            approx_kl: Some(approx_kl),
            kl,
            grad_log_probs: None,
        }
    })
}

/// What the loss is made of.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// `[N, T]`: of the policy that is trained.
    pub log_probs: &'a Tensor,
    /// `[N, T]`: of the policy that sampled.
    pub old_log_probs: &'a Tensor,
    /// `[N, T]`: of the policy to stay close to; needed where `beta` > 0.
    pub ref_log_probs: Option<&'a Tensor>,
    /// `[N, T]`, or `[N]` for one a row.
    pub advantages: &'a Tensor,
    /// `[N, T]`: true where the policy chose the token.
    pub mask: &'a Tensor,
}

/// What [`policy_loss()`] gives: scalars, of which the loss alone has a gradient.
#[derive(Debug)]
pub struct PolicyLoss {
    /// To be minimised.
    pub loss: Tensor,
    /// The share of tokens whose ratio is clipped; of `ppo-clip` alone.
    pub clip_fraction: Option<Tensor>,
    /// How far the policy has gone from the one that sampled.
    pub approx_kl: Tensor,
    /// The divergence from the reference, not scaled by `beta`.
    pub kl: Option<Tensor>,
}

/// The loss of the policy on tokens that an older one sampled; differentiable by `log_probs`.
///
/// Ratios are clipped as logarithms, before the exponential: what is clipped away never
/// overflows, and its gradient is 0, not 0 times infinity.
///
/// # Shapes
/// `N` rows of `T` tokens, as in [`Inputs`]; the results are scalars.
///
/// # Units
/// Log-probabilities, `approx_kl` and `kl` in nats; the loss in those of the advantages. Half
/// formats are answered in f32.
///
/// # Errors
/// Panics where `ref_log_probs` or `norm_length` is missing, and without a token with
/// `empty_mask: refuse`.
///
/// # Source
/// Schulman et al. 2017 (`ppo-clip`); Ye et al. 2020 (`dual_clip`); Yu et al. 2025, DAPO (two clip
/// ranges, `token-mean`); Zheng et al. 2025, GSPO (`sequence`, `sequence-token`); MiniMax 2025
/// (`cispo`); Williams 1992 (`reinforce`).
pub fn policy_loss(inputs: &Inputs<'_>, options: &Options) -> PolicyLoss {
    let mask = inputs.mask;
    let kind = arithmetic(inputs.log_probs.kind());
    let counted = |numbers: &Tensor| under(mask, &numbers.to_kind(kind));
    let log_probs = counted(inputs.log_probs);
    let old_log_probs = counted(&inputs.old_log_probs.detach());
    let advantages = match inputs.advantages.dim() {
        1 => inputs.advantages.unsqueeze(1).expand_as(mask),
        _ => inputs.advantages.shallow_clone(),
    };
    let advantages = counted(&advantages.detach());
    let reduction = Reduction {
        aggregate: options.aggregate,
        norm_length: options.norm_length,
        empty_rows: options.empty_rows,
        empty_mask: options.empty_mask,
    };

    let log_ratio = log_ratio(&log_probs, &old_log_probs, mask, options);
    let policy = match options.objective {
        Objective::PpoClip => surrogate(&log_ratio, &advantages, options),
        Objective::Reinforce => -&advantages * &log_probs,
        Objective::Cispo => -weight(&log_ratio, options) * &advantages * &log_probs,
    };
    let mut loss = reduction.of(&policy, mask);
    let kl = inputs.ref_log_probs.map(|ref_log_probs| {
        reduction.of(&kl_estimate(&log_probs, &counted(ref_log_probs), &kl_options(options)), mask)
    });
    if options.beta > 0.0 {
        let kl = kl.as_ref().expect("`beta` > 0 requires `ref_log_probs`");
        loss += kl * options.beta;
    }

    let clip_fraction = (options.objective == Objective::PpoClip).then(|| {
        let clipped = clipped(&log_ratio, &advantages, options).to_kind(kind);
        mean(&clipped, mask, options.empty_mask)
    });
    let drift = drift(&(&log_probs - &old_log_probs).detach(), options.approx_kl);
    let approx_kl = mean(&drift, mask, options.empty_mask);
    PolicyLoss { loss, clip_fraction, approx_kl, kl: kl.map(|kl| kl.detach()) }
}

/// `[N, T]`: the logarithm of the ratio of the policies, as each token counts it.
fn log_ratio(log_probs: &Tensor, old: &Tensor, mask: &Tensor, options: &Options) -> Tensor {
    let by_token = log_probs - old;
    let log_ratio = match options.ratio {
        Ratio::Token => by_token,
        Ratio::Sequence => row_mean(&by_token, mask),
        // The value of the row with the derivative of the token.
        Ratio::SequenceToken => {
            row_mean(&by_token, mask).detach() + (log_probs - log_probs.detach())
        }
    };
    match options.log_ratio_clamp {
        Some(limit) => log_ratio.clamp(-limit, limit),
        None => log_ratio,
    }
}

/// `[N, T]`: the mean of the row's tokens at each of them; 0 for a row without any.
fn row_mean(numbers: &Tensor, mask: &Tensor) -> Tensor {
    let lengths = mask.sum_dim_intlist(1, true, numbers.kind()).clamp_min(1.0);
    (under(mask, numbers).sum_dim_intlist(1, true, None) / lengths).expand_as(mask)
}

/// -A·min(ρ, 1 + high) for A > 0 and -A·max(ρ, 1 - low) for A < 0, there with ρ at most c.
fn surrogate(log_ratio: &Tensor, advantages: &Tensor, options: &Options) -> Tensor {
    let (lower, upper) = bounds(options);
    let gain = log_ratio.clamp_max(upper);
    let harm = match options.dual_clip {
        Some(limit) => log_ratio.clamp(lower, limit.ln().max(lower)),
        None => log_ratio.clamp_min(lower),
    };
    let nothing = log_ratio.zeros_like();
    let exponent =
        gain.where_self(&advantages.gt(0.0), &harm).where_self(&advantages.ne(0.0), &nothing);
    times_exp(&-advantages, &exponent)
}

/// Where the clipped branch of [`surrogate`] is the larger one.
fn clipped(log_ratio: &Tensor, advantages: &Tensor, options: &Options) -> Tensor {
    let (lower, upper) = bounds(options);
    let gain = advantages.gt(0.0).logical_and(&log_ratio.gt(upper));
    let harm = advantages.lt(0.0).logical_and(&log_ratio.lt(lower));
    gain.logical_or(&harm)
}

/// The clipped ratio as a constant.
fn weight(log_ratio: &Tensor, options: &Options) -> Tensor {
    let (lower, upper) = bounds(options);
    log_ratio.detach().clamp(lower, upper).exp()
}

/// The logarithms of the clip range.
fn bounds(options: &Options) -> (f64, f64) {
    match options.clip_bounds {
        ClipBounds::Relative => {
            ((1.0 - options.clip_low).max(0.0).ln(), (1.0 + options.clip_high).ln())
        }
        ClipBounds::Absolute => (f64::NEG_INFINITY, options.clip_high.ln()),
    }
}

/// `factor · exp(exponent)`, in two halves: finite wherever the product is, also where the
/// exponential alone would not be.
fn times_exp(factor: &Tensor, exponent: &Tensor) -> Tensor {
    let half = (exponent / 2.0).exp();
    factor * &half * half
}

fn kl_options(options: &Options) -> kl_estimate::Options {
    kl_estimate::Options {
        estimator: match options.kl_estimator {
            KlEstimator::K1 => Estimator::K1,
            KlEstimator::K2 => Estimator::K2,
            KlEstimator::K3 => Estimator::K3,
            KlEstimator::Abs => Estimator::Abs,
        },
        log_ratio_clamp: options.kl_log_ratio_clamp,
        clamp: options.kl_clamp,
        ..Default::default()
    }
}

/// KL(old ‖ new) as each token that the old policy sampled estimates it.
fn drift(log_ratio: &Tensor, estimator: ApproxKl) -> Tensor {
    match estimator {
        ApproxKl::K1 => -log_ratio,
        ApproxKl::K2 => log_ratio.square() / 2.0,
        ApproxKl::K3 => log_ratio.expm1() - log_ratio,
    }
}
