//! Known wrong behaviours of `length-penalty`: real bugs, and conventions mistaken for others.

use std::f64::consts::PI;

use super::{LengthPenalty, LengthPenaltyCase, LengthPenaltyOutput, Options, Shape, reference};
use crate::contract::fault::{Behaviour, Fault, Function, misbehaviours};
use crate::value::place::Dtype;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault<LengthPenalty>> {
    let fault = |id, summary, source, options, variants: &'static [Function<LengthPenalty>]| {
        Fault { id, summary, source, options, behaviour: Behaviour::Gives(variants) }
    };
    let mut faults = vec![
        fault(
            "length-is-the-span-of-the-mask",
            "tool tokens in the middle count: the length is some share too long",
            "OpenRLHF #1243, #1252, #1255: last − first + 1 for Σm, 12 for 9",
            "{}",
            &[
                |case, options, dtype| counted(case, options, dtype, |n, _| n + n / 3),
                |case, options, dtype| counted(case, options, dtype, |n, _| n + n / 2),
                |case, options, dtype| counted(case, options, dtype, |n, _| 2 * n),
            ],
        ),
        fault(
            "length-of-the-padded-row",
            "every completion is as long as the longest of the batch",
            "plausible: `shape[1]` for the sum of the mask",
            "{}",
            &[|case, options, dtype| {
                let longest = case.lengths.iter().copied().max().unwrap_or(0);
                counted(case, options, dtype, |_, _| longest)
            }],
        ),
        fault(
            "left-in-the-order-by-length",
            "completions are sorted by length, and their rewards not put back in their order",
            "verl #1943, #1440: outputs left in the order by length",
            "{}",
            &[|case, options, dtype| {
                let mut lengths = case.lengths.to_vec();
                lengths.sort_unstable();
                let sorted = LengthPenaltyCase { lengths: lengths.into() };
                reference::length_penalty(&sorted, options, dtype).into()
            }],
        ),
        fault(
            "lengths-in-bf16",
            "lengths are rounded to the eight bits of bf16",
            "plausible: lengths cast to the format of the rewards",
            "{max_length: 1000, buffer: 250}",
            &[|case, options, dtype| {
                counted(case, options, dtype, |n, _| Dtype::Bf16.round(n as f64) as i64)
            }],
        ),
        fault(
            "last-token-not-counted",
            "the length is one too short",
            "trlx #401 (a369dad): the end-of-sequence token is left out",
            "{}",
            &[|case, options, dtype| counted(case, options, dtype, |n, _| (n - 1).max(0))],
        ),
        fault(
            "one-token-too-many",
            "the length is one too long",
            "plausible: a start token counted in",
            "{}",
            &[|case, options, dtype| counted(case, options, dtype, |n, _| n + 1)],
        ),
        fault(
            "line-not-bounded",
            "the line goes on beyond the limit, where a bound is declared",
            "verl's DAPO manager, where TRL's convention is declared",
            "{}",
            &[|case, options, dtype| {
                let shape = Shape::LinearUnbounded;
                shaped(case, options, dtype, shape, Shape::LinearOverlong)
            }],
        ),
        fault(
            "line-bounded",
            "-1 beyond the limit, where the line goes on",
            "TRL's convention where verl's is declared",
            "{shape: linear-unbounded}",
            &[|case, options, dtype| {
                let shape = Shape::LinearOverlong;
                shaped(case, options, dtype, shape, Shape::LinearUnbounded)
            }],
        ),
        fault(
            "line-starts-at-the-limit",
            "the buffer lies behind the limit, not before it",
            "plausible: `max_length` taken for the length without penalty",
            "{}",
            &[|case, options, dtype| {
                counted(case, options, dtype, |n, options| n - options.buffer)
            }],
        ),
        fault(
            "line-over-the-limit",
            "(L − C − n)/L for (L − C − n)/C: a jump at the limit",
            "plausible: divided by the wrong length",
            "{}",
            &[|case, options, _| linear(case, options, |over, o| -over / o.max_length as f64)],
        ),
        fault(
            "whole-steps-only",
            "the quotient is that of integers, rounded down",
            "plausible: `//` for `/`",
            "{}",
            &[|case, options, _| {
                linear(case, options, |over, o| (-over / o.buffer as f64).floor())
            }],
        ),
        fault(
            "whole-steps-towards-zero",
            "the quotient is that of integers, truncated",
            "plausible: integer tensors divided with rounding_mode=\"trunc\"",
            "{}",
            &[|case, options, _| {
                linear(case, options, |over, o| (-over / o.buffer as f64).trunc())
            }],
        ),
        fault(
            "beyond-is-free",
            "nothing is taken off beyond the limit",
            "plausible: a branch for the buffer and none for what is longer",
            "{}",
            &[|case, options, dtype| {
                replaced(
                    case,
                    options,
                    dtype,
                    |n, o, right| if n > o.max_length { 0.0 } else { right },
                )
            }],
        ),
        fault(
            "sign-lost",
            "the penalty is added where it should be taken off",
            "plausible: a penalty given as a magnitude",
            "{}",
            &[|case, options, dtype| replaced(case, options, dtype, |_, _, right| -right)],
        ),
        fault(
            "factor-not-applied",
            "the factor has no effect",
            "an option without effect",
            "{factor: 0.5}",
            &[|case, options, dtype| {
                reference::length_penalty(case, &Options { factor: 1.0, ..options.clone() }, dtype)
                    .into()
            }],
        ),
        fault(
            "limit-is-too-long",
            "L tokens are punished like L + 1",
            "plausible: `<` for `<=`",
            "{shape: step}",
            &[|case, options, dtype| {
                replaced(
                    case,
                    options,
                    dtype,
                    |n, o, right| {
                        if n == o.max_length { -o.factor } else { right }
                    },
                )
            }],
        ),
        fault(
            "step-at-the-buffer",
            "the step stands where the buffer begins",
            "plausible: the threshold of the linear shapes",
            "{shape: step}",
            &[|case, options, dtype| {
                counted(case, options, dtype, |n, options| n + options.buffer)
            }],
        ),
        fault(
            "division-by-no-buffer",
            "without a buffer L tokens give 0/0",
            "plausible: verl asserts a buffer, its ports do not",
            "{buffer: 0}",
            &[|case, options, dtype| {
                replaced(case, options, dtype, |n, o, right| {
                    let undefined = o.buffer == 0 && n == o.max_length;
                    if undefined { f64::NAN } else { right }
                })
            }],
        ),
        fault(
            "cosine-beyond-the-limit",
            "beyond the limit the cosine rises again",
            "TRL get_cosine_scaled_reward, which meets no longer ones",
            "{shape: cosine}",
            &[|case, options, _| cosine(case, options, |share| 0.5 + 0.5 * (PI * share).cos())],
        ),
        fault(
            "cosine-ends-exchanged",
            "`min` for an empty completion and `max` at the limit",
            "TRL's ends for wrong answers, used for right ones",
            "{shape: cosine}",
            &[|case, options, dtype| {
                let exchanged = Options { min: options.max, max: options.min, ..options.clone() };
                reference::length_penalty(case, &exchanged, dtype).into()
            }],
        ),
        fault(
            "cosine-of-half-the-limit",
            "the cosine ends half way: a quarter of a turn for half of one",
            "plausible: cos(π/2 · n/L) for ½(1 + cos(π · n/L))",
            "{shape: cosine}",
            &[|case, options, _| cosine(case, options, |share| (0.5 * PI * share.min(1.0)).cos())],
        ),
        fault(
            "cosine-is-a-line",
            "a line from `max` to `min` where a cosine is declared",
            "plausible: a simpler schedule under the same name",
            "{shape: cosine}",
            &[|case, options, _| cosine(case, options, |share| 1.0 - share.min(1.0))],
        ),
    ];
    faults.extend(misbehaviours());
    faults
}

