//! `pair-objective` on tensors: preference losses of averages, odds, sides apart and ranks.

use shakedown::author::Component;
use shakedown::contracts::pair_objective as contract;
use shakedown::contracts::pair_objective::{Kind, Options, PairObjectiveOutput, Reduction};
use shakedown_tch::tch;
use tch::Tensor;

use crate::arithmetic;

/// The function below as a component.
pub fn component(options: Options) -> impl Component<contract::PairObjective> {
    tch::<contract::PairObjective>(move |case| {
        let side = |policy, reference, lengths| Side { policy, reference, lengths };
        let chosen = side(&case.policy_chosen, &case.ref_chosen, &case.chosen_lengths);
        let rejected = side(&case.policy_rejected, &case.ref_rejected, &case.rejected_lengths);
        let PairObjective { losses, chosen_rewards, rejected_rewards } =
            pair_objective(&chosen, &rejected, &options);
        let (losses, loss) = match options.reduction {
            Reduction::None => (Some(losses), None),
            Reduction::Mean => (None, Some(losses)),
        };
        PairObjectiveOutput {
            losses,
            loss,
            chosen_rewards: Some(chosen_rewards),
            rejected_rewards: Some(rejected_rewards),
            grad_policy_chosen: None,
            grad_policy_rejected: None,
        }
    })
}

/// The better or the worse completions of some pairs.
#[derive(Debug)]
pub struct Side<'a> {
    /// `[P]`: their log-probabilities under the policy that is trained, summed over tokens.
    pub policy: &'a Tensor,
    /// `[P]`: the same under the reference.
    pub reference: &'a Tensor,
    /// `[P]`: how many tokens they have.
    pub lengths: &'a Tensor,
}

/// What [`pair_objective()`] gives, of which the losses alone have a gradient.
#[derive(Debug)]
pub struct PairObjective {
    /// `[P]`, or a scalar with `reduction: mean`.
    pub losses: Tensor,
    /// `[P]`: the reward that the policy implies for the better completion.
    pub chosen_rewards: Tensor,
    /// `[P]`: and for the worse one.
    pub rejected_rewards: Tensor,
}

/// The numbers of a side that the losses are made of, in the arithmetic of the policy's dtype.
struct Terms {
    policy: Tensor,
    reference: Tensor,
    lengths: Tensor,
}

impl Terms {
    fn new(side: &Side<'_>) -> Terms {
        let kind = arithmetic(side.policy.kind());
        Terms {
            policy: side.policy.to_kind(kind),
            reference: side.reference.detach().to_kind(kind),
            lengths: side.lengths.to_kind(kind),
        }
    }

    fn ratio(&self) -> Tensor {
        &self.policy - &self.reference
    }

    fn average(&self) -> Tensor {
        &self.policy / &self.lengths
    }

    fn average_ratio(&self) -> Tensor {
        self.ratio() / &self.lengths
    }

    /// The logarithm of the odds of an average token.
    fn log_odds(&self) -> Tensor {
        let average = self.average();
        &average - (-average.expm1()).log()
    }

    fn reward(&self, options: &Options) -> Tensor {
        let counts = match options.kind {
            Kind::Orpo | Kind::Simpo => self.average(),
            _ => self.ratio(),
        };
        counts.detach() * options.beta
    }
}

/// The loss of each pair; differentiable by the log-probabilities of the policy.
///
/// # Shapes
/// `P` pairs, as in [`Side`] and [`PairObjective`].
///
/// # Units
/// Nats, but for squares and probabilities, which have none. Half formats are answered in f32.
///
/// # Errors
/// None.
///
/// # Source
/// Hong et al. 2024 (`orpo`); Meng et al. 2024 (`simpo`); Lambert et al. 2024 (`sigmoid-norm`);
/// Azar et al. 2023 (`ipo-norm`); Chen et al. 2024 (`nca`); Jung et al. 2024 (`bco-pair`); Wu et
/// al. 2024 (`sppo-hard`); D'Oosterlinck et al. 2024 (`apo-zero`, `apo-down`); Ji et al. 2024
/// (`exo`); Melnyk et al. 2024 (`aot`, `aot-unpaired`).
pub fn pair_objective(chosen: &Side<'_>, rejected: &Side<'_>, options: &Options) -> PairObjective {
    let [chosen, rejected] = [chosen, rejected].map(Terms::new);
    let losses = losses(&chosen, &rejected, options);
    PairObjective {
        losses: match options.reduction {
            Reduction::None => losses,
            Reduction::Mean => losses.mean(None),
        },
        chosen_rewards: chosen.reward(options),
        rejected_rewards: rejected.reward(options),
    }
}

fn losses(chosen: &Terms, rejected: &Terms, options: &Options) -> Tensor {
    let (beta, target) = (options.beta, 0.5 / options.beta);
    let smoothed = |logits: Tensor| {
        let flipped = options.label_smoothing;
        logistic(&logits) * (1.0 - flipped) + logistic(&-&logits) * flipped
    };
    let [c, r] = [chosen.ratio() * beta, rejected.ratio() * beta];
    match options.kind {
        Kind::Orpo => {
            let of_odds = logistic(&(chosen.log_odds() - rejected.log_odds())) * beta;
            if options.sft { of_odds - chosen.average() } else { of_odds }
        }
        Kind::Simpo => smoothed((chosen.average() - rejected.average()) * beta - options.gamma),
        Kind::SigmoidNorm => smoothed((chosen.average_ratio() - rejected.average_ratio()) * beta),
        Kind::IpoNorm => (chosen.average_ratio() - rejected.average_ratio() - target).square(),
        Kind::Nca => logistic(&c) + (logistic(&-&c) + logistic(&-r)) * 0.5,
        Kind::BcoPair => logistic(&c) + logistic(&-r),
        Kind::SppoHard => (chosen.ratio() - target).square() + (rejected.ratio() + target).square(),
        Kind::ApoZero => (-c).sigmoid() + r.sigmoid(),
        Kind::ApoDown => c.sigmoid() + (r - &c).sigmoid(),
        Kind::Exo => divergence(&(c - r), options.label_smoothing),
        Kind::Aot => {
            let of_policy = sorted(&chosen.policy - &rejected.policy);
            let of_reference = sorted(&chosen.reference - &rejected.reference);
            smoothed((of_policy - of_reference) * beta)
        }
        Kind::AotUnpaired => smoothed((sorted(chosen.ratio()) - sorted(rejected.ratio())) * beta),
    }
}

/// -log σ(z).
fn logistic(logits: &Tensor) -> Tensor {
    -logits.log_sigmoid()
}

/// How far σ(z) is from 1 - ε, as the divergence of two outcomes.
fn divergence(logits: &Tensor, flipped: f64) -> Tensor {
    let term = |logits: &Tensor, share: f64| logits.sigmoid() * (logits.log_sigmoid() - share.ln());
    term(logits, 1.0 - flipped) + term(&-logits, flipped)
}

/// In ascending order.
fn sorted(numbers: Tensor) -> Tensor {
    numbers.sort(0, false).0
}
