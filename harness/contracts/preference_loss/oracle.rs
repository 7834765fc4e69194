//! The definition of `preference-loss` in plain f64, with the scale of every number.

use ndarray::{Array1, arr0};

use super::{Kind, Options, PreferenceLossCase, Reduction};
use crate::value::place::Dtype;
use crate::numeric::tolerance::{Expected, Number, summed};

/// log(1 + e^x).
pub(super) fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// 1 / (1 + e^{-x}).
fn sigmoid(x: f64) -> f64 {
    let small = (-x.abs()).exp();
    (if x >= 0.0 { 1.0 } else { small }) / (1.0 + small)
}

/// One pair: its margin, and how far rounding may have moved it.
struct Pair<'a> {
    options: &'a Options,
    margin: f64,
    /// The magnitude of the numbers whose differences make the margin.
    magnitude: f64,
    /// The unit roundoff of the arithmetic.
    u: f64,
}

impl Pair<'_> {
    /// βΔ - γ, and the magnitude of its terms.
    fn z(&self) -> (f64, f64) {
        let Options { beta, margin, .. } = *self.options;
        let scaled = beta * self.margin;
        (scaled - margin, beta * self.magnitude + scaled.abs() + margin)
    }

    /// The weights of softplus(-z) and of softplus(z) in the loss.
    fn weights(&self) -> (f64, f64) {
        let smoothing = self.options.label_smoothing;
        match self.options.kind {
            Kind::Robust => {
                let whole = 1.0 - 2.0 * smoothing;
                ((1.0 - smoothing) / whole, -smoothing / whole)
            }
            _ => (1.0 - smoothing, smoothing),
        }
    }

    /// The loss.
    fn loss(&self) -> Number {
        let (z, terms) = self.z();
        match self.options.kind {
            Kind::Sigmoid | Kind::Robust => {
                let (own, other) = self.weights();
                let (below, above) = (softplus(-z), softplus(z));
                let value = own * below + other * above;
                let moved = (own * sigmoid(-z)).abs() + (other * sigmoid(z)).abs();
                let scale = moved * terms + own * below + other.abs() * above;
                Number { slack: linear(z) * (own + other.abs()), ..Number::new(value, scale) }
            }
            Kind::Hinge => Number::new((1.0 - z).max(0.0), 1.0 + terms),
            Kind::Ipo => {
                let (away, terms) = self.away();
                // The last term is the square of the rounding error, which is all there is where
                // the margin is on target.
                let scale = 2.0 * away.abs() * terms + away * away + 8.0 * self.u * terms * terms;
                Number::new(away * away, scale)
            }
        }
    }

    /// How far the margin is from the target of `ipo`, and the magnitude of the terms.
    fn away(&self) -> (f64, f64) {
        let target = 0.5 / self.options.beta;
        (self.margin - target, self.magnitude + self.margin.abs() + target)
    }

    /// The derivative of the loss by the margin; open where rounding decides on which side of the
    /// hinge the pair is.
    fn slope(&self) -> Number {
        let beta = self.options.beta;
        let (z, terms) = self.z();
        match self.options.kind {
            Kind::Sigmoid | Kind::Robust => {
                let (own, other) = self.weights();
                let (below, above) = (sigmoid(-z), sigmoid(z));
                let scale =
                    (own + other.abs()) * below * above * terms + own * below + other.abs() * above;
                let value = other * above - own * below;
                let slack = beta * linear(z) * (own + other.abs());
                Number { slack, ..Number::new(beta * value, beta * scale) }
            }
            Kind::Hinge if (1.0 - z).abs() <= 8.0 * self.u * (1.0 + terms) => Number::OPEN,
            Kind::Hinge => Number::new(if z < 1.0 { -beta } else { 0.0 }, beta),
            Kind::Ipo => {
                let (away, terms) = self.away();
                Number::new(2.0 * away, 2.0 * (terms + away.abs()))
            }
        }
    }
}

