//! The definition of `entropy-bonus` in plain f64, with the scale of every number: the entropies of
//! the tokens, which of them count, and what they add up to.

use ndarray::{Array2, Array3, ArrayD, Axis, IxDyn, s};

use super::{EntropyBonusCase, Options};
use crate::token_entropy::oracle::Distribution;
use shakedown_core::numeric::conventions::EmptyMask;
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number, Tolerance};
use shakedown_core::value::place::Dtype;

/// An entropy this near the quantile, and what rounding adds, may be on either side of it.
const UNDECIDED: f64 = 1e-4;

/// Some libraries add 1e-8 to a count that they divide by, once or twice: the contract leaves that
/// open.
const COUNT: f64 = 2.5e-8;

/// The distributions of the tokens under the mask, with how much each weighs.
struct Batch {
    /// By token; none at masked ones.
    tokens: Array2<Option<Distribution>>,
    /// `None` where no token counts.
    weights: Option<Array2<f64>>,
    /// Whether rounding decides which tokens count.
    open: bool,
    vocabulary: usize,
}

impl Batch {
    fn of(case: &EntropyBonusCase, options: &Options, dtype: Dtype) -> Batch {
        let tokens = Array2::from_shape_fn(case.mask.dim(), |(row, token)| {
            let logits = case.logits.slice(s![row, token, ..]);
            case.mask[[row, token]].then(|| Distribution::of(logits, options.temperature))
        });
        let vocabulary = case.logits.len_of(Axis(2));
        let mut batch = Batch { tokens, weights: None, open: false, vocabulary };
        let chosen = batch.chosen(case, options, dtype);
        batch.weights = options.aggregate.weights(&chosen, options.empty_rows, options.norm_length);
        batch
    }

    /// Which tokens count: those under the mask, or the less sure ones of them.
    fn chosen(&mut self, case: &EntropyBonusCase, options: &Options, dtype: Dtype) -> Array2<bool> {
        let Some(share) = options.top_share.filter(|share| *share < 1.0) else {
            return case.mask.clone();
        };
        let counted: Vec<&Distribution> = self.tokens.iter().flatten().collect();
        if counted.len() < 2 {
            return case.mask.clone();
        }
        let mut entropies: Vec<f64> = counted.iter().map(|token| token.entropy).collect();
        entropies.sort_by(f64::total_cmp);
        let least = quantile(&entropies, 1.0 - share);
        let tolerance = Tolerance { dtype: dtype.arithmetic(), factor: 1.0 };
        let bounds = counted.iter().map(|token| tolerance.bound(token.number(), self.vocabulary));
        let undecided = UNDECIDED + 2.0 * bounds.fold(0.0, f64::max);
        self.open = entropies.iter().any(|entropy| (entropy - least).abs() <= undecided);
        let counts = |token: &Option<Distribution>| {
            token.as_ref().is_some_and(|token| token.entropy >= least)
        };
        self.tokens.map(counts)
    }
}

/// The quantile of sorted numbers, interpolated linearly.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// What the definition gives: the loss and the entropy.
pub(super) fn outputs(case: &EntropyBonusCase, options: &Options, dtype: Dtype) -> Vec<Expected> {
    let batch = Batch::of(case, options, dtype);
    let [loss, entropy] = match &batch.weights {
        _ if batch.open => [Number::OPEN; 2],
        None if options.empty_mask == EmptyMask::Zero => [Number::new(0.0, 0.0); 2],
        None => [Number::NAN; 2],
        Some(weights) => {
            let terms = batch.tokens.iter().zip(weights).filter_map(|(token, weight)| {
                let Number { value, scale, .. } = token.as_ref()?.number();
                Some(Scaled { value, scale } * *weight)
            });
            let total = Scaled::sum(terms);
            [total * -options.coefficient, total]
                .map(|total| Number { slack: COUNT * total.value.abs(), ..total.into() })
        }
    };
    let field = |field, number| {
        let numbers = ArrayD::from_elem(IxDyn(&[]), number);
        Expected { field, numbers, terms: batch.vocabulary }
    };
    vec![field("loss", loss), field("entropy", entropy)]
}

