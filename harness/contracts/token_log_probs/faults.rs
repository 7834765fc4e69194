//! Known wrong behaviours of `token-log-probs`: real bugs, and conventions mistaken for others.

mod behaviour;

use ndarray::Axis;

use self::behaviour::{
    among, at_temperature, by_position, capped, clamped, divided_gradient, finite_or, from_rounded,
    gradient, in_half, in_order, less, mapped, moved, normalised_at, normaliser_in_half,
    overflowing, plus_epsilon, right, right_at, smoothed, stored, through, times, underflowing,
    weighted, wider, with_token, with_tokens_at, within,
};
use super::generate::argmax;
use super::{TokenLogProbs, columns, scored};
use crate::value::place::Dtype;

type Fault = crate::contract::fault::Fault<TokenLogProbs>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new("temperature-not-applied", "log-softmax of the logits, not of the logits over the temperature").seen("trl #3029 (04f659737); unsloth-zoo #832").under("{temperature: 0.6}").gives(&[|case, options, dtype| at_temperature(case, options, dtype, 1.0)]),
        Fault::new("temperature-multiplied", "the logits are multiplied by the temperature").seen("`*` for `/`: TRL, verl and OpenRLHF divide the logits by the temperature").under("{temperature: 0.6}").gives(&[|case, options, dtype| {
                at_temperature(case, options, dtype, 1.0 / options.temperature)
            }]),
        Fault::new("temperature-applied-twice", "the logits are divided by the temperature twice").seen("trl #3029: applied in the model's forward and again by its caller").under("{temperature: 0.6}").gives(&[|case, options, dtype| {
                at_temperature(case, options, dtype, options.temperature * options.temperature)
            }]),
        Fault::new("temperature-applied-to-the-log-probabilities", "the log-softmax is divided by the temperature, not the logits").seen("divided after the log-softmax; TRL, verl and OpenRLHF divide the logits before it").under("{temperature: 0.6}").gives(&[|case, options, dtype| {
                times(at_temperature(case, options, dtype, 1.0), 1.0 / options.temperature)
            }]),
        Fault::new("logits-not-shifted", "logits at t score the token at t where the token at t + 1 is declared").seen("trl #2058 (a5b98fcf9), #5905 (5899ae6c3)").under("{shift: next}").gives(&[
                // logits[:, 1:] against tokens[:, 1:]
                |case, options, dtype| moved(case, options, dtype, |c, _| (c + 1, Some(c + 1))),
                // logits[:, :-1] against tokens[:, :-1]
                |case, options, dtype| moved(case, options, dtype, |c, _| (c, Some(c))),
            ]),
        Fault::new("shifted-twice", "logits at t score the token at t + 2").seen("open-instruct #1549 (24080cde7)").under("{shift: next}").gives(&[
                |case, options, dtype| {
                    moved(case, options, dtype, |c, length| (c, (c + 2 < length).then_some(c + 2)))
                },
                |case, options, dtype| {
                    moved(case, options, dtype, |c, length| (c, Some((c + 2) % length)))
                },
                |case, options, dtype| {
                    moved(case, options, dtype, |c, length| (c, Some((c + 2).min(length - 1))))
                },
            ]),
        Fault::new("shifted-although-not-declared", "logits at t score the token at t + 1 (or t - 1) where the token at t is declared").seen("open-instruct #1549 (24080cde7): shifted by the caller and again inside").gives(&[
                |case, options, dtype| {
                    moved(case, options, dtype, |c, length| (c, (c + 1 < length).then_some(c + 1)))
                },
                |case, options, dtype| {
                    moved(case, options, dtype, |c, length| (c, Some((c + 1) % length)))
                },
                |case, options, dtype| moved(case, options, dtype, |c, _| (c, c.checked_sub(1))),
                |case, options, dtype| {
                    moved(case, options, dtype, |c, length| (c, Some((c + length - 1) % length)))
                },
            ]),
        Fault::new("most-likely-token-scored", "the log-probability of the most likely token, not of the sampled one").seen("NeMo-RL #3297 (78965b37f)").gives(&[|case, options, dtype| with_token(case, options, dtype, |at| argmax(at.logits))]),
        Fault::new("least-likely-token-scored", "the log-probability of the least likely token, not of the sampled one").seen("an ascending sort for a descending one; compare NeMo-RL #3297 (78965b37f)").gives(&[|case, options, dtype| {
                with_token(case, options, dtype, |at| {
                    let negated: Vec<f64> = at
                        .logits
                        .iter()
                        .map(|x| if x.is_finite() { -x } else { f64::NEG_INFINITY })
                        .collect();
                    argmax(&negated)
                })
            }]),
        Fault::new("log-softmax-in-half-precision", "softmax, pick and subtraction in bf16 or f16, or the result stored in it").seen("OpenRLHF #634 (dfd840cb); slime #245 (9a291fca7)").gives(&[
                |case, options, _| in_half(case, options, Dtype::Bf16),
                |case, options, _| in_half(case, options, Dtype::F16),
                |case, options, _| normaliser_in_half(case, options, Dtype::Bf16),
                |case, options, _| normaliser_in_half(case, options, Dtype::F16),
                |case, options, dtype| stored(case, options, dtype, Dtype::Bf16),
                |case, options, dtype| stored(case, options, dtype, Dtype::F16),
                |case, options, dtype| from_rounded(case, options, dtype, Dtype::Bf16),
                |case, options, dtype| from_rounded(case, options, dtype, Dtype::F16),
                |case, options, dtype| through(case, options, dtype, Dtype::Bf16),
                |case, options, dtype| through(case, options, dtype, Dtype::F16),
            ]),
        Fault::new("last-real-column-trimmed", "the last token of every row is never scored: 0 in its place").seen("trl #2332 (7f2ccbe3a)").gives(&[|case, options, dtype| {
                let last = columns(case, options) - 1;
                by_position(case, options, |at| match at.column == last {
                    true => (0.0, vec![0.0; at.logits.len()]),
                    false => right_at(&at, dtype),
                })
            }]),
        Fault::new("gradient-doubled", "right values, and a gradient that is counted twice").seen("unsloth-zoo #892 (d491423a)").gives(&[|case, options, dtype| gradient(case, options, dtype, |_, g| 2.0 * g)]),
        Fault::new("gradient-without-temperature", "right values; the gradient misses the division by the temperature, or multiplies").seen("custom backward functions, compare unsloth-zoo #892").under("{temperature: 0.6}").gives(&[
                |case, options, dtype| {
                    gradient(case, options, dtype, |options, g| g * options.temperature)
                },
                |case, options, dtype| {
                    gradient(case, options, dtype, |options, g| g * options.temperature.powi(2))
                },
                |case, options, dtype| {
                    gradient(case, options, dtype, |options, g| g / options.temperature)
                },
            ]),
        Fault::new("gradient-zero", "right values; the gradient is exactly 0").seen("unsloth #5230").gives(&[|case, options, dtype| gradient(case, options, dtype, |_, _| 0.0)]),
        Fault::new("gradient-of-the-loss", "right values; the gradient has the opposite sign").seen("cross-entropy's backward reused").gives(&[|case, options, dtype| gradient(case, options, dtype, |_, g| -g)]),
        Fault::new("gradient-of-the-mean", "right values; the gradient is divided by the number of tokens, or of rows").seen("a mean inside a custom backward").gives(&[
                |case, options, dtype| {
                    let count = scored(case, options).count();
                    divided_gradient(case, options, dtype, count)
                },
                |case, options, dtype| divided_gradient(case, options, dtype, case.tokens.nrows()),
            ]),
        Fault::new("gradient-detached-from-the-normaliser", "right values; the gradient is onehot, the normaliser has none").seen("logsumexp under no_grad to save memory").gives(&[|case, options, dtype| {
                by_position(case, options, |at| {
                    let onehot =
                        (0..at.logits.len()).map(|entry| at.onehot(entry) / at.temperature);
                    (right_at(&at, dtype).0, onehot.collect())
                })
            }]),
        Fault::new("gradient-of-the-normaliser-only", "right values; the gradient is -softmax, the scored logit has none").seen("an in-place gather that detaches").gives(&[|case, options, dtype| {
                by_position(case, options, |at| {
                    let (value, gradient) = right_at(&at, dtype);
                    let without = gradient.iter().enumerate();
                    let without = without.map(|(v, g)| g - at.onehot(v) / at.temperature);
                    (value, without.collect())
                })
            }]),
        Fault::new("sign-flipped", "the negative log-probability: a cross-entropy").seen("PyTorch's `cross_entropy` is the negative log-probability").gives(&[|case, options, dtype| times(right(case, options, dtype), -1.0)]),
        Fault::new("probability-for-log-probability", "the softmax without its logarithm").seen("`softmax` for `log_softmax`").gives(&[|case, options, _| {
                by_position(case, options, |at| {
                    let p = at.softmax();
                    (p[at.token], at.gradient(&p, p[at.token]))
                })
            }]),
        Fault::new("logit-not-normalised", "the logit of the token (over the temperature), without the normaliser").seen("gather before log-softmax; compare trl #2058").gives(&[|case, options, _| {
                by_position(case, options, |at| {
                    let none = vec![0.0; at.logits.len()];
                    (at.z[at.token], at.gradient(&none, 1.0))
                })
            }]),
        Fault::new("epsilon-inside-the-logarithm", "log(p + ε) for log p (1e-5, 1e-6, 1e-8, 1e-10, 1e-12)").seen("`log(softmax(x) + eps)` for `log_softmax(x)`, as a guard against log 0").gives(&[
                |case, options, _| plus_epsilon(case, options, 1e-8),
                |case, options, _| plus_epsilon(case, options, 1e-10),
                |case, options, _| plus_epsilon(case, options, 1e-12),
                |case, options, _| plus_epsilon(case, options, 1e-6),
                |case, options, _| plus_epsilon(case, options, 1e-5),
            ]),
        Fault::new("probability-clamped", "log max(p, ε) for log p (1e-8, 1e-10, 1e-12, 1e-6, the smallest step of f32 or f64)").seen("PyTorch's `Categorical(probs)` clamps at the eps of the dtype (`clamp_probs`)").gives(&[
                |case, options, _| clamped(case, options, 1e-8_f64.ln()),
                |case, options, _| clamped(case, options, 1e-10_f64.ln()),
                |case, options, _| clamped(case, options, 1e-12_f64.ln()),
                |case, options, _| clamped(case, options, 1e-6_f64.ln()),
                |case, options, _| clamped(case, options, f64::from(f32::EPSILON).ln()),
                |case, options, _| clamped(case, options, f64::EPSILON.ln()),
            ]),
        Fault::new("log-probability-clamped", "no log-probability below a floor (-20, -10, -50, -100)").seen("`log_probs.clamp(min=-20)` and the like, as a guard against extreme ratios").gives(&[
                |case, options, _| clamped(case, options, -20.0),
                |case, options, _| clamped(case, options, -10.0),
                |case, options, _| clamped(case, options, -50.0),
                |case, options, _| clamped(case, options, -100.0),
            ]),
        Fault::new("logits-clamped", "the logits are clamped first (to ±20, ±10, ±50, ±100)").seen("a guard against overflow in its place").gives(&[
                |case, options, _| mapped(case, options, |x| within(x, 20.0)),
                |case, options, _| mapped(case, options, |x| within(x, 10.0)),
                |case, options, _| mapped(case, options, |x| within(x, 50.0)),
                |case, options, _| mapped(case, options, |x| within(x, 100.0)),
            ]),
        Fault::new("softcap-applied", "the logits go through c·tanh(x/c) (c = 30, 50), which nobody declared").seen("unsloth-zoo's fused loss with a soft-capped model's constant").gives(&[
                |case, options, _| mapped(case, options, |x| capped(x, 30.0)),
                |case, options, _| mapped(case, options, |x| capped(x, 50.0)),
            ]),
        Fault::new("maximum-not-subtracted", "exp of the raw logits, which overflows beyond 88 in f32").seen("`exp(x) / exp(x).sum()` written out; PyTorch's `log_softmax` subtracts the maximum").gives(&[
                |case, options, _| overflowing(case, options, |z, _, sum| z - f64::from(sum).ln()),
                |case, options, _| {
                    overflowing(case, options, |_, own, sum| f64::from(own / sum).ln())
                },
            ]),
        Fault::new("minimum-subtracted-for-maximum", "the minimum is subtracted before exp, which overflows beyond 88 in f32").seen("min for max; PyTorch's `log_softmax` subtracts the maximum").gives(&[|case, options, _| {
                by_position(case, options, |at| {
                    let least = at.z.iter().copied().fold(f64::INFINITY, f64::min);
                    let below: Vec<f64> = at.z.iter().map(|z| z - least).collect();
                    let exponentials: Vec<f32> = below.iter().map(|x| x.exp() as f32).collect();
                    let sum: f32 = exponentials.iter().sum();
                    let softmax: Vec<f64> =
                        exponentials.iter().map(|e| f64::from(e / sum)).collect();
                    (below[at.token] - f64::from(sum).ln(), at.gradient(&softmax, 1.0))
                })
            }]),
        Fault::new("logarithm-of-the-softmax", "log(softmax(x)) in f32 (or f64): -inf where the softmax underflows").seen("`log(softmax(x))`, against which PyTorch's documentation of `log_softmax` warns").gives(&[
                |case, options, _| underflowing(case, options, |p| f64::from(p as f32)),
                |case, options, _| underflowing(case, options, |p| p),
            ]),
        Fault::new("logarithm-in-another-base", "log2 or log10 for the natural logarithm: bits for nats").seen("`log2` or `log10` for `log`, as for metrics in bits").gives(&[
                |case, options, dtype| times(right(case, options, dtype), std::f64::consts::LOG2_E),
                |case, options, dtype| {
                    times(right(case, options, dtype), std::f64::consts::LOG10_E)
                },
            ]),
        Fault::new("softmax-over-another-axis", "the softmax runs over the tokens of a row, or the rows of the batch").seen("dim=1 or dim=0 for dim=-1").gives(&[
                |case, options, _| {
                    let length = case.tokens.ncols();
                    less(case, options, |n, _, v| (0..length).map(|t| [n, t, v]).collect())
                },
                |case, options, _| {
                    let rows = case.tokens.nrows();
                    less(case, options, |_, t, v| (0..rows).map(|n| [n, t, v]).collect())
                },
            ]),
        Fault::new("normaliser-without-the-scored-token", "the normaliser sums over the other tokens only").seen("a contrastive loss's denominator").gives(&[|case, options, _| among(case, options, |at, entry| entry != at.token)]),
        Fault::new("normaliser-of-another-position", "the normaliser of the position before (or after), of the first one, of the first row").seen("a buffer of logsumexp read with the wrong offset").gives(&[
                |case, options, _| normalised_at(case, options, |n, t| (n, t.saturating_sub(1))),
                |case, options, _| {
                    let last = case.tokens.ncols() - 1;
                    normalised_at(case, options, |n, t| (n, (t + 1).min(last)))
                },
                |case, options, _| normalised_at(case, options, |n, _| (n, 0)),
                |case, options, _| normalised_at(case, options, |_, t| (0, t)),
                |case, options, _| normalised_at(case, options, |_, _| (0, 0)),
            ]),
        Fault::new("normalised-over-the-most-likely-tokens", "the normaliser sums over the one, two, three or five largest logits only").seen("top-k log-probabilities of an inference engine taken for all").gives(&[
                |case, options, _| among(case, options, |at, entry| at.rank(entry) < 1),
                |case, options, _| among(case, options, |at, entry| at.rank(entry) < 2),
                |case, options, _| among(case, options, |at, entry| at.rank(entry) < 3),
                |case, options, _| among(case, options, |at, entry| at.rank(entry) < 5),
            ]),
        Fault::new("normalised-within-a-shard", "each half of the vocabulary has a normaliser of its own").seen("vocabulary-parallel log-softmax (slime) without the reduction over shards").gives(&[|case, options, _| {
                among(case, options, |at, entry| {
                    let half = at.z.len().div_ceil(2);
                    (entry < half) == (at.token < half)
                })
            }]),
        Fault::new("first-or-last-entry-left-out", "the normaliser misses the last (or the first) entry of the vocabulary").seen("padded vocabularies cut one entry too short").gives(&[
                |case, options, _| among(case, options, |at, entry| entry + 1 < at.z.len()),
                |case, options, _| among(case, options, |_, entry| entry > 0),
            ]),
        Fault::new("averaged-over-the-vocabulary", "the mean over the vocabulary, not the scored token; or a tenth of it mixed in").seen("label smoothing of a cross-entropy that nobody switched off").gives(&[
                |case, options, _| smoothed(case, options, 1.0),
                |case, options, _| smoothed(case, options, 0.1),
                |case, options, _| smoothed(case, options, 0.05),
                |case, options, _| smoothed(case, options, 0.01),
            ]),
        Fault::new("token-ids-off-by-one", "scores the token after (or before) the sampled one in the vocabulary").seen("1-based ids; an added token that moves the others").gives(&[
                |case, options, dtype| {
                    with_token(case, options, dtype, |at| (at.token + 1) % at.logits.len())
                },
                |case, options, dtype| {
                    with_token(case, options, dtype, |at| {
                        (at.token + at.logits.len() - 1) % at.logits.len()
                    })
                },
                |case, options, dtype| {
                    with_token(case, options, dtype, |at| (at.token + 1).min(at.logits.len() - 1))
                },
                |case, options, dtype| {
                    with_token(case, options, dtype, |at| at.token.saturating_sub(1))
                },
            ]),
        Fault::new("tokens-of-another-row", "every row is scored with the tokens of the first, of the next, or of row t").seen("a broadcast index, compare trl 4db63af98").gives(&[
                |case, options, dtype| with_tokens_at(case, options, dtype, |_, t| (0, t)),
                |case, options, dtype| {
                    let rows = case.tokens.nrows();
                    with_tokens_at(case, options, dtype, |n, t| ((n + 1) % rows, t))
                },
                |case, options, dtype| {
                    let rows = case.tokens.nrows();
                    with_tokens_at(case, options, dtype, |n, t| (rows - 1 - n, t))
                },
                |case, options, dtype| {
                    let square = case.tokens.is_square();
                    with_tokens_at(
                        case,
                        options,
                        dtype,
                        |n, t| if square { (t, n) } else { (n, t) },
                    )
                },
            ]),
        Fault::new("rows-and-columns-swapped", "the output of N rows and T = N columns comes back transposed").seen("sequence-first against batch-first; shows at N = T only, compare trl #6095").gives(&[|case, options, dtype| {
                let mut output = right(case, options, dtype);
                if output.log_probs.is_square() {
                    output.log_probs = output.log_probs.t().as_standard_layout().into_owned();
                }
                output
            }]),
        Fault::new("rows-left-in-sorted-order", "the rows come back in another order: reversed, or sorted by their first token").seen("verl #1943 (b4aa2dce8), #2185, #1440").gives(&[
                |case, options, dtype| {
                    let order: Vec<usize> = (0..case.tokens.nrows()).rev().collect();
                    in_order(right(case, options, dtype), &order)
                },
                |case, options, dtype| {
                    let mut order: Vec<usize> = (0..case.tokens.nrows()).collect();
                    order.sort_by_key(|row| case.tokens.row(*row).to_vec());
                    in_order(right(case, options, dtype), &order)
                },
            ]),
        Fault::new("running-sum-over-the-row", "each token gets the sum (or all get the mean) of the log-probabilities of its row").seen("sequence log-probabilities where token log-probabilities are declared").gives(&[
                |case, options, dtype| {
                    let count = columns(case, options);
                    let mut output = weighted(right(case, options, dtype), |t| count - t);
                    output.log_probs.accumulate_axis_inplace(Axis(1), |before, sum| *sum += before);
                    output
                },
                |case, options, dtype| {
                    let count = columns(case, options);
                    let mut output = weighted(right(case, options, dtype), |_| count);
                    for mut row in output.log_probs.rows_mut() {
                        let sum = row.sum();
                        row.fill(sum);
                    }
                    output
                },
                |case, options, dtype| {
                    let mut output = right(case, options, dtype);
                    for mut row in output.log_probs.rows_mut() {
                        let mean = row.mean().unwrap_or(0.0);
                        row.fill(mean);
                    }
                    output
                },
            ]),
        Fault::new("minus-infinity-replaced-by-a-number", "a logit of -inf becomes 0 (or -1, -10, -100)").seen("nan_to_num on the logits").gives(&[
                |case, options, _| mapped(case, options, |x| finite_or(x, 0.0)),
                |case, options, _| mapped(case, options, |x| finite_or(x, -1.0)),
                |case, options, _| mapped(case, options, |x| finite_or(x, -10.0)),
                |case, options, _| mapped(case, options, |x| finite_or(x, -100.0)),
            ]),
        Fault::new("minus-infinity-gives-nan", "one logit of -inf makes its position NaN").seen("0·∞ in Σ p·z, as in the entropy of TRL, verl, OpenRLHF and slime").gives(&[|case, options, dtype| {
                by_position(case, options, |at| {
                    match at.logits.iter().all(|logit| logit.is_finite()) {
                        true => right_at(&at, dtype),
                        false => (f64::NAN, vec![f64::NAN; at.logits.len()]),
                    }
                })
            }]),
        Fault::new("epsilon-in-the-normaliser", "log(Σ exp + ε) for log Σ exp (1e-2 to 1e-6)").seen("`log(sum + eps)` as a guard against log 0, needless once the maximum is subtracted").gives(&[
                |case, options, _| wider(case, options, 1e-3),
                |case, options, _| wider(case, options, 1e-4),
                |case, options, _| wider(case, options, 1e-5),
                |case, options, _| wider(case, options, 1e-6),
                |case, options, _| wider(case, options, 1e-2),
            ]),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::{Options, TokenLogProbsCase};
    use super::*;
    use crate::contract::Contract;
    use crate::contract::options::Options as _;
    use crate::engine::stream;

    /// Diagnosis tries every fault under the options of the component, whatever they are.
    #[test]
    fn every_fault_answers_every_case_under_all_options() {
        let mut rng = stream::rng(1, "faults");
        for round in 0..60 {
            use proptest::prelude::Rng;
            let mut bytes = [0; 64];
            rng.fill_bytes(&mut bytes);
            let options = Options::draw(&mut arbitrary::Unstructured::new(&bytes)).unwrap();
            let dtype = Dtype::ALL[round % 4].0;
            let shape =
                |case: &TokenLogProbsCase| TokenLogProbs::shapes(case, &options)[0].1.clone();
            for (_, case) in
                stream::cases::<TokenLogProbs>(Vec::new(), 2, &options, dtype).take(240)
            {
                for fault in all() {
                    let Behaviour::Gives(variants) = fault.behaviour else { continue };
                    for variant in variants {
                        let output = variant(&case, &options, dtype);
                        assert_eq!(output.log_probs.shape(), shape(&case), "{}", fault.id);
                        if let Some(gradient) = output.grad_logits {
                            assert_eq!(gradient.dim(), case.logits.dim(), "{}", fault.id);
                        }
                    }
                }
            }
        }
    }
}
