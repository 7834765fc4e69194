//! Faults of the formula, the normaliser apart.

use super::behaviour::{
    by_position, capped, clamped, finite_or, mapped, overflowing, plus_epsilon, right, right_at,
    times, underflowing, wider, within,
};
use crate::token_log_probs::{Options, TokenLogProbs};
use shakedown_core::laws::faults::temperature;

type Fault = shakedown_core::contract::fault::Fault<TokenLogProbs>;

/// The temperature has no effect, the wrong one, or the right one too late.
pub(super) fn temperature() -> Vec<Fault> {
    let mut faults = Vec::from(temperature::faults(
        "log-softmax of the logits, not of the logits over the temperature",
        "trl #3029 (04f659737); unsloth-zoo #832",
    ));
    faults.push(
        Fault::new(
            "temperature-applied-to-the-log-probabilities",
            "the log-softmax is divided by the temperature, not the logits",
        )
        .seen("divided after the log-softmax; TRL, verl and OpenRLHF divide the logits before it")
        .under("{temperature: 0.6}")
        .gives(&[|case, options, dtype| {
            let plain = Options { temperature: 1.0, ..options.clone() };
            times(right(case, &plain, dtype), 1.0 / options.temperature)
        }]),
    );
    faults
}

/// Another quantity than the log-probability.
pub(super) fn formula() -> Vec<Fault> {
    vec![
        Fault::new("sign-flipped", "the negative log-probability: a cross-entropy")
            .seen("PyTorch's `cross_entropy` is the negative log-probability")
            .gives(&[|case, options, dtype| times(right(case, options, dtype), -1.0)]),
        Fault::new("probability-for-log-probability", "the softmax without its logarithm")
            .seen("`softmax` for `log_softmax`")
            .gives(&[|case, options, _| {
                by_position(case, options, |at| {
                    let p = at.softmax();
                    (p[at.token], at.gradient(&p, p[at.token]))
                })
            }]),
        Fault::new(
            "logit-not-normalised",
            "the logit of the token (over the temperature), without the normaliser",
        )
        .seen("gather before log-softmax; compare trl #2058")
        .gives(&[|case, options, _| {
            by_position(case, options, |at| {
                let none = vec![0.0; at.logits.len()];
                (at.z[at.token], at.gradient(&none, 1.0))
            })
        }]),
    ]
}

/// Guards against extreme values that change ordinary ones.
pub(super) fn guards() -> Vec<Fault> {
    vec![
        Fault::new(
            "epsilon-inside-the-logarithm",
            "log(p + ε) for log p (1e-5, 1e-6, 1e-8, 1e-10, 1e-12)",
        )
        .seen("`log(softmax(x) + eps)` for `log_softmax(x)`, as a guard against log 0")
        .gives(&[
            |case, options, _| plus_epsilon(case, options, 1e-8),
            |case, options, _| plus_epsilon(case, options, 1e-10),
            |case, options, _| plus_epsilon(case, options, 1e-12),
            |case, options, _| plus_epsilon(case, options, 1e-6),
            |case, options, _| plus_epsilon(case, options, 1e-5),
        ]),
        Fault::new(
            "probability-clamped",
            "log max(p, ε) for log p (1e-8, 1e-10, 1e-12, 1e-6, the smallest step of f32 or f64)",
        )
        .seen("PyTorch's `Categorical(probs)` clamps at the eps of the dtype (`clamp_probs`)")
        .gives(&[
            |case, options, _| clamped(case, options, 1e-8_f64.ln()),
            |case, options, _| clamped(case, options, 1e-10_f64.ln()),
            |case, options, _| clamped(case, options, 1e-12_f64.ln()),
            |case, options, _| clamped(case, options, 1e-6_f64.ln()),
            |case, options, _| clamped(case, options, f64::from(f32::EPSILON).ln()),
            |case, options, _| clamped(case, options, f64::EPSILON.ln()),
        ]),
        Fault::new(
            "log-probability-clamped",
            "no log-probability below a floor (-20, -10, -50, -100)",
        )
        .seen("`log_probs.clamp(min=-20)` and the like, as a guard against extreme ratios")
        .gives(&[
            |case, options, _| clamped(case, options, -20.0),
            |case, options, _| clamped(case, options, -10.0),
            |case, options, _| clamped(case, options, -50.0),
            |case, options, _| clamped(case, options, -100.0),
        ]),
        Fault::new("logits-clamped", "the logits are clamped first (to ±20, ±10, ±50, ±100)")
            .seen("a guard against overflow in its place")
            .gives(&[
                |case, options, _| mapped(case, options, |x| within(x, 20.0)),
                |case, options, _| mapped(case, options, |x| within(x, 10.0)),
                |case, options, _| mapped(case, options, |x| within(x, 50.0)),
                |case, options, _| mapped(case, options, |x| within(x, 100.0)),
            ]),
        Fault::new(
            "softcap-applied",
            "the logits go through c·tanh(x/c) (c = 30, 50), which nobody declared",
        )
        .seen("unsloth-zoo's fused loss with a soft-capped model's constant")
        .gives(&[
            |case, options, _| mapped(case, options, |x| capped(x, 30.0)),
            |case, options, _| mapped(case, options, |x| capped(x, 50.0)),
        ]),
    ]
}

