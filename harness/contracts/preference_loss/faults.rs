//! Known wrong behaviours of `preference-loss`: real bugs, and conventions mistaken for others.
//!
//! Each is the pipeline of [`Pair`] with one step replaced: margin, scale, loss, reduction. The
//! gradient follows.

use ndarray::Array1;

use super::on_tape::{self, Pair, sigmoid, softplus};
use super::{
    Kind, Options, PreferenceLoss, PreferenceLossCase, PreferenceLossOutput, Reduction, reference,
};
use shakedown_core::contract::fault;
use shakedown_core::numeric::tape::Var;
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<PreferenceLoss>;
type Variant = fault::Variant<PreferenceLoss>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    [margins(), logistic(), kinds(), batches(), implicit_rewards()].into_iter().flatten().collect()
}

/// Sides and reference of the margin, and β.
fn margins() -> Vec<Fault> {
    vec![
        Fault::new("sign-flipped", "the sign of the loss is wrong: it prefers the rejected side")
            .seen("LLaMA-Factory 52d402e2a (ORPO): + log σ for - log σ")
            .made_of([pairs(|p| -p.right())]),
        Fault::new(
            "chosen-and-rejected-outputs-swapped",
            "the implicit rewards carry each other's name",
        )
        .seen("LLaMA-Factory #6050 (089e4d9e9); trl #1402 (4d862da18)")
        .made_of([changed(|output, _, _| {
            std::mem::swap(&mut output.chosen_rewards, &mut output.rejected_rewards);
        })]),
        Fault::new(
            "chosen-and-rejected-inputs-swapped",
            "the margin is that of the rejected side over the chosen one",
        )
        .seen("NeMo-RL's rows are interleaved, TRL's are all chosen and then all rejected")
        .made_of([pairs(|p| p.loss(-p.margin()))]),
        Fault::new("reference-ignored", "the margin is the policy's alone")
            .seen("TRL CPO's margin where DPO's is declared")
            .made_of([pairs(|p| p.loss(p.chosen - p.rejected))]),
        Fault::new(
            "reference-used-although-free",
            "the reference counts where it is declared not to",
        )
        .seen("TRL DPO's margin where CPO's is declared")
        .under("{reference_free: true}")
        .made_of([pairs(|p| p.loss(p.full_margin()))]),
        Fault::new("reference-added", "the reference's margin is added, not taken off")
            .seen("`+` for `-`: DPO subtracts the reference's margin (Rafailov et al. 2023)")
            .made_of([pairs(|p| {
                let policy = p.chosen - p.rejected;
                p.loss(policy + policy - p.margin())
            })]),
        Fault::new("beta-not-applied", "β is 1 in the loss")
            .seen("a `beta` that never reaches the loss; compare unsloth #3604, there in GRPO")
            .made_of([with_beta(|_| 1.0)]),
        Fault::new(
            "beta-applied-twice",
            "the margin is made of rewards that hold β already, and is scaled again",
        )
        .seen("rewards that include β, given to a loss that multiplies by it")
        .made_of([with_beta(|beta| beta * beta)]),
    ]
}

