//! Faults of the ratio: what is divided by what, over which tokens, and what flows back.

use super::super::{Objective, Ratio};
use super::graph::on_tape;
use super::{Fault, Variant, loss_as_if};
use shakedown_core::value::place::Dtype;

/// What is divided by what, and which gradient flows back.
pub(super) fn what() -> Vec<Fault> {
    vec![
        Fault::new(
            "old-log-probs-are-current",
            "the old policy is the current one in every step: the ratio is 1, nothing is clipped",
        )
        .seen("prime-rl 413cf0d1d")
        .on(&[|case, _| case.old_log_probs = case.log_probs.clone()]),
        Fault::new("ratio-inverted", "the old policy over the current one")
            .seen("`exp(old - new)` for `exp(new - old)`: the operands swapped")
            .made_of([on_tape(|g, at| g.loss(g.ratio_of(-g.exponent(at)), at))]),
        Fault::new(
            "ratio-without-exponential",
            "the log-ratio, or 1 and the log-ratio, for its exponential",
        )
        .seen("first-order ratios of log-probabilities")
        .made_of([
            on_tape(|g, at| g.loss(g.exponent(at) + 1.0, at)),
            on_tape(|g, at| g.loss(g.exponent(at), at)),
        ]),
        Fault::new(
            "ratio-of-logarithms",
            "the quotient of the log-probabilities, for the exponential of their difference",
        )
        .seen("PPO's π/π_old (Schulman et al. 2017), taken of log-probabilities")
        .made_of([on_tape(|g, at| {
            let old = (g.log_prob(at) - g.log_ratio(at)).detach() - 1e-8;
            g.loss(g.log_prob(at) / old, at)
        })]),
        Fault::new("ratio-detached", "no gradient flows through the ratio")
            .seen("log-probabilities computed without gradients")
            .made_of([on_tape(|g, at| g.loss(g.ratio(at), at).detach())]),
        Fault::new(
            "gradient-without-the-ratio",
            "the value has the ratio, the gradient has 1 in its place",
        )
        .seen("a straight-through ratio: sg(ratio) + log_probs - sg(log_probs)")
        .made_of([on_tape(|g, at| {
            let exponent = g.exponent(at);
            g.loss(g.ratio(at).detach() + (exponent - exponent.detach()), at)
        })]),
        Fault::new(
            "weight-applied-twice",
            "the loss of a token is weighted by its ratio once more",
        )
        .seen("unsloth-zoo #870 (a5efee2c)")
        .made_of([on_tape(|g, at| g.loss(g.ratio(at), at) * g.ratio(at).detach())]),
        Fault::new(
            "weight-keeps-its-gradient",
            "the weight of a token is not detached and adds a gradient of its own",
        )
        .seen("unsloth-zoo #343 (e58389e1)")
        .under("{objective: cispo}")
        .made_of([on_tape(|g, at| g.clipped(g.ratio(at)) * -g.advantage(at) * g.log_prob(at))]),
    ]
}

/// Narrow formats, and the clamp of the exponent.
pub(super) fn clamps() -> Vec<Fault> {
    vec![
        Fault::new(
            "ratio-in-half-precision",
            "log-probabilities pass through bf16 before they are subtracted",
        )
        .seen("OpenRLHF #620 (f34ef60a); slime #245")
        .on(&[|case, _| {
            for log_probs in [&mut case.log_probs, &mut case.old_log_probs] {
                log_probs.mapv_inplace(|x| Dtype::Bf16.round(x));
            }
        }]),
        Fault::new(
            "log-ratio-clamp-ignored",
            "the exponent is not clamped, although that is declared",
        )
        .seen("TRL's convention where verl's is declared")
        .under("{log_ratio_clamp: 10}")
        .made_of([loss_as_if(|o| o.log_ratio_clamp = None)]),
        Fault::new(
            "log-ratio-clamp-keeps-its-gradient",
            "the derivative flows on where the exponent is clamped",
        )
        .seen("clamps written as x + sg(clamp(x) - x)")
        .under("{log_ratio_clamp: 10}")
        .made_of([on_tape(|g, at| {
            let exponent = g.exponent(at);
            let value = g.ratio(at).detach();
            let slope = g.ratio_of(exponent.detach());
            g.loss(value + slope * (exponent - exponent.detach()), at)
        })]),
        Fault::new("log-ratio-clamped-undeclared", "the exponent is clamped to ±20, ±10 or ±5")
            .seen("verl's convention where TRL's is declared")
            .made_of([20.0, 10.0, 5.0].map(clamped)),
        Fault::new(
            "exponential-overflows",
            "an infinite ratio whose loss is cut off gives a gradient of 0 · inf",
        )
        .seen("TRL and slime without a clamp at log-ratios above 88; verl #1779")
        .under("{extreme_ratios: finite}")
        .made_of([on_tape(|g, at| {
            let (exponent, a) = (g.exponent(at), g.advantage(at));
            let limit = g.options.log_ratio_clamp.unwrap_or(f64::INFINITY);
            let ratio = exponent.clamp(-limit, limit).exp();
            if g.options.objective != Objective::PpoClip {
                return g.loss(ratio, at);
            }
            let (lo, hi) = g.options.bounds();
            let loss = (ratio * -a).max(ratio.clamp(lo, hi) * -a);
            let bound = g.options.dual().filter(|_| a < 0.0);
            bound.map_or(loss, |c| loss.min(g.tape.constant(-c * a)))
        })]),
    ]
}

