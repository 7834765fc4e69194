//! The definition of `pair-objective` in plain f64, with the scale of every number.

use ndarray::{Array1, arr0};

use super::{Kind, Options, PairObjectiveCase, Reduction};
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number};
use shakedown_core::value::place::Dtype;

/// log(1 + e^x).
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// 1 / (1 + e^{-x}).
fn sigmoid(x: f64) -> f64 {
    let small = (-x.abs()).exp();
    (if x >= 0.0 { 1.0 } else { small }) / (1.0 + small)
}

/// σ of a number.
fn sigma(x: Scaled) -> Scaled {
    let (value, rest) = (sigmoid(x.value), sigmoid(-x.value));
    x.through(value, value * rest)
}

/// The same for components that have it as 1 - σ(-x).
fn widened(sigma: Scaled) -> Scaled {
    Scaled { scale: sigma.scale + 1.0, ..sigma }
}

/// What torch's softplus leaves out: from 20 on it is the identity.
fn linear(z: f64) -> f64 {
    if z.abs() > 19.9 { (-z.abs()).exp() } else { 0.0 }
}

/// A function of one number: its value, its slope, and what they may differ by besides rounding.
#[derive(Clone, Copy)]
struct Curve {
    value: Scaled,
    slope: Scaled,
    slack: f64,
}

impl Curve {
    /// ℓ(z) = -log σ(z).
    fn logistic(z: Scaled) -> Curve {
        Curve {
            value: (-z).through(softplus(-z.value), sigmoid(-z.value)),
            slope: -widened(sigma(-z)),
            slack: linear(z.value),
        }
    }

    /// ℓ(-z).
    fn mirrored(z: Scaled) -> Curve {
        let Curve { value, slope, slack } = Curve::logistic(-z);
        Curve { value, slope: -slope, slack }
    }

    /// ℓ_ε(z).
    fn smoothed(z: Scaled, smoothing: f64) -> Curve {
        Curve::logistic(z).times(1.0 - smoothing).plus(Curve::mirrored(z).times(smoothing))
    }

    /// σ(z).
    fn sigma(z: Scaled) -> Curve {
        let (own, rest) = (sigma(z), sigma(-z));
        Curve { value: widened(own), slope: own * widened(rest), slack: 0.0 }
    }

    /// (x - target)².
    fn square(x: Scaled, target: f64, u: f64) -> Curve {
        let away = x - Scaled::rounded(target);
        let square = away * away;
        // Where it is on target all there is is the square of the rounding error.
        let second_order = 8.0 * u * away.scale * away.scale;
        let value = Scaled { scale: square.scale + second_order, ..square };
        Curve { value, slope: away * 2.0, slack: 0.0 }
    }

    /// The divergence of σ(z) from 1 - ε.
    fn divergence(z: Scaled, smoothing: f64) -> Curve {
        let (own, rest) = (sigma(z), sigma(-z));
        let log = |z: Scaled| -Curve::logistic(z).value;
        let own_log = log(z) - Scaled::rounded(1.0 - smoothing).ln();
        let rest_log = log(-z) - Scaled::rounded(smoothing).ln();
        // As y·(1 - y), of which 1 - y has the rounding of 1.
        let both = widened(own * rest);
        Curve {
            value: own * own_log + rest * rest_log,
            // σ' times each logarithm, and what their own slopes give, which cancels.
            slope: both * own_log + both - both * rest_log - both,
            slack: 4.0 * linear(z.value),
        }
    }

    fn times(self, factor: f64) -> Curve {
        let Curve { value, slope, slack } = self;
        Curve { value: value * factor, slope: slope * factor, slack: slack * factor }
    }

    fn plus(self, other: Curve) -> Curve {
        Curve {
            value: self.value + other.value,
            slope: self.slope + other.slope,
            slack: self.slack + other.slack,
        }
    }
}

/// o(x) = x - log(1 - eˣ), and its slope 1 / (1 - eˣ).
fn odds(x: Scaled) -> [Scaled; 2] {
    let power = x.exp();
    let other = Scaled { value: -x.value.exp_m1(), ..Scaled::exact(1.0) - power };
    let slope = Scaled { value: 1.0 / other.value, ..power / other + 1.0 };
    [x - other.ln(), slope]
}

/// One completion. Log-probabilities count with their magnitudes, as components subtract them in
/// different orders.
#[derive(Clone, Copy)]
struct Side {
    policy: Scaled,
    reference: Scaled,
    length: f64,
}