/// The logistic loss and its smoothing.
fn logistic() -> Vec<Fault> {
    vec![
        Fault::new(
            "logarithm-of-the-sigmoid",
            "log(σ(z)) in two steps: infinite where σ underflows, with NaN for a gradient",
        )
        .seen("torch.log(torch.sigmoid(z)) for F.logsigmoid(z)")
        .made_of([pairs(|p| {
            let z = p.z(p.margin());
            let logs = [z, -z].map(|z| -sigmoid(p.one, z).ln());
            p.of_logistic(logs[0], logs[1]).unwrap_or_else(|| p.right())
        })]),
        Fault::new("label-smoothing-ignored", "label smoothing has no effect")
            .seen("TRL DPOTrainer, loss_type sigmoid")
            .under("{label_smoothing: 0.1}")
            .made_of([pairs(|p| {
                let z = p.z(p.margin());
                if p.options.kind == Kind::Sigmoid { softplus(-z) } else { p.right() }
            })]),
        Fault::new(
            "label-smoothing-on-the-wrong-side",
            "ε weights the chosen side, and 1 - ε the rejected one",
        )
        .seen("the two terms of cDPO exchanged")
        .under("{label_smoothing: 0.1}")
        .made_of([pairs(|p| {
            let z = p.z(p.margin());
            let smoothing = p.options.label_smoothing;
            match p.options.kind {
                Kind::Sigmoid => softplus(-z) * smoothing + softplus(z) * (1.0 - smoothing),
                _ => p.right(),
            }
        })]),
        Fault::new("robust-not-normalised", "the robust loss is not divided by 1 - 2ε")
            .seen("the denominator of robust DPO forgotten")
            .under("{kind: robust, label_smoothing: 0.1}")
            .made_of([pairs(|p| {
                let whole = match p.options.kind {
                    Kind::Robust => 1.0 - 2.0 * p.options.label_smoothing,
                    _ => 1.0,
                };
                p.right() * whole
            })]),
        Fault::new(
            "robust-adds-the-other-side",
            "the smoothed (conservative) loss where the robust one is declared",
        )
        .seen("cDPO where robust DPO is declared")
        .under("{kind: robust, label_smoothing: 0.1}")
        .as_if(&[|options| match options.kind {
            Kind::Robust => Options { kind: Kind::Sigmoid, ..options },
            _ => options,
        }]),
    ]
}

/// The margin γ, and the other kinds of loss.
fn kinds() -> Vec<Fault> {
    vec![
        Fault::new("margin-added", "γ is added to βΔ, not taken off")
            .seen("`+` for `-`: SimPO subtracts γ (Meng et al. 2024)")
            .under("{margin: 0.5}")
            .made_of([pairs(|p| p.loss_at(p.z(p.margin()) + 2.0 * p.options.margin))]),
        Fault::new("margin-ignored", "γ has no effect")
            .seen("DPO's loss where SimPO's margin is declared")
            .under("{margin: 0.5}")
            .as_if(&[|options| Options { margin: 0.0, ..options }]),
        Fault::new("margin-scaled-by-beta", "γ is taken off Δ, so that β scales it too")
            .seen("SimPO's γ and its ratio γ/β taken for each other")
            .under("{margin: 0.5}")
            .as_if(&[|options| Options { margin: options.beta * options.margin, ..options }]),
        Fault::new("hinge-not-clamped", "the hinge goes on below 0")
            .seen("1 - z without the relu")
            .under("{kind: hinge}")
            .made_of([pairs(|p| match p.options.kind {
                Kind::Hinge => -p.z(p.margin()) + 1.0,
                _ => p.right(),
            })]),
        Fault::new("ipo-target-doubled", "the target of ipo is 1/β, not 1/(2β)")
            .seen("Azar et al.'s τ⁻¹/2 without the half")
            .under("{kind: ipo}")
            .made_of([pairs(|p| {
                p.ipo(p.margin(), 1.0 / p.options.beta).unwrap_or_else(|| p.right())
            })]),
        Fault::new("ipo-of-the-scaled-margin", "ipo squares βΔ - 1/(2β), not Δ - 1/(2β)")
            .seen("the logits of the sigmoid loss, which hold β, given to ipo")
            .under("{kind: ipo}")
            .made_of([pairs(|p| {
                let scaled = p.z(p.margin());
                p.ipo(scaled, 0.5 / p.options.beta).unwrap_or_else(|| p.right())
            })]),
    ]
}

