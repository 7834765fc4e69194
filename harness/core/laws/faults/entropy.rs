//! Faults of an entropy that is made of logits: another quantity, or numbers that leave their
//! format.

use ndarray::ArrayView1;

use crate::contract::Contract;
use crate::contract::fault::{Fault, Variant};
use crate::numeric::tape::{Tape, Var};
use crate::value::place::Dtype;

/// A contract of such entropies.
pub trait OfLogits: Contract {
    /// The outputs where `entropy` gives the entropy of each position, with the gradient that
    /// follows.
    fn mapped(
        case: &Self::Case,
        options: &Self::Options,
        dtype: Dtype,
        entropy: impl for<'t> Fn(&At<'t>) -> Var<'t>,
    ) -> Self::Output;
}

/// One position on a tape, with the tokens that count.
pub struct At<'t> {
    tape: &'t Tape,
    /// The logits over the temperature.
    pub z: Vec<Var<'t>>,
    /// Whether a part that is not finite counts, as NaN.
    strict: bool,
}

impl<'t> At<'t> {
    /// A position of these logits over the temperature.
    pub fn of(tape: &'t Tape, z: Vec<Var<'t>>, strict: bool) -> Self {
        At { tape, z, strict }
    }

    /// A position of these logits, of which those of -∞ count only where NaN is declared.
    pub fn position(
        tape: &'t Tape,
        logits: ArrayView1<'_, Var<'t>>,
        temperature: f64,
        strict: bool,
    ) -> Self {
        let kept = logits.iter().filter(|logit| strict || logit.value.is_finite());
        At { tape, z: kept.map(|logit| *logit / temperature).collect(), strict }
    }

    /// The same position with other numbers for its logits.
    pub fn with(&self, z: impl IntoIterator<Item = Var<'t>>) -> Self {
        At { z: z.into_iter().collect(), ..*self }
    }

    fn size(&self) -> usize {
        self.z.len()
    }

    /// The sum of the parts that count.
    pub fn sum(&self, parts: impl IntoIterator<Item = Var<'t>>) -> Var<'t> {
        self.tape.sum(parts.into_iter().filter(|part| self.counts(*part)))
    }

    /// Whether a part of the entropy counts: 0·∞ does only where NaN is declared.
    pub fn counts(&self, part: Var<'t>) -> bool {
        self.strict || !part.value.is_nan()
    }

    /// The logarithm of the normaliser.
    pub fn log_sum(&self) -> Var<'t> {
        let largest = self.z.iter().fold(f64::NEG_INFINITY, |a, b| a.max(b.value));
        self.tape.sum(self.z.iter().map(|z| (*z - largest).exp())).ln() + largest
    }

    /// The logarithm of each probability.
    pub fn log_probs(&self) -> Vec<Var<'t>> {
        let log_sum = self.log_sum().term("log-normaliser");
        self.z.iter().map(|z| (*z - log_sum).term("log-probability")).collect()
    }

    /// -Σ p·log p.
    pub fn weighted(&self, log_probs: Vec<Var<'t>>) -> Var<'t> {
        self.sum(log_probs.into_iter().map(|x| -(x.exp() * x))).term("entropy")
    }

    /// The entropy, as it is right.
    pub fn entropy(&self) -> Var<'t> {
        self.weighted(self.log_probs())
    }
}

/// An entropy of another kind at each position.
pub fn at_each<C: OfLogits>(
    entropy: impl for<'t> Fn(&At<'t>) -> Var<'t> + Send + Sync + 'static,
) -> Variant<C> {
    Variant::gives(move |case, options, dtype| C::mapped(case, options, dtype, &entropy))
}

/// Bits.
pub fn logarithm_in_another_base<C: OfLogits>() -> Fault<C> {
    Fault::new("logarithm-in-another-base", "the entropy is in bits")
        .seen("torch.log2 for torch.log")
        .made_of([at_each(|at| at.entropy() / std::f64::consts::LN_2)])
}