impl Side {
    /// The log-ratio.
    fn ratio(self) -> Scaled {
        self.policy - self.reference
    }

    /// The average log-probability under the policy.
    fn average(self) -> Scaled {
        self.policy / self.length
    }

    /// The averaged log-ratio.
    fn average_ratio(self) -> Scaled {
        self.average() - self.reference / self.length
    }
}

/// What one pair gives: its loss, and its derivatives by the two sides.
struct Answer {
    loss: Scaled,
    slack: f64,
    slopes: [Number; 2],
}

impl Answer {
    /// A curve of one number, whose derivatives by the sides are these.
    fn of(curve: Curve, by: [Scaled; 2]) -> Answer {
        let slope = |by: Scaled| Number {
            slack: curve.slack * by.value.abs(),
            ..(curve.slope * by).into()
        };
        Answer { loss: curve.value, slack: curve.slack, slopes: by.map(slope) }
    }

    /// A curve for each side, of β times its log-ratio.
    fn apart(chosen: Curve, rejected: Curve, beta: Scaled) -> Answer {
        let slope = |curve: Curve| Number {
            slack: curve.slack * beta.value,
            ..(curve.slope * beta).into()
        };
        Answer {
            loss: chosen.value + rejected.value,
            slack: chosen.slack + rejected.slack,
            slopes: [slope(chosen), slope(rejected)],
        }
    }
}

/// One pair by the kinds that look at pairs.
fn of_pair(chosen: Side, rejected: Side, options: &Options, u: f64) -> Answer {
    let beta = Scaled::rounded(options.beta);
    let smoothing = options.label_smoothing;
    let [of_chosen, of_rejected] = [chosen, rejected].map(|side| side.ratio() * beta);
    let per_token = |factor: Scaled| [factor / chosen.length, -factor / rejected.length];
    match options.kind {
        Kind::Orpo => {
            let [(odds_c, slope_c), (odds_r, slope_r)] = [chosen, rejected].map(|side| {
                let [odds, slope] = odds(side.average());
                (odds, slope / side.length)
            });
            let curve = Curve::logistic(odds_c - odds_r);
            let mut answer = Answer::of(curve.times(options.beta), [slope_c, -slope_r]);
            if options.sft {
                answer.loss = answer.loss - chosen.average();
                let [by_chosen, _] = &mut answer.slopes;
                by_chosen.value -= 1.0 / chosen.length;
                by_chosen.scale += 2.0 / chosen.length + by_chosen.value.abs();
            }
            answer
        }
        Kind::Simpo => {
            // Some take γ/β off the difference instead.
            let away = Scaled::rounded(options.gamma) / beta;
            let z = (chosen.average() - rejected.average() - away) * beta;
            Answer::of(Curve::smoothed(z, smoothing), per_token(beta))
        }
        Kind::SigmoidNorm => {
            let z = (chosen.average_ratio() - rejected.average_ratio()) * beta;
            Answer::of(Curve::smoothed(z, smoothing), per_token(beta))
        }
        Kind::IpoNorm => {
            let difference = chosen.average_ratio() - rejected.average_ratio();
            let curve = Curve::square(difference, options.target(), u);
            Answer::of(curve, per_token(Scaled::exact(1.0)))
        }
        Kind::Nca => {
            let own = Curve::logistic(of_chosen).plus(Curve::mirrored(of_chosen).times(0.5));
            Answer::apart(own, Curve::mirrored(of_rejected).times(0.5), beta)
        }
        Kind::BcoPair => {
            Answer::apart(Curve::logistic(of_chosen), Curve::mirrored(of_rejected), beta)
        }
        Kind::SppoHard => {
            let own = Curve::square(chosen.ratio(), options.target(), u);
            let other = Curve::square(rejected.ratio(), -options.target(), u);
            Answer::apart(own, other, Scaled::exact(1.0))
        }
        Kind::ApoZero => {
            let mut own = Curve::sigma(-of_chosen);
            own.slope = -own.slope;
            Answer::apart(own, Curve::sigma(of_rejected), beta)
        }
        Kind::ApoDown => {
            let z = (rejected.ratio() - chosen.ratio()) * beta;
            let of_both = Answer::of(Curve::sigma(z), [-beta, beta]);
            let own = Curve::sigma(of_chosen);
            let by_chosen = Number::from(own.slope * beta);
            let [of_z, by_rejected] = of_both.slopes;
            let sum = by_chosen.value + of_z.value;
            let by_chosen = Number::new(sum, by_chosen.scale + of_z.scale + sum.abs());
            Answer { loss: own.value + of_both.loss, slack: 0.0, slopes: [by_chosen, by_rejected] }
        }
        Kind::Exo => {
            let z = (chosen.ratio() - rejected.ratio()) * beta;
            Answer::of(Curve::divergence(z, smoothing), [beta, -beta])
        }
        Kind::Aot | Kind::AotUnpaired => unreachable!("ranks are no pairs"),
    }
}

