//! Faults of the KL term: its sign, its direction, its gradient, its clamps and its weight.

use ndarray::{Array0, Array2};

use super::super::{KlEstimator, Options, PolicyLossCase, PolicyLossOutput};
use super::{Fault, Variant, gradient, right, tokens};
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::value::place::Dtype;

/// The term itself: sign, weight, direction and estimator.
pub(super) fn terms() -> Vec<Fault> {
    vec![
        Fault::new("kl-term-subtracted", "the divergence from the reference is rewarded")
            .seen("verl #179 (a65c9157b); Search-R1 4b3c094")
            .under("{beta: 0.5}")
            .as_if(&[|options| Options { beta: -options.beta, ..options }]),
        Fault::new("kl-coefficient-forced-to-zero", "the KL term has no part in the loss")
            .seen("unsloth #3604 (4571ecaca3)")
            .under("{beta: 0.5}")
            .as_if(&[|options| Options { beta: 0.0, ..options }]),
        Fault::new("beta-applied-twice", "the KL term is scaled by `beta` twice")
            .seen("a divergence that was scaled where it was made")
            .under("{beta: 0.5}")
            .as_if(&[|options| Options { beta: options.beta * options.beta, ..options }]),
        Fault::new("kl-direction-reversed", "the divergence of the reference from the policy")
            .seen("trlx; kl-estimate/k3-direction-reversed")
            .under("{beta: 0.5}")
            .gives(&[|case, options, dtype| {
                let Some(reference) = case.ref_log_probs.clone() else {
                    return right(case, options, dtype);
                };
                let turned = PolicyLossCase {
                    ref_log_probs: Some(case.log_probs.clone()),
                    log_probs: reference,
                    ..case.clone()
                };
                let term = term(&turned, options, dtype);
                with_term(case, options, dtype, Term { slopes: -term.slopes, ..term })
            }]),
        Fault::new("kl-detached", "the KL term has its value and no gradient")
            .seen("a divergence computed for the log, without gradients")
            .under("{beta: 0.5}")
            .gives(&[|case, options, dtype| {
                let term = term(case, options, dtype);
                with_term(case, options, dtype, Term { slopes: term.slopes * 0.0, ..term })
            }]),
        Fault::new(
            "kl-of-the-old-policy",
            "the divergence of the policy that sampled, which learns nothing from it",
        )
        .seen("a divergence taken from the rollout batch")
        .under("{beta: 0.5}")
        .gives(&[|case, options, dtype| {
            let old = PolicyLossCase { log_probs: case.old_log_probs.clone(), ..case.clone() };
            let term = term(&old, options, dtype);
            with_term(case, options, dtype, Term { slopes: term.slopes * 0.0, ..term })
        }]),
        Fault::new("kl-estimator-mistaken", "another estimator than the declared one")
            .seen("open-instruct counts `kl0` to `kl3`, others from 1")
            .under("{beta: 0.5}")
            .made_of([
                term_as_if(|o| o.kl_estimator = KlEstimator::K1),
                term_as_if(|o| o.kl_estimator = KlEstimator::K2),
                term_as_if(|o| o.kl_estimator = KlEstimator::Abs),
                term_as_if(|o| o.kl_estimator = KlEstimator::K3),
            ]),
        Fault::new("kl-gradient-of-k2", "the value is right, the gradient is that of d²/2")
            .seen("verl's `k3+` where `k3` is declared")
            .under("{beta: 0.5}")
            .gives(&[|case, options, dtype| {
                let k2 = Options {
                    kl_estimator: KlEstimator::K2,
                    kl_clamp: None,
                    kl_log_ratio_clamp: None,
                    ..options.clone()
                };
                let slopes = term(case, &k2, dtype).slopes;
                let term = term(case, options, dtype);
                with_term(case, options, dtype, Term { slopes, ..term })
            }]),
    ]
}

