//! `preference-loss` on tensors: DPO and its relatives, from the log-probabilities of completions.

use shakedown::author::Component;
use shakedown::contracts::preference_loss as contract;
use shakedown::contracts::preference_loss::{Kind, Options, PreferenceLossOutput, Reduction};
use shakedown_tch::tch;
use tch::{Kind as Dtype, Tensor};

use crate::arithmetic;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<contract::PreferenceLoss> {
    tch::<contract::PreferenceLoss>(move |case| {
        let pairs = Pairs {
            policy_chosen: &case.policy_chosen,
            policy_rejected: &case.policy_rejected,
            ref_chosen: &case.ref_chosen,
            ref_rejected: &case.ref_rejected,
        };
        let PreferenceLoss { losses, chosen_rewards, rejected_rewards } =
            preference_loss(&pairs, &options);
        let (losses, loss) = match options.reduction {
            Reduction::None => (Some(losses), None),
            Reduction::Mean => (None, Some(losses)),
        };
        PreferenceLossOutput {
            losses,
            loss,
            chosen_rewards: Some(chosen_rewards),
            rejected_rewards: Some(rejected_rewards),
            grad_policy_chosen: None,
            grad_policy_rejected: None,
        }
    })
}

/// The log-probabilities of pairs of completions.
#[derive(Debug)]
pub struct Pairs<'a> {
    /// `[P]`: of the better completion, under the policy that is trained.
    pub policy_chosen: &'a Tensor,
    /// `[P]`: of the worse one.
    pub policy_rejected: &'a Tensor,
    /// `[P]`: of the better one, under the reference.
    pub ref_chosen: &'a Tensor,
    /// `[P]`: of the worse one.
    pub ref_rejected: &'a Tensor,
}

/// What [`preference_loss()`] gives, of which the losses alone have a gradient.
#[derive(Debug)]
pub struct PreferenceLoss {
    /// `[P]`, or a scalar with `reduction: mean`.
    pub losses: Tensor,
    /// `[P]`: the reward that the policy implies for the better completion.
    pub chosen_rewards: Tensor,
    /// `[P]`: and for the worse one.
    pub rejected_rewards: Tensor,
}

/// The loss of each pair; differentiable by the log-probabilities of the policy.
///
/// # Shapes
/// `P` pairs, as in [`Pairs`] and [`PreferenceLoss`].
///
/// # Units
/// Nats, but for `hinge` and `ipo`, which have none. Half formats are answered in f32.
///
/// # Errors
/// None.
///
/// # Source
/// Rafailov et al. 2023 (`sigmoid`); Zhao et al. 2023, SLiC (`hinge`); Azar et al. 2023 (`ipo`);
/// Ray Chowdhury et al. 2024 (`robust`); Mitchell 2023 (`label_smoothing`); Meng et al. 2024,
/// SimPO (`margin`, `reference_free`).
pub fn preference_loss(pairs: &Pairs<'_>, options: &Options) -> PreferenceLoss {
    let kind = arithmetic(pairs.policy_chosen.kind());
    let chosen = log_ratio(pairs.policy_chosen, pairs.ref_chosen, kind);
    let rejected = log_ratio(pairs.policy_rejected, pairs.ref_rejected, kind);
    let gap = if options.reference_free {
        pairs.policy_chosen.to_kind(kind) - pairs.policy_rejected.to_kind(kind)
    } else {
        &chosen - &rejected
    };
    let losses = of_gap(&gap, options);
    PreferenceLoss {
        losses: match options.reduction {
            Reduction::None => losses,
            Reduction::Mean => losses.mean(None),
        },
        chosen_rewards: chosen.detach() * options.beta,
        rejected_rewards: rejected.detach() * options.beta,
    }
}

fn log_ratio(policy: &Tensor, reference: &Tensor, kind: Dtype) -> Tensor {
    policy.to_kind(kind) - reference.detach().to_kind(kind)
}

fn of_gap(gap: &Tensor, options: &Options) -> Tensor {
    let (beta, flipped) = (options.beta, options.label_smoothing);
    let scaled = gap * beta;
    match options.kind {
        Kind::Sigmoid => {
            let logits = scaled - options.margin;
            -logits.log_sigmoid() * (1.0 - flipped) - (-logits).log_sigmoid() * flipped
        }
        Kind::Robust => {
            let agreed = -scaled.log_sigmoid() * (1.0 - flipped);
            (agreed + (-scaled).log_sigmoid() * flipped) / (1.0 - 2.0 * flipped)
        }
        Kind::Hinge => (-scaled + 1.0).relu(),
        Kind::Ipo => (gap - 0.5 / beta).square(),
    }
}
