//! `kl-estimate` on tensors: how far the policy has gone from the reference, token by token.

use shakedown::author::Component;
use shakedown::contracts::kl_estimate::{Estimator, Gradient, KlEstimate, Options};
use shakedown_tch::tch;
use tch::Tensor;

use crate::arithmetic;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<KlEstimate> {
    tch::<KlEstimate>(move |case| kl_estimate(&case.log_probs, &case.ref_log_probs, &options))
}

/// An estimate of KL(policy ‖ reference) from each token that the policy sampled; differentiable
/// by the log-probabilities of the policy alone.
///
/// # Shapes
/// Both log-probabilities, and the result, `[N, T]`.
///
/// # Units
/// Nats. Half formats are answered in f32.
///
/// # Errors
/// None.
///
/// # Source
/// Schulman 2020, Approximating KL Divergence, for the estimators. `gradient: k2` is verl's `k3+`:
/// the value of the estimator with the gradient of k2, which alone points where the divergence
/// falls. The clamps are verl's and OpenRLHF's.
pub fn kl_estimate(log_probs: &Tensor, ref_log_probs: &Tensor, options: &Options) -> Tensor {
    let kind = arithmetic(log_probs.kind());
    let gap = log_probs.to_kind(kind) - ref_log_probs.detach().to_kind(kind);
    let limited = match options.log_ratio_clamp {
        Some(limit) => gap.clamp(-limit, limit),
        None => gap.shallow_clone(),
    };
    let value = match options.clamp {
        Some(bounds) => clamped(&limited, options.estimator, bounds),
        None => estimate(&limited, options.estimator),
    };
    match options.gradient {
        Gradient::Value => value,
        Gradient::K2 => {
            let slope = estimate(&gap, Estimator::K2);
            value.detach() + (&slope - slope.detach())
        }
        Gradient::None => value.detach(),
    }
}

fn estimate(gap: &Tensor, estimator: Estimator) -> Tensor {
    match estimator {
        Estimator::K1 => gap.shallow_clone(),
        Estimator::Abs => gap.abs(),
        Estimator::K2 => gap.square() / 2.0,
        // expm1, because exp(-d) - 1 has no digits left where d is small.
        Estimator::K3 => (-gap).expm1() + gap,
    }
}

/// The estimate within bounds, with no gradient where a bound is reached. There the estimator is
/// not differentiated at all: its derivative may be infinite, and 0 times that is NaN.
fn clamped(gap: &Tensor, estimator: Estimator, [lo, hi]: [f64; 2]) -> Tensor {
    let value = estimate(&gap.detach(), estimator);
    let beyond = value.lt(lo).logical_or(&value.gt(hi));
    let inside = estimate(&gap.masked_fill(&beyond, 0.0), estimator);
    value.clamp(lo, hi).where_self(&beyond, &inside)
}
