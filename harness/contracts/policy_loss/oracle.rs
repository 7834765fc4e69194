//! The definition of `policy-loss` in plain f64, with the scale of every number.
//!
//! Token by token: the exponent of the ratio, the ratio, the loss and its derivative by the
//! log-probability.

use ndarray::{Array2, ArrayD, IxDyn};

use super::{Advantages, ApproxKl, KlEstimator, Objective, Options, PolicyLossCase, Ratio, flat};
use shakedown_core::contract::coverage;
use shakedown_core::numeric::conventions::EmptyMask;
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number};
use shakedown_core::value::place::Dtype;

/// How many unit roundoffs of its magnitude, and of its exponent's error, a ratio may be off for
/// it to be unclear on which side of a bound it lies.
const KINK: f64 = 12.0;

/// Some libraries add 1e-8 to a count that they divide by, once or twice: the contract leaves that
/// open.
const COUNT: f64 = 2.5e-8;

/// A function of a log-probability at one place: its value and its slope.
#[derive(Clone, Copy)]
struct Term {
    value: Scaled,
    slope: Scaled,
    /// Whether the slope is open: a kink is too near.
    open: bool,
}

/// A log-ratio after its clamp.
#[derive(Clone, Copy)]
struct Exponent {
    value: Scaled,
    /// Whether the clamp takes the derivative away.
    stopped: bool,
    /// Whether that is unclear.
    open: bool,
}

/// On which side of a bound a number lies, as far as rounding lets one tell.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Below,
    Unclear,
    Above,
}

impl Side {
    fn name(&self) -> &'static str {
        match self {
            Side::Below => "below",
            Side::Unclear => "unclear",
            Side::Above => "above",
        }
    }
}

/// What is fixed for a whole batch.
struct Definition<'a> {
    options: &'a Options,
    log_probs: &'a [f64],
    old_log_probs: &'a [f64],
    ref_log_probs: Option<&'a [f64]>,
    advantages: Advantages<'a>,
    mask: &'a [bool],
    width: usize,
    roundoff: f64,
    /// The number of tokens of each row.
    lengths: Vec<usize>,
}

