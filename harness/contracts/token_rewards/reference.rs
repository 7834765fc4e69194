//! The reference implementation of `token-rewards`, as a trainer would write it.

use ndarray::{Array2, arr0};

use super::{
    KlEstimator, Options, Place, Report, TokenRewardsCase, TokenRewardsOutput, Unfinished, is_empty,
};
use shakedown_core::numeric::conventions::{EmptyMask, EmptyRows};
use shakedown_core::numeric::terms::term;
use shakedown_core::value::place::Dtype;

/// The rewards and the reported divergence, computed in the arithmetic of the dtype.
pub(super) fn token_rewards(
    case: &TokenRewardsCase,
    options: &Options,
    dtype: Dtype,
) -> TokenRewardsOutput {
    let kl = divergences(case, options, dtype);
    let scores = shaped(case, options, dtype);
    let rewards = rewards(&kl, &scores, &columns(case, options), options, dtype);
    TokenRewardsOutput { rewards, kl: Some(arr0(report(&kl, case, options, dtype))) }
}

/// The divergence of each token, 0 under the mask.
pub(super) fn divergences(case: &TokenRewardsCase, options: &Options, dtype: Dtype) -> Array2<f64> {
    let f = |x: f64| dtype.arithmetic().round(x);
    let c = f(options.log_ratio_clamp.unwrap_or(f64::INFINITY));
    let [lo, hi] = options.kl_clamp.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]).map(f);
    let mut kl = Array2::zeros(case.mask.dim());
    for (at, _) in case.mask.indexed_iter().filter(|(_, kept)| **kept) {
        let d = term("log-ratio", f(case.log_probs[at] - case.ref_log_probs[at])).clamp(-c, c);
        let estimate = match options.kl_estimator {
            KlEstimator::K1 => d,
            KlEstimator::K2 => f(0.5 * f(d * d)),
            KlEstimator::K3 => f(f(f((-d).exp()) - 1.0) + d),
            KlEstimator::Abs => d.abs(),
        };
        kl[at] = term("KL estimate", estimate).clamp(lo, hi);
    }
    kl
}

/// The score of each row: those of unfinished rows are dealt with, then all are clipped.
pub(super) fn shaped(case: &TokenRewardsCase, options: &Options, dtype: Dtype) -> Vec<f64> {
    let f = |x: f64| dtype.arithmetic().round(x);
    let penalty = f(options.penalty);
    let [lo, hi] = options.score_clip.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]).map(f);
    let mut scores = case.scores.to_vec();
    if let Some(finished) = &case.finished {
        for (score, _) in scores.iter_mut().zip(finished).filter(|(_, finished)| !**finished) {
            *score = match options.unfinished {
                Unfinished::None => *score,
                Unfinished::Subtract => f(*score - penalty),
                Unfinished::Replace => -penalty,
                Unfinished::Scale => f(*score * penalty),
            };
        }
    }
    scores.into_iter().map(|score| score.clamp(lo, hi)).collect()
}

/// The column of each score.
pub(super) fn columns(case: &TokenRewardsCase, options: &Options) -> Vec<Option<usize>> {
    let mut columns = Vec::new();
    for row in case.mask.rows() {
        let mut tokens = (0..row.len()).filter(|token| row[*token]);
        columns.push(tokens.next_back().map(|last| match options.place {
            Place::Last => last,
            Place::AfterLast => (last + 1).min(row.len() - 1),
        }));
    }
    columns
}

/// What each token gets, of its divergence and of its row's score.
pub(super) fn rewards(
    kl: &Array2<f64>,
    scores: &[f64],
    columns: &[Option<usize>],
    options: &Options,
    dtype: Dtype,
) -> Array2<f64> {
    let f = |x: f64| dtype.arithmetic().round(x);
    let beta = f(options.beta);
    let mut rewards = kl.mapv(|kl| term("KL penalty", f(-beta * kl)));
    for ((row, score), column) in scores.iter().enumerate().zip(columns) {
        if let Some(column) = column {
            rewards[[row, *column]] = f(rewards[[row, *column]] + term("score", *score));
        }
    }
    rewards
}

/// The divergence that is reported.
pub(super) fn report(
    kl: &Array2<f64>,
    case: &TokenRewardsCase,
    options: &Options,
    dtype: Dtype,
) -> f64 {
    let f = |x: f64| dtype.arithmetic().round(x);
    if is_empty(case) {
        assert!(options.empty_mask != EmptyMask::Refuse, "no token counts");
        return if options.empty_mask == EmptyMask::Nan { f64::NAN } else { 0.0 };
    }
    let mut rows = Vec::new();
    for (kl, mask) in kl.rows().into_iter().zip(case.mask.rows()) {
        let sum = kl.iter().fold(0.0, |sum, kl| f(sum + kl));
        rows.push((sum, mask.iter().filter(|kept| **kept).count() as f64));
    }
    let tokens: f64 = rows.iter().map(|(_, tokens)| tokens).sum();
    if options.empty_rows == EmptyRows::Skip {
        rows.retain(|(_, tokens)| *tokens > 0.0);
    }
    let (mut total, count) = (0.0, rows.len() as f64);
    for (sum, tokens) in rows {
        let of_row = if options.report == Report::RowMean { f(sum / tokens.max(1.0)) } else { sum };
        total = f(total + of_row);
    }
    f(total / if options.report == Report::TokenMean { tokens } else { count })
}
