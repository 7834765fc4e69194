//! The reference implementation of `preference-loss`, as a trainer would write it.

use ndarray::{Array1, arr0};

use super::{Kind, Options, PreferenceLossCase, PreferenceLossOutput, Reduction};
use shakedown_core::value::place::Dtype;

/// The losses, their gradients and the implicit rewards, in the arithmetic of the dtype.
pub(super) fn loss(
    case: &PreferenceLossCase,
    options: &Options,
    dtype: Dtype,
) -> PreferenceLossOutput {
    let f = |x: f64| dtype.arithmetic().round(x);
    let (beta, gamma) = (f(options.beta), f(options.margin));
    let smoothing = f(options.label_smoothing);
    let softplus = |x: f64| f(x.max(0.0) + f(f((-x.abs()).exp()).ln_1p()));
    let sigmoid = |x: f64| {
        let small = f((-x.abs()).exp());
        f((if x >= 0.0 { 1.0 } else { small }) / f(1.0 + small))
    };
    let pairs = case.policy_chosen.len();
    let count = match options.reduction {
        Reduction::None => 1.0,
        Reduction::Mean => pairs as f64,
    };
    let mut losses = Array1::zeros(pairs);
    let mut gradient = Array1::zeros(pairs);
    for at in 0..pairs {
        let mut margin = f(case.policy_chosen[at] - case.policy_rejected[at]);
        if !options.reference_free {
            margin = f(margin - f(case.ref_chosen[at] - case.ref_rejected[at]));
        }
        let z = f(f(beta * margin) - gamma);
        let (loss, slope) = match options.kind {
            Kind::Sigmoid => (
                f(f((1.0 - smoothing) * softplus(-z)) + f(smoothing * softplus(z))),
                f(beta * f(smoothing - sigmoid(-z))),
            ),
            Kind::Robust => {
                let whole = f(1.0 - 2.0 * smoothing);
                let sum = |a: f64, b: f64| f(f((1.0 - smoothing) * a) + f(smoothing * b));
                (
                    f(sum(softplus(-z), -softplus(z)) / whole),
                    f(-beta * f(sum(sigmoid(-z), sigmoid(z)) / whole)),
                )
            }
            Kind::Hinge => (f(1.0 - z).max(0.0), if z < 1.0 { -beta } else { 0.0 }),
            Kind::Ipo => {
                let away = f(margin - f(1.0 / f(2.0 * beta)));
                (f(away * away), f(2.0 * away))
            }
        };
        losses[at] = loss;
        gradient[at] = f(slope / count);
    }
    let mean = f(losses.iter().fold(0.0, |sum, loss| f(sum + loss)) / pairs as f64);
    let rewards = |policy: &Array1<f64>, reference: &Array1<f64>| {
        Some(policy.iter().zip(reference).map(|(p, r)| f(beta * f(p - r))).collect())
    };
    PreferenceLossOutput {
        losses: (options.reduction == Reduction::None).then_some(losses),
        loss: (options.reduction == Reduction::Mean).then(|| arr0(mean)),
        chosen_rewards: rewards(&case.policy_chosen, &case.ref_chosen),
        rejected_rewards: rewards(&case.policy_rejected, &case.ref_rejected),
        grad_policy_rejected: Some(-&gradient),
        grad_policy_chosen: Some(gradient),
    }
}
