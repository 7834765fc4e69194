//! The reference implementation of `policy-loss`: loss, metrics and gradient in one pass over the
//! tokens, as a fused kernel would have it.

use ndarray::{Array0, Array2};
use num_traits::Float;

use super::{
    Advantages, ApproxKl, KlEstimator, Objective, Options, PolicyLossCase, PolicyLossOutput, Ratio,
    flat,
};
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::numeric::conventions::{EmptyMask, EmptyRows};
use shakedown_core::value::place::Dtype;

/// Loss, metrics and gradient, computed in the arithmetic of the dtype.
///
/// # Panics
/// Without a token, where `empty_mask: refuse` is declared.
pub(super) fn policy_loss(
    case: &PolicyLossCase,
    options: &Options,
    dtype: Dtype,
) -> PolicyLossOutput {
    match dtype.arithmetic() {
        Dtype::F64 => fused::<f64>(case, options),
        _ => fused::<f32>(case, options),
    }
}

/// The number of an option in the arithmetic.
fn number<F: Float>(x: f64) -> F {
    F::from(x).expect("every float format holds any f64, rounded")
}

fn wide<F: Float>(x: F) -> f64 {
    x.to_f64().expect("every float is an f64")
}

/// A token's loss, and its derivative by the log-probability.
struct Term<F> {
    loss: F,
    slope: F,
    clipped: bool,
}

/// The options, in the arithmetic.
struct Kernel<F> {
    objective: Objective,
    lo: F,
    hi: F,
    dual: F,
    clamp: F,
    kl_estimator: KlEstimator,
    kl_clamp: F,
    kl_lo: F,
    kl_hi: F,
}

impl<F: Float> Kernel<F> {
    fn of(options: &Options) -> Kernel<F> {
        let (lo, hi) = options.bounds();
        let limit = |limit: Option<f64>| limit.map_or(F::infinity(), number);
        let [kl_lo, kl_hi] = options.kl_clamp.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
        Kernel {
            objective: options.objective,
            lo: number(lo),
            hi: number(hi),
            dual: limit(options.dual()),
            clamp: limit(options.log_ratio_clamp),
            kl_estimator: options.kl_estimator,
            kl_clamp: limit(options.kl_log_ratio_clamp),
            kl_lo: number(kl_lo),
            kl_hi: number(kl_hi),
        }
    }

    /// The ratio, and its derivative by the exponent.
    fn ratio(&self, exponent: F) -> (F, F) {
        let ratio = exponent.max(-self.clamp).min(self.clamp).exp();
        (ratio, if exponent.abs() > self.clamp { F::zero() } else { ratio })
    }

    fn term(&self, (ratio, slope): (F, F), advantage: F, log_prob: F) -> Term<F> {
        let zero = F::zero();
        match self.objective {
            Objective::Reinforce => {
                Term { loss: -advantage * log_prob, slope: -advantage, clipped: false }
            }
            Objective::Cispo => {
                let weight = ratio.max(self.lo).min(self.hi);
                let slope = -weight * advantage;
                Term { loss: slope * log_prob, slope, clipped: false }
            }
            Objective::PpoClip if advantage == zero => {
                Term { loss: zero, slope: zero, clipped: false }
            }
            Objective::PpoClip => {
                let (bound, clipped) = if advantage > zero {
                    (self.hi, ratio > self.hi)
                } else {
                    (self.lo, ratio < self.lo)
                };
                let doubly = advantage < zero && ratio > self.dual;
                let used = match (clipped, doubly) {
                    (true, _) => bound,
                    (_, true) => self.dual,
                    _ => ratio,
                };
                let slope = if clipped || doubly { zero } else { -advantage * slope };
                Term { loss: -advantage * used, slope, clipped }
            }
        }
    }

    /// The divergence of a token from the reference, and its derivative.
    fn kl(&self, difference: F) -> (F, F) {
        let d = difference.max(-self.kl_clamp).min(self.kl_clamp);
        let (one, two) = (F::one(), F::one() + F::one());
        let (value, slope) = match self.kl_estimator {
            KlEstimator::K1 => (d, one),
            KlEstimator::Abs if d == F::zero() => (d, d),
            KlEstimator::Abs => (d.abs(), d.signum()),
            KlEstimator::K2 => (d * d / two, d),
            KlEstimator::K3 => {
                let ratio = (-d).exp();
                (ratio - one + d, one - ratio)
            }
        };
        let outside = value < self.kl_lo || value > self.kl_hi || difference.abs() > self.kl_clamp;
        (value.max(self.kl_lo).min(self.kl_hi), if outside { F::zero() } else { slope })
    }
}

/// A token's part of the metric `approx_kl`.
fn divergence<F: Float>(definition: ApproxKl, x: F) -> F {
    match definition {
        ApproxKl::K1 => -x,
        ApproxKl::K2 => x * x / (F::one() + F::one()),
        ApproxKl::K3 => x.exp() - F::one() - x,
    }
}

