//! Known wrong behaviours of `returns`: real bugs, and conventions mistaken for others.

use ndarray::Array2;

use super::{Options, Returns, ReturnsCase, ReturnsOutput, reference};
use crate::contract::fault::{Behaviour, Fault, Function, misbehaviours};
use crate::numeric::conventions::MaskedTokens;
use crate::value::place::Dtype;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault<Returns>> {
    let fault = |id, summary, source, options, variants: &'static [Function<Returns>]| Fault {
        id,
        summary,
        source,
        options,
        behaviour: Behaviour::Gives(variants),
    };
    let mut faults = vec![
        fault(
            "return-reset-at-observation",
            "the return starts anew after a masked token",
            "verl #7278, #7300",
            "{holes: true}",
            &[|case, options, _| {
                masked(
                    case,
                    |reward, ahead, kept| {
                        if kept { reward + options.gamma * ahead } else { 0.0 }
                    },
                )
            }],
        ),
        fault(
            "pad-rewards-in-the-return",
            "nothing is masked: rewards of pads count, and pads have returns",
            "trl #7024",
            "{}",
            &[|case, options, _| {
                carried(case, |reward, ahead, _| reward + options.gamma * ahead).into()
            }],
        ),
        fault(
            "masked-penalty-in-the-return",
            "rewards of masked tokens count",
            "slime #1372 (166441911)",
            "{}",
            &[
                |case, options, _| masked(case, |reward, ahead, _| reward + options.gamma * ahead),
                |case, options, _| {
                    masked(case, |reward, ahead, kept| {
                        reward + if kept { options.gamma * ahead } else { ahead }
                    })
                },
            ],
        ),
        fault(
            "gamma-not-applied",
            "the sum of the rewards ahead, without the discount",
            "`gamma` is never passed on: a plain reversed `cumsum`",
            "{gamma: 0.9}",
            &[|case, options, dtype| {
                let options = Options { gamma: 1.0, ..options.clone() };
                reference::returns(case, &options, dtype).into()
            }],
        ),
        fault(
            "own-reward-discounted",
            "γ · (r + R) for r + γ · R",
            "CleanRL-style loops with the discount outside the bracket",
            "{gamma: 0.9}",
            &[|case, options, _| {
                let passes = options.masked == MaskedTokens::Zero;
                masked(case, |reward, ahead, kept| {
                    let counted = if kept { reward + ahead } else { ahead };
                    if kept || passes { options.gamma * counted } else { counted }
                })
            }],
        ),
        fault(
            "own-reward-left-out",
            "the return of the next token, without the token's own reward",
            "trl #137 (8070ac041), shifted by one",
            "{}",
            &[|case, options, dtype| {
                let mut returns = reference::returns(case, options, dtype);
                for (at, returned) in returns.indexed_iter_mut() {
                    *returned -= if case.mask[at] { case.rewards[at] } else { 0.0 };
                }
                returns.into()
            }],
        ),
        fault(
            "summed-from-the-start",
            "the discounted sum of the rewards so far, for those to come",
            "cumsum without the flip; OpenRLHF get_cumulative_returns flips",
            "{}",
            &[|case, options, dtype| {
                let mut turned = case.clone();
                turned.rewards.invert_axis(ndarray::Axis(1));
                turned.mask.invert_axis(ndarray::Axis(1));
                let mut returns = reference::returns(&turned, options, dtype);
                returns.invert_axis(ndarray::Axis(1));
                returns.as_standard_layout().into_owned().into()
            }],
        ),
        fault(
            "time-passes-at-masked-tokens",
            "masked tokens are steps with reward 0, where they are declared to be none",
            "OpenRLHF's convention where verl's is declared",
            "{gamma: 0.9, holes: true}",
            &[|case, options, dtype| {
                let options = Options { masked: MaskedTokens::Zero, ..options.clone() };
                reference::returns(case, &options, dtype).into()
            }],
        ),
        fault(
            "masked-tokens-skipped",
            "masked tokens are no steps, where time is declared to pass",
            "verl's convention where OpenRLHF's is declared",
            "{gamma: 0.9, holes: true, masked: zero}",
            &[|case, options, dtype| {
                let options = Options { masked: MaskedTokens::Skip, ..options.clone() };
                reference::returns(case, &options, dtype).into()
            }],
        ),
        fault(
            "carry-crosses-rows",
            "the running return is not reset between rows",
            "packed batches without document boundaries; torchtune #2613 (b18312c7d)",
            "{}",
            &[|case, options, _| {
                let mut ahead = 0.0;
                let mut returns = Array2::zeros(case.rewards.dim());
                for row in (0..returns.nrows()).rev() {
                    for token in (0..returns.ncols()).rev().filter(|t| case.mask[[row, *t]]) {
                        ahead = case.rewards[[row, token]] + options.gamma * ahead;
                        returns[[row, token]] = ahead;
                    }
                }
                returns.into()
            }],
        ),
        fault(
            "masked-output-not-zeroed",
            "masked positions hold the running return where 0 is promised",
            "verl's GAE and OpenRLHF's, which do not mask again",
            "{}",
            &[|case, options, _| {
                let passes = options.masked == MaskedTokens::Zero;
                let step = |reward: f64, ahead: f64, kept: bool| match kept {
                    true => reward + options.gamma * ahead,
                    false if passes => options.gamma * ahead,
                    false => ahead,
                };
                carried(case, step).into()
            }],
        ),
        fault(
            "mean-of-the-rewards-ahead",
            "divided by the number of tokens ahead",
            "a mean where a return is declared",
            "{}",
            &[|case, options, dtype| {
                let mut returns = reference::returns(case, options, dtype);
                for row in 0..returns.nrows() {
                    let mut count = 0.0;
                    for token in (0..returns.ncols()).rev().filter(|t| case.mask[[row, *t]]) {
                        count += 1.0;
                        returns[[row, token]] /= count;
                    }
                }
                returns.into()
            }],
        ),
        fault(
            "rewards-clipped",
            "rewards are clipped to ±1 or ±10 before they are added up",
            "Atari wrappers; reward clipping left on by default",
            "{}",
            &[
                |case, options, dtype| clipped(case, options, dtype, 1.0),
                |case, options, dtype| clipped(case, options, dtype, 10.0),
            ],
        ),
        fault(
            "exponent-counts-from-the-start",
            "γ to the power of the position, not of the distance",
            "discounts = γ ** arange(T), multiplied before the flipped cumsum",
            "{gamma: 0.9}",
            &[|case, options, _| {
                let mut returns = Array2::zeros(case.rewards.dim());
                for row in 0..returns.nrows() {
                    let mut ahead = 0.0;
                    for token in (0..returns.ncols()).rev().filter(|t| case.mask[[row, *t]]) {
                        ahead += options.gamma.powi(token as i32) * case.rewards[[row, token]];
                        returns[[row, token]] = ahead;
                    }
                }
                returns.into()
            }],
        ),
    ];
    faults.extend(misbehaviours());
    faults
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

/// The right returns of clipped rewards.
fn clipped(case: &ReturnsCase, options: &Options, dtype: Dtype, most: f64) -> ReturnsOutput {
    let rewards = case.rewards.mapv(|reward| reward.clamp(-most, most));
    reference::returns(&ReturnsCase { rewards, ..case.clone() }, options, dtype).into()
}