/// The ranks that `aot` matches: the numbers of the higher and of the lower side, sorted, with the
/// pairs from which they are.
struct Ranks {
    higher: Vec<(Scaled, usize)>,
    lower: Vec<(Scaled, usize)>,
}

impl Ranks {
    fn new(sides: &[[Side; 2]], kind: Kind) -> Ranks {
        let sorted = |number: fn(&[Side; 2], Kind) -> Scaled| {
            let mut numbers: Vec<(Scaled, usize)> =
                sides.iter().enumerate().map(|(at, pair)| (number(pair, kind), at)).collect();
            numbers.sort_by(|a, b| a.0.value.total_cmp(&b.0.value));
            numbers
        };
        Ranks {
            higher: sorted(|[chosen, rejected], kind| match kind {
                Kind::Aot => chosen.policy - rejected.policy,
                _ => chosen.ratio(),
            }),
            lower: sorted(|[chosen, rejected], kind| match kind {
                Kind::Aot => chosen.reference - rejected.reference,
                _ => rejected.ratio(),
            }),
        }
    }

    /// The losses of the ranks, with the derivatives by the pairs.
    fn answers(&self, options: &Options) -> Vec<Answer> {
        let beta = Scaled::rounded(options.beta);
        let none = || [Number::new(0.0, 0.0); 2];
        let mut slopes = vec![none(); self.higher.len()];
        let mut losses = Vec::new();
        for ((higher, of_higher), (lower, of_lower)) in self.higher.iter().zip(&self.lower) {
            let z = (*higher - *lower) * beta;
            let Answer { loss, slack, slopes: [own, other] } =
                Answer::of(Curve::smoothed(z, options.label_smoothing), [beta, -beta]);
            losses.push((loss, slack));
            slopes[*of_higher][0] = own;
            let rejected = if options.kind == Kind::Aot { of_higher } else { of_lower };
            slopes[*rejected][1] = other;
        }
        let answer = |((loss, slack), slopes)| Answer { loss, slack, slopes };
        losses.into_iter().zip(slopes).map(answer).collect()
    }
}

/// The two sides of each pair.
fn sides(case: &PairObjectiveCase) -> Vec<[Side; 2]> {
    let side = |policy: &Array1<f64>, reference: &Array1<f64>, lengths: &Array1<i64>, at: usize| {
        let [policy, reference] = [policy[at], reference[at]].map(Scaled::rounded);
        Side { policy, reference, length: lengths[at] as f64 }
    };
    let pair = |at| {
        [
            side(&case.policy_chosen, &case.ref_chosen, &case.chosen_lengths, at),
            side(&case.policy_rejected, &case.ref_rejected, &case.rejected_lengths, at),
        ]
    };
    (0..case.policy_chosen.len()).map(pair).collect()
}

/// What each pair gives; of `aot`, each rank its loss and each pair its derivatives.
fn answers(case: &PairObjectiveCase, options: &Options, dtype: Dtype) -> Vec<Answer> {
    let sides = sides(case);
    if options.kind.sorts() {
        return Ranks::new(&sides, options.kind).answers(options);
    }
    let u = dtype.arithmetic().unit_roundoff();
    sides.into_iter().map(|[chosen, rejected]| of_pair(chosen, rejected, options, u)).collect()
}

/// How far the policy's numbers that are sorted are from a tie: the least difference of two, less
/// what decides between them.
pub(super) fn room(case: &PairObjectiveCase, kind: Kind) -> f64 {
    let Ranks { higher, lower } = Ranks::new(&sides(case), kind);
    let least = |numbers: Vec<(Scaled, usize)>| {
        let room = |pair: &[(Scaled, usize)]| {
            let [(a, _), (b, _)] = [pair[0], pair[1]];
            b.value - a.value - 1e-6 * (1.0 + a.scale + b.scale)
        };
        numbers.windows(2).map(room).fold(f64::INFINITY, f64::min)
    };
    match kind {
        // Between equal numbers of the reference any order gives the same.
        Kind::Aot => least(higher),
        _ => least(higher).min(least(lower)),
    }
}

