//! Known wrong behaviours of `returns`: real bugs, and conventions mistaken for others.

use ndarray::Array2;

use super::{Options, Returns, ReturnsCase, ReturnsOutput, reference};
use shakedown_core::laws::faults::{masking, precision};
use shakedown_core::numeric::conventions::MaskedTokens;

type Fault = shakedown_core::contract::fault::Fault<Returns>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [masked_rewards(), discount_and_order(), gaps_and_rows(), other_sums()];
    let rounded = precision::inputs_in_half_precision(
        "plausible: autocast left on around the whole computation",
    );
    themes.into_iter().flatten().chain(masking::of_other_rows()).chain([rounded]).collect()
}

/// Rewards under the mask count, or end the return.
fn masked_rewards() -> Vec<Fault> {
    vec![
        Fault::new("return-reset-at-observation", "the return starts anew after a masked token")
            .seen("verl #7278, #7300")
            .under("{holes: true}")
            .gives(&[|case, options, _| {
                masked(
                    case,
                    |reward, ahead, kept| {
                        if kept { reward + options.gamma * ahead } else { 0.0 }
                    },
                )
            }]),
        Fault::new(
            "pad-rewards-in-the-return",
            "nothing is masked: rewards of pads count, and pads have returns",
        )
        .seen("trl #7024")
        .gives(&[|case, options, _| {
            carried(case, |reward, ahead, _| reward + options.gamma * ahead).into()
        }]),
        Fault::new("masked-penalty-in-the-return", "rewards of masked tokens count")
            .seen("slime #1372 (166441911)")
            .gives(&[
                |case, options, _| masked(case, |reward, ahead, _| reward + options.gamma * ahead),
                |case, options, _| {
                    masked(case, |reward, ahead, kept| {
                        reward + if kept { options.gamma * ahead } else { ahead }
                    })
                },
            ]),
    ]
}

/// The discount, the token's own reward and the order of the sum.
fn discount_and_order() -> Vec<Fault> {
    vec![
        Fault::new("gamma-not-applied", "the sum of the rewards ahead, without the discount")
            .seen("`gamma` is never passed on: a plain reversed `cumsum`")
            .under("{gamma: 0.9}")
            .as_if(&[|options| Options { gamma: 1.0, ..options }]),
        Fault::new("own-reward-discounted", "γ · (r + R) for r + γ · R")
            .seen("CleanRL-style loops with the discount outside the bracket")
            .under("{gamma: 0.9}")
            .gives(&[|case, options, _| {
                let passes = options.masked == MaskedTokens::Zero;
                masked(case, |reward, ahead, kept| {
                    let counted = if kept { reward + ahead } else { ahead };
                    if kept || passes { options.gamma * counted } else { counted }
                })
            }]),
        Fault::new(
            "own-reward-left-out",
            "the return of the next token, without the token's own reward",
        )
        .seen("trl #137 (8070ac041), shifted by one")
        .gives(&[|case, options, dtype| {
            let mut returns = reference::returns(case, options, dtype);
            for (at, returned) in returns.indexed_iter_mut() {
                *returned -= if case.mask[at] { case.rewards[at] } else { 0.0 };
            }
            returns.into()
        }]),
        Fault::new(
            "summed-from-the-start",
            "the discounted sum of the rewards so far, for those to come",
        )
        .seen("cumsum without the flip; OpenRLHF get_cumulative_returns flips")
        .gives(&[|case, options, dtype| {
            let mut turned = case.clone();
            turned.rewards.invert_axis(ndarray::Axis(1));
            turned.mask.invert_axis(ndarray::Axis(1));
            let mut returns = reference::returns(&turned, options, dtype);
            returns.invert_axis(ndarray::Axis(1));
            returns.as_standard_layout().into_owned().into()
        }]),
    ]
}