/// The reduction, and which pairs are compared.
fn batches() -> Vec<Fault> {
    vec![
        Fault::new("sum-for-the-mean", "the losses are added up, not averaged")
            .seen("reduction=\"sum\" left over")
            .under("{reduction: mean}")
            .made_of([changed(|output, case, options| {
                let count = case.policy_chosen.len() as f64;
                output.loss.iter_mut().for_each(|loss| *loss *= count);
                if options.reduction == Reduction::Mean {
                    let gradients =
                        [&mut output.grad_policy_chosen, &mut output.grad_policy_rejected];
                    gradients.into_iter().flatten().for_each(|gradient| *gradient *= count);
                }
            })]),
        Fault::new(
            "margins-averaged-before-the-loss",
            "every pair gets the loss of the mean margin",
        )
        .seen("mean() one line too early")
        .gives(&[averaged]),
        Fault::new("rejected-side-detached", "the rejected completion gets no gradient")
            .seen("the forward pass of the rejected side under no_grad, with the reference's")
            .made_of([pairs(|p| p.loss(p.margin() + p.rejected - p.rejected.detach()))]),
        Fault::new(
            "pairs-misaligned",
            "a chosen completion is compared with the rejected one of the next pair",
        )
        .seen("sampler that shuffles chosen and rejected rows on their own")
        .gives(&[|case, options, dtype| {
            let mut moved = case.clone();
            for field in [&mut moved.policy_rejected, &mut moved.ref_rejected] {
                field.as_slice_mut().expect("one dimension").rotate_left(1);
            }
            let right = reference::loss(case, options, dtype);
            let output = reference::loss(&moved, options, dtype);
            let back = output.grad_policy_rejected.map(|mut gradient| {
                gradient.as_slice_mut().expect("one dimension").rotate_right(1);
                gradient
            });
            PreferenceLossOutput {
                grad_policy_rejected: back,
                rejected_rewards: right.rejected_rewards,
                ..output
            }
        }]),
        Fault::new(
            "margin-in-half-precision",
            "the log-probabilities are rounded to bf16 before they are subtracted",
        )
        .seen("OpenRLHF #620 (f34ef60a), the same for sums over a completion")
        .on(&[|case, _| shakedown_core::value::record::round(case, Dtype::Bf16)]),
    ]
}

/// The implicit rewards.
fn implicit_rewards() -> Vec<Fault> {
    vec![
        Fault::new("rewards-without-beta", "the implicit rewards are log-ratios, not β times them")
            .seen("log-ratios logged under the name of rewards")
            .made_of([changed(|output, _, options| {
                let rewards = [&mut output.chosen_rewards, &mut output.rejected_rewards];
                rewards.into_iter().flatten().for_each(|rewards| *rewards /= options.beta);
            })]),
        Fault::new(
            "rewards-without-the-reference",
            "the implicit rewards leave the reference out where the loss does",
        )
        .seen("TRL CPO: β·policy")
        .under("{reference_free: true}")
        .made_of([changed(|output, case, options| {
            if options.reference_free {
                output.chosen_rewards = Some(options.beta * &case.policy_chosen);
                output.rejected_rewards = Some(options.beta * &case.policy_rejected);
            }
        })]),
    ]
}

/// Maps each pair to its loss.
fn pairs(f: for<'a, 't> fn(&Pair<'a, 't>) -> Var<'t>) -> Variant {
    Variant::gives(move |case: &PreferenceLossCase, options: &Options, dtype| {
        on_tape::pairs(case, options, dtype, f)
    })
}

/// The right output, changed.
fn changed(change: fn(&mut PreferenceLossOutput, &PreferenceLossCase, &Options)) -> Variant {
    Variant::gives(move |case: &PreferenceLossCase, options: &Options, dtype| {
        let mut output = reference::loss(case, options, dtype);
        change(&mut output, case, options);
        output
    })
}

/// The right losses and gradients at another β, and rewards at the declared one.
fn with_beta(change: fn(f64) -> f64) -> Variant {
    Variant::gives(move |case: &PreferenceLossCase, options: &Options, dtype| {
        let right = reference::loss(case, options, dtype);
        let other = Options { beta: change(options.beta), ..options.clone() };
        PreferenceLossOutput {
            chosen_rewards: right.chosen_rewards,
            rejected_rewards: right.rejected_rewards,
            ..reference::loss(case, &other, dtype)
        }
    })
}

/// Every pair's loss is that of the mean margin.
fn averaged(case: &PreferenceLossCase, options: &Options, dtype: Dtype) -> PreferenceLossOutput {
    let mean = |field: &Array1<f64>| {
        let mean = field.mean().expect("a pair at least");
        Array1::from_elem(field.len(), mean)
    };
    let flat = PreferenceLossCase {
        policy_chosen: mean(&case.policy_chosen),
        policy_rejected: mean(&case.policy_rejected),
        ref_chosen: mean(&case.ref_chosen),
        ref_rejected: mean(&case.ref_rejected),
    };
    let right = reference::loss(case, options, dtype);
    PreferenceLossOutput {
        chosen_rewards: right.chosen_rewards,
        rejected_rewards: right.rejected_rewards,
        ..reference::loss(&flat, options, dtype)
    }
}
