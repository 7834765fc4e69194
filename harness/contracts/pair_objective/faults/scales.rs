//! Faults of what all kinds have: the reference, signs, β and gradients.

use super::super::reference::{Pair, Side};
use super::super::{Kind, Options, PairObjectiveCase, reference};
use super::{
    Fault, Variant, changed, of, of_losses, of_pairs, of_sides, scale_gradients, with_right_rewards,
};
use shakedown_core::value::place::Dtype;

/// What the reference is for.
pub(super) fn references() -> Vec<Fault> {
    vec![
        Fault::new("reference-not-subtracted", "the reference has no part in the loss")
            .seen("SimPO's difference where normalised DPO's is declared")
            .under("{kind: sigmoid-norm}")
            .made_of([of_sides(|side, _| Side { reference: side.reference * 0.0, ..side })]),
        Fault::new("reference-added", "the reference is added, not taken off")
            .seen("`+` for `-`")
            .under("{kind: sigmoid-norm}")
            .made_of([of_sides(|side, _| Side { reference: -side.reference, ..side })]),
        Fault::new("references-exchanged", "each side has the reference of the other")
            .seen("a concatenated batch split in the wrong order for the reference alone")
            .under("{kind: nca}")
            .made_of([of_pairs(|Pair { chosen, rejected, options }| Pair {
                chosen: Side { reference: rejected.reference, ..chosen },
                rejected: Side { reference: chosen.reference, ..rejected },
                options,
            })]),
        Fault::new("reference-used", "the reference counts where there is none")
            .seen("the normalised DPO loss where SimPO is declared")
            .made_of([
                of(Kind::Simpo, |p| {
                    p.smoothed(p.average_difference() * p.options.beta - p.options.gamma)
                }),
                of(Kind::Orpo, |p| p.orpo(p.average_difference())),
            ]),
    ]
}

/// Signs and β.
pub(super) fn scales() -> Vec<Fault> {
    vec![
        Fault::new("sign-flipped", "the loss has the wrong sign: it prefers the rejected side")
            .seen("LLaMA-Factory 52d402e2a (ORPO): + log σ for - log σ")
            .made_of([of_losses(|loss, _| -loss)]),
        Fault::new("sides-exchanged", "the chosen side is taken for the rejected one")
            .seen("NeMo-RL's rows are interleaved, TRL's are all chosen and then all rejected")
            .made_of([of_pairs(|Pair { chosen, rejected, options }| Pair {
                chosen: rejected,
                rejected: chosen,
                options,
            })]),
        Fault::new("beta-not-applied", "β is 1 in the loss")
            .seen("a `beta` that never reaches the loss; compare unsloth #3604, there in GRPO")
            .made_of([with_beta(|_| 1.0)]),
        Fault::new("beta-of-the-default", "β is 0.1 in the loss, whatever is declared")
            .seen("mutation: DPO's default written into the loss")
            .under("{beta: 2.0}")
            .made_of([with_beta(|_| 0.1)]),
        Fault::new("beta-applied-twice", "differences that hold β already are scaled again")
            .seen("rewards given to a loss that multiplies by β")
            .made_of([with_beta(|beta| beta * beta)]),
        Fault::new("beta-divides", "differences are divided by β")
            .seen("β and its inverse, the temperature of a reward, taken for each other")
            .made_of([with_beta(|beta| 1.0 / beta)]),
        Fault::new("beta-on-the-policy-alone", "β scales the policy, not the reference")
            .seen("`beta * policy - reference`, without its bracket")
            .under("{kind: bco-pair}")
            .made_of([of_sides(|side, options| match options.kind {
                // Theirs is a target and no factor.
                Kind::IpoNorm | Kind::SppoHard => side,
                _ => Side { reference: side.reference / options.beta, ..side },
            })]),
        Fault::new("loss-scaled-by-beta", "β weighs the loss too")
            .seen("β outside the logarithm as well as inside, as ORPO has it")
            .made_of([of_losses(|loss, options| loss * options.beta)]),
        Fault::new(
            "log-probs-in-half-precision",
            "the log-probabilities are rounded to bf16 before they are subtracted",
        )
        .seen("OpenRLHF #620 (f34ef60a), the same for sums over a completion")
        .on(&[|case, _| shakedown_core::value::record::round(case, Dtype::Bf16)]),
    ]
}

/// Right losses with wrong gradients.
pub(super) fn gradients() -> Vec<Fault> {
    vec![
        Fault::new("no-gradient-reaches-the-policy", "the loss is right, every gradient 0")
            .seen("mlx-lm-lora #65: log-probabilities from outside of what is differentiated")
            .made_of([changed(|output, _, _| scale_gradients(output, [0.0, 0.0]))]),
        Fault::new("rejected-side-detached", "the rejected completion gets no gradient")
            .seen("the rejected side's forward pass under no_grad, with the reference's")
            .made_of([changed(|output, _, _| scale_gradients(output, [1.0, 0.0]))]),
        Fault::new("chosen-side-detached", "the chosen completion gets no gradient")
            .seen("a forward pass whose result is cached, for the loss too")
            .made_of([changed(|output, _, _| scale_gradients(output, [0.0, 1.0]))]),
        Fault::new("gradient-reversed", "the gradient has the other sign: training ascends")
            .seen("a reward to be maximised given to an optimiser that minimises")
            .made_of([changed(|output, _, _| scale_gradients(output, [-1.0, -1.0]))]),
        Fault::new("gradient-doubled", "a backward pass that counts twice")
            .seen("unsloth-zoo #892, in another loss")
            .made_of([changed(|output, _, _| scale_gradients(output, [2.0, 2.0]))]),
    ]
}

/// The right losses and gradients at another β, and rewards at the declared one.
fn with_beta(change: fn(f64) -> f64) -> Variant {
    Variant::gives(move |case: &PairObjectiveCase, options: &Options, dtype| {
        let other = Options { beta: change(options.beta), ..options.clone() };
        with_right_rewards(reference::loss(case, &other, dtype), case, options, dtype)
    })
}