/// The difference that the objective compares, before β, of each pair: of averages where those
/// count, and under the policy alone where the reference does not.
pub(super) fn differences(case: &PairObjectiveCase, kind: Kind) -> Vec<f64> {
    let number = |side: Side| match kind {
        Kind::Orpo | Kind::Simpo => side.average(),
        _ if kind.averages() => side.average_ratio(),
        _ => side.ratio(),
    };
    let pairs = sides(case).into_iter();
    pairs.map(|[chosen, rejected]| (number(chosen) - number(rejected)).value).collect()
}

/// The averages under the policy, chosen and rejected.
pub(super) fn averages(case: &PairObjectiveCase) -> impl Iterator<Item = f64> {
    sides(case).into_iter().flatten().map(|side| side.average().value)
}

/// What the definition gives.
pub(super) fn outputs(case: &PairObjectiveCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    let losses = answers(case, options, dtype).into_iter().map(|pair| (pair.loss, pair.slack));
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
    let beta = Scaled::rounded(options.beta);
    let rewards = |field, at: usize| {
        let number = |sides: &[Side; 2]| {
            let side = sides[at];
            let counts = if options.kind.has_reference() { side.ratio() } else { side.average() };
            Number::from(counts * beta)
        };
        let numbers: Array1<Number> = sides(case).iter().map(number).collect();
        Expected { field, numbers: numbers.into_dyn(), terms: 1 }
    };
    vec![
        Expected { field: options.output(), numbers, terms: 1 },
        rewards("chosen_rewards", 0),
        rewards("rejected_rewards", 1),
    ]
}

/// The gradient of the loss, or of the summed losses.
pub(super) fn gradient(case: &PairObjectiveCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    let count = match options.reduction {
        Reduction::None => 1.0,
        Reduction::Mean => case.policy_chosen.len() as f64,
    };
    let answers = answers(case, options, dtype);
    let leaf = |field, side: usize| {
        let number = |answer: &Answer| {
            let slope = answer.slopes[side];
            let [value, scale, slack] =
                [slope.value, slope.scale, slope.slack].map(|number| number / count);
            Number { value, scale: scale + value.abs(), slack }
        };
        let numbers: Array1<Number> = answers.iter().map(number).collect();
        Expected { field, numbers: numbers.into_dyn(), terms: 1 }
    };
    vec![leaf("grad_policy_chosen", 0), leaf("grad_policy_rejected", 1)]
}

#[cfg(test)]
mod tests {
    use ndarray::arr1;

    use super::*;

    /// A pair of four numbers and two lengths.
    fn pair(numbers: [f64; 4], lengths: [i64; 2]) -> PairObjectiveCase {
        let [policy_chosen, policy_rejected, ref_chosen, ref_rejected] =
            numbers.map(|x| arr1(&[x]));
        let [chosen_lengths, rejected_lengths] = lengths.map(|x| arr1(&[x]));
        PairObjectiveCase {
            policy_chosen,
            policy_rejected,
            ref_chosen,
            ref_rejected,
            chosen_lengths,
            rejected_lengths,
        }
    }

    fn loss(case: &PairObjectiveCase, options: &Options) -> f64 {
        outputs(case, options, Dtype::F64)[0].numbers.first().expect("a loss").value
    }

    fn slopes(case: &PairObjectiveCase, options: &Options) -> [f64; 2] {
        let gradient = gradient(case, options, Dtype::F64);
        [0, 1].map(|side: usize| gradient[side].numbers[[0]].value)
    }

