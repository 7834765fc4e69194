//! Faults of squares, and of kinds that judge each side apart.

use super::super::reference::{logistic, sigmoid};
use super::super::{Kind, Options};
use super::{Fault, each, of};

/// IPO and SPPO.
pub(super) fn squares() -> Vec<Fault> {
    vec![
        Fault::new("ipo-target", "the target is 1/β, not 1/(2β)")
            .seen("Azar et al.'s τ⁻¹/2 without the half")
            .under("{kind: ipo-norm}")
            .made_of([of(Kind::IpoNorm, |p| {
                p.squared(p.average_difference(), 2.0 * p.options.target())
            })]),
        Fault::new("ipo-of-the-scaled-difference", "β scales the difference before the target")
            .seen("the logits of the sigmoid loss, which hold β, given to ipo")
            .under("{kind: ipo-norm}")
            .made_of([
                of(Kind::IpoNorm, |p| {
                    p.squared(p.average_difference() * p.options.beta, p.options.target())
                }),
                of(Kind::IpoNorm, |p| p.squared(p.average_difference() * p.options.beta, 0.5)),
            ]),
        Fault::new("ipo-not-squared", "the distance from the target, not its square")
            .seen("an absolute error where a squared one is declared")
            .under("{kind: ipo-norm}")
            .made_of([of(Kind::IpoNorm, |p| (p.average_difference() - p.options.target()).abs())]),
        Fault::new("ipo-target-times-beta", "the target is β/2, not 1/(2β)")
            .seen("`1 / 2 * beta`, without its bracket")
            .under("{kind: ipo-norm}")
            .made_of([of(Kind::IpoNorm, |p| {
                p.squared(p.average_difference(), 0.5 * p.options.beta)
            })]),
        Fault::new("ipo-target-sign", "the target is -1/(2β): the rejected side is preferred")
            .seen("`+` for `-` in the square")
            .under("{kind: ipo-norm}")
            .made_of([of(Kind::IpoNorm, |p| {
                p.squared(p.average_difference(), -p.options.target())
            })]),
        Fault::new("ipo-without-its-target", "the square of the difference itself")
            .seen("the regression to 0 that is left without 1/(2β)")
            .under("{kind: ipo-norm}")
            .made_of([of(Kind::IpoNorm, |p| p.squared(p.average_difference(), 0.0))]),
        Fault::new("sppo-target", "the targets are 1/β and -1/β, not half of them")
            .seen("TRL's 0.5/β without the half")
            .under("{kind: sppo-hard}")
            .made_of([of(Kind::SppoHard, |p| p.sppo(2.0 * p.options.target()))]),
        Fault::new("sppo-target-sign", "both sides are drawn to the same target")
            .seen("`-` for `+` in the second square")
            .under("{kind: sppo-hard}")
            .made_of([of(Kind::SppoHard, |p| {
                let [c, r] = [p.chosen.ratio(), p.rejected.ratio()];
                p.squared(c, p.options.target()) + p.squared(r, p.options.target())
            })]),
        Fault::new(
            "sppo-target-times-beta",
            "the targets are β/2 and -β/2, not 1/(2β) and its negative",
        )
        .seen("`0.5 * beta` for `0.5 / beta`")
        .under("{kind: sppo-hard}")
        .made_of([of(Kind::SppoHard, |p| p.sppo(0.5 * p.options.beta))]),
        Fault::new("sppo-rejected-side-left-out", "the square of the chosen side alone")
            .seen("one of the two terms forgotten")
            .under("{kind: sppo-hard}")
            .made_of([of(Kind::SppoHard, |p| p.squared(p.chosen.ratio(), p.options.target()))]),
        Fault::new("sppo-of-the-difference", "one square of the difference of the log-ratios")
            .seen("IPO's loss where SPPO's is declared")
            .under("{kind: sppo-hard}")
            .made_of([of(Kind::SppoHard, |p| {
                let difference = p.chosen.ratio() - p.rejected.ratio();
                p.squared(difference, 2.0 * p.options.target())
            })]),
        Fault::new("sppo-halved", "each square has the factor ½")
            .seen("½·(x - t)², as a regression is often written")
            .under("{kind: sppo-hard}")
            .made_of([of(Kind::SppoHard, |p| p.sppo(p.options.target()) * 0.5)]),
    ]
}