/// Its sum, its clamps and its metric.
pub(super) fn sums_and_clamps() -> Vec<Fault> {
    vec![
        Fault::new(
            "kl-aggregated-as-token-mean",
            "the KL term is the mean over all tokens, whatever is declared for the loss",
        )
        .seen("a metric's mean used for the loss")
        .under("{beta: 0.5, aggregate: seq-mean-token-sum}")
        .made_of([term_as_if(|o| o.aggregate = Aggregate::TokenMean)]),
        Fault::new(
            "kl-diluted-by-padding",
            "the KL term is divided by the number of all places, masked ones too",
        )
        .seen("`.mean()` after the multiplication by the mask")
        .under("{beta: 0.5}")
        .gives(&[|case, options, dtype| {
            let share = tokens(&case.mask) as f64 / case.mask.len() as f64;
            let Term { value, slopes } = term(case, options, dtype);
            let term = Term { value: value * share, slopes: slopes * share };
            with_term(case, options, dtype, term)
        }]),
        Fault::new(
            "kl-clamp-ignored",
            "the divergence of a token is not clamped, although that is declared",
        )
        .seen("TRL's convention where slime's is declared")
        .under("{beta: 0.5, kl_clamp: [0, 0.5]}")
        .made_of([term_as_if(|o| o.kl_clamp = None)]),
        Fault::new(
            "kl-clamp-keeps-its-gradient",
            "the derivative flows on where the divergence is clamped",
        )
        .seen("verl's `k3+` where `k3` is declared; verl #1779")
        .under("{beta: 0.5, kl_clamp: [0, 0.5]}")
        .gives(&[|case, options, dtype| {
            let free = Options { kl_clamp: None, ..options.clone() };
            let slopes = term(case, &free, dtype).slopes;
            with_term(case, options, dtype, Term { slopes, ..term(case, options, dtype) })
        }]),
        Fault::new(
            "kl-log-ratio-clamp-ignored",
            "the log-ratio to the reference is not clamped, although that is declared",
        )
        .seen("TRL's convention where NeMo-RL's is declared")
        .under("{beta: 0.5, kl_log_ratio_clamp: 1}")
        .made_of([term_as_if(|o| o.kl_log_ratio_clamp = None)]),
        Fault::new(
            "kl-clamped-undeclared",
            "the divergence of a token is clamped to ±10, the log-ratio to ±20 first",
        )
        .seen("verl's and OpenRLHF's convention where TRL's is declared")
        .under("{beta: 0.5}")
        .made_of([term_as_if(|o| {
            o.kl_clamp = o.kl_clamp.or(Some([-10.0, 10.0]));
            o.kl_log_ratio_clamp = o.kl_log_ratio_clamp.or(Some(20.0));
        })]),
        Fault::new("kl-reported-scaled", "the metric `kl` is scaled by `beta`")
            .seen("the summand logged for the divergence")
            .under("{beta: 0.5}")
            .gives(&[|case, options, dtype| {
                let right = right(case, options, dtype);
                PolicyLossOutput { kl: right.kl.map(|kl| kl * options.beta), ..right }
            }]),
    ]
}

/// The unscaled KL term.
struct Term {
    value: f64,
    slopes: Array2<f64>,
}

/// The KL term of a case: its loss without advantages.
fn term(case: &PolicyLossCase, options: &Options, dtype: Dtype) -> Term {
    let advantages = case.advantages.mapv(|_| 0.0);
    let case = PolicyLossCase { advantages, ..case.clone() };
    let output = right(&case, &Options { beta: 1.0, ..options.clone() }, dtype);
    Term { value: output.loss[()], slopes: gradient(&output) }
}

/// The right loss of the policy with another KL term, which is also what is reported.
fn with_term(
    case: &PolicyLossCase,
    options: &Options,
    dtype: Dtype,
    Term { value, slopes }: Term,
) -> PolicyLossOutput {
    if case.ref_log_probs.is_none() {
        return right(case, options, dtype);
    }
    let policy = right(case, &Options { beta: 0.0, ..options.clone() }, dtype);
    let total = gradient(&policy) + slopes * options.beta;
    PolicyLossOutput {
        loss: &policy.loss + options.beta * value,
        kl: Some(Array0::from_elem((), value)),
        grad_log_probs: Some(total),
        ..policy
    }
}

/// The KL term of other options.
fn term_as_if(change: fn(&mut Options)) -> Variant {
    Variant::gives(move |case: &PolicyLossCase, options: &Options, dtype| {
        let mut other = options.clone();
        change(&mut other);
        with_term(case, options, dtype, term(case, &other, dtype))
    })
}
