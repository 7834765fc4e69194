//! `token-rewards` on tensors: one score at the end of a row, a penalty at each of its tokens.

use shakedown::author::Component;
use shakedown::author::aggregate::Aggregate;
use shakedown::contracts::token_rewards::{
    KlEstimator, Options, Place, Report, TokenRewards, TokenRewardsCase, TokenRewardsOutput,
    Unfinished,
};
use shakedown_tch::{Tensors, tch};
use tch::{Kind, Tensor};

use crate::arithmetic;
use crate::masked::{Reduction, under};

/// The function below as a component.
pub fn component(options: Options) -> impl Component<TokenRewards> {
    tch::<TokenRewards>(move |case| token_rewards(case, &options))
}

/// The reward of each token, and the divergence that is reported.
///
/// # Shapes
/// `N` rows of `T` tokens: scores and finished `[N]`; log-probabilities of both policies and mask
/// `[N, T]`, as are the rewards, 0 where masked; the divergence is a scalar.
///
/// # Units
/// Rewards in units of the score, the divergence in nats. Half formats are answered in f32.
///
/// # Errors
/// Panics without a token with `empty_mask: refuse`.
///
/// # Source
/// Stiennon et al. 2020; OpenRLHF `compute_reward`, verl `apply_kl_penalty`, and TRL PPO for
/// `place: after-last`.
pub fn token_rewards(
    case: &TokenRewardsCase<Tensors>,
    options: &Options,
) -> TokenRewardsOutput<Tensors> {
    let kind = arithmetic(case.log_probs.kind());
    let counted = |numbers: &Tensor| under(&case.mask, &numbers.to_kind(kind));
    let gap = counted(&case.log_probs) - counted(&case.ref_log_probs);
    let kl = divergence(&gap, options);
    let report = Reduction {
        aggregate: match options.report {
            Report::TokenMean => Aggregate::TokenMean,
            Report::RowMean => Aggregate::SeqMeanTokenMean,
            Report::RowSum => Aggregate::SeqMeanTokenSum,
        },
        norm_length: None,
        empty_rows: options.empty_rows,
        empty_mask: options.empty_mask,
    };
    let reported = report.of(&kl, &case.mask);
    let scores = shaped(&case.scores.to_kind(kind), case.finished.as_ref(), options);
    let at = columns(&case.mask, options.place);
    let placed = under(&at, &scores.unsqueeze(1).expand_as(&kl));
    TokenRewardsOutput { rewards: placed - kl * options.beta, kl: Some(reported) }
}

fn divergence(gap: &Tensor, options: &Options) -> Tensor {
    let gap = match options.log_ratio_clamp {
        Some(limit) => gap.clamp(-limit, limit),
        None => gap.shallow_clone(),
    };
    let kl = match options.kl_estimator {
        KlEstimator::K1 => gap,
        KlEstimator::K2 => gap.square() / 2.0,
        // expm1, because exp(-d) - 1 has no digits left where d is small.
        KlEstimator::K3 => (-&gap).expm1() + gap,
        KlEstimator::Abs => gap.abs(),
    };
    match options.kl_clamp {
        Some([lo, hi]) => kl.clamp(lo, hi),
        None => kl,
    }
}

/// The score of each row, after what is done to those of unfinished ones, and after its clip.
fn shaped(scores: &Tensor, finished: Option<&Tensor>, options: &Options) -> Tensor {
    let p = options.penalty;
    let other = match options.unfinished {
        Unfinished::None => scores.shallow_clone(),
        Unfinished::Subtract => scores - p,
        Unfinished::Replace => scores.full_like(-p),
        Unfinished::Scale => scores * p,
    };
    let scores = match finished {
        Some(finished) => scores.where_self(finished, &other),
        None => scores.shallow_clone(),
    };
    match options.score_clip {
        Some([lo, hi]) => scores.clamp(lo, hi),
        None => scores,
    }
}

/// Where the score of each row stands: nowhere in a row without a token.
fn columns(mask: &Tensor, place: Place) -> Tensor {
    let width = mask.size()[1];
    let position = Tensor::arange(width, (Kind::Int64, mask.device()));
    // -1 in a row without a token.
    let last = position.where_scalarother(mask, -1_i64).amax([1], true);
    let column = match place {
        Place::Last => last.shallow_clone(),
        Place::AfterLast => (&last + 1_i64).clamp_max(width - 1),
    };
    position.eq_tensor(&column).logical_and(&last.ge(0))
}