/// What the definition gives for the gradient of `factor` times the entropy.
pub(super) fn gradient(
    case: &EntropyBonusCase,
    options: &Options,
    dtype: Dtype,
    factor: f64,
) -> Vec<Expected> {
    let batch = Batch::of(case, options, dtype);
    let mut numbers = Array3::from_elem(case.logits.dim(), Number::new(0.0, 0.0));
    if batch.weights.is_none() && options.empty_mask != EmptyMask::Zero {
        numbers.fill(Number::ANYTHING);
    }
    let weights = batch.weights.unwrap_or_else(|| Array2::zeros(case.mask.dim()));
    for ((row, token), distribution) in batch.tokens.indexed_iter() {
        let Some(distribution) = distribution else { continue };
        let by = factor * weights[[row, token]] / options.temperature;
        for entry in 0..batch.vocabulary {
            let Number { value, scale, .. } = distribution.slope(entry);
            let slope = Scaled { value, scale } * by;
            let slack = COUNT * slope.value.abs();
            let number = Number { slack, ..slope.into() };
            numbers[[row, token, entry]] = if batch.open { Number::OPEN } else { number };
        }
    }
    let (field, terms) = ("grad_logits", batch.vocabulary);
    vec![Expected { field, numbers: numbers.into_dyn(), terms }]
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, arr2, arr3};

    use super::*;
    use shakedown_core::numeric::aggregate::Aggregate;

    fn entropy(case: &EntropyBonusCase, options: &Options) -> f64 {
        outputs(case, options, Dtype::F64)[1].numbers[[]].value
    }

    /// Tokens of these margins between two logits, in one row.
    fn margins(margins: &[f64]) -> EntropyBonusCase {
        let shape = (1, margins.len(), 2);
        let logit = |(_, token, entry)| if entry == 0 { margins[token] } else { 0.0 };
        let mask = Array2::from_elem((1, margins.len()), true);
        EntropyBonusCase { logits: Array3::from_shape_fn(shape, logit), mask }
    }

    #[test]
    fn masked_tokens_are_in_no_sum_and_in_no_count() {
        let logits = arr3(&[[[2.0, 2.0], [50.0, 0.0]]]);
        let case = EntropyBonusCase { logits, mask: arr2(&[[true, false]]) };
        assert!((entropy(&case, &Options::default()) - 2_f64.ln()).abs() < 1e-15);
        let slopes = gradient(&case, &Options::default(), Dtype::F64, 1.0);
        assert!(slopes[0].numbers.iter().all(|slope| slope.value.abs() < 1e-15));
    }

    #[test]
    fn the_less_sure_half_of_the_tokens_is_a_mean_of_its_own() {
        let case = margins(&[0.0, 8.0, 1.0, 9.0]);
        let half = Options { top_share: Some(0.5), ..Options::default() };
        let expected = entropy(&margins(&[0.0, 1.0]), &Options::default());
        assert!((entropy(&case, &half) - expected).abs() < 1e-15);
        let slopes = gradient(&case, &half, Dtype::F64, 1.0);
        assert_eq!(slopes[0].numbers[[0, 1, 0]].value, 0.0);
        assert!(slopes[0].numbers[[0, 2, 0]].value < 0.0);
    }

    #[test]
    fn a_token_at_the_quantile_leaves_all_open() {
        let half = Options { top_share: Some(0.5), ..Options::default() };
        assert!(Batch::of(&margins(&[0.0, 8.0, 1.0]), &half, Dtype::F64).open);
        assert!(Batch::of(&margins(&[1.0, 1.0]), &half, Dtype::F64).open);
        let all = Options { top_share: Some(1.0), ..half };
        assert!(!Batch::of(&margins(&[1.0, 1.0]), &all, Dtype::F64).open);
    }

    #[test]
    fn the_loss_is_the_entropy_times_the_coefficient_and_its_gradient_too() {
        let case = margins(&[1.0, 3.0]);
        let options = Options {
            coefficient: 0.5,
            temperature: 0.7,
            aggregate: Aggregate::SeqMeanTokenSumNorm,
            norm_length: Some(5),
            ..Options::default()
        };
        let found = outputs(&case, &options, Dtype::F64);
        assert_eq!(found[0].numbers[[]].value, -0.5 * found[1].numbers[[]].value);
        let slope = gradient(&case, &options, Dtype::F64, 1.0)[0].numbers[[0, 1, 0]].value;
        let at = |step: f64| entropy(&margins(&[1.0, 3.0 + step]), &options);
        assert!((slope - (at(1e-6) - at(-1e-6)) / 2e-6).abs() < 1e-9);
    }
}
