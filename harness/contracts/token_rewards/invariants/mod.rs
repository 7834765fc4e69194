//! What must hold of `token-rewards`: the laws that apply, and one file for each of its own.

use ndarray::Array2;

use crate::token_rewards::{Options, Place, TokenRewards, TokenRewardsCase};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<TokenRewards>> {
    let mut all =
        laws::universal_and(&[("finite", &["masked-after-the-arithmetic", "no-token-gives-nan"])]);
    all.extend([
        laws::oracle::law().catching(&[
            "kl-left-out",
            "half-is-missing",
            "clamped-after-the-coefficient",
            "log-ratio-clamp-ignored",
            "penalised-after-the-clip",
            "mean-of-rows-for-tokens",
            "mean-for-the-sum",
        ]),
        laws::row_permutation::law().catching(&[
            "kl-of-another-row",
            "score-of-another-row",
            "mask-transposed",
            "mask-of-the-first-row",
        ]),
        laws::row_split::law().catching(&["kl-of-another-row", "scores-centred"]),
        // A row that is full has room behind it once there is another column.
        laws::padding::law()
            .under(|options: &Options| options.place == Place::Last)
            .catching(&["score-in-the-last-column", "mean-over-padding"]),
        laws::masked_poison::law().catching(&["masked-after-the-arithmetic"]),
        laws::refuses::law(|options: &Options| options.empty_mask == EmptyMask::Refuse)
            .catching(&["epsilon-in-the-denominator"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    TokenRewards;
    one_place,
    total,
    token_local,
    penalty_sign,
    score_linear,
    masked_output,
    unfinished,
    empty_row,
    report_free_of_the_score,
}

/// The rounding of every reward; nothing is said of masked columns where anything may stand there.
fn rounding(probe: &mut Probe<'_, TokenRewards>) -> Array2<f64> {
    let bounds = probe.bounds("rewards");
    bounds.into_dimensionality().expect("rewards are [N, T]")
}

/// The rows that have a token, with the column of their score.
fn scored(case: &TokenRewardsCase, options: &Options) -> Result<Vec<(usize, usize)>, Stop> {
    let places = crate::token_rewards::places(case, options);
    let rows = places.into_iter().enumerate();
    let rows: Vec<(usize, usize)> = rows.filter_map(|(row, at)| Some((row, at?))).collect();
    if rows.is_empty() { Err(Stop::Vacuous) } else { Ok(rows) }
}