impl<'a> Definition<'a> {
    fn of(case: &'a PolicyLossCase, options: &'a Options, dtype: Dtype) -> Definition<'a> {
        let lengths = case.mask.rows().into_iter().map(|row| row.iter().filter(|m| **m).count());
        Definition {
            options,
            log_probs: flat(&case.log_probs),
            old_log_probs: flat(&case.old_log_probs),
            ref_log_probs: case.ref_log_probs.as_ref().map(flat),
            advantages: Advantages::of(case),
            mask: flat(&case.mask),
            width: case.mask.ncols(),
            roundoff: dtype.arithmetic().unit_roundoff(),
            lengths: lengths.collect(),
        }
    }

    /// Where a number lies.
    fn side(&self, x: Scaled, bound: f64) -> Side {
        let error = x.scale + x.value.abs() + bound.abs();
        if (x.value - bound).abs() <= KINK * self.roundoff * error {
            Side::Unclear
        } else if x.value < bound {
            Side::Below
        } else {
            Side::Above
        }
    }

    /// A number held between two bounds.
    fn held(&self, x: Scaled, [lo, hi]: [f64; 2]) -> Scaled {
        let value = x.value.max(lo).min(hi);
        let outside = self.side(x, lo) == Side::Below || self.side(x, hi) == Side::Above;
        if outside || x.value.is_infinite() {
            Scaled::rounded(value)
        } else {
            Scaled { value, ..x }
        }
    }

    /// A log-ratio clamped to ±c.
    fn clamped(&self, x: Scaled, limit: Option<f64>) -> Exponent {
        let Some(limit) = limit else { return Exponent { value: x, stopped: false, open: false } };
        let side = self.side(x.abs(), limit);
        Exponent {
            value: self.held(x, [-limit, limit]),
            stopped: side == Side::Above,
            open: side == Side::Unclear,
        }
    }

    /// The exponents of a row: each token's own, or the mean for all.
    fn exponent_of_row(&self, row: usize) -> Option<Exponent> {
        if self.options.ratio == Ratio::Token {
            return None;
        }
        let sum = Scaled::sum(self.kept(row).map(|at| self.log_ratio(at)));
        let mean = sum / self.lengths[row].max(1) as f64;
        Some(self.clamped(mean, self.options.log_ratio_clamp))
    }

    fn exponent_of_token(&self, at: usize) -> Exponent {
        self.clamped(self.log_ratio(at), self.options.log_ratio_clamp)
    }

    fn log_ratio(&self, at: usize) -> Scaled {
        Scaled::exact(self.log_probs[at]) - self.old_log_probs[at]
    }

    /// The flat places of a row's tokens.
    fn kept(&self, row: usize) -> impl Iterator<Item = usize> + use<'_, 'a> {
        (row * self.width..(row + 1) * self.width).filter(|at| self.mask[*at])
    }

    /// The policy's part of a token's loss.
    fn policy(&self, exponent: Exponent, advantage: f64, log_prob: f64) -> Term {
        let (a, log_prob) = (advantage, Scaled::exact(log_prob));
        if self.options.objective == Objective::Reinforce {
            return Term { value: log_prob * -a, slope: Scaled::exact(-a), open: false };
        }
        let ratio = exponent.value.exp();
        let (lo, hi) = self.options.bounds();
        if self.options.objective == Objective::Cispo {
            let slope = self.held(ratio, [lo, hi]) * -a;
            return Term { value: slope * log_prob, slope, open: false };
        }
        let side = |bound| self.side(ratio, bound);
        // Where the loss stops to depend on the ratio: above one bound, or below another.
        let (held, beyond) = if a > 0.0 {
            (ratio.value.min(hi), side(hi))
        } else {
            let dual = self.options.dual();
            let beyond = match (side(lo), dual) {
                (Side::Below, _) => Side::Above,
                (Side::Unclear, _) => Side::Unclear,
                (Side::Above, Some(c)) => side(c),
                (Side::Above, None) => Side::Below,
            };
            (ratio.value.max(lo).min(dual.unwrap_or(f64::INFINITY)), beyond)
        };
        let stopped = beyond == Side::Above || a == 0.0;
        let held = if stopped { Scaled::rounded(held) } else { Scaled { value: held, ..ratio } };
        // At either bound both losses may round to one number, and share the gradient.
        let tied = side(lo) == Side::Unclear || side(hi) == Side::Unclear;
        let unclear = (beyond == Side::Unclear || tied) && !exponent.stopped;
        Term {
            value: held * -a,
            slope: if stopped || exponent.stopped { Scaled::exact(0.0) } else { ratio * -a },
            open: a != 0.0 && (unclear || (exponent.open && !stopped)),
        }
    }

    /// The divergence of a token from the reference, and its derivative.
    fn kl(&self, at: usize, reference: &[f64]) -> Term {
        let Options { kl_estimator, kl_log_ratio_clamp, kl_clamp, .. } = *self.options;
        let d = Scaled::exact(self.log_probs[at]) - reference[at];
        let Exponent { value: d, stopped, mut open } = self.clamped(d, kl_log_ratio_clamp);
        let (mut value, mut slope) = match kl_estimator {
            KlEstimator::K1 => (d, Scaled::exact(1.0)),
            KlEstimator::Abs if d.value == 0.0 => (d.abs(), Scaled::exact(0.0)),
            KlEstimator::Abs => (d.abs(), Scaled::exact(d.value.signum())),
            KlEstimator::K2 => (d * d / 2.0, d),
            KlEstimator::K3 => ((-d).exp_m1() + d, -(-d).exp_m1()),
        };
        let mut outside = false;
        if let Some([lo, hi]) = kl_clamp {
            let (below, above) = (self.side(value, lo), self.side(value, hi));
            outside = below == Side::Below || above == Side::Above;
            // At the least value of an estimator its slope is 0 on both sides of the bound.
            let flat = slope.value == 0.0;
            open &= !outside;
            open |= (below == Side::Unclear || above == Side::Unclear) && !flat;
            if outside {
                value = Scaled::rounded(value.value.clamp(lo, hi));
            }
        }
        if outside || stopped {
            slope = Scaled::exact(0.0);
        }
        Term { value, slope, open }
    }
}

