//! The reference implementation of `pair-objective`, as a trainer would write it. Gradients come
//! from a tape, as they do there.

use ndarray::{Array1, arr0};

use super::{Kind, Options, PairObjectiveCase, PairObjectiveOutput, Reduction};
use shakedown_core::numeric::tape::{Tape, Var};
use shakedown_core::value::place::Dtype;

/// log(1 + e^x), stable, and its slope too: of max(x, 0) nothing is left where x is negative.
pub(super) fn softplus(x: Var<'_>) -> Var<'_> {
    x.max(x * 0.0) + ((-x.abs()).exp() + 1.0).ln()
}

/// -log σ(z).
pub(super) fn logistic(z: Var<'_>) -> Var<'_> {
    softplus(-z)
}

/// 1 / (1 + e^{-x}), of which e to a large power never becomes part.
pub(super) fn sigmoid(x: Var<'_>) -> Var<'_> {
    (-softplus(-x)).exp()
}

/// x², as a product.
fn square(x: Var<'_>) -> Var<'_> {
    x * x
}

/// One completion on a tape.
#[derive(Clone, Copy)]
pub(super) struct Side<'t> {
    /// What its log-ratio is called, and its average.
    pub(super) log_ratio: &'static str,
    pub(super) log_prob: &'static str,
    pub(super) policy: Var<'t>,
    pub(super) reference: Var<'t>,
    pub(super) length: f64,
}

impl<'t> Side<'t> {
    /// The log-ratio of policy and reference.
    pub(super) fn ratio(&self) -> Var<'t> {
        (self.policy - self.reference.term("reference log-prob")).term(self.log_ratio)
    }

    /// The average log-probability under the policy.
    pub(super) fn average(&self) -> Var<'t> {
        (self.policy / self.length).term(self.log_prob)
    }

    /// The log-ratio of averages.
    pub(super) fn average_ratio(&self) -> Var<'t> {
        let reference = (self.reference / self.length).term("reference log-prob");
        (self.policy / self.length - reference).term(self.log_ratio)
    }

    /// The implicit reward, but for β: it is made beside the loss, not of its terms.
    fn reward(&self, kind: Kind) -> Var<'t> {
        match kind {
            Kind::Orpo | Kind::Simpo => self.policy / self.length,
            _ => self.policy - self.reference,
        }
    }
}

/// The logarithm of the odds of a probability, given as its logarithm.
pub(super) fn log_odds(log_prob: Var<'_>) -> Var<'_> {
    log_prob - (-log_prob.exp() + 1.0).ln()
}

/// One pair on a tape.
pub(super) struct Pair<'a, 't> {
    pub(super) chosen: Side<'t>,
    pub(super) rejected: Side<'t>,
    pub(super) options: &'a Options,
}

impl<'t> Pair<'_, 't> {
    /// ℓ_ε(z).
    pub(super) fn smoothed(&self, z: Var<'t>) -> Var<'t> {
        smoothed(z, self.options.label_smoothing)
    }

    /// What `simpo` gives to ℓ_ε.
    pub(super) fn of_averages(&self) -> Var<'t> {
        let margin = (self.chosen.average() - self.rejected.average()).term("margin");
        margin * self.options.beta - self.options.gamma
    }

    /// What `sigmoid-norm` gives to it.
    fn of_average_ratios(&self) -> Var<'t> {
        let margin = self.chosen.average_ratio() - self.rejected.average_ratio();
        margin.term("margin") * self.options.beta
    }

    /// σ(z)·log(σ(z)/(1 - ε)) + σ(-z)·log(σ(-z)/ε).
    pub(super) fn divergence(&self, z: Var<'t>) -> Var<'t> {
        let smoothing = self.options.label_smoothing;
        let term = |z: Var<'t>, share: f64| sigmoid(z) * (-logistic(z) - share.ln());
        term(z, 1.0 - smoothing) + term(-z, smoothing)
    }

    /// The loss.
    pub(super) fn loss(&self) -> Var<'t> {
        let Pair { chosen, rejected, options } = self;
        let (beta, target) = (options.beta, options.target());
        let [c, r] = [chosen, rejected].map(|side| move || side.ratio() * beta);
        match options.kind {
            Kind::Orpo => {
                let odds = log_odds(chosen.average()) - log_odds(rejected.average());
                let of_odds = (logistic(odds) * beta).term("odds-ratio loss");
                let likelihood = || (-chosen.average()).term("SFT loss");
                if options.sft { of_odds + likelihood() } else { of_odds }
            }
            Kind::IpoNorm => {
                let margin = chosen.average_ratio() - rejected.average_ratio();
                square(margin.term("margin") - target)
            }
            Kind::Nca => logistic(c()) + logistic(-c()) * 0.5 + logistic(-r()) * 0.5,
            Kind::BcoPair => logistic(c()) + logistic(-r()),
            Kind::SppoHard => square(chosen.ratio() - target) + square(rejected.ratio() + target),
            Kind::ApoZero => sigmoid(-c()) + sigmoid(r()),
            Kind::ApoDown => sigmoid(c()) + sigmoid(r() - c()),
            Kind::Exo => {
                let margin = (chosen.ratio() - rejected.ratio()).term("margin");
                self.divergence(margin * beta)
            }
            Kind::Simpo => self.smoothed(self.of_averages()),
            Kind::SigmoidNorm => self.smoothed(self.of_average_ratios()),
            Kind::Aot | Kind::AotUnpaired => unreachable!("ranks are no pairs"),
        }
    }
}

