//! The definition of `preference-loss` in plain f64, with the scale of every number.

use ndarray::{Array1, arr0};

use super::{Kind, Options, PreferenceLossCase, Reduction};
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number};
use shakedown_core::value::place::Dtype;

/// log(1 + e^x).
pub(super) fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// 1 / (1 + e^{-x}).
fn sigmoid(x: f64) -> f64 {
    let small = (-x.abs()).exp();
    (if x >= 0.0 { 1.0 } else { small }) / (1.0 + small)
}

/// One pair: Δ, how much more the policy prefers the chosen completion than the reference does.
struct Pair<'a> {
    options: &'a Options,
    margin: Scaled,
    /// The unit roundoff of the arithmetic.
    u: f64,
}

impl Pair<'_> {
    /// βΔ - γ.
    fn z(&self) -> Scaled {
        self.margin * self.options.beta - Scaled::rounded(self.options.margin)
    }

    /// How far the margin is from the target of `ipo`.
    fn away(&self) -> Scaled {
        self.margin - Scaled::rounded(0.5 / self.options.beta)
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

    /// What the loss may differ by besides rounding.
    fn slack(&self) -> f64 {
        let (own, other) = self.weights();
        match self.options.kind {
            Kind::Sigmoid | Kind::Robust => linear(self.z().value) * (own + other.abs()),
            Kind::Hinge | Kind::Ipo => 0.0,
        }
    }

    /// The loss.
    fn loss(&self) -> Scaled {
        let (z, (own, other)) = (self.z(), self.weights());
        let softplus = |x: Scaled| x.through(softplus(x.value), sigmoid(x.value));
        match self.options.kind {
            Kind::Sigmoid | Kind::Robust => softplus(-z) * own + softplus(z) * other,
            Kind::Hinge => (Scaled::exact(1.0) - z).max(0.0),
            Kind::Ipo => {
                let away = self.away();
                let square = away * away;
                // Where the margin is on target all there is is the square of the rounding error.
                let second_order = 8.0 * self.u * away.scale * away.scale;
                Scaled { scale: square.scale + second_order, ..square }
            }
        }
    }

    /// The derivative of the loss by the margin; open where rounding decides on which side of the
    /// hinge the pair is.
    fn slope(&self) -> Number {
        let beta = self.options.beta;
        let (z, (own, other)) = (self.z(), self.weights());
        let sigmoid = |x: Scaled| {
            let (value, rest) = (sigmoid(x.value), sigmoid(-x.value));
            x.through(value, value * rest)
        };
        match self.options.kind {
            Kind::Sigmoid | Kind::Robust => {
                let slope = (sigmoid(z) * other - sigmoid(-z) * own) * beta;
                Number { slack: beta * self.slack(), ..slope.into() }
            }
            Kind::Hinge if (1.0 - z.value).abs() <= 8.0 * self.u * (1.0 + z.scale) => Number::OPEN,
            Kind::Hinge if z.value < 1.0 => Scaled::rounded(-beta).into(),
            Kind::Hinge => Number::new(0.0, 0.0),
            Kind::Ipo => (self.away() * 2.0).into(),
        }
    }
}

/// What torch's softplus leaves out: from 20 on it is the identity.
fn linear(z: f64) -> f64 {
    if z.abs() > 19.9 { (-z.abs()).exp() } else { 0.0 }
}

/// The pairs of a case. Their log-probabilities count with their magnitudes, as components subtract
/// them in different orders.
fn pairs<'a>(
    case: &'a PreferenceLossCase,
    options: &'a Options,
    dtype: Dtype,
) -> impl Iterator<Item = Pair<'a>> {
    (0..case.policy_chosen.len()).map(move |at| {
        let preference = |chosen: &Array1<f64>, rejected: &Array1<f64>| {
            Scaled::rounded(chosen[at]) - Scaled::rounded(rejected[at])
        };
        let mut margin = preference(&case.policy_chosen, &case.policy_rejected);
        if !options.reference_free {
            margin = margin - preference(&case.ref_chosen, &case.ref_rejected);
        }
        Pair { options, margin, u: dtype.arithmetic().unit_roundoff() }
    })
}

/// βΔ - γ of each pair.
pub(super) fn logits(case: &PreferenceLossCase, options: &Options) -> Vec<f64> {
    pairs(case, options, Dtype::F64).map(|pair| pair.z().value).collect()
}

/// What the definition gives.
pub(super) fn outputs(case: &PreferenceLossCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    let losses = pairs(case, options, dtype).map(|pair| (pair.loss(), pair.slack()));
    let number = |(loss, slack): (Scaled, f64)| Number { slack, ..loss.into() };
    let numbers = match options.reduction {
        Reduction::None => losses.map(number).collect::<Array1<Number>>().into_dyn(),
        Reduction::Mean => {
            let (losses, slacks): (Vec<Scaled>, Vec<f64>) = losses.unzip();
            let count = losses.len() as f64;
            let slack = slacks.iter().sum::<f64>() / count;
            arr0(number((Scaled::sum(losses) / count, slack))).into_dyn()
        }
    };
    let rewards = |field, policy: &Array1<f64>, reference: &Array1<f64>| {
        let number = |(policy, reference): (&f64, &f64)| {
            let ratio = Scaled::rounded(*policy) - Scaled::rounded(*reference);
            Number::from(ratio * options.beta)
        };
        let numbers: Array1<Number> = policy.iter().zip(reference).map(number).collect();
        Expected { field, numbers: numbers.into_dyn(), terms: 1 }
    };
    vec![
        Expected { field: options.output(), numbers, terms: 1 },
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