/// The weight of each token, where any counts.
fn weights(case: &PolicyLossCase, options: &Options) -> Option<Array2<f64>> {
    options.aggregate.weights(&case.mask, options.empty_rows, options.norm_length)
}

/// What some weighted numbers of one token each add up to.
fn total(terms: &[Scaled]) -> Number {
    let slack = COUNT * terms.iter().map(|term| term.value.abs()).sum::<f64>();
    Number { slack, ..Scaled::sum(terms.iter().copied()).into() }
}

/// What the definition gives: the loss and the metrics.
pub(super) fn outputs(case: &PolicyLossCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    let Some(weights) = weights(case, options) else { return without_a_token(options) };
    let (definition, weights) = (Definition::of(case, options, dtype), flat(&weights));
    let (lo, hi) = options.bounds();
    let share = 1.0 / definition.lengths.iter().sum::<usize>() as f64;
    let (mut loss, mut approx_kl, mut kl) = (Vec::new(), Vec::new(), Vec::new());
    let (mut clipped, mut unclear, mut clamped) = (0.0, 0.0, false);
    for row in 0..case.mask.nrows() {
        let shared = definition.exponent_of_row(row);
        for at in definition.kept(row) {
            let advantage = definition.advantages.at(row, at % definition.width);
            let exponent = shared.unwrap_or_else(|| definition.exponent_of_token(at));
            let term = definition.policy(exponent, advantage, definition.log_probs[at]);
            loss.push(term.value * weights[at]);
            if let Some(reference) = definition.ref_log_probs {
                let term = definition.kl(at, reference);
                loss.push(term.value * (weights[at] * options.beta));
                kl.push(term.value * weights[at]);
            }
            let x = definition.log_ratio(at);
            clamped |= options.log_ratio_clamp.is_some_and(|limit| x.value.abs() > limit);
            approx_kl.push(divergence(options.approx_kl, x) * share);
            if options.counts_clipped() && advantage != 0.0 {
                let bound = if advantage > 0.0 { hi } else { lo };
                let side = definition.side(exponent.value.exp(), bound);
                let sign = if advantage > 0.0 { "raised" } else { "lowered" };
                coverage::event(&["ratio", side.name(), sign]);
                match side {
                    Side::Unclear => unclear += share,
                    Side::Above if advantage > 0.0 => clipped += share,
                    Side::Below if advantage < 0.0 => clipped += share,
                    _ => {}
                }
            }
        }
    }
    let clip_fraction = if options.counts_clipped() {
        let slack = unclear / 2.0 * (1.0 + 1e-9) + COUNT * clipped;
        Number { value: clipped + unclear / 2.0, scale: 1.0, slack }
    } else {
        Number::ANYTHING
    };
    let size: f64 = approx_kl.iter().map(|term| term.scale).sum();
    let approx_kl = if size > dtype.max().min(dtype.arithmetic().max() / 1e4) / 4.0 {
        // Beyond what the dtype holds.
        Number::ANYTHING
    } else if clamped {
        // Some libraries take the metric of what they have clamped for the ratio.
        Number::OPEN
    } else {
        total(&approx_kl)
    };
    let kl = if options.beta > 0.0 { total(&kl) } else { Number::ANYTHING };
    expected([total(&loss), clip_fraction, approx_kl, kl])
}

