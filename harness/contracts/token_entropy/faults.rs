//! Known wrong behaviours of `token-entropy`: real bugs, and conventions mistaken for others.
//!
//! Each is written as a person writes an entropy from logits, with one step replaced; the gradient
//! follows.

use ndarray::{Array2, Array3, Axis};

use super::{
    NegInf, Options, TokenEntropy, TokenEntropyCase, TokenEntropyOutput, reference, vocabulary,
};
use crate::laws::faults::temperature;
use crate::numeric::tape::{Tape, Var};
use crate::value::place::Dtype;

type Fault = crate::contract::fault::Fault<TokenEntropy>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [places(), temperature(), formula(), numerics(), gradient()];
    themes.into_iter().flatten().collect()
}

/// Right entropies of other positions.
fn places() -> Vec<Fault> {
    vec![
        Fault::new("rows-left-in-sorted-order", "the rows come back in another order")
            .seen("verl #1943 (b4aa2dce8), #2185")
            .gives(&[|case, options, dtype| {
                moved(case, options, dtype, |(row, column), (rows, _)| (rows - 1 - row, column))
            }]),
        Fault::new(
            "shifted-by-one",
            "a position has the entropy of the next one, or of the one before",
        )
        .seen("trl #2058 (a5b98fcf9): logits and tokens shifted once more")
        .gives(&[
            |case, options, dtype| {
                moved(case, options, dtype, |(row, column), (_, columns)| {
                    (row, (column + 1) % columns)
                })
            },
            |case, options, dtype| {
                moved(case, options, dtype, |(row, column), (_, columns)| {
                    (row, (column + columns - 1) % columns)
                })
            },
        ]),
    ]
}

/// The temperature has no effect, or the wrong one.
fn temperature() -> Vec<Fault> {
    Vec::from(temperature::faults(
        "the entropy of the logits, not of the logits over the temperature",
        "OpenRLHF takes the entropy before it divides",
    ))
}

/// Another quantity than the entropy.
fn formula() -> Vec<Fault> {
    vec![
        Fault::new("sign-flipped", "Σ p·log p, without the minus")
            .seen("`(p * log_p).sum(-1)` without its minus")
            .gives(&[|case, options, dtype| mapped(case, options, dtype, |at| -at.entropy())]),
        Fault::new("minus-infinity-gives-nan", "0·log 0 is NaN where it is declared to be 0")
            .seen(
                "TRL, verl, OpenRLHF, open-instruct, prime-rl and slime: 0·∞ beside a masked token",
            )
            .under("{neg_inf: zero}")
            .as_if(&[|options| Options { neg_inf: NegInf::Nan, ..options }]),
        Fault::new("logarithm-in-another-base", "the entropy is in bits")
            .seen("torch.log2 for torch.log")
            .gives(&[|case, options, dtype| {
                mapped(case, options, dtype, |at| at.entropy() / std::f64::consts::LN_2)
            }]),
        Fault::new("divided-by-its-maximum", "the entropy is divided by ln V")
            .seen("a normalised entropy where nats are declared")
            .gives(&[|case, options, dtype| {
                mapped(case, options, dtype, |at| at.entropy() / (at.size() as f64).ln())
            }]),
        Fault::new("mean-over-the-vocabulary", "-mean(p·log p), not the sum")
            .seen("mean() along the wrong axis: H over V")
            .gives(&[|case, options, dtype| {
                mapped(case, options, dtype, |at| at.entropy() / at.size() as f64)
            }]),
        Fault::new(
            "surprise-of-the-likeliest",
            "-log p of the most likely token: one sample, not the expectation",
        )
        .seen("rl-post-training seed: a sampled estimate under the name of the entropy")
        .gives(&[|case, options, dtype| {
            mapped(case, options, dtype, |at| {
                at.log_probs().into_iter().map(|x| -x).reduce(Var::min).expect("V ≥ 2")
            })
        }]),
        Fault::new(
            "softmax-over-another-axis",
            "the softmax runs over the tokens of the row, or over the rows of the batch",
        )
        .seen("softmax(dim=1) on [N, T, V]")
        .gives(&[
            |case, options, dtype| along(case, options, dtype, 1),
            |case, options, dtype| along(case, options, dtype, 0),
        ]),
    ]
}