/// What torch's softplus leaves out: from 20 on it is the identity.
fn linear(z: f64) -> f64 {
    if z.abs() > 19.9 { (-z.abs()).exp() } else { 0.0 }
}

/// The pairs of a case.
fn pairs<'a>(
    case: &'a PreferenceLossCase,
    options: &'a Options,
    dtype: Dtype,
) -> impl Iterator<Item = Pair<'a>> {
    (0..case.policy_chosen.len()).map(move |at| {
        let (chosen, rejected) = (case.policy_chosen[at], case.policy_rejected[at]);
        let (mut margin, mut magnitude) = (chosen - rejected, chosen.abs() + rejected.abs());
        if !options.reference_free {
            let (chosen, rejected) = (case.ref_chosen[at], case.ref_rejected[at]);
            margin -= chosen - rejected;
            magnitude += chosen.abs() + rejected.abs();
        }
        Pair { options, margin, magnitude, u: dtype.arithmetic().unit_roundoff() }
    })
}

/// βΔ - γ of each pair.
pub(super) fn logits(case: &PreferenceLossCase, options: &Options) -> Vec<f64> {
    pairs(case, options, Dtype::F64).map(|pair| pair.z().0).collect()
}

/// What the definition gives.
pub(super) fn outputs(case: &PreferenceLossCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    let losses: Array1<Number> = pairs(case, options, dtype).map(|pair| pair.loss()).collect();
    let count = losses.len() as f64;
    let numbers = match options.reduction {
        Reduction::None => losses.into_dyn(),
        Reduction::Mean => {
            let mean = |part: fn(&Number) -> f64| losses.iter().map(part).sum::<f64>() / count;
            let scale = mean(|n| n.scale) + summed(losses.len()) * mean(|n| n.value.abs());
            let slack = mean(|n| n.slack);
            arr0(Number { slack, ..Number::new(mean(|n| n.value), scale) }).into_dyn()
        }
    };
    let terms = match options.reduction {
        Reduction::None => 1,
        Reduction::Mean => case.policy_chosen.len(),
    };
    let rewards = |field, policy: &Array1<f64>, reference: &Array1<f64>| {
        let number = |(policy, reference): (&f64, &f64)| {
            let value = options.beta * (policy - reference);
            let scale = options.beta * (policy.abs() + reference.abs()) + value.abs();
            Number::new(value, scale)
        };
        let numbers: Array1<Number> = policy.iter().zip(reference).map(number).collect();
        Expected { field, numbers: numbers.into_dyn(), terms: 1 }
    };
    vec![
        Expected { field: options.output(), numbers, terms },
        rewards("chosen_rewards", &case.policy_chosen, &case.ref_chosen),
        rewards("rejected_rewards", &case.policy_rejected, &case.ref_rejected),
    ]
}

/// The gradient of the loss, or of the summed losses: by the chosen completion the derivative by
/// the margin, by the rejected one its opposite.
pub(super) fn gradient(
    case: &PreferenceLossCase,
    options: &Options,
    dtype: Dtype,
) -> Vec<Expected> {
    let count = match options.reduction {
        Reduction::None => 1.0,
        Reduction::Mean => case.policy_chosen.len() as f64,
    };
    let slopes: Vec<Number> = pairs(case, options, dtype).map(|pair| pair.slope()).collect();
    let leaf = |field, sign: f64| {
        let number = |slope: &Number| Number {
            value: sign * slope.value / count,
            scale: slope.scale / count,
            slack: slope.slack / count,
        };
        let numbers: Array1<Number> = slopes.iter().map(number).collect();
        Expected { field, numbers: numbers.into_dyn(), terms: 1 }
    };
    vec![leaf("grad_policy_chosen", 1.0), leaf("grad_policy_rejected", -1.0)]
}

#[cfg(test)]
mod tests {
    use ndarray::arr1;

    use super::*;