/// A token's part of the metric `approx_kl`.
fn divergence(definition: ApproxKl, x: Scaled) -> Scaled {
    match definition {
        ApproxKl::K1 => -x,
        ApproxKl::K2 => x * x / 2.0,
        ApproxKl::K3 => x.exp_m1() - x,
    }
}

/// What a batch without a token gives.
fn without_a_token(options: &Options) -> Vec<Expected> {
    let zero = Number::new(0.0, 0.0);
    let checked = |is: bool| if is { zero } else { Number::ANYTHING };
    if options.empty_mask == EmptyMask::Zero {
        let clip_fraction = checked(options.counts_clipped());
        expected([zero, clip_fraction, zero, checked(options.beta > 0.0)])
    } else {
        let metric = Number::ANYTHING;
        expected([Number::NAN, metric, metric, metric])
    }
}

fn expected([loss, clip_fraction, approx_kl, kl]: [Number; 4]) -> Vec<Expected> {
    let field = |field, number| {
        let numbers = ArrayD::from_elem(IxDyn(&[]), number);
        Expected { field, numbers, terms: 1 }
    };
    vec![
        field("loss", loss),
        field("clip_fraction", clip_fraction),
        field("approx_kl", approx_kl),
        field("kl", kl),
    ]
}

/// What the definition gives for the gradient of the loss.
pub(super) fn gradient(case: &PolicyLossCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    let mut numbers = Array2::from_elem(case.mask.dim(), Number::new(0.0, 0.0));
    if let Some(weights) = weights(case, options) {
        let definition = Definition::of(case, options, dtype);
        for row in 0..case.mask.nrows() {
            gradient_of_row(&definition, row, flat(&weights), &mut numbers);
        }
    } else if options.empty_mask != EmptyMask::Zero {
        numbers.fill(Number::ANYTHING);
    }
    vec![Expected { field: "grad_log_probs", numbers: numbers.into_dyn(), terms: 1 }]
}

fn gradient_of_row(
    definition: &Definition<'_>,
    row: usize,
    weights: &[f64],
    numbers: &mut Array2<Number>,
) {
    let Definition { options, width, .. } = *definition;
    let length = definition.lengths[row];
    let shared = definition.exponent_of_row(row);
    let terms = definition.kept(row).map(|at| {
        let exponent = shared.unwrap_or_else(|| definition.exponent_of_token(at));
        let advantage = definition.advantages.at(row, at % width);
        definition.policy(exponent, advantage, definition.log_probs[at])
    });
    // Through a shared ratio each token moves the loss of all: what flows is the row's mean.
    let shares = options.ratio == Ratio::Sequence && options.objective == Objective::PpoClip;
    let terms: Vec<Term> = if shares {
        let terms: Vec<Term> = terms.collect();
        let mean = Scaled::sum(terms.iter().map(|term| term.slope / length as f64));
        let open = terms.iter().any(|term| term.open);
        vec![Term { value: mean, slope: mean, open }; length]
    } else {
        terms.collect()
    };
    for (at, term) in definition.kept(row).zip(terms) {
        let (mut slopes, mut open) = (vec![term.slope * weights[at]], term.open);
        if let Some(reference) = definition.ref_log_probs {
            let kl = definition.kl(at, reference);
            slopes.push(kl.slope * (weights[at] * options.beta));
            open |= kl.open;
        }
        numbers[[row, at % width]] = if open { Number::OPEN } else { total(&slopes) };
    }
}

/// Whether loss, divergence and gradient are well within what a dtype holds, and the sums they are
/// made of within its arithmetic.
pub(super) fn fits(case: &PolicyLossCase, options: &Options, dtype: Dtype) -> bool {
    let (most, most_inside) = (dtype.max() / 4.0, dtype.arithmetic().max() / 1e5);
    if !case.mask.iter().any(|kept| *kept) {
        return true;
    }
    let small = |number: &Number| {
        let known = !number.value.is_nan() && number.scale.is_finite();
        !known && number.value == 0.0 || number.value.abs() <= most && number.scale <= most_inside
    };
    let outputs = outputs(case, options, dtype);
    let kl = &outputs[3].numbers[[]];
    small(&outputs[0].numbers[[]])
        && (options.beta == 0.0 || small(kl))
        && gradient(case, options, dtype)[0].numbers.iter().all(small)
}