/// Ratios of rows and of tokens.
pub(super) fn sequences() -> Vec<Fault> {
    vec![
        Fault::new(
            "sequence-ratio-for-token",
            "all tokens share the row's ratio where each has its own",
        )
        .seen("GSPO's convention where PPO's is declared")
        .made_of([loss_as_if(|o| o.ratio = Ratio::Sequence)]),
        Fault::new(
            "token-ratio-for-sequence",
            "each token has its own ratio where all share the row's",
        )
        .seen("an importance_sampling_level that is not passed on")
        .under("{ratio: sequence}")
        .made_of([loss_as_if(|o| o.ratio = Ratio::Token)]),
        Fault::new(
            "sequence-ratio-of-the-sum",
            "the exponential of the summed log-ratios, not of their mean",
        )
        .seen("off-policy weights (trl #5814) where GSPO's ratio is declared")
        .under("{ratio: sequence}")
        .made_of([on_tape(|g, at| {
            let count = g.row(at.0).len() as f64;
            g.loss(g.ratio_of(g.mean(at.0) * count), at)
        })]),
        Fault::new(
            "sum-of-exponentials-as-ratio",
            "the exponentials of a row are added up, and T on the policy stands for 1",
        )
        .seen("unsloth-zoo #870 (a5efee2c)")
        .under("{ratio: sequence}")
        .made_of([on_tape(|g, at| {
            let row = g.row(at.0);
            g.loss(g.tape.sum(row.iter().map(|at| g.ratio_of(g.log_ratio(*at)))), at)
        })]),
        Fault::new(
            "mean-of-exponentials-as-ratio",
            "the mean of a row's ratios, not the exponential of their mean logarithm",
        )
        .seen("arithmetic for geometric means")
        .under("{ratio: sequence}")
        .made_of([on_tape(|g, at| {
            let row = g.row(at.0);
            let sum = g.tape.sum(row.iter().map(|at| g.ratio_of(g.log_ratio(*at))));
            g.loss(sum / row.len() as f64, at)
        })]),
        Fault::new(
            "sequence-mean-over-padding",
            "the log-ratios of a row are divided by its width, not by its tokens",
        )
        .seen("a mean over the padded row")
        .under("{ratio: sequence}")
        .made_of([on_tape(|g, at| {
            let share = g.row(at.0).len() as f64 / g.width() as f64;
            g.loss(g.ratio_of(g.mean(at.0) * share), at)
        })]),
        Fault::new(
            "sequence-gradient-spread",
            "the gradient flows through the row's mean, where each token keeps its own advantage",
        )
        .seen("GSPO where GSPO-token is declared")
        .under("{ratio: sequence-token}")
        .made_of([loss_as_if(|o| o.ratio = Ratio::Sequence)]),
        Fault::new(
            "sequence-ratio-keeps-its-gradient",
            "the row's ratio is not detached under the token's own, so both give a gradient",
        )
        .seen("GSPO-token without the stop-gradient")
        .under("{ratio: sequence-token}")
        .made_of([on_tape(|g, at| {
            let own = g.log_prob(at) - g.log_prob(at).detach();
            g.loss(g.ratio_of(g.mean(at.0) + own), at)
        })]),
        Fault::new(
            "ratio-against-the-reference",
            "the ratio is taken to the reference policy, not to the old one",
        )
        .seen("two arguments of one shape exchanged")
        .under("{beta: 0.5}")
        .on(&[|case, _| {
            if let Some(reference) = &case.ref_log_probs {
                case.old_log_probs = reference.clone();
            }
        }]),
    ]
}

fn clamped(limit: f64) -> Variant {
    loss_as_if(move |o| {
        let declared = o.log_ratio_clamp.unwrap_or(limit);
        o.log_ratio_clamp = Some(declared.min(limit));
    })
}