    /// A pair with this margin.
    fn pair(margin: f64) -> PreferenceLossCase {
        let zero = arr1(&[0.0]);
        PreferenceLossCase {
            policy_chosen: arr1(&[margin]),
            policy_rejected: zero.clone(),
            ref_chosen: zero.clone(),
            ref_rejected: zero,
        }
    }

    fn loss(margin: f64, options: &Options) -> f64 {
        outputs(&pair(margin), options, Dtype::F64)[0].numbers[[0]].value
    }

    fn slope(margin: f64, options: &Options) -> f64 {
        gradient(&pair(margin), options, Dtype::F64)[0].numbers[[0]].value
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 4e-15 * (1.0 + b.abs()), "{a} is not {b}");
    }

    fn each_kind() -> impl Iterator<Item = Options> {
        Kind::ALL.iter().flat_map(|kind| {
            let smoothed = matches!(kind, Kind::Sigmoid | Kind::Robust);
            [0.0, 0.1].into_iter().filter(move |e| smoothed || *e == 0.0).map(|label_smoothing| {
                Options { kind: *kind, beta: 0.5, label_smoothing, ..Options::default() }
            })
        })
    }

    #[test]
    fn a_policy_that_is_the_reference_has_the_known_losses() {
        for options in each_kind() {
            let known = match options.kind {
                Kind::Sigmoid | Kind::Robust => 2_f64.ln(),
                Kind::Hinge => 1.0,
                Kind::Ipo => 0.25 / (options.beta * options.beta),
            };
            near(loss(0.0, &options), known);
        }
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        for options in each_kind() {
            for margin in [-7.0, -1.0, 0.5, 1.9, 6.0] {
                let step = 1e-5;
                let difference = loss(margin + step, &options) - loss(margin - step, &options);
                let found = slope(margin, &options);
                assert!((difference / (2.0 * step) - found).abs() < 1e-8, "{options:?} {margin}");
            }
        }
    }

    #[test]
    fn opposite_margins_differ_by_the_margin() {
        for options in each_kind().filter(|options| options.kind == Kind::Sigmoid) {
            for margin in [0.3, 4.0, 1e4] {
                let kept = 1.0 - 2.0 * options.label_smoothing;
                let difference = loss(margin, &options) - loss(-margin, &options);
                near(difference, -kept * options.beta * margin);
            }
        }
    }

    #[test]
    fn the_robust_loss_is_right_on_average_over_exchanged_pairs() {
        let robust = Options { kind: Kind::Robust, label_smoothing: 0.3, ..Options::default() };
        let plain = Options::default();
        for margin in [-12.0, 0.7, 30.0] {
            let average = 0.7 * loss(margin, &robust) + 0.3 * loss(-margin, &robust);
            near(average, loss(margin, &plain));
        }
    }

    #[test]
    fn margins_of_ten_thousand_stay_finite() {
        let options = Options { beta: 1.0, ..Options::default() };
        assert_eq!(loss(-1e4, &options), 1e4);
        assert_eq!(loss(1e4, &options), 0.0);
        assert_eq!([slope(-1e4, &options), slope(1e4, &options)], [-1.0, 0.0]);
    }

    #[test]
    fn smoothing_moves_the_minimum_and_ipo_has_one() {
        let smooth = Options { beta: 1.0, label_smoothing: 0.1, ..Options::default() };
        near(slope(9_f64.ln(), &smooth), 0.0);
        let ipo = Options { kind: Kind::Ipo, beta: 0.1, ..Options::default() };
        assert_eq!([loss(5.0, &ipo), slope(5.0, &ipo)], [0.0, 0.0]);
    }

    #[test]
    fn the_reference_counts_unless_it_is_free() {
        let mut case = pair(3.0);
        case.ref_chosen = arr1(&[1.0]);
        case.ref_rejected = arr1(&[-1.0]);
        assert_eq!(logits(&case, &Options { beta: 1.0, ..Options::default() }), [1.0]);
        let free = Options { beta: 1.0, reference_free: true, margin: 0.5, ..Options::default() };
        assert_eq!(logits(&case, &free), [2.5]);
    }
}
