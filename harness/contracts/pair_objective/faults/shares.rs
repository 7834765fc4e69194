//! Faults of γ and of ε, and of the logistic that they go into.

use super::super::reference::{Pair, logistic, made_of};
use super::super::{Kind, Options, PairObjectiveCase, reference};
use super::{Fault, Variant, naive_sigmoid, of};
use shakedown_core::numeric::tape::Var;

/// γ and ε.
pub(super) fn simpo() -> Vec<Fault> {
    vec![
        Fault::new("gamma-not-applied", "γ has no effect")
            .seen("an option that the trainer reads and does not hand to the loss")
            .as_if(&[|options| Options { gamma: 0.0, ..options }]),
        Fault::new("gamma-added", "γ is added, not taken off")
            .seen("`+` for `-`: SimPO subtracts γ (Meng et al. 2024)")
            .as_if(&[|options| Options { gamma: -options.gamma, ..options }]),
        Fault::new("gamma-scaled-by-beta", "γ is taken off the difference: β scales it too")
            .seen("γ and the ratio γ/β of open-instruct's options taken for each other")
            .as_if(&[|options| Options { gamma: options.beta * options.gamma, ..options }]),
        Fault::new("gamma-divided-by-beta", "γ/β is taken off after β was multiplied")
            .seen("TRL's gamma_logratios, which is γ/β, in the place of γ")
            .as_if(&[|options| Options { gamma: options.gamma / options.beta, ..options }]),
        Fault::new("gamma-on-both-sides", "γ keeps its sign where smoothing exchanges the sides")
            .seen("mutation: ℓ(-d - γ) for ℓ(-(d - γ))")
            .under("{label_smoothing: 0.1}")
            .made_of([of(Kind::Simpo, |p| {
                let (z, share) = (p.of_averages(), p.options.label_smoothing);
                let exchanged = -z - 2.0 * p.options.gamma;
                logistic(z) * (1.0 - share) + logistic(exchanged) * share
            })]),
        Fault::new("label-smoothing-ignored", "label smoothing has no effect")
            .seen("an option that the trainer reads and does not hand to the loss")
            .under("{label_smoothing: 0.1}")
            .as_if(&[|options| match options.kind {
                Kind::Exo => options,
                _ => Options { label_smoothing: 0.0, ..options },
            }]),
        Fault::new("smoothing-share-swapped", "ε weighs the chosen side, 1 - ε the rejected one")
            .seen("the two terms of cDPO exchanged")
            .under("{label_smoothing: 0.1}")
            .as_if(&[|options| match options.label_smoothing {
                0.0 => options,
                share => Options { label_smoothing: 1.0 - share, ..options },
            }]),
        Fault::new("smoothing-subtracted", "the term of the other side is taken off")
            .seen("robust DPO's sign where cDPO's is declared")
            .under("{label_smoothing: 0.1}")
            .made_of([of_compared(|z, share| logistic(z) * (1.0 - share) - logistic(-z) * share)]),
        Fault::new("smoothing-of-robust-dpo", "the corrected loss, divided by 1 - 2ε")
            .seen("TRL's `robust` where cDPO's smoothing is declared")
            .under("{label_smoothing: 0.1}")
            .made_of([of_compared(|z, share| {
                (logistic(z) * (1.0 - share) - logistic(-z) * share) / (1.0 - 2.0 * share)
            })]),
        Fault::new("smoothing-beside-the-whole", "the first term has the weight 1, not 1 - ε")
            .seen("ε·ℓ(-z) added to a loss that is there already")
            .under("{label_smoothing: 0.1}")
            .made_of([of_compared(|z, share| logistic(z) + logistic(-z) * share)]),
        Fault::new("smoothing-without-its-second-term", "the loss is scaled by 1 - ε, no more")
            .seen("half of label smoothing")
            .under("{label_smoothing: 0.1}")
            .made_of([of_compared(|z, share| logistic(z) * (1.0 - share))]),
        Fault::new(
            "logarithm-of-the-sigmoid",
            "log(σ(z)) in two steps: infinite where σ underflows, with NaN for a gradient",
        )
        .seen("torch.log(torch.sigmoid(z)) for F.logsigmoid(z)")
        .under("{kind: bco-pair, beta: 1.0}")
        .made_of([in_place_of_logistic(naive, naively)]),
        Fault::new("logarithm-left-out", "1 - σ(z) for -log σ(z)")
            .seen("mutation: `1 - sigmoid(z)` for `-logsigmoid(z)`, flat where z is most wrong")
            .made_of([in_place_of_logistic(|z| naive_sigmoid(-z), |pair| pair.loss())]),
        Fault::new("hinge-for-logistic", "max(0, 1 - z) for -log σ(z)")
            .seen("`loss_type: hinge` of SimPO's and CPO's trainers where the logistic is declared")
            .made_of([in_place_of_logistic(|z| (-z + 1.0).max(z * 0.0), |pair| pair.loss())]),
    ]
}

/// -log(σ(z)) in two steps.
fn naive(z: Var<'_>) -> Var<'_> {
    -naive_sigmoid(z).ln()
}

/// The loss of a pair with such logarithms, where its kind has any.
fn naively<'t>(pair: &Pair<'_, 't>) -> Var<'t> {
    let [c, r] = pair.scaled();
    match pair.options.kind {
        Kind::BcoPair => naive(c) + naive(-r),
        Kind::Nca => naive(c) + naive(-c) * 0.5 + naive(-r) * 0.5,
        Kind::Orpo => {
            let of_odds = naive(pair.odds_ratio()) * pair.options.beta;
            if pair.options.sft { of_odds - pair.chosen.average() } else { of_odds }
        }
        _ => pair.loss(),
    }
}

/// Another ℓ for the kinds that have ℓ_ε, and another loss of a pair for the others.
fn in_place_of_logistic(
    logistic: for<'t> fn(Var<'t>) -> Var<'t>,
    others: for<'a, 't> fn(&Pair<'a, 't>) -> Var<'t>,
) -> Variant {
    Variant::gives(move |case: &PairObjectiveCase, options: &Options, dtype| {
        made_of(case, options, dtype, |pairs, options| {
            let mixed = |z| match options.label_smoothing {
                0.0 => logistic(z),
                share => logistic(z) * (1.0 - share) + logistic(-z) * share,
            };
            match reference::compared(pairs, options) {
                Some(numbers) => numbers.into_iter().map(mixed).collect(),
                None => pairs.iter().map(others).collect(),
            }
        })
    })
}

/// Another ℓ_ε where ε is not 0, for the kinds that have it.
fn of_compared(loss: for<'t> fn(Var<'t>, f64) -> Var<'t>) -> Variant {
    Variant::gives(move |case: &PairObjectiveCase, options: &Options, dtype| {
        made_of(case, options, dtype, |pairs, options| match reference::compared(pairs, options) {
            Some(numbers) if options.label_smoothing > 0.0 => {
                numbers.into_iter().map(|z| loss(z, options.label_smoothing)).collect()
            }
            _ => reference::losses(pairs, options),
        })
    })
}
