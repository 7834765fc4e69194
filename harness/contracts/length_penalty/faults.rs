//! Known wrong behaviours of `length-penalty`: real bugs, and conventions mistaken for others.

use std::f64::consts::PI;

use super::{LengthPenalty, LengthPenaltyCase, LengthPenaltyOutput, Options, Shape, reference};
use crate::value::place::Dtype;

type Fault = crate::contract::fault::Fault<LengthPenalty>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new(
            "length-is-the-span-of-the-mask",
            "tool tokens in the middle count: the length is some share too long",
        )
        .seen("OpenRLHF #1243, #1252, #1255: last − first + 1 for Σm, 12 for 9")
        .gives(&[
            |case, options, dtype| counted(case, options, dtype, |n, _| n + n / 3),
            |case, options, dtype| counted(case, options, dtype, |n, _| n + n / 2),
            |case, options, dtype| counted(case, options, dtype, |n, _| 2 * n),
        ]),
        Fault::new(
            "length-of-the-padded-row",
            "every completion is as long as the longest of the batch",
        )
        .seen("plausible: `shape[1]` for the sum of the mask")
        .gives(&[|case, options, dtype| {
            let longest = case.lengths.iter().copied().max().unwrap_or(0);
            counted(case, options, dtype, |_, _| longest)
        }]),
        Fault::new(
            "left-in-the-order-by-length",
            "completions are sorted by length, and their rewards not put back in their order",
        )
        .seen("verl #1943, #1440: outputs left in the order by length")
        .gives(&[|case, options, dtype| {
            let mut lengths = case.lengths.to_vec();
            lengths.sort_unstable();
            let sorted = LengthPenaltyCase { lengths: lengths.into() };
            reference::length_penalty(&sorted, options, dtype).into()
        }]),
        Fault::new("lengths-in-bf16", "lengths are rounded to the eight bits of bf16")
            .seen("plausible: lengths cast to the format of the rewards")
            .under("{max_length: 1000, buffer: 250}")
            .gives(&[|case, options, dtype| {
                counted(case, options, dtype, |n, _| Dtype::Bf16.round(n as f64) as i64)
            }]),
        Fault::new("last-token-not-counted", "the length is one too short")
            .seen("trlx #401 (a369dad): the end-of-sequence token is left out")
            .gives(&[|case, options, dtype| counted(case, options, dtype, |n, _| (n - 1).max(0))]),
        Fault::new("one-token-too-many", "the length is one too long")
            .seen("plausible: a start token counted in")
            .gives(&[|case, options, dtype| counted(case, options, dtype, |n, _| n + 1)]),
        Fault::new(
            "line-not-bounded",
            "the line goes on beyond the limit, where a bound is declared",
        )
        .seen("verl's DAPO manager, where TRL's convention is declared")
        .gives(&[|case, options, dtype| {
            let shape = Shape::LinearUnbounded;
            shaped(case, options, dtype, shape, Shape::LinearOverlong)
        }]),
        Fault::new("line-bounded", "-1 beyond the limit, where the line goes on")
            .seen("TRL's convention where verl's is declared")
            .under("{shape: linear-unbounded}")
            .gives(&[|case, options, dtype| {
                let shape = Shape::LinearOverlong;
                shaped(case, options, dtype, shape, Shape::LinearUnbounded)
            }]),
        Fault::new("line-starts-at-the-limit", "the buffer lies behind the limit, not before it")
            .seen("plausible: `max_length` taken for the length without penalty")
            .gives(&[|case, options, dtype| {
                counted(case, options, dtype, |n, options| n - options.buffer)
            }]),
        Fault::new("line-over-the-limit", "(L − C − n)/L for (L − C − n)/C: a jump at the limit")
            .seen("plausible: divided by the wrong length")
            .gives(&[|case, options, _| {
                linear(case, options, |over, o| -over / o.max_length as f64)
            }]),
        Fault::new("whole-steps-only", "the quotient is that of integers, rounded down")
            .seen("plausible: `//` for `/`")
            .gives(&[|case, options, _| {
                linear(case, options, |over, o| (-over / o.buffer as f64).floor())
            }]),
        Fault::new("whole-steps-towards-zero", "the quotient is that of integers, truncated")
            .seen("plausible: integer tensors divided with rounding_mode=\"trunc\"")
            .gives(&[|case, options, _| {
                linear(case, options, |over, o| (-over / o.buffer as f64).trunc())
            }]),
        Fault::new("beyond-is-free", "nothing is taken off beyond the limit")
            .seen("plausible: a branch for the buffer and none for what is longer")
            .gives(&[|case, options, dtype| {
                replaced(
                    case,
                    options,
                    dtype,
                    |n, o, right| if n > o.max_length { 0.0 } else { right },
                )
            }]),
        Fault::new("sign-lost", "the penalty is added where it should be taken off")
            .seen("plausible: a penalty given as a magnitude")
            .gives(&[|case, options, dtype| replaced(case, options, dtype, |_, _, right| -right)]),
        Fault::new("factor-not-applied", "the factor has no effect")
            .seen("an option without effect")
            .under("{factor: 0.5}")
            .gives(&[|case, options, dtype| {
                reference::length_penalty(case, &Options { factor: 1.0, ..options.clone() }, dtype)
                    .into()
            }]),
        Fault::new("limit-is-too-long", "L tokens are punished like L + 1")
            .seen("plausible: `<` for `<=`")
            .under("{shape: step}")
            .gives(&[|case, options, dtype| {
                replaced(
                    case,
                    options,
                    dtype,
                    |n, o, right| {
                        if n == o.max_length { -o.factor } else { right }
                    },
                )
            }]),
        Fault::new("step-at-the-buffer", "the step stands where the buffer begins")
            .seen("plausible: the threshold of the linear shapes")
            .under("{shape: step}")
            .gives(&[|case, options, dtype| {
                counted(case, options, dtype, |n, options| n + options.buffer)
            }]),
        Fault::new("division-by-no-buffer", "without a buffer L tokens give 0/0")
            .seen("plausible: verl asserts a buffer, its ports do not")
            .under("{buffer: 0}")
            .gives(&[|case, options, dtype| {
                replaced(case, options, dtype, |n, o, right| {
                    let undefined = o.buffer == 0 && n == o.max_length;
                    if undefined { f64::NAN } else { right }
                })
            }]),
        Fault::new("cosine-beyond-the-limit", "beyond the limit the cosine rises again")
            .seen("TRL get_cosine_scaled_reward, which meets no longer ones")
            .under("{shape: cosine}")
            .gives(&[|case, options, _| {
                cosine(case, options, |share| 0.5 + 0.5 * (PI * share).cos())
            }]),
        Fault::new("cosine-ends-exchanged", "`min` for an empty completion and `max` at the limit")
            .seen("TRL's ends for wrong answers, used for right ones")
            .under("{shape: cosine}")
            .gives(&[|case, options, dtype| {
                let exchanged = Options { min: options.max, max: options.min, ..options.clone() };
                reference::length_penalty(case, &exchanged, dtype).into()
            }]),
        Fault::new(
            "cosine-of-half-the-limit",
            "the cosine ends half way: a quarter of a turn for half of one",
        )
        .seen("plausible: cos(π/2 · n/L) for ½(1 + cos(π · n/L))")
        .under("{shape: cosine}")
        .gives(&[|case, options, _| {
            cosine(case, options, |share| (0.5 * PI * share.min(1.0)).cos())
        }]),
        Fault::new("cosine-is-a-line", "a line from `max` to `min` where a cosine is declared")
            .seen("plausible: a simpler schedule under the same name")
            .under("{shape: cosine}")
            .gives(&[|case, options, _| cosine(case, options, |share| 1.0 - share.min(1.0))]),
    ]
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
