//! The definition of `token-rewards` in plain f64, with the scale of every number.

use ndarray::{Array2, arr0};

use super::{KlEstimator, Options, Report, TokenRewardsCase, Unfinished, is_finished, places};
use shakedown_core::contract::coverage;
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::numeric::conventions::EmptyMask;
use shakedown_core::numeric::scaled::Scaled;
use shakedown_core::numeric::tolerance::{Expected, Number, outside};
use shakedown_core::value::place::Dtype;

/// What the definition gives: the rewards, and the divergence that is reported.
pub(super) fn token_rewards(
    case: &TokenRewardsCase,
    options: &Options,
    dtype: Dtype,
) -> Vec<Expected> {
    let kl = divergences(case, options, dtype);
    let rewards =
        Expected { field: "rewards", numbers: rewards(case, options, &kl).into_dyn(), terms: 1 };
    let report = report(case, options, &kl);
    vec![rewards, Expected { field: "kl", numbers: arr0(report).into_dyn(), terms: 1 }]
}

fn rewards(
    case: &TokenRewardsCase,
    options: &Options,
    kl: &Array2<Option<Scaled>>,
) -> Array2<Number> {
    let paid = |kl: &Option<Scaled>| kl.map(|kl| -(kl * Scaled::rounded(options.beta)));
    let mut numbers = kl.map(|kl| paid(kl).map_or(outside(options.masked_output), Number::from));
    for (row, place) in places(case, options).into_iter().enumerate() {
        let Some(token) = place else { continue };
        let score = shaped(case, options, row);
        let reward = paid(&kl[[row, token]]).map_or(score, |paid| paid + score);
        numbers[[row, token]] = reward.into();
    }
    numbers
}

/// The divergence of each token that counts, clamped as declared, without its weight.
pub(super) fn divergences(
    case: &TokenRewardsCase,
    options: &Options,
    dtype: Dtype,
) -> Array2<Option<Scaled>> {
    Array2::from_shape_fn(case.mask.dim(), |at| {
        case.mask[at]
            .then(|| divergence(case.log_probs[at], case.ref_log_probs[at], options, dtype))
    })
}

/// The divergence of one token. The rounding of the log-ratio is that of both its terms.
pub(super) fn divergence(log_prob: f64, reference: f64, options: &Options, dtype: Dtype) -> Scaled {
    let u = dtype.arithmetic().unit_roundoff();
    let d = Scaled { value: log_prob - reference, scale: log_prob.abs() + reference.abs() };
    let d = match options.log_ratio_clamp {
        Some(c) => clamped(d, [-c, c], u),
        None => d,
    };
    let kl = match options.kl_estimator {
        KlEstimator::K1 => d,
        KlEstimator::K2 => d * 0.5 * d,
        KlEstimator::K3 => (-d).exp_m1() + d,
        KlEstimator::Abs => d.abs(),
    };
    options.kl_clamp.map_or(kl, |bounds| clamped(kl, bounds, u))
}

/// A number held within bounds. Beyond one it is the bound, unless rounding decides on which side
/// it is.
fn clamped(free: Scaled, [lo, hi]: [f64; 2], u: f64) -> Scaled {
    let bound = free.value.clamp(lo, hi);
    if bound == free.value {
        return free;
    }
    coverage::event(&["clamped", if free.value > hi { "above" } else { "below" }]);
    let near = (free.value - bound).abs() <= 16.0 * u * (free.scale + bound.abs());
    Scaled { value: bound, scale: bound.abs() + if near { free.scale } else { 0.0 } }
}

/// The score of a row, after what is done to that of an unfinished one, and after its clip.
pub(super) fn shaped(case: &TokenRewardsCase, options: &Options, row: usize) -> Scaled {
    let score = Scaled::exact(case.scores[row]);
    let penalty = Scaled::rounded(options.penalty);
    let score = match options.unfinished {
        _ if is_finished(case.finished.as_ref(), row) => score,
        Unfinished::None => score,
        Unfinished::Subtract => score - penalty,
        Unfinished::Replace => -penalty,
        Unfinished::Scale => score * penalty,
    };
    let Some([lo, hi]) = options.score_clip else { return score };
    let clipped = score.value.clamp(lo, hi);
    let scale = if clipped == score.value { score.scale } else { score.scale + clipped.abs() };
    Scaled { value: clipped, scale }
}