/// From 0 to 1.
pub fn divided_by_its_maximum<C: OfLogits>() -> Fault<C> {
    Fault::new("divided-by-its-maximum", "the entropy is divided by ln V")
        .seen("a normalised entropy where nats are declared")
        .made_of([at_each(|at| at.entropy() / (at.size() as f64).ln())])
}

/// A mean for a sum.
pub fn mean_over_the_vocabulary<C: OfLogits>() -> Fault<C> {
    Fault::new("mean-over-the-vocabulary", "-mean(p·log p), not the sum")
        .seen("mean() along the wrong axis: H over V")
        .made_of([at_each(|at| at.entropy() / at.size() as f64)])
}

/// One sample for the expectation.
pub fn surprise_of_the_likeliest<C: OfLogits>() -> Fault<C> {
    Fault::new(
        "surprise-of-the-likeliest",
        "-log p of the most likely token: one sample, not the expectation",
    )
    .seen("rl-post-training seed: a sampled estimate under the name of the entropy")
    .made_of([at_each(|at| {
        at.log_probs().into_iter().map(|x| -x).reduce(Var::min).expect("V ≥ 2")
    })])
}

/// A guard against log 0.
pub fn epsilon_in_the_logarithm<C: OfLogits>() -> Fault<C> {
    fn with_epsilon<'t>(at: &At<'t>, epsilon: f64) -> Var<'t> {
        let parts = at.log_probs().into_iter().map(|x| {
            let p = x.exp();
            -(p * (p + epsilon).ln())
        });
        at.tape.sum(parts)
    }
    Fault::new("epsilon-in-the-logarithm", "log(p + ε) for log p")
        .seen("guards against log 0: 1e-4, 1e-6, 1e-8")
        .made_of([1e-4, 1e-6, 1e-8].map(|e| at_each(move |at| with_epsilon(at, e))))
}

/// An exponential of what is large.
pub fn maximum_not_subtracted<C: OfLogits>() -> Fault<C> {
    Fault::new("maximum-not-subtracted", "exp of the logits as they are: infinite beyond 88")
        .seen("softmax written as exp / sum(exp)")
        .made_of([at_each(|at| {
            let exponentials: Vec<Var<'_>> = at.z.iter().map(|z| z.exp()).collect();
            let sum = at.tape.sum(exponentials.iter().copied());
            let log_sum = sum.ln();
            let parts = at.z.iter().zip(&exponentials);
            let parts = parts.map(|(z, exponential)| {
                let log_prob = *z - log_sum;
                -(*exponential / sum * log_prob)
            });
            at.tape.sum(parts)
        })])
}

/// Autocast.
pub fn logits_in_half_precision<C: OfLogits>() -> Fault<C> {
    Fault::new(
        "logits-in-half-precision",
        "log-probabilities are rounded to bf16 before they are weighted",
    )
    .seen("autocast left on: bf16 log-softmax of f32 logits")
    .made_of([at_each(|at| {
        let log_probs = at.log_probs().into_iter();
        let rounded = log_probs.map(|x| x + (Dtype::Bf16.round(x.value) - x.value));
        at.weighted(rounded.collect())
    })])
}

/// The second softmax.
pub fn gradient_zero<C: OfLogits>() -> Fault<C> {
    Fault::new("gradient-zero", "the probabilities are detached: what is left has the gradient 0")
        .seen("-(p.detach()·log p).sum(): p from a second softmax under no_grad")
        .made_of([at_each(|at| {
            at.sum(at.log_probs().into_iter().map(|x| -(x.exp().detach() * x)))
        })])
}

/// Half of the softmax.
pub fn normaliser_detached<C: OfLogits>() -> Fault<C> {
    Fault::new("normaliser-detached", "no gradient through the normaliser: -p·(log p + 1)")
        .seen("logsumexp under no_grad, to save memory")
        .made_of([at_each(|at| {
            let log_sum = at.log_sum().detach();
            at.weighted(at.z.iter().map(|z| *z - log_sum).collect())
        })])
}