/// The right penalty of other lengths.
fn counted(
    case: &LengthPenaltyCase,
    options: &Options,
    dtype: Dtype,
    length: impl Fn(i64, &Options) -> i64,
) -> LengthPenaltyOutput {
    let lengths = case.lengths.mapv(|n| length(n, options));
    reference::length_penalty(&LengthPenaltyCase { lengths }, options, dtype).into()
}

/// The right penalty in another shape, where `declared` is declared.
fn shaped(
    case: &LengthPenaltyCase,
    options: &Options,
    dtype: Dtype,
    shape: Shape,
    declared: Shape,
) -> LengthPenaltyOutput {
    let possible = options.shape == declared && options.buffer > 0;
    let shape = if possible { shape } else { options.shape };
    reference::length_penalty(case, &Options { shape, ..options.clone() }, dtype).into()
}

/// The right penalties, each replaced by what is made of its length and of itself.
fn replaced(
    case: &LengthPenaltyCase,
    options: &Options,
    dtype: Dtype,
    with: impl Fn(i64, &Options, f64) -> f64,
) -> LengthPenaltyOutput {
    let mut rewards = reference::length_penalty(case, options, dtype);
    for (reward, length) in rewards.iter_mut().zip(&case.lengths) {
        *reward = with(*length, options, *reward);
    }
    rewards.into()
}

/// A penalty with another line, which takes the number of tokens in the buffer.
fn linear(
    case: &LengthPenaltyCase,
    options: &Options,
    line: impl Fn(f64, &Options) -> f64,
) -> LengthPenaltyOutput {
    replaced(case, options, Dtype::F64, |n, o, right| {
        let over = n - (o.max_length - o.buffer);
        let linear = matches!(o.shape, Shape::LinearOverlong | Shape::LinearUnbounded);
        if linear && over > 0 && n <= o.max_length {
            o.factor * line(over as f64, o)
        } else {
            right
        }
    })
}

/// A cosine with another course from 1 to 0, which takes n/L.
fn cosine(
    case: &LengthPenaltyCase,
    options: &Options,
    course: impl Fn(f64) -> f64,
) -> LengthPenaltyOutput {
    replaced(case, options, Dtype::F64, |n, o, right| {
        let share = n as f64 / o.max_length as f64;
        let value = o.factor * (o.min + (o.max - o.min) * course(share));
        if o.shape == Shape::Cosine { value } else { right }
    })
}