/// Numbers that leave their format, or entries that are left out.
fn numerics() -> Vec<Fault> {
    vec![
        Fault::new("epsilon-in-the-logarithm", "log(p + ε) for log p")
            .seen("guards against log 0: 1e-4, 1e-6, 1e-8")
            .gives(&[
                |case, options, dtype| with_epsilon(case, options, dtype, 1e-4),
                |case, options, dtype| with_epsilon(case, options, dtype, 1e-6),
                |case, options, dtype| with_epsilon(case, options, dtype, 1e-8),
            ]),
        Fault::new("maximum-not-subtracted", "exp of the logits as they are: infinite beyond 88")
            .seen("softmax written as exp / sum(exp)")
            .gives(&[|case, options, dtype| {
                mapped(case, options, dtype, |at| {
                    let exponentials: Vec<Var<'_>> = at.z.iter().map(|z| z.exp()).collect();
                    let sum = at.tape.sum(exponentials.iter().copied());
                    let log_sum = sum.ln();
                    let parts = at.z.iter().zip(&exponentials);
                    let parts = parts.map(|(z, exponential)| {
                        let log_prob = *z - log_sum;
                        -(*exponential / sum * log_prob)
                    });
                    at.tape.sum(parts)
                })
            }]),
        Fault::new(
            "logits-in-half-precision",
            "log-probabilities are rounded to bf16 before they are weighted",
        )
        .seen("autocast left on: bf16 log-softmax of f32 logits")
        .gives(&[|case, options, dtype| {
            mapped(case, options, dtype, |at| {
                let log_probs = at.log_probs().into_iter();
                let rounded = log_probs.map(|x| x + (Dtype::Bf16.round(x.value) - x.value));
                at.weighted(rounded.collect())
            })
        }]),
        Fault::new(
            "first-or-last-entry-left-out",
            "the distribution is over all tokens but the last, or the first",
        )
        .seen("vocabularies padded to a multiple, trimmed by one too many")
        .gives(&[
            |case, options, dtype| trimmed(case, options, dtype, false),
            |case, options, dtype| trimmed(case, options, dtype, true),
        ]),
    ]
}

/// Right values with a wrong gradient.
fn gradient() -> Vec<Fault> {
    vec![
        Fault::new(
            "gradient-zero",
            "the probabilities are detached: what is left has the gradient 0",
        )
        .seen("-(p.detach()·log p).sum(): p from a second softmax under no_grad")
        .gives(&[|case, options, dtype| {
            mapped(case, options, dtype, |at| {
                let parts = at.log_probs().into_iter().map(|x| -(x.exp().detach() * x));
                at.tape.sum(parts.filter(|part| at.counts(*part)))
            })
        }]),
        Fault::new("normaliser-detached", "no gradient through the normaliser: -p·(log p + 1)")
            .seen("logsumexp under no_grad, to save memory")
            .gives(&[|case, options, dtype| {
                mapped(case, options, dtype, |at| {
                    let log_sum = at.log_sum().detach();
                    at.weighted(at.z.iter().map(|z| *z - log_sum).collect())
                })
            }]),
        Fault::new(
            "gradient-without-temperature",
            "the gradient is not divided by the temperature",
        )
        .seen("logits.div_(temperature) under no_grad")
        .under("{temperature: 0.6}")
        .gives(&[|case, options, dtype| {
            let output = reference::entropy(case, options, dtype);
            let scaled = output.grad_logits.map(|gradient| gradient * options.temperature);
            TokenEntropyOutput { grad_logits: scaled, ..output }
        }]),
    ]
}

/// One position on a tape, with the tokens that count.
struct At<'t> {
    tape: &'t Tape,
    z: Vec<Var<'t>>,
    /// Whether a part that is not finite counts, as NaN.
    strict: bool,
}

impl<'t> At<'t> {
    fn size(&self) -> usize {
        self.z.len()
    }

    /// Whether a part of the entropy counts: 0·∞ does only where NaN is declared.
    fn counts(&self, part: Var<'t>) -> bool {
        self.strict || !part.value.is_nan()
    }

    fn log_sum(&self) -> Var<'t> {
        let largest = self.z.iter().fold(f64::NEG_INFINITY, |a, b| a.max(b.value));
        self.tape.sum(self.z.iter().map(|z| (*z - largest).exp())).ln() + largest
    }

    fn log_probs(&self) -> Vec<Var<'t>> {
        let log_sum = self.log_sum();
        self.z.iter().map(|z| *z - log_sum).collect()
    }

    /// -Σ p·log p.
    fn weighted(&self, log_probs: Vec<Var<'t>>) -> Var<'t> {
        let parts = log_probs.into_iter().map(|x| -(x.exp() * x));
        self.tape.sum(parts.filter(|part| self.counts(*part)))
    }

    fn entropy(&self) -> Var<'t> {
        self.weighted(self.log_probs())
    }
}

