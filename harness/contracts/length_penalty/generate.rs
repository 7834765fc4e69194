//! Cases of `length-penalty`: random draws, corners and classes. Lengths stand where the penalty
//! bends: at 0, at both knees, and one token to each side of them.

use arbitrary::{Result, Unstructured};
use ndarray::{Array1, arr1};

use super::oracle::penalty;
use super::{LengthPenalty, LengthPenaltyCase, Options};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::generate::masks;
use shakedown_core::value::place::Dtype;

/// No completion is longer than this many limits, and this many tokens.
const LIMITS: i64 = 4;
const TOKENS: i64 = 64;

/// The longest completion.
fn longest(options: &Options) -> i64 {
    LIMITS * options.max_length + TOKENS
}

pub(super) fn valid(
    case: &LengthPenaltyCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<LengthPenalty>(case)?;
    for (row, length) in case.lengths.indexed_iter() {
        if !(0..=longest(options)).contains(length) {
            let most = longest(options);
            return Err(format!("lengths[{row}] is {length}, expected 0 to {most}"));
        }
        let value = penalty(*length, options).value;
        if value.abs() > dtype.max() / 2.0 {
            return Err(format!("lengths[{row}] is {length}, which gives {value}"));
        }
    }
    Ok(())
}

/// The lengths at which the penalty bends, with their neighbours, in order.
fn bends(options: &Options) -> Vec<i64> {
    let Options { max_length, buffer, .. } = *options;
    let knees = [0, max_length - buffer, max_length - buffer / 2, max_length, max_length / 2];
    let mut bends: Vec<i64> = knees.into_iter().flat_map(|x| [x - 1, x, x + 1]).collect();
    bends.extend([2 * max_length, max_length + buffer, 3]);
    bends.retain(|length| *length >= 0);
    bends.sort_unstable();
    bends.dedup();
    bends
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<LengthPenaltyCase> {
    let (rows, columns) = masks::shape(u)?;
    let count = if chance(u, 128)? { rows } else { rows * columns };
    let bends = bends(options);
    let longest = longest(options);
    let mut lengths = Vec::new();
    for at in 0..count {
        // Two dozen are drawn, the rest repeats them in another order.
        let length = match at {
            24.. => lengths[(at * 7 + at / 24) % 24],
            _ if chance(u, 160)? => one(u, &bends)?,
            _ if chance(u, 96)? => u.int_in_range(0..=longest)?,
            _ => u.int_in_range(0..=options.max_length)?,
        };
        lengths.push(length);
    }
    for length in &mut lengths {
        // A line without end may leave the format.
        if penalty(*length, options).value.abs() > dtype.max() / 2.0 {
            *length = options.max_length;
        }
    }
    Ok(LengthPenaltyCase { lengths: Array1::from_vec(lengths) })
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<LengthPenaltyCase> {
    let bends = bends(options);
    let mut cases: Vec<LengthPenaltyCase> =
        bends.iter().map(|length| LengthPenaltyCase { lengths: arr1(&[*length]) }).collect();
    for lengths in bends.windows(2) {
        cases.push(LengthPenaltyCase { lengths: Array1::from_vec(lengths.to_vec()) });
    }
    let last = options.max_length;
    for lengths in [vec![0, last + 1], vec![last + 1, 0], vec![last; 3], bends.clone()] {
        cases.push(LengthPenaltyCase { lengths: Array1::from_vec(lengths) });
    }
    for length in [5, longest(options)] {
        cases.push(LengthPenaltyCase { lengths: arr1(&[length]) });
    }
    cases.retain(|case| valid(case, options, dtype).is_ok());
    cases.sort_by_cached_key(LengthPenalty::measure);
    cases
}

/// Every length up to a little beyond the limit, alone, where they are few, and pairs with 0.
pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<LengthPenaltyCase> {
    let upto = (options.max_length + options.buffer + 2).min(160);
    let alone = (0..=upto).map(|length| LengthPenaltyCase { lengths: arr1(&[length]) });
    let pairs = (1..=upto).flat_map(|length| {
        [[0, length], [length, 0]].map(|pair| LengthPenaltyCase { lengths: arr1(&pair) })
    });
    alone.chain(pairs).filter(|case| valid(case, options, dtype).is_ok()).collect()
}

pub(super) fn classes() -> Vec<Class<LengthPenalty>> {
    fn any(case: &LengthPenaltyCase, is: impl Fn(i64) -> bool) -> bool {
        case.lengths.iter().any(|length| is(*length))
    }
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "empty",
            "a completion without a token",
            |case: &LengthPenaltyCase, _: &Options| any(case, |n| n == 0),
            always,
        ),
        class(
            "first-knee",
            "a completion that just leaves the buffer free: L − C tokens",
            |case, options| any(case, |n| n == options.max_length - options.buffer),
            always,
        ),
        class(
            "in-the-buffer",
            "a completion of more than L − C tokens and fewer than L",
            |case, options| {
                let knee = options.max_length - options.buffer;
                any(case, |n| (knee + 1..options.max_length).contains(&n))
            },
            |options, _| options.buffer > 1,
        ),
        class(
            "at-the-limit",
            "a completion of L tokens",
            |case, options| any(case, |n| n == options.max_length),
            always,
        ),
        class(
            "one-beyond",
            "a completion of L + 1 tokens",
            |case, options| any(case, |n| n == options.max_length + 1),
            always,
        ),
        class(
            "far-beyond",
            "a completion of more than 2·L tokens",
            |case, options| any(case, |n| n > 2 * options.max_length),
            |options, dtype| {
                penalty(2 * options.max_length + 1, options).value.abs() <= dtype.max() / 2.0
            },
        ),
        class(
            "unequal-lengths",
            "completions of different lengths",
            |case, _| any(case, |n| n != case.lengths[0]),
            always,
        ),
        class("one-row", "N = 1", |case, _| case.lengths.len() == 1, always),
        class("many-rows", "N ≥ 12", |case, _| case.lengths.len() >= 12, always),
    ]
}