/// Kinds that judge each side apart.
pub(super) fn sides() -> Vec<Fault> {
    vec![
        Fault::new("bco-one-margin", "both sides share the half of the margin")
            .seen("a reward shift of the pair's mean where BCO's is of the batch")
            .under("{kind: bco-pair}")
            .made_of([of(Kind::BcoPair, |p| {
                let [c, r] = p.scaled();
                logistic((c - r) * 0.5) * 2.0
            })]),
        Fault::new("bco-rejected-side-left-out", "the loss of the chosen side alone")
            .seen("one of the two terms forgotten")
            .under("{kind: bco-pair}")
            .made_of([of(Kind::BcoPair, |p| logistic(p.scaled()[0]))]),
        Fault::new("bco-rejected-sign", "the rejected side is raised as the chosen one is")
            .seen("ℓ(βr) for ℓ(-βr)")
            .under("{kind: bco-pair}")
            .made_of([of(Kind::BcoPair, |p| {
                let [c, r] = p.scaled();
                logistic(c) + logistic(r)
            })]),
        Fault::new("nca-weights", "a term that pulls down has the weight 1, not ½")
            .seen("TRL's `- 0.5 *` left out")
            .under("{kind: nca}")
            .made_of([
                of(Kind::Nca, |p| {
                    let [c, r] = p.scaled();
                    logistic(c) + logistic(-c) + logistic(-r)
                }),
                of(Kind::Nca, |p| p.loss() + logistic(-p.scaled()[0]) * 0.5),
                of(Kind::Nca, |p| p.loss() + logistic(-p.scaled()[1]) * 0.5),
            ]),
        Fault::new("nca-without-the-chosen-pull", "the term ½·ℓ(-βc) is left out")
            .seen("nca taken for bco with a weight")
            .under("{kind: nca}")
            .made_of([of(Kind::Nca, |p| {
                let [c, r] = p.scaled();
                logistic(c) + logistic(-r) * 0.5
            })]),
        Fault::new("bco-chosen-side-left-out", "the loss of the rejected side alone")
            .seen("one of the two terms forgotten")
            .under("{kind: bco-pair}")
            .made_of([of(Kind::BcoPair, |p| logistic(-p.scaled()[1]))]),
        Fault::new("nca-rejected-sign", "the rejected side is raised, not lowered")
            .seen("ℓ(βr) for ℓ(-βr)")
            .under("{kind: nca}")
            .made_of([of(Kind::Nca, |p| {
                let [c, r] = p.scaled();
                logistic(c) + logistic(-c) * 0.5 + logistic(r) * 0.5
            })]),
        Fault::new("nca-without-the-rejected-side", "the chosen side's terms alone")
            .seen("the last of three terms forgotten")
            .under("{kind: nca}")
            .made_of([of(Kind::Nca, |p| {
                let [c, _] = p.scaled();
                logistic(c) + logistic(-c) * 0.5
            })]),
        Fault::new("apo-zero-rejected-sign", "the rejected side is raised too")
            .seen("1 - σ(βr) for σ(βr)")
            .under("{kind: apo-zero}")
            .made_of([of(Kind::ApoZero, |p| {
                let [c, r] = p.scaled();
                sigmoid(-c) + sigmoid(-r)
            })]),
        Fault::new("apo-zero-without-its-one", "the 1 of 1 - σ(βc) is left out")
            .seen("-σ for 1 - σ: the gradient is right, the value is 1 too low")
            .under("{kind: apo-zero}")
            .made_of([of(Kind::ApoZero, |p| {
                let [c, r] = p.scaled();
                sigmoid(r) - sigmoid(c)
            })]),
        Fault::new("apo-zero-rejected-side-left-out", "the term of the chosen side alone")
            .seen("one of the two terms forgotten")
            .under("{kind: apo-zero}")
            .made_of([of(Kind::ApoZero, |p| sigmoid(-p.scaled()[0]))]),
        Fault::new("apo-of-the-difference", "σ of the difference alone: no side counts by itself")
            .seen("mutation: DPO's logits where APO has the sides apart")
            .under("{kind: apo-zero}")
            .made_of([
                of(Kind::ApoZero, |p| sigmoid(-p.difference())),
                of(Kind::ApoZero, |p| sigmoid(-p.difference()) * 2.0),
                of(Kind::ApoDown, |p| sigmoid(-p.difference())),
            ]),
        Fault::new("apo-down-margin-sign", "the rejected side is raised over the chosen one")
            .seen("σ(β(c - r)) for 1 - σ(β(c - r))")
            .under("{kind: apo-down}")
            .made_of([of(Kind::ApoDown, |p| {
                let [c, r] = p.scaled();
                sigmoid(c) + sigmoid(c - r)
            })]),
        Fault::new("apo-down-without-the-difference", "σ(βr) where the rejected side is compared")
            .seen("apo-zero's second term with apo-down's first")
            .under("{kind: apo-down}")
            .made_of([of(Kind::ApoDown, |p| {
                let [c, r] = p.scaled();
                sigmoid(c) + sigmoid(r)
            })]),
        Fault::new("sides-averaged", "the mean of the two sides' losses, not their sum")
            .seen("the mean over a concatenated batch: half the loss, half the step")
            .under("{kind: bco-pair}")
            .made_of([each(|p| match p.options.kind {
                Kind::Nca | Kind::BcoPair | Kind::ApoZero | Kind::ApoDown => p.loss() * 0.5,
                _ => p.loss(),
            })]),
        Fault::new("apo-zero-for-down", "`apo-zero` where `apo-down` is declared")
            .seen("two values of one option taken for each other")
            .under("{kind: apo-down}")
            .as_if(&[|options| match options.kind {
                Kind::ApoDown => Options { kind: Kind::ApoZero, ..options },
                _ => options,
            }]),
        Fault::new("apo-down-for-zero", "`apo-down` where `apo-zero` is declared")
            .seen("two values of one option taken for each other")
            .under("{kind: apo-zero}")
            .as_if(&[|options| match options.kind {
                Kind::ApoZero => Options { kind: Kind::ApoDown, ..options },
                _ => options,
            }]),
        Fault::new("apo-zero-sign", "the chosen side is pushed down too")
            .seen("σ(βc) for 1 - σ(βc)")
            .under("{kind: apo-zero}")
            .made_of([of(Kind::ApoZero, |p| {
                let [c, r] = p.scaled();
                sigmoid(c) + sigmoid(r)
            })]),
        Fault::new("apo-down-sign", "the 1 of 1 - σ(β(c - r)) is left out")
            .seen("-σ for 1 - σ: the gradient is right, the value negative")
            .under("{kind: apo-down}")
            .made_of([of(Kind::ApoDown, |p| {
                let [c, r] = p.scaled();
                sigmoid(c) - sigmoid(c - r)
            })]),
        Fault::new("apo-down-raises-the-chosen-side", "σ(-βc) for σ(βc)")
            .seen("apo-zero's first term with apo-down's second")
            .under("{kind: apo-down}")
            .made_of([of(Kind::ApoDown, |p| {
                let [c, r] = p.scaled();
                sigmoid(-c) + sigmoid(r - c)
            })]),
        Fault::new("apo-logarithms", "-log σ where σ itself is the loss")
            .seen("DPO's logsigmoid where APO has a sigmoid")
            .under("{kind: apo-zero}")
            .made_of([of(Kind::ApoZero, |p| {
                let [c, r] = p.scaled();
                logistic(c) + logistic(-r)
            })]),
    ]
}
