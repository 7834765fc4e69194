//! Known wrong behaviours of `length-penalty`: real bugs, and conventions mistaken for others.

use std::f64::consts::PI;

use super::{LengthPenalty, LengthPenaltyCase, LengthPenaltyOutput, Options, Shape, reference};
use shakedown_core::contract::fault;
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<LengthPenalty>;
type Variant = fault::Variant<LengthPenalty>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    [lengths(), lines(), limits(), cosines()].into_iter().flatten().collect()
}

/// Other lengths.
fn lengths() -> Vec<Fault> {
    vec![
        Fault::new(
            "length-is-the-span-of-the-mask",
            "tool tokens in the middle count: the length is some share too long",
        )
        .seen("OpenRLHF #1243, #1252, #1255: last − first + 1 for Σm, 12 for 9")
        .on(&[
            |case, _| case.lengths.mapv_inplace(|n| n + n / 3),
            |case, _| case.lengths.mapv_inplace(|n| n + n / 2),
            |case, _| case.lengths.mapv_inplace(|n| 2 * n),
        ]),
        Fault::new(
            "length-of-the-padded-row",
            "every completion is as long as the longest of the batch",
        )
        .seen("plausible: `shape[1]` for the sum of the mask")
        .on(&[|case, _| {
            let longest = case.lengths.iter().copied().max().unwrap_or(0);
            case.lengths.fill(longest);
        }]),
        Fault::new(
            "left-in-the-order-by-length",
            "completions are sorted by length, and their rewards not put back in their order",
        )
        .seen("verl #1943, #1440: outputs left in the order by length")
        .on(&[|case, _| {
            let mut lengths = case.lengths.to_vec();
            lengths.sort_unstable();
            case.lengths = lengths.into();
        }]),
        Fault::new("lengths-in-bf16", "lengths are rounded to the eight bits of bf16")
            .seen("plausible: lengths cast to the format of the rewards")
            .under("{max_length: 1000, buffer: 250}")
            .on(&[|case, _| case.lengths.mapv_inplace(|n| Dtype::Bf16.round(n as f64) as i64)]),
        Fault::new("last-token-not-counted", "the length is one too short")
            .seen("trlx #401 (a369dad): the end-of-sequence token is left out")
            .on(&[|case, _| case.lengths.mapv_inplace(|n| (n - 1).max(0))]),
        Fault::new("one-token-too-many", "the length is one too long")
            .seen("plausible: a start token counted in")
            .on(&[|case, _| case.lengths.mapv_inplace(|n| n + 1)]),
    ]
}

/// The line, its bound and its factor.
fn lines() -> Vec<Fault> {
    vec![
        Fault::new(
            "line-not-bounded",
            "the line goes on beyond the limit, where a bound is declared",
        )
        .seen("verl's DAPO manager, where TRL's convention is declared")
        .as_if(&[|options| match options.shape {
            Shape::LinearOverlong if options.buffer > 0 => {
                Options { shape: Shape::LinearUnbounded, ..options }
            }
            _ => options,
        }]),
        Fault::new("line-bounded", "-1 beyond the limit, where the line goes on")
            .seen("TRL's convention where verl's is declared")
            .under("{shape: linear-unbounded}")
            .as_if(&[|options| match options.shape {
                Shape::LinearUnbounded if options.buffer > 0 => {
                    Options { shape: Shape::LinearOverlong, ..options }
                }
                _ => options,
            }]),
        Fault::new("line-starts-at-the-limit", "the buffer lies behind the limit, not before it")
            .seen("plausible: `max_length` taken for the length without penalty")
            .on(&[|case, options| case.lengths.mapv_inplace(|n| n - options.buffer)]),
        Fault::new("line-over-the-limit", "(L − C − n)/L for (L − C − n)/C: a jump at the limit")
            .seen("plausible: divided by the wrong length")
            .made_of([linear(|over, o| -over / o.max_length as f64)]),
        Fault::new("whole-steps-only", "the quotient is that of integers, rounded down")
            .seen("plausible: `//` for `/`")
            .made_of([linear(|over, o| (-over / o.buffer as f64).floor())]),
        Fault::new("whole-steps-towards-zero", "the quotient is that of integers, truncated")
            .seen("plausible: integer tensors divided with rounding_mode=\"trunc\"")
            .made_of([linear(|over, o| (-over / o.buffer as f64).trunc())]),
        Fault::new("beyond-is-free", "nothing is taken off beyond the limit")
            .seen("plausible: a branch for the buffer and none for what is longer")
            .made_of([replaced(|n, o, right| if n > o.max_length { 0.0 } else { right })]),
        Fault::new("sign-lost", "the penalty is added where it should be taken off")
            .seen("plausible: a penalty given as a magnitude")
            .made_of([replaced(|_, _, right| -right)]),
        Fault::new("factor-not-applied", "the factor has no effect")
            .seen("an option without effect")
            .under("{factor: 0.5}")
            .as_if(&[|options| Options { factor: 1.0, ..options }]),
    ]
}