#[cfg(test)]
mod tests {
    use ndarray::{Array2, arr2};

    use super::super::{AdvantageShape, ClipBounds};
    use super::*;
    use shakedown_core::numeric::aggregate::Aggregate;
    use shakedown_core::numeric::conventions::EmptyRows;

    fn case(x: &Array2<f64>, advantages: &Array2<f64>, mask: &Array2<bool>) -> PolicyLossCase {
        PolicyLossCase {
            log_probs: x - 2.0,
            old_log_probs: x * 0.0 - 2.0,
            advantages: advantages.clone().into_dyn(),
            mask: mask.clone(),
            ref_log_probs: None,
        }
    }

    fn one(x: f64, advantage: f64) -> PolicyLossCase {
        case(&arr2(&[[x]]), &arr2(&[[advantage]]), &arr2(&[[true]]))
    }

    fn loss(case: &PolicyLossCase, options: &Options) -> f64 {
        outputs(case, options, Dtype::F64)[0].numbers[[]].value
    }

    fn slope(case: &PolicyLossCase, options: &Options) -> f64 {
        gradient(case, options, Dtype::F64)[0].numbers[[0, 0]].value
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-13 * (1.0 + b.abs()), "{a} is not {b}");
    }

    #[test]
    fn one_token_is_clipped_on_the_side_of_its_sign() {
        let options = Options { clip_high: 0.28, dual_clip: Some(3.0), ..Options::default() };
        for x in [-2.0, -0.3, -0.1, 0.0, 0.1, 0.26, 0.5, 2.0_f64] {
            let ratio = x.exp();
            near(loss(&one(x, 2.0), &options), -2.0 * ratio.min(1.28));
            near(loss(&one(x, -2.0), &options), 2.0 * ratio.clamp(0.8, 3.0));
            let up = if ratio > 1.28 { 0.0 } else { -2.0 * ratio };
            near(slope(&one(x, 2.0), &options), up);
            let down = if !(0.8..=3.0).contains(&ratio) { 0.0 } else { 2.0 * ratio };
            near(slope(&one(x, -2.0), &options), down);
        }
    }

    #[test]
    fn at_a_bound_the_slope_is_open_and_nowhere_else() {
        let open = |x: f64, a: f64| {
            let number = gradient(&one(x, a), &Options::default(), Dtype::F64)[0].numbers[[0, 0]];
            number.scale.is_infinite()
        };
        assert!(open(1.2_f64.ln(), 1.0) && open(0.8_f64.ln(), -1.0));
        // No kink, but a tie that autograd may share between a slope and none.
        assert!(open(1.2_f64.ln(), -1.0) && open(0.8_f64.ln(), 1.0));
        assert!(!open(1.2_f64.ln() + 1e-12, 1.0) && !open(0.0, 1.0) && !open(1.2_f64.ln(), 0.0));
    }

    #[test]
    fn a_bound_is_near_as_far_as_the_ratio_and_the_bound_are_rounded() {
        let open = |ratio: f64| {
            let case = one(ratio.ln(), 1.0);
            gradient(&case, &Options::default(), Dtype::F32)[0].numbers[[0, 0]].scale.is_infinite()
        };
        // The ratio is off by 2.62 u, and it and the bound are 1.2 each: 12 · 5.02 u is 3.6e-6.
        assert!(open(1.2 + 3.4e-6) && open(1.2 - 3.4e-6));
        assert!(!open(1.2 + 3.8e-6) && !open(1.2 - 3.8e-6));
    }

    #[test]
    fn at_a_bound_a_token_counts_as_clipped_or_not() {
        let share = |x: f64| outputs(&one(x, 1.0), &Options::default(), Dtype::F64)[1].numbers[[]];
        let open = share(1.2_f64.ln());
        assert_eq!(open.value, 0.5);
        assert!((0.5..0.5 + 1e-8).contains(&open.slack), "{open:?}");
        assert_eq!([share(1.0), share(0.0)].map(|number| number.value), [1.0, 0.0]);
    }

    #[test]
    fn reinforce_and_cispo_weigh_the_log_probability() {
        let reinforce = Options { objective: Objective::Reinforce, ..Options::default() };
        near(loss(&one(0.5, 3.0), &reinforce), 4.5);
        near(slope(&one(0.5, 3.0), &reinforce), -3.0);
        let cispo = Options { objective: Objective::Cispo, ..Options::default() };
        near(loss(&one(0.5, 3.0), &cispo), 1.2 * 4.5);
        near(slope(&one(0.5, 3.0), &cispo), -3.6);
        near(slope(&one(-0.5, -3.0), &cispo), 2.4);
        let absolute = Options { clip_bounds: ClipBounds::Absolute, clip_high: 5.0, ..cispo };
        near(slope(&one(-0.5, -3.0), &absolute), 3.0 * (-0.5_f64).exp());
        near(slope(&one(2.0, -3.0), &absolute), 15.0);
    }

    #[test]
    fn a_clamped_exponent_keeps_its_value_and_loses_its_slope() {
        let options = Options { log_ratio_clamp: Some(1.0), ..Options::default() };
        near(loss(&one(1.9, -1.0), &options), 1.0_f64.exp());
        assert_eq!(slope(&one(1.9, -1.0), &options), 0.0);
    }

    #[test]
    fn rows_share_the_exponential_of_their_mean() {
        let x = arr2(&[[0.1, -0.05, 9.0]]);
        let mask = arr2(&[[true, true, false]]);
        let both = case(&x, &arr2(&[[1.0, 1.0, 5.0]]), &mask);
        let ratio = 0.025_f64.exp();
        for ratio_kind in [Ratio::Sequence, Ratio::SequenceToken] {
            let options = Options { ratio: ratio_kind, ..Options::default() };
            near(loss(&both, &options), -ratio);
            near(slope(&both, &options), -ratio / 2.0);
        }
        // Where advantages vary each token keeps its own, or all get the mean.
        let varied = case(&x, &arr2(&[[1.0, 0.0, 5.0]]), &mask);
        let own = Options { ratio: Ratio::SequenceToken, ..Options::default() };
        near(slope(&varied, &own), -ratio / 2.0);
        let shared = Options { ratio: Ratio::Sequence, ..Options::default() };
        near(slope(&varied, &shared), -ratio / 4.0);
    }

    #[test]
    fn on_the_policy_the_loss_is_the_aggregated_advantage() {
        let mask = arr2(&[[true; 4], [true, false, false, false], [false; 4]]);
        let zeros = Array2::zeros((3, 4));
        let case = case(&zeros, &(&zeros + 2.0), &mask);
        for (aggregate, expected) in [
            (Aggregate::TokenMean, -2.0),
            (Aggregate::TokenSum, -10.0),
            (Aggregate::SeqMeanTokenMean, -2.0),
            (Aggregate::SeqMeanTokenSum, -5.0),
            (Aggregate::SeqMeanTokenSumNorm, -0.5),
        ] {
            let options = Options { aggregate, norm_length: Some(10), ..Options::default() };
            near(loss(&case, &options), expected);
        }
        let counted = Options {
            aggregate: Aggregate::SeqMeanTokenMean,
            empty_rows: EmptyRows::Count,
            ..Options::default()
        };
        near(loss(&case, &counted), -4.0 / 3.0);
        let rows =
            PolicyLossCase { advantages: ndarray::arr1(&[2.0, 2.0, 7.0]).into_dyn(), ..case };
        let by_row = Options { advantage_shape: AdvantageShape::Row, ..Options::default() };
        near(loss(&rows, &by_row), -2.0);
    }

    #[test]
    fn the_divergence_is_added_unclamped_or_clamped() {
        let away =
            |d: f64| PolicyLossCase { ref_log_probs: Some(arr2(&[[-2.0 - d]])), ..one(0.0, 0.0) };
        let options = |kl_estimator| Options { beta: 0.5, kl_estimator, ..Options::default() };
        for d in [-1.5, 0.0, 0.7_f64] {
            for (estimator, value, derivative) in [
                (KlEstimator::K1, d, 1.0),
                (KlEstimator::K2, d * d / 2.0, d),
                (KlEstimator::K3, (-d).exp() - 1.0 + d, 1.0 - (-d).exp()),
                (KlEstimator::Abs, d.abs(), if d == 0.0 { 0.0 } else { d.signum() }),
            ] {
                let options = options(estimator);
                near(loss(&away(d), &options), 0.5 * value);
                near(slope(&away(d), &options), 0.5 * derivative);
                near(outputs(&away(d), &options, Dtype::F64)[3].numbers[[]].value, value);
            }
        }
        let clamped = Options { kl_clamp: Some([0.0, 0.5]), ..options(KlEstimator::K3) };
        near(loss(&away(-1.5), &clamped), 0.25);
        assert_eq!(slope(&away(-1.5), &clamped), 0.0);
        near(slope(&away(0.5), &clamped), 0.5 * (1.0 - (-0.5_f64).exp()));
        let limited = Options { kl_log_ratio_clamp: Some(1.0), ..options(KlEstimator::K3) };
        near(loss(&away(-1.5), &limited), 0.5 * (1.0_f64.exp() - 2.0));
        assert_eq!(slope(&away(-1.5), &limited), 0.0);
    }

    #[test]
    fn metrics_count_by_side_and_sign() {
        let x = arr2(&[[1.0, 1.0, -1.0, -1.0]]);
        let case = case(&x, &arr2(&[[1.0, -1.0, 1.0, -1.0]]), &arr2(&[[true; 4]]));
        let metric = |field: usize, options: &Options| {
            outputs(&case, options, Dtype::F64)[field].numbers[[]].value
        };
        near(metric(1, &Options::default()), 0.5);
        near(metric(2, &Options::default()), 0.0);
        near(metric(2, &Options { approx_kl: ApproxKl::K2, ..Options::default() }), 0.5);
        let k3 = Options { approx_kl: ApproxKl::K3, ..Options::default() };
        near(metric(2, &k3), (1.0_f64.exp() + (-1.0_f64).exp()) / 2.0 - 1.0);
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let x = arr2(&[[0.1, -0.3, 0.5], [0.05, 1.5, -0.1]]);
        let advantages = arr2(&[[1.0, 1.0, 1.0], [-2.0, -2.0, -2.0]]);
        let mask = arr2(&[[true, true, false], [true, true, true]]);
        let whole = PolicyLossCase {
            ref_log_probs: Some(arr2(&[[-2.5, -1.0, 0.0], [-2.0, -0.1, -4.0]])),
            ..case(&x, &advantages, &mask)
        };
        for ratio in [Ratio::Token, Ratio::Sequence] {
            for aggregate in Aggregate::ALL {
                let options = Options {
                    ratio,
                    aggregate: *aggregate,
                    norm_length: Some(7),
                    beta: 0.3,
                    dual_clip: Some(3.0),
                    ..Options::default()
                };
                let slopes = &gradient(&whole, &options, Dtype::F64)[0].numbers;
                for at in [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]] {
                    let moved = |step: f64| {
                        let mut moved = whole.clone();
                        moved.log_probs[at] += step;
                        loss(&moved, &options)
                    };
                    let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
                    let found = slopes[&at[..]].value;
                    assert!((slope - found).abs() < 1e-8, "{ratio:?} {aggregate:?} {at:?}");
                }
            }
        }
    }
}