    #[track_caller]
    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 4e-14 * (1.0 + b.abs()), "{a} is not {b}");
    }

    fn of_kind(kind: Kind) -> Options {
        Options {
            kind,
            label_smoothing: if kind == Kind::Exo { 0.1 } else { 0.0 },
            reduction: if kind.sorts() { Reduction::Mean } else { Reduction::None },
            ..Options::default()
        }
    }

    fn each_kind() -> impl Iterator<Item = Options> {
        Kind::ALL.iter().flat_map(|kind| {
            let plain = of_kind(*kind);
            let smoothed = Options { label_smoothing: 0.2, beta: 0.7, ..plain.clone() };
            [plain].into_iter().chain(kind.is_smoothed().then_some(smoothed))
        })
    }
    #[test]
    fn a_policy_that_is_the_reference_has_the_known_losses() {
        let case = pair([-6.0, -3.0, -6.0, -3.0], [6, 3]);
        let ln_2 = 2_f64.ln();
        for (kind, known) in [
            (Kind::SigmoidNorm, ln_2),
            (Kind::IpoNorm, 25.0),
            (Kind::Nca, 2.0 * ln_2),
            (Kind::BcoPair, 2.0 * ln_2),
            (Kind::SppoHard, 50.0),
            (Kind::ApoZero, 1.0),
            (Kind::ApoDown, 1.0),
            (Kind::Exo, -ln_2 - 0.5 * 0.09_f64.ln()),
            (Kind::Aot, ln_2),
            (Kind::AotUnpaired, ln_2),
        ] {
            near(loss(&case, &of_kind(kind)), known);
        }
    }

    #[test]
    fn the_gradients_are_the_slopes_of_the_loss() {
        let numbers = [-6.3, -8.1, -7.2, -5.9];
        for options in each_kind() {
            let found = slopes(&pair(numbers, [6, 4]), &options);
            for side in 0..2 {
                let step = 1e-5;
                let [up, down] = [step, -step].map(|step| {
                    let mut moved = numbers;
                    moved[side] += step;
                    loss(&pair(moved, [6, 4]), &options)
                });
                let difference = (up - down) / (2.0 * step) - found[side];
                assert!(difference.abs() < 1e-8, "{options:?} {side}: off by {difference}");
            }
        }
    }

    #[test]
    fn odds_near_certainty_keep_their_digits() {
        // log(p / (1 - p)) at p = e^-0.001.
        let [value, slope] = odds(Scaled::rounded(-0.001)).map(|number| number.value);
        near(value, 6.907_255_237_315_472);
        near(slope, 1_000.500_083_333_332);
        let [far, flat] = odds(Scaled::rounded(-5e3)).map(|number| number.value);
        assert_eq!([far, flat], [-5e3, 1.0]);
    }

    #[test]
    fn margins_of_five_thousand_stay_finite() {
        for options in each_kind() {
            for numbers in [[-5e3, -1.0, -1.0, -1.0], [-1.0, -5e3, -1.0, -1.0]] {
                let case = pair(numbers, [1, 1]);
                let all = [loss(&case, &options)].into_iter().chain(slopes(&case, &options));
                assert!(all.into_iter().all(f64::is_finite), "{options:?}");
            }
        }
    }

    #[test]
    fn the_divergence_is_least_at_the_share_that_is_right() {
        let exo = Options { beta: 1.0, ..of_kind(Kind::Exo) };
        let at = pair([-1.0, -1.0 - 9_f64.ln(), -1.0, -1.0], [1, 1]);
        near(loss(&at, &exo), 0.0);
        slopes(&at, &exo).into_iter().for_each(|slope| near(slope, 0.0));
    }

    #[test]
    fn ranks_are_matched_and_gradients_go_back_to_their_pairs() {
        let case = PairObjectiveCase {
            policy_chosen: arr1(&[-1.0, -4.0]),
            policy_rejected: arr1(&[-3.0, -3.0]),
            ref_chosen: arr1(&[-2.0, -1.0]),
            ref_rejected: arr1(&[-2.0, -4.0]),
            chosen_lengths: arr1(&[1, 1]),
            rejected_lengths: arr1(&[1, 1]),
        };
        // Differences 2 and -1 against 0 and 3: -1 meets 0, and 2 meets 3.
        let options = Options { beta: 1.0, ..of_kind(Kind::Aot) };
        near(loss(&case, &options), softplus(1.0));
        near(slopes(&case, &options)[0], -0.5 * sigmoid(1.0));
        // Log-ratios 1 and -3 against -1 and 1: -3 meets -1, and 1 meets 1.
        let options = Options { kind: Kind::AotUnpaired, ..options };
        near(loss(&case, &options), 0.5 * (softplus(2.0) + softplus(0.0)));
        let found = slopes(&case, &options);
        near(found[0], -0.25);
        near(found[1], 0.5 * sigmoid(2.0));
        assert!(room(&case, Kind::Aot) > 2.9);
    }
}