/// What happens at the limit itself.
fn limits() -> Vec<Fault> {
    vec![
        Fault::new("limit-is-too-long", "L tokens are punished like L + 1")
            .seen("plausible: `<` for `<=`")
            .under("{shape: step}")
            .made_of([replaced(|n, o, right| if n == o.max_length { -o.factor } else { right })]),
        Fault::new("step-at-the-buffer", "the step stands where the buffer begins")
            .seen("plausible: the threshold of the linear shapes")
            .under("{shape: step}")
            .on(&[|case, options| case.lengths.mapv_inplace(|n| n + options.buffer)]),
        Fault::new("division-by-no-buffer", "without a buffer L tokens give 0/0")
            .seen("plausible: verl asserts a buffer, its ports do not")
            .under("{buffer: 0}")
            .made_of([replaced(|n, o, right| {
                let undefined = o.buffer == 0 && n == o.max_length;
                if undefined { f64::NAN } else { right }
            })]),
    ]
}

/// The cosine and its ends.
fn cosines() -> Vec<Fault> {
    vec![
        Fault::new("cosine-beyond-the-limit", "beyond the limit the cosine rises again")
            .seen("TRL get_cosine_scaled_reward, which meets no longer ones")
            .under("{shape: cosine}")
            .made_of([cosine(|share| 0.5 + 0.5 * (PI * share).cos())]),
        Fault::new("cosine-ends-exchanged", "`min` for an empty completion and `max` at the limit")
            .seen("TRL's ends for wrong answers, used for right ones")
            .under("{shape: cosine}")
            .as_if(&[|options| Options { min: options.max, max: options.min, ..options }]),
        Fault::new(
            "cosine-of-half-the-limit",
            "the cosine ends half way: a quarter of a turn for half of one",
        )
        .seen("plausible: cos(π/2 · n/L) for ½(1 + cos(π · n/L))")
        .under("{shape: cosine}")
        .made_of([cosine(|share| (0.5 * PI * share.min(1.0)).cos())]),
        Fault::new("cosine-is-a-line", "a line from `max` to `min` where a cosine is declared")
            .seen("plausible: a simpler schedule under the same name")
            .under("{shape: cosine}")
            .made_of([cosine(|share| 1.0 - share.min(1.0))]),
    ]
}

/// The right penalties, each replaced by what is made of its length and of itself.
fn replaced(with: fn(i64, &Options, f64) -> f64) -> Variant {
    Variant::gives(move |case: &LengthPenaltyCase, options: &Options, dtype| {
        replace(case, options, dtype, |n, right| with(n, options, right))
    })
}

fn replace(
    case: &LengthPenaltyCase,
    options: &Options,
    dtype: Dtype,
    with: impl Fn(i64, f64) -> f64,
) -> LengthPenaltyOutput {
    let mut rewards = reference::length_penalty(case, options, dtype);
    for (reward, length) in rewards.iter_mut().zip(&case.lengths) {
        *reward = with(*length, *reward);
    }
    rewards.into()
}

/// A penalty with another line, which takes the number of tokens in the buffer.
fn linear(line: fn(f64, &Options) -> f64) -> Variant {
    Variant::gives(move |case: &LengthPenaltyCase, o: &Options, _| {
        replace(case, o, Dtype::F64, |n, right| {
            let over = n - (o.max_length - o.buffer);
            let linear = matches!(o.shape, Shape::LinearOverlong | Shape::LinearUnbounded);
            if linear && over > 0 && n <= o.max_length {
                o.factor * line(over as f64, o)
            } else {
                right
            }
        })
    })
}

/// A cosine with another course from 1 to 0, which takes n/L.
fn cosine(course: fn(f64) -> f64) -> Variant {
    Variant::gives(move |case: &LengthPenaltyCase, o: &Options, _| {
        replace(case, o, Dtype::F64, |n, right| {
            let share = n as f64 / o.max_length as f64;
            let value = o.factor * (o.min + (o.max - o.min) * course(share));
            if o.shape == Shape::Cosine { value } else { right }
        })
    })
}