fn fused<F: Float>(case: &PolicyLossCase, options: &Options) -> PolicyLossOutput {
    let (rows, width) = case.mask.dim();
    let mask = flat(&case.mask);
    let row_of = |row: usize| row * width..(row + 1) * width;
    let lengths: Vec<usize> = (0..rows)
        .map(|row| mask[row_of(row)].iter().map(|kept| usize::from(*kept)).sum())
        .collect();
    let tokens: usize = lengths.iter().sum();
    if tokens == 0 {
        return without_a_token(case, options);
    }
    let counted = match options.empty_rows {
        EmptyRows::Skip => lengths.iter().filter(|length| **length > 0).count(),
        EmptyRows::Count => rows,
    };
    let divisor = |length: usize| -> F {
        let norm = || options.norm_length.map_or(1.0, f64::from);
        number(match options.aggregate {
            Aggregate::TokenMean => tokens as f64,
            Aggregate::TokenSum => 1.0,
            Aggregate::SeqMeanTokenMean => (length * counted) as f64,
            Aggregate::SeqMeanTokenSum => counted as f64,
            Aggregate::SeqMeanTokenSumNorm => counted as f64 * norm(),
        })
    };
    let kernel = Kernel::<F>::of(options);
    let beta = number::<F>(options.beta);
    let (log_probs, old) = (flat(&case.log_probs), flat(&case.old_log_probs));
    let reference = case.ref_log_probs.as_ref().map(flat);
    let advantages = Advantages::of(case);
    let log_ratio = |at: usize| number::<F>(log_probs[at]) - number::<F>(old[at]);
    let mut gradient = Array2::zeros((rows, width));
    let slopes = gradient.as_slice_mut().expect("it was just made");
    let (mut loss, mut kl, mut approx_kl) = (F::zero(), F::zero(), F::zero());
    let mut clipped = 0_u32;
    for row in (0..rows).filter(|row| lengths[*row] > 0) {
        let length = number::<F>(lengths[row] as f64);
        let kept = || row_of(row).filter(|at| mask[*at]);
        let shared = (options.ratio != Ratio::Token).then(|| {
            let sum = kept().fold(F::zero(), |sum, at| sum + log_ratio(at));
            kernel.ratio(sum / length)
        });
        let divisor = divisor(lengths[row]);
        let (mut of_row, mut kl_of_row, mut slope_of_row) = (F::zero(), F::zero(), F::zero());
        for at in kept() {
            let x = log_ratio(at);
            let ratio = shared.unwrap_or_else(|| kernel.ratio(x));
            let advantage = number(advantages.at(row, at - row * width));
            let term = kernel.term(ratio, advantage, number(log_probs[at]));
            of_row = of_row + term.loss;
            slope_of_row = slope_of_row + term.slope;
            clipped += u32::from(term.clipped);
            approx_kl = approx_kl + divergence(options.approx_kl, x);
            slopes[at] = wide(term.slope / divisor);
            if let Some(reference) = reference {
                let (value, slope) = kernel.kl(number::<F>(log_probs[at]) - number(reference[at]));
                kl_of_row = kl_of_row + value;
                slopes[at] = wide((term.slope + beta * slope) / divisor);
            }
        }
        if options.ratio == Ratio::Sequence && options.objective == Objective::PpoClip {
            // Each token moves the ratio of all.
            for at in kept() {
                let kl_slope = reference.map_or(F::zero(), |reference| {
                    kernel.kl(number::<F>(log_probs[at]) - number(reference[at])).1
                });
                slopes[at] = wide((slope_of_row / length + beta * kl_slope) / divisor);
            }
        }
        loss = loss + (of_row + beta * kl_of_row) / divisor;
        kl = kl + kl_of_row / divisor;
    }
    let count = number::<F>(tokens as f64);
    let scalar = |x: F| Array0::from_elem((), wide(x));
    PolicyLossOutput {
        loss: scalar(loss),
        clip_fraction: Some(scalar(number::<F>(f64::from(clipped)) / count)),
        approx_kl: Some(scalar(approx_kl / count)),
        kl: reference.map(|_| scalar(kl)),
        grad_log_probs: Some(gradient),
    }
}

fn without_a_token(case: &PolicyLossCase, options: &Options) -> PolicyLossOutput {
    let loss = match options.empty_mask {
        EmptyMask::Zero | EmptyMask::Avoid => 0.0,
        EmptyMask::Nan => f64::NAN,
        EmptyMask::Refuse => panic!("the mask of policy-loss has no token"),
    };
    let zero = || Some(Array0::zeros(()));
    PolicyLossOutput {
        clip_fraction: zero(),
        approx_kl: zero(),
        kl: case.ref_log_probs.as_ref().and_then(|_| zero()),
        grad_log_probs: Some(Array2::zeros(case.mask.dim())),
        ..loss.into()
    }
}
