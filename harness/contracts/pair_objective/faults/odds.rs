//! Faults of ORPO: its odds, and the likelihood beside them.

use super::super::reference::{Pair, log_odds, logistic, made_of};
use super::super::{Kind, Options, PairObjectiveCase, reference};
use super::{Fault, Variant, of};
use shakedown_core::numeric::tape::Var;

/// ORPO.
pub(super) fn odds() -> Vec<Fault> {
    vec![
        Fault::new("odds-of-sums", "the odds are of sums over tokens: nearly the likelihood")
            .seen("LLaMA-Factory 52d402e2a")
            .under("{kind: orpo}")
            .made_of([of(Kind::Orpo, |p| {
                p.orpo(log_odds(p.chosen.policy) - log_odds(p.rejected.policy))
            })]),
        Fault::new("odds-without-the-complement", "the ratio of likelihoods for that of odds")
            .seen("log p for log p - log(1 - p): the probability ratio of ORPO's paper")
            .under("{kind: orpo}")
            .made_of([of(Kind::Orpo, |p| p.orpo(p.chosen.average() - p.rejected.average()))]),
        Fault::new("odds-complement-added", "log p + log(1 - p) for log p - log(1 - p)")
            .seen("`+` for `-` in front of the second bracket of TRL's log_odds")
            .under("{kind: orpo}")
            .made_of([of(Kind::Orpo, |p| {
                let [c, r] = [p.chosen.average(), p.rejected.average()];
                let [of_c, of_r] = [log_odds(c), log_odds(r)];
                p.orpo((c + c - of_c) - (r + r - of_r))
            })]),
        Fault::new("odds-by-division", "odds as p/(1 - p), whose logarithm is taken afterwards")
            .seen("the paper's formula outside log space: at an average of -104 p is 0 in f32")
            .under("{kind: orpo}")
            .made_of([of(Kind::Orpo, |p| {
                let [c, r] = [p.chosen.average().exp(), p.rejected.average().exp()];
                p.orpo((c / (-c + 1.0)).ln() - (r / (-r + 1.0)).ln())
            })]),
        Fault::new("sft-term-left-out", "ORPO without its negative log-likelihood")
            .seen("mlx-lm-lora #65")
            .under("{kind: orpo}")
            .as_if(&[|options| Options { sft: false, ..options }]),
        Fault::new("sft-term-of-sums", "the likelihood term is a sum over tokens")
            .seen("LLaMA-Factory 52d402e2a, for the other term")
            .under("{kind: orpo}")
            .made_of([with_likelihood(|p| p.chosen.policy)]),
        Fault::new("sft-term-of-the-rejected-side", "the rejected side's likelihood is raised")
            .seen("the second half of a concatenated batch where TRL takes the first")
            .under("{kind: orpo}")
            .made_of([
                with_likelihood(|p| p.rejected.average()),
                with_likelihood(|p| p.chosen.average() + p.rejected.average()),
            ]),
        Fault::new("sft-term-scaled-by-beta", "β weighs the likelihood term too")
            .seen("a bracket too far: β·(ratio + likelihood)")
            .under("{kind: orpo}")
            .made_of([with_likelihood(|p| p.chosen.average() * p.options.beta)]),
        Fault::new("sft-term-over-the-batch", "the likelihood is one average over all pairs")
            .seen("TRL's nll_loss, which is a mean over the batch's tokens")
            .under("{kind: orpo, reduction: mean}")
            .made_of([of_a_batch(true), of_a_batch(false)]),
        Fault::new("beta-on-the-likelihood", "β weighs the likelihood term, not that of the odds")
            .seen("mutation: ORPO's λ beside the other of its two terms")
            .under("{kind: orpo}")
            .made_of([of(Kind::Orpo, |p| {
                let loss = logistic(p.odds_ratio());
                if p.options.sft { loss - p.chosen.average() * p.options.beta } else { loss }
            })]),
        Fault::new("sft-term-detached", "the likelihood term is in the loss, without gradient")
            .seen("the number that was made for the log, added to the loss")
            .under("{kind: orpo}")
            .made_of([with_likelihood(|p| p.chosen.average().detach())]),
        Fault::new("sft-term-sign", "the average log-probability is added, not taken off")
            .seen("a log-likelihood where its negative belongs")
            .under("{kind: orpo}")
            .made_of([with_likelihood(|p| -p.chosen.average())]),
        Fault::new("odds-term-sign", "the term of the odds has the other sign")
            .seen("TRL's `beta * logsigmoid`, which its trainer subtracts, taken for the loss")
            .under("{kind: orpo}")
            .made_of([of(Kind::Orpo, |p| {
                let of_odds = logistic(p.odds_ratio()) * -p.options.beta;
                if p.options.sft { of_odds - p.chosen.average() } else { of_odds }
            })]),
        Fault::new("odds-ratio-inverted", "the odds of the rejected side over the chosen one's")
            .seen("mutation: the two odds exchanged, and the likelihood term right")
            .under("{kind: orpo}")
            .made_of([of(Kind::Orpo, |p| p.orpo(-p.odds_ratio()))]),
        Fault::new("odds-scaled-inside", "β scales the log odds ratio, not its loss")
            .seen("DPO's place of β where ORPO's is declared")
            .under("{kind: orpo}")
            .made_of([of(Kind::Orpo, |p| {
                let loss = logistic(p.odds_ratio() * p.options.beta);
                if p.options.sft { loss - p.chosen.average() } else { loss }
            })]),
    ]
}

/// `orpo` with another likelihood term.
fn with_likelihood(likelihood: for<'a, 't> fn(&Pair<'a, 't>) -> Var<'t>) -> Variant {
    Variant::gives(move |case: &PairObjectiveCase, options: &Options, dtype| {
        made_of(case, options, dtype, |pairs, options| {
            match options.kind == Kind::Orpo && options.sft {
                true => pairs
                    .iter()
                    .map(|pair| logistic(pair.odds_ratio()) * options.beta - likelihood(pair))
                    .collect(),
                false => reference::losses(pairs, options),
            }
        })
    })
}

/// `orpo` with one likelihood for all pairs: of all their tokens, or the mean of their averages.
fn of_a_batch(by_token: bool) -> Variant {
    Variant::gives(move |case: &PairObjectiveCase, options: &Options, dtype| {
        made_of(case, options, dtype, |pairs, options| {
            if options.kind != Kind::Orpo || !options.sft {
                return reference::losses(pairs, options);
            }
            let number = |pair: &Pair<'_, '_>| if by_token { pair.chosen.length } else { 1.0 };
            let count: f64 = pairs.iter().map(number).sum();
            let likelihoods = pairs.iter().map(|pair| pair.chosen.average() * number(pair));
            let likelihood = likelihoods.reduce(|a, b| a + b).expect("a pair") / count;
            pairs
                .iter()
                .map(|pair| logistic(pair.odds_ratio()) * options.beta - likelihood)
                .collect()
        })
    })
}