fn report(case: &TokenRewardsCase, options: &Options, kl: &Array2<Option<Scaled>>) -> Number {
    let Some(weights) = aggregate(options.report).weights(&case.mask, options.empty_rows, None)
    else {
        return match options.empty_mask {
            EmptyMask::Zero => Number::new(0.0, 0.0),
            EmptyMask::Nan => Number::NAN,
            EmptyMask::Refuse | EmptyMask::Avoid => Number::ANYTHING,
        };
    };
    let terms = kl.iter().zip(&weights).filter_map(|(kl, weight)| {
        let kl = (*kl)?;
        Some(kl * Scaled::rounded(*weight))
    });
    Scaled::sum(terms).into()
}

/// What the report does to the divergences of tokens.
pub(super) fn aggregate(report: Report) -> Aggregate {
    match report {
        Report::TokenMean => Aggregate::TokenMean,
        Report::RowMean => Aggregate::SeqMeanTokenMean,
        Report::RowSum => Aggregate::SeqMeanTokenSum,
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{arr1, arr2};

    use super::*;
    use crate::token_rewards::Place;
    use shakedown_core::numeric::conventions::EmptyRows;

    /// Two rows of three columns, the second with one token: log-ratios of 1, -1, 2 and -3.
    fn case(finished: Option<[bool; 2]>) -> TokenRewardsCase {
        TokenRewardsCase {
            scores: arr1(&[4.0, -2.0]),
            log_probs: arr2(&[[-1.0, -2.0, -1.0], [-4.0, -1.0, -1.0]]),
            ref_log_probs: arr2(&[[-2.0, -1.0, -3.0], [-1.0, -7.0, 0.0]]),
            mask: arr2(&[[true, true, true], [true, false, false]]),
            finished: finished.map(|finished| arr1(&finished)),
        }
    }

    fn values(options: &Options, finished: Option<[bool; 2]>) -> (Vec<f64>, f64) {
        let expected = token_rewards(&case(finished), options, Dtype::F64);
        let all: Vec<f64> = expected[0].numbers.iter().map(|number| number.value).collect();
        (all, expected[1].numbers.first().unwrap().value)
    }

    fn options() -> Options {
        Options { beta: 0.5, ..Options::default() }
    }

    #[test]
    fn every_token_pays_and_the_last_one_has_the_score() {
        let (rewards, kl) = values(&options(), None);
        assert_eq!(rewards, [-0.5, 0.5, 3.0, -0.5, 0.0, 0.0]);
        assert_eq!(kl, -0.25);
    }

    #[test]
    fn after_the_last_token_only_where_there_is_room() {
        let options = Options { place: Place::AfterLast, ..options() };
        assert_eq!(values(&options, None).0, [-0.5, 0.5, 3.0, 1.5, -2.0, 0.0]);
    }

    #[test]
    fn an_unfinished_row_is_dealt_with_before_the_clip() {
        let finished = Some([false, true]);
        let score = |unfinished, score_clip| {
            let options = Options { beta: 0.0, unfinished, penalty: 3.0, score_clip, ..options() };
            values(&options, finished).0[2]
        };
        assert_eq!(score(Unfinished::Subtract, None), 1.0);
        assert_eq!(score(Unfinished::Replace, None), -3.0);
        assert_eq!(score(Unfinished::Scale, None), 12.0);
        assert_eq!(score(Unfinished::Subtract, Some([-2.0, 2.0])), 1.0);
        assert_eq!(score(Unfinished::Scale, Some([-2.0, 2.0])), 2.0);
    }

    #[test]
    fn what_is_reported_is_a_mean_of_tokens_or_rows() {
        let kl = |report| values(&Options { report, ..options() }, None).1;
        assert_eq!(kl(Report::TokenMean), -0.25);
        assert!((kl(Report::RowMean) - (2.0 / 3.0 - 3.0) / 2.0).abs() < 1e-15);
        assert_eq!(kl(Report::RowSum), -0.5);
        let mut empty = case(None);
        empty.mask.row_mut(1).fill(false);
        let options = Options { report: Report::RowSum, ..options() };
        let kl = |options: &Options| {
            token_rewards(&empty, options, Dtype::F64)[1].numbers.first().unwrap().value
        };
        assert_eq!(kl(&options), 2.0);
        assert_eq!(kl(&Options { empty_rows: EmptyRows::Count, ..options }), 1.0);
    }

    #[test]
    fn clamps_stand_before_the_weight() {
        let clamped = Options { kl_clamp: Some([-1.0, 1.0]), ..options() };
        assert_eq!(values(&clamped, None).0[..3], [-0.5, 0.5, 3.5]);
        let clamped =
            Options { log_ratio_clamp: Some(1.0), kl_estimator: KlEstimator::K2, ..options() };
        assert_eq!(values(&clamped, None).0[..3], [-0.25, -0.25, 3.75]);
    }
}