/// What happens at masked tokens and between rows.
fn gaps_and_rows() -> Vec<Fault> {
    vec![
        Fault::new(
            "time-passes-at-masked-tokens",
            "masked tokens are steps with reward 0, where they are declared to be none",
        )
        .seen("OpenRLHF's convention where verl's is declared")
        .under("{gamma: 0.9, holes: true}")
        .as_if(&[|options| Options { masked: MaskedTokens::Zero, ..options }]),
        Fault::new(
            "masked-tokens-skipped",
            "masked tokens are no steps, where time is declared to pass",
        )
        .seen("verl's convention where OpenRLHF's is declared")
        .under("{gamma: 0.9, holes: true, masked: zero}")
        .as_if(&[|options| Options { masked: MaskedTokens::Skip, ..options }]),
        Fault::new("carry-crosses-rows", "the running return is not reset between rows")
            .seen("packed batches without document boundaries; torchtune #2613 (b18312c7d)")
            .gives(&[|case, options, _| {
                let mut ahead = 0.0;
                let mut returns = Array2::zeros(case.rewards.dim());
                for row in (0..returns.nrows()).rev() {
                    for token in (0..returns.ncols()).rev().filter(|t| case.mask[[row, *t]]) {
                        ahead = case.rewards[[row, token]] + options.gamma * ahead;
                        returns[[row, token]] = ahead;
                    }
                }
                returns.into()
            }]),
        Fault::new(
            "masked-output-not-zeroed",
            "masked positions hold the running return where 0 is promised",
        )
        .seen("verl's GAE and OpenRLHF's, which do not mask again")
        .gives(&[|case, options, _| {
            let passes = options.masked == MaskedTokens::Zero;
            let step = |reward: f64, ahead: f64, kept: bool| match kept {
                true => reward + options.gamma * ahead,
                false if passes => options.gamma * ahead,
                false => ahead,
            };
            carried(case, step).into()
        }]),
    ]
}

/// Other sums than the discounted one.
fn other_sums() -> Vec<Fault> {
    vec![
        Fault::new("mean-of-the-rewards-ahead", "divided by the number of tokens ahead")
            .seen("a mean where a return is declared")
            .gives(&[|case, options, dtype| {
                let mut returns = reference::returns(case, options, dtype);
                for row in 0..returns.nrows() {
                    let mut count = 0.0;
                    for token in (0..returns.ncols()).rev().filter(|t| case.mask[[row, *t]]) {
                        count += 1.0;
                        returns[[row, token]] /= count;
                    }
                }
                returns.into()
            }]),
        Fault::new("rewards-clipped", "rewards are clipped to ±1 or ±10 before they are added up")
            .seen("Atari wrappers; reward clipping left on by default")
            .on(&[
                |case, _| case.rewards.mapv_inplace(|reward| reward.clamp(-1.0, 1.0)),
                |case, _| case.rewards.mapv_inplace(|reward| reward.clamp(-10.0, 10.0)),
            ]),
        Fault::new(
            "exponent-counts-from-the-start",
            "γ to the power of the position, not of the distance",
        )
        .seen("discounts = γ ** arange(T), multiplied before the flipped cumsum")
        .under("{gamma: 0.9}")
        .gives(&[|case, options, _| {
            let mut returns = Array2::zeros(case.rewards.dim());
            for row in 0..returns.nrows() {
                let mut ahead = 0.0;
                for token in (0..returns.ncols()).rev().filter(|t| case.mask[[row, *t]]) {
                    ahead += options.gamma.powi(token as i32) * case.rewards[[row, token]];
                    returns[[row, token]] = ahead;
                }
            }
            returns.into()
        }]),
    ]
}

/// What is carried from the end of each row to its start, at every position: a step takes the
/// reward, what was carried so far, and whether the token counts.
fn carried(case: &ReturnsCase, step: impl Fn(f64, f64, bool) -> f64) -> Array2<f64> {
    let mut carried = Array2::zeros(case.rewards.dim());
    for row in 0..carried.nrows() {
        let mut ahead = 0.0;
        for token in (0..carried.ncols()).rev() {
            ahead = step(case.rewards[[row, token]], ahead, case.mask[[row, token]]);
            carried[[row, token]] = ahead;
        }
    }
    carried
}

/// The same, 0 where the mask is false.
fn masked(case: &ReturnsCase, step: impl Fn(f64, f64, bool) -> f64) -> ReturnsOutput {
    let mut returns = carried(case, step);
    for (returned, kept) in returns.iter_mut().zip(&case.mask) {
        *returned = if *kept { *returned } else { 0.0 };
    }
    returns.into()
}
