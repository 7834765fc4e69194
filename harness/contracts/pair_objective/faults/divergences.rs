//! Faults of EXO's divergence.

use super::super::reference::{logistic, made_of, sigmoid};
use super::super::{Kind, Options, PairObjectiveCase, reference};
use super::{Fault, Variant, naive_sigmoid, of};

/// EXO.
pub(super) fn divergences() -> Vec<Fault> {
    vec![
        Fault::new("exo-forward", "KL(target ‖ policy) for KL(policy ‖ target)")
            .seen("smoothed DPO plus a constant where EXO's reverse divergence is declared")
            .under("{kind: exo, label_smoothing: 0.1}")
            .made_of([of(Kind::Exo, |p| {
                let share = p.options.label_smoothing;
                let entropy = share * share.ln() + (1.0 - share) * (1.0 - share).ln();
                p.smoothed(p.difference()) + entropy
            })]),
        Fault::new("exo-without-the-target", "the entropy of the policy alone")
            .seen("the logarithms of ε and 1 - ε left out")
            .under("{kind: exo, label_smoothing: 0.1}")
            .made_of([of(Kind::Exo, |p| {
                let z = p.difference();
                -(sigmoid(z) * logistic(z)) - sigmoid(-z) * logistic(-z)
            })]),
        Fault::new("exo-chosen-share", "the chosen outcome's share is not 1 - ε")
            .seen("log(ε), log1p(ε) or nothing for log1p(-ε)")
            .under("{kind: exo, label_smoothing: 0.1}")
            .made_of([with_share(|_| 1.0), with_share(|e| e), with_share(|e| 1.0 + e)]),
        Fault::new("exo-cross-entropy", "the policy's own logarithms are left out")
            .seen("-Σ σ·log of the share: a cross-entropy where a divergence is declared")
            .under("{kind: exo, label_smoothing: 0.1}")
            .made_of([of(Kind::Exo, |p| {
                let (z, share) = (p.difference(), p.options.label_smoothing);
                sigmoid(z) * -(1.0 - share).ln() - sigmoid(-z) * share.ln()
            })]),
        Fault::new("exo-one-term", "the chosen outcome's term alone")
            .seen("a divergence of two outcomes written for the likelier one")
            .under("{kind: exo, label_smoothing: 0.1}")
            .made_of([of(Kind::Exo, |p| {
                let z = p.difference();
                sigmoid(z) * (-logistic(z) - (1.0 - p.options.label_smoothing).ln())
            })]),
        Fault::new("exo-shares-swapped", "ε and 1 - ε are exchanged")
            .seen("the target of the rejected side")
            .under("{kind: exo, label_smoothing: 0.1}")
            .as_if(&[|options| match options.kind {
                Kind::Exo => Options { label_smoothing: 1.0 - options.label_smoothing, ..options },
                _ => options,
            }]),
        Fault::new("exo-smoothing-fixed", "ε is 1e-3 whatever is declared")
            .seen("TRL's replacement of ε = 0, made for every ε")
            .under("{kind: exo, label_smoothing: 0.1}")
            .as_if(&[|options| match options.kind {
                Kind::Exo => Options { label_smoothing: 1e-3, ..options },
                _ => options,
            }]),
        Fault::new("exo-weights-detached", "σ has no gradient, only its logarithm has")
            .seen("the probabilities of an expectation taken under no_grad")
            .under("{kind: exo, label_smoothing: 0.1}")
            .made_of([of(Kind::Exo, |p| {
                let (z, share) = (p.difference(), p.options.label_smoothing);
                let own = sigmoid(z).detach() * (-logistic(z) - (1.0 - share).ln());
                own + sigmoid(-z).detach() * (-logistic(-z) - share.ln())
            })]),
        Fault::new(
            "exo-logarithm-of-the-share",
            "log(σ(z)/(1 - ε)) of a quotient: 0 times infinity where σ underflows",
        )
        .seen("the formula as it is written, for logsigmoid(z) - log(1 - ε)")
        .under("{kind: exo, label_smoothing: 0.1, beta: 1.0}")
        .made_of([of(Kind::Exo, |p| {
            let (z, share) = (p.difference(), p.options.label_smoothing);
            let [own, rest] = [naive_sigmoid(z), naive_sigmoid(-z)];
            own * (own / (1.0 - share)).ln() + rest * (rest / share).ln()
        })]),
    ]
}

/// The divergence from another share of the chosen outcome.
fn with_share(share: fn(f64) -> f64) -> Variant {
    Variant::gives(move |case: &PairObjectiveCase, options: &Options, dtype| {
        made_of(case, options, dtype, |pairs, options| match options.kind {
            Kind::Exo => pairs
                .iter()
                .map(|pair| {
                    let [right, wrong] =
                        [1.0 - options.label_smoothing, share(options.label_smoothing)];
                    let z = pair.difference();
                    pair.divergence(z) + sigmoid(z) * (right.ln() - wrong.ln())
                })
                .collect(),
            _ => reference::losses(pairs, options),
        })
    })
}