/// ℓ_ε(z); without smoothing nobody computes the second term.
pub(super) fn smoothed(z: Var<'_>, smoothing: f64) -> Var<'_> {
    match smoothing {
        0.0 => logistic(z),
        _ => {
            logistic(z) * (1.0 - smoothing)
                + (logistic(-z) * smoothing).term("label-smoothing loss")
        }
    }
}

/// In ascending order.
pub(super) fn sorted<'t>(numbers: impl IntoIterator<Item = Var<'t>>) -> Vec<Var<'t>> {
    let mut numbers: Vec<Var<'t>> = numbers.into_iter().collect();
    numbers.sort_by(|a, b| a.value.total_cmp(&b.value));
    numbers
}

/// What the kinds with label smoothing, but `exo`, give to ℓ_ε: of ranks for `aot`, else of pairs.
pub(super) fn compared<'t>(pairs: &[Pair<'_, 't>], options: &Options) -> Option<Vec<Var<'t>>> {
    let of_ranks = |higher: Vec<Var<'t>>, lower: Vec<Var<'t>>| {
        let ranks = higher.into_iter().zip(lower);
        Some(ranks.map(|(a, b)| (a - b).term("margin") * options.beta).collect())
    };
    match options.kind {
        Kind::Aot => of_ranks(
            sorted(pairs.iter().map(|pair| pair.chosen.policy - pair.rejected.policy)),
            sorted(pairs.iter().map(|pair| pair.chosen.reference - pair.rejected.reference)),
        ),
        Kind::AotUnpaired => of_ranks(
            sorted(pairs.iter().map(|pair| pair.chosen.ratio())),
            sorted(pairs.iter().map(|pair| pair.rejected.ratio())),
        ),
        Kind::Simpo => Some(pairs.iter().map(Pair::of_averages).collect()),
        Kind::SigmoidNorm => Some(pairs.iter().map(Pair::of_average_ratios).collect()),
        _ => None,
    }
}

/// The losses of the ranks that `aot` matches, or those of the pairs.
pub(super) fn losses<'t>(pairs: &[Pair<'_, 't>], options: &Options) -> Vec<Var<'t>> {
    match compared(pairs, options) {
        Some(numbers) => {
            numbers.into_iter().map(|z| smoothed(z, options.label_smoothing)).collect()
        }
        None => pairs.iter().map(Pair::loss).collect(),
    }
}

/// The losses, their gradients and the implicit rewards, in the arithmetic of the dtype.
pub(super) fn loss(
    case: &PairObjectiveCase,
    options: &Options,
    dtype: Dtype,
) -> PairObjectiveOutput {
    made_of(case, options, dtype, losses)
}

/// The outputs that follow from the losses on a tape: their mean, the gradients, and the rewards.
pub(super) fn made_of(
    case: &PairObjectiveCase,
    options: &Options,
    dtype: Dtype,
    losses: impl for<'a, 't> FnOnce(&[Pair<'a, 't>], &'a Options) -> Vec<Var<'t>>,
) -> PairObjectiveOutput {
    let tape = Tape::new(dtype);
    let (chosen, rejected) = (tape.leaf(&case.policy_chosen), tape.leaf(&case.policy_rejected));
    let pairs: Vec<Pair<'_, '_>> = (0..chosen.len())
        .map(|at| Pair {
            chosen: Side {
                log_ratio: "chosen log-ratio",
                log_prob: "chosen log-prob",
                policy: chosen[at],
                reference: tape.constant(case.ref_chosen[at]),
                length: case.chosen_lengths[at] as f64,
            },
            rejected: Side {
                log_ratio: "rejected log-ratio",
                log_prob: "rejected log-prob",
                policy: rejected[at],
                reference: tape.constant(case.ref_rejected[at]),
                length: case.rejected_lengths[at] as f64,
            },
            options,
        })
        .collect();
    let losses = losses(&pairs, options);
    let sum = tape.sum(losses.iter().copied());
    let (result, losses, loss) = match options.reduction {
        Reduction::None => {
            let values: Array1<f64> = losses.iter().map(|loss| loss.value).collect();
            (sum, Some(values), None)
        }
        Reduction::Mean => {
            let mean = sum / losses.len() as f64;
            (mean, None, Some(arr0(mean.value)))
        }
    };
    let rewards = |of: for<'p, 't> fn(&'p Pair<'_, 't>) -> &'p Side<'t>| {
        let reward = |pair| of(pair).reward(options.kind) * options.beta;
        Some(pairs.iter().map(|pair| reward(pair).value).collect())
    };
    PairObjectiveOutput {
        losses,
        loss,
        chosen_rewards: rewards(|pair| &pair.chosen),
        rejected_rewards: rewards(|pair| &pair.rejected),
        grad_policy_chosen: Some(tape.gradient(result, &chosen)),
        grad_policy_rejected: Some(tape.gradient(result, &rejected)),
    }
}