/// A softmax that leaves the range of its format; and logarithms of another base.
pub(super) fn overflow() -> Vec<Fault> {
    vec![
        Fault::new(
            "maximum-not-subtracted",
            "exp of the raw logits, which overflows beyond 88 in f32",
        )
        .seen("`exp(x) / exp(x).sum()` written out; PyTorch's `log_softmax` subtracts the maximum")
        .gives(&[
            |case, options, _| overflowing(case, options, |z, _, sum| z - f64::from(sum).ln()),
            |case, options, _| overflowing(case, options, |_, own, sum| f64::from(own / sum).ln()),
        ]),
        Fault::new(
            "minimum-subtracted-for-maximum",
            "the minimum is subtracted before exp, which overflows beyond 88 in f32",
        )
        .seen("min for max; PyTorch's `log_softmax` subtracts the maximum")
        .gives(&[|case, options, _| {
            by_position(case, options, |at| {
                let least = at.z.iter().copied().fold(f64::INFINITY, f64::min);
                let below: Vec<f64> = at.z.iter().map(|z| z - least).collect();
                let exponentials: Vec<f32> = below.iter().map(|x| x.exp() as f32).collect();
                let sum: f32 = exponentials.iter().sum();
                let softmax: Vec<f64> = exponentials.iter().map(|e| f64::from(e / sum)).collect();
                (below[at.token] - f64::from(sum).ln(), at.gradient(&softmax, 1.0))
            })
        }]),
        Fault::new(
            "logarithm-of-the-softmax",
            "log(softmax(x)) in f32 (or f64): -inf where the softmax underflows",
        )
        .seen("`log(softmax(x))`, against which PyTorch's documentation of `log_softmax` warns")
        .gives(&[
            |case, options, _| underflowing(case, options, |p| f64::from(p as f32)),
            |case, options, _| underflowing(case, options, |p| p),
        ]),
        Fault::new(
            "logarithm-in-another-base",
            "log2 or log10 for the natural logarithm: bits for nats",
        )
        .seen("`log2` or `log10` for `log`, as for metrics in bits")
        .gives(&[
            |case, options, dtype| times(right(case, options, dtype), std::f64::consts::LOG2_E),
            |case, options, dtype| times(right(case, options, dtype), std::f64::consts::LOG10_E),
        ]),
    ]
}

/// Logits of -inf; and the ε that is to guard against a normaliser of 0.
pub(super) fn infinite() -> Vec<Fault> {
    vec![
        Fault::new(
            "minus-infinity-replaced-by-a-number",
            "a logit of -inf becomes 0 (or -1, -10, -100)",
        )
        .seen("nan_to_num on the logits")
        .gives(&[
            |case, options, _| mapped(case, options, |x| finite_or(x, 0.0)),
            |case, options, _| mapped(case, options, |x| finite_or(x, -1.0)),
            |case, options, _| mapped(case, options, |x| finite_or(x, -10.0)),
            |case, options, _| mapped(case, options, |x| finite_or(x, -100.0)),
        ]),
        Fault::new("minus-infinity-gives-nan", "one logit of -inf makes its position NaN")
            .seen("0·∞ in Σ p·z, as in the entropy of TRL, verl, OpenRLHF and slime")
            .gives(&[|case, options, dtype| {
                by_position(case, options, |at| {
                    if at.logits.iter().all(|logit| logit.is_finite()) {
                        right_at(&at, dtype)
                    } else {
                        (f64::NAN, vec![f64::NAN; at.logits.len()])
                    }
                })
            }]),
        Fault::new("epsilon-in-the-normaliser", "log(Σ exp + ε) for log Σ exp (1e-2 to 1e-6)")
            .seen(
                "`log(sum + eps)` as a guard against log 0, needless once the maximum is \
                 subtracted",
            )
            .gives(&[
                |case, options, _| wider(case, options, 1e-3),
                |case, options, _| wider(case, options, 1e-4),
                |case, options, _| wider(case, options, 1e-5),
                |case, options, _| wider(case, options, 1e-6),
                |case, options, _| wider(case, options, 1e-2),
            ]),
    ]
}