/// Maps each position to its entropy, with the gradient that follows.
fn mapped(
    case: &TokenEntropyCase,
    options: &Options,
    dtype: Dtype,
    f: impl for<'t> Fn(&At<'t>) -> Var<'t>,
) -> TokenEntropyOutput {
    let tape = Tape::new(dtype);
    let leaf = tape.leaf(&case.logits);
    let (rows, columns, _) = case.logits.dim();
    let strict = options.neg_inf == NegInf::Nan;
    let entropies: Array2<Var<'_>> = Array2::from_shape_fn((rows, columns), |(row, column)| {
        let logits = leaf.index_axis(Axis(0), row).index_axis_move(Axis(0), column);
        let kept = logits.iter().filter(|logit| strict || logit.value.is_finite());
        let z = kept.map(|logit| *logit / options.temperature).collect();
        f(&At { tape: &tape, z, strict })
    });
    let sum = tape.sum(entropies.iter().copied());
    let gradient = options.gradient.then(|| tape.gradient(sum, &leaf));
    TokenEntropyOutput { entropy: entropies.map(|entropy| entropy.value), grad_logits: gradient }
}

/// The right entropies at other positions: `from` says which, given N and T.
fn moved(
    case: &TokenEntropyCase,
    options: &Options,
    dtype: Dtype,
    from: impl Fn((usize, usize), (usize, usize)) -> (usize, usize),
) -> TokenEntropyOutput {
    let output = reference::entropy(case, options, dtype);
    let shape = output.entropy.dim();
    let entropy = Array2::from_shape_fn(shape, |at| output.entropy[from(at, shape)]);
    TokenEntropyOutput { entropy, ..output }
}

/// The softmax along another axis, and the sum over the vocabulary.
fn along(
    case: &TokenEntropyCase,
    options: &Options,
    dtype: Dtype,
    axis: usize,
) -> TokenEntropyOutput {
    let tape = Tape::new(dtype);
    let leaf = tape.leaf(&case.logits);
    let strict = options.neg_inf == NegInf::Nan;
    let parts: Array3<Option<Var<'_>>> =
        Array3::from_shape_fn(leaf.dim(), |(row, column, entry)| {
            let mut others = leaf.index_axis(Axis(2), entry);
            others.collapse_axis(Axis(1 - axis), if axis == 1 { row } else { column });
            let z = others.iter().map(|logit| *logit / options.temperature).collect();
            let lane = At { tape: &tape, z, strict };
            let own = leaf[[row, column, entry]] / options.temperature;
            let log_prob = own - lane.log_sum();
            let part = -(log_prob.exp() * log_prob);
            lane.counts(part).then_some(part)
        });
    let entropies: Array2<Var<'_>> =
        parts.map_axis(Axis(2), |parts| tape.sum(parts.iter().flatten().copied()));
    let sum = tape.sum(entropies.iter().copied());
    let gradient = options.gradient.then(|| tape.gradient(sum, &leaf));
    TokenEntropyOutput { entropy: entropies.map(|entropy| entropy.value), grad_logits: gradient }
}

/// log(p + ε) for log p.
fn with_epsilon(
    case: &TokenEntropyCase,
    options: &Options,
    dtype: Dtype,
    epsilon: f64,
) -> TokenEntropyOutput {
    mapped(case, options, dtype, |at| {
        let parts = at.log_probs().into_iter().map(|x| {
            let p = x.exp();
            -(p * (p + epsilon).ln())
        });
        at.tape.sum(parts)
    })
}

/// The right entropies without the first token of the vocabulary, or without the last.
fn trimmed(
    case: &TokenEntropyCase,
    options: &Options,
    dtype: Dtype,
    first: bool,
) -> TokenEntropyOutput {
    let last = vocabulary(case) - 1;
    let mut kept = case.clone();
    let entry = if first { 0 } else { last };
    for mut logits in kept.logits.lanes_mut(Axis(2)) {
        // What is left of the distribution must be one.
        let others = logits.iter().enumerate().filter(|(at, _)| *at != entry);
        if others.clone().any(|(_, logit)| logit.is_finite()) {
            logits[entry] = f64::NEG_INFINITY;
        }
    }
    let zero = Options { neg_inf: NegInf::Zero, ..options.clone() };
    reference::entropy(&kept, &zero, dtype)
}
