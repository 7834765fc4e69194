//! Cases of `pair-objective`: random draws, corners and classes.

use arbitrary::{Result, Unstructured};
use ndarray::Array1;

use super::{Kind, Options, PairObjective, PairObjectiveCase, oracle};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::draw::{AWKWARD, chance, normal, one, uniform};
use shakedown_core::value::place::Dtype;

/// The largest magnitude of a log-probability: a completion of a thousand unlikely tokens.
const LARGEST: f64 = 1e4;

/// How far above 0 rounding may put the logarithm of a probability.
const ROUNDED_UP: f64 = 1e-3;

/// The average of a completion that is all but certain: beyond it the odds are rounding.
const ALL_BUT_CERTAIN: f64 = -5e-4;

/// The longest completion.
const LONGEST: i64 = 4096;

/// At most this many pairs of a case are drawn.
const DRAWN: usize = 16;

/// The four numbers of a pair (policy chosen and rejected, reference chosen and rejected) and its
/// two lengths.
type Pair = ([f64; 4], [i64; 2]);

pub(super) fn valid(
    case: &PairObjectiveCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<PairObjective>(case)?;
    let fields = [&case.policy_chosen, &case.policy_rejected, &case.ref_chosen, &case.ref_rejected];
    if let Some(x) = fields.into_iter().flatten().find(|x| !(-LARGEST..=ROUNDED_UP).contains(*x)) {
        return Err(format!("the log-probability {x} is not from -{LARGEST} to 0"));
    }
    let lengths = [&case.chosen_lengths, &case.rejected_lengths];
    if let Some(length) = lengths.into_iter().flatten().find(|x| !(1..=LONGEST).contains(*x)) {
        return Err(format!("the length {length} is not from 1 to {LONGEST}"));
    }
    let kind = options.kind;
    if kind == Kind::Orpo
        && let Some(average) = oracle::averages(case).find(|x| *x > ALL_BUT_CERTAIN)
    {
        return Err(format!(
            "the average {average} is above {ALL_BUT_CERTAIN}: too near certainty"
        ));
    }
    if kind.sorts() && oracle::room(case, kind) <= 0.0 {
        return Err("two of the numbers that are sorted are equal within rounding".to_owned());
    }
    for expected in oracle::outputs(case, options, dtype)
        .into_iter()
        .chain(oracle::gradient(case, options, dtype))
    {
        let field = expected.field;
        let holds = |value: f64| value.is_nan() || value.abs() <= 0.5 * dtype.max();
        if let Some(number) = expected.numbers.iter().find(|number| !holds(number.value)) {
            return Err(format!("the exact {field} is {}, too large for the dtype", number.value));
        }
    }
    Ok(())
}

/// The case of some pairs.
fn of_pairs(pairs: &[Pair]) -> PairObjectiveCase {
    let field = |at: usize| pairs.iter().map(|pair| pair.0[at]).collect::<Array1<f64>>();
    let length = |at: usize| pairs.iter().map(|pair| pair.1[at]).collect::<Array1<i64>>();
    PairObjectiveCase {
        policy_chosen: field(0),
        policy_rejected: field(1),
        ref_chosen: field(2),
        ref_rejected: field(3),
        chosen_lengths: length(0),
        rejected_lengths: length(1),
    }
}

/// A pair of which the chosen side has so much more log-probability, -1 being the other.
fn of_gap(gap: f64) -> [f64; 4] {
    if gap > 0.0 { [-1.0, -1.0 - gap, -1.0, -1.0] } else { [gap - 1.0, -1.0, -1.0, -1.0] }
}

/// Gaps on which bugs show: none, around the targets, and far out.
fn gaps(options: &Options) -> Vec<f64> {
    let target = options.target();
    let gaps = [0.0, 3.0, 20.0, 1.0, 0.5, 200.0, 5e3, target, 2.0 * target, target + 1.0];
    gaps.into_iter().filter(|gap| *gap < LARGEST).flat_map(|gap| [gap, 0.0 - gap]).collect()
}

/// Averages from all but certain to unlikely.
const AVERAGES: [f64; 6] = [-0.001, -0.7, -0.01, -5.0, -0.1, -1.0];

fn numbers(
    u: &mut Unstructured<'_>,
    pattern: usize,
    gaps: &[f64],
    lengths: [i64; 2],
) -> Result<[f64; 4]> {
    let [of_chosen, of_rejected] = lengths.map(|length| length as f64);
    let each = [of_chosen, of_rejected, of_chosen, of_rejected];
    let mut numbers = [0.0; 4];
    match pattern {
        0 => {
            // Averages over tokens, and what makes such sums.
            for (number, length) in numbers.iter_mut().zip(each) {
                *number = length * one(u, &AVERAGES)?;
            }
        }
        1 => numbers = of_gap(one(u, gaps)?),
        2 => {
            // Sums over the tokens of a completion, and a policy near its reference.
            for (number, length) in numbers.iter_mut().zip(each).skip(2) {
                *number = length * uniform(u, -3.0, -0.05)?;
            }
            for side in 0..2 {
                numbers[side] = (numbers[side + 2] + normal(u)?).min(-0.01 * each[side]);
            }
        }
        3 => {
            // The policy is its reference.
            for side in 0..2 {
                numbers[side] = each[side] * uniform(u, -5.0, -0.01)?;
                numbers[side + 2] = numbers[side];
            }
        }
        4 => {
            for number in &mut numbers {
                *number = -one(u, &AWKWARD)?.abs();
            }
        }
        5 => {
            for number in &mut numbers {
                *number = one(u, &[-1.0, 0.0, -1e3, -5e3, -LARGEST])?;
            }
        }
        _ => {
            for number in &mut numbers {
                *number = 0.0 - f64::from(one(u, &[1_u8, 0, 2, 3, 5, 10, 20])?);
            }
        }
    }
    Ok(numbers)
}

/// A pair that goes with those that there are: plain numbers, no two of which make a tie.
fn plain(pairs: &[Pair], options: &Options, dtype: Dtype) -> Pair {
    let mut with = pairs.to_vec();
    for step in 0..=2 * DRAWN {
        let step = step as f64;
        let plain = ([-1.0 - step, -1.0 - 2.0 * step, -1.0, -1.0], [1, 1]);
        with.push(plain);
        if valid(&of_pairs(&with), options, dtype).is_ok() {
            return plain;
        }
        with.pop();
    }
    unreachable!("each pair makes a tie with few others")
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<PairObjectiveCase> {
    let small = [1_usize, 2, 3, 2, 1, 4, 5];
    let count = if chance(u, 230)? { one(u, &small)? } else { one(u, &[8, 12, 16, 32])? };
    // Ranks need numbers of their own: such a case does not repeat its pairs.
    let drawn = if options.kind.sorts() { count.min(DRAWN) } else { count };
    let pattern = u.choose_index(8)?;
    let of_lengths = u.choose_index(4)?;
    let gaps = gaps(options);
    let mut pairs: Vec<Pair> = Vec::with_capacity(drawn);
    for _ in 0..drawn.min(DRAWN) {
        let some = [1_i64, 2, 3, 6, 30, 7, 4, 13, 21];
        let lengths = match of_lengths {
            0 | 1 => [one(u, &some)?, one(u, &some)?],
            2 => [one(u, &some)?; 2],
            _ => [u.int_in_range(1..=30)?, u.int_in_range(1..=30)?],
        };
        let pattern = if pattern == 7 { u.choose_index(7)? } else { pattern };
        let mut numbers = numbers(u, pattern, &gaps, lengths)?;
        numbers.iter_mut().for_each(|x| *x = dtype.round(*x));
        pairs.push((numbers, lengths));
        let alone = &pairs[pairs.len() - 1..];
        let fits = match options.kind.sorts() {
            true => valid(&of_pairs(&pairs), options, dtype).is_ok(),
            false => valid(&of_pairs(alone), options, dtype).is_ok(),
        };
        if !fits {
            pairs.pop();
            let known = if options.kind.sorts() { &pairs[..] } else { &[] };
            pairs.push(plain(known, options, dtype));
        }
    }
    // Large cases repeat them, so that they do not take more bytes than a fuzzer can steer.
    let repeated = (DRAWN..drawn).map(|at| pairs[(at * 7 + at / DRAWN) % DRAWN]);
    let repeated: Vec<Pair> = repeated.collect();
    pairs.extend(repeated);
    Ok(of_pairs(&pairs))
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<PairObjectiveCase> {
    let mut cases: Vec<PairObjectiveCase> = Vec::new();
    for gap in gaps(options) {
        for lengths in [[1, 1], [2, 1]] {
            cases.push(of_pairs(&[(of_gap(gap), lengths)]));
        }
    }
    for average in AVERAGES {
        for lengths in [[1, 1], [3, 1], [30, 7]] {
            let [chosen, rejected] = lengths.map(|length| average * length as f64);
            cases.push(of_pairs(&[([chosen, rejected, chosen, rejected], lengths)]));
            let (other, both) = (-0.7 * lengths[1] as f64, [-1.0, -1.0]);
            cases.push(of_pairs(&[([chosen, other, both[0], both[1]], lengths)]));
            cases.push(of_pairs(&[([other, chosen, both[0], both[1]], [lengths[1], lengths[0]])]));
        }
    }
    for pairs in [
        &[([0.0; 4], [1, 1])][..],
        &[([-1.0; 4], [1, 1])],
        &[([-1.0; 4], [2, 1])],
        &[([-6.0, -3.0, -6.0, -3.0], [6, 3])],
        &[([-6.0, -8.0, -7.0, -6.0], [6, 4])],
        &[([-0.1, -0.7, -0.3, -0.2], [1, 2])],
        &[([-LARGEST, 0.0, 0.0, -LARGEST], [1, 1])],
        &[([0.0, -LARGEST, -LARGEST, 0.0], [1, 1])],
        &[([-1.0, -2.0, -1.0, -1.0], [1, 1]), ([-2.0, -1.0, -1.0, -1.0], [1, 2])],
        &[([-1.0, -2.0, -3.0, -1.0], [1, 2]), ([-3.0, -1.0, -1.0, -2.0], [3, 1])],
        &[([-6.0, -8.0, -7.0, -6.0], [6, 4]), ([-2.0, -1.5, -1.0, -2.5], [2, 3])],
        &[
            ([-1.0, -2.0, -3.0, -4.0], [1, 2]),
            ([-4.0, -1.0, -2.0, -3.0], [4, 1]),
            ([-0.5, -5.0, -1.0, -2.0], [2, 2]),
        ],
    ] {
        cases.push(of_pairs(pairs));
    }
    let many: Vec<Pair> = (0..12_u8)
        .map(|at| {
            let number = |step: u8| -0.5 - f64::from((u16::from(step) * u16::from(at)) % 13);
            ([1, 6, 7, 11].map(number), [i64::from(at % 4) + 1, i64::from(at % 3) + 1])
        })
        .collect();
    cases.push(of_pairs(&many));
    cases.retain_mut(|case| {
        shakedown_core::value::record::round(case, dtype);
        valid(case, options, dtype).is_ok()
    });
    cases.sort_by_cached_key(PairObjective::measure);
    cases.dedup_by(|a, b| shakedown_core::value::record::same_bits(a, b));
    cases
}

/// One pair over few values, all of them, and two over fewer.
pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<PairObjectiveCase> {
    let mut cases = Vec::new();
    let each = |values: &[f64], lengths: &[i64]| -> Vec<Pair> {
        let mut pairs = Vec::new();
        for a in values {
            for b in values {
                for c in values {
                    for d in values {
                        for l in lengths {
                            for m in lengths {
                                pairs.push(([*a, *b, *c, *d], [*l, *m]));
                            }
                        }
                    }
                }
            }
        }
        pairs
    };
    cases.extend(each(&[0.0, -1.0, -2.0], &[1, 2]).into_iter().map(|pair| of_pairs(&[pair])));
    let few = each(&[0.0, -1.0], &[1]);
    for first in &few {
        cases.extend(few.iter().map(|second| of_pairs(&[*first, *second])));
    }
    cases.retain(|case| valid(case, options, dtype).is_ok());
    cases
}

/// Whether the difference that counts is such in some pair.
fn any(case: &PairObjectiveCase, options: &Options, is: impl Fn(f64) -> bool) -> bool {
    oracle::differences(case, options.kind).into_iter().any(is)
}

/// Whether an average under the policy is this one, but for the rounding of the dtype.
fn averages(case: &PairObjectiveCase, average: f64) -> bool {
    oracle::averages(case).any(|found| (found - average).abs() <= 5e-3 * average.abs())
}

/// Whether some completion has so many tokens.
fn long(case: &PairObjectiveCase, length: i64) -> bool {
    case.chosen_lengths.iter().chain(&case.rejected_lengths).any(|found| *found == length)
}

pub(super) fn classes() -> Vec<Class<PairObjective>> {
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "policy-is-reference",
            "the policy is the reference in every pair",
            |c: &PairObjectiveCase, _: &Options| {
                c.policy_chosen == c.ref_chosen && c.policy_rejected == c.ref_rejected
            },
            always,
        ),
        class(
            "reference-prefers",
            "a pair of which the reference prefers one side",
            |c, _| c.ref_chosen.iter().zip(&c.ref_rejected).any(|(a, b)| a != b),
            always,
        ),
        class("right-way", "the chosen side is ahead", |c, o| any(c, o, |x| x > 0.0), always),
        class("wrong-way", "the chosen side is behind", |c, o| any(c, o, |x| x < 0.0), always),
        class("no-gap", "the sides are level", |c, o| any(c, o, |x| x == 0.0), always),
        class("gap-of-3", "a gap of 3", |c, o| any(c, o, |x| x.abs() == 3.0), always),
        class("gap-of-20", "a gap of 20", |c, o| any(c, o, |x| x.abs() == 20.0), always),
        class(
            "one-side-5000-lower",
            "a gap of 5000 or more either way",
            |c, o| any(c, o, |x| x.abs() >= 4990.0),
            |options, _| !matches!(options.kind, Kind::Orpo | Kind::SppoHard | Kind::IpoNorm),
        ),
        class("all-but-certain", "an average of -0.001", |c, _| averages(c, -0.001), always),
        class("certain", "an average of -0.01", |c, _| averages(c, -0.01), always),
        class("likely", "an average of -0.7", |c, _| averages(c, -0.7), always),
        class("unlikely", "an average of -5", |c, _| averages(c, -5.0), always),
        class("one-token", "a completion of one token", |c, _| long(c, 1), always),
        class("thirty-tokens", "a completion of 30 tokens", |c, _| long(c, 30), always),
        class(
            "equal-lengths",
            "sides of equal length, more than a token each",
            |c, _| c.chosen_lengths == c.rejected_lengths && !long(c, 1),
            always,
        ),
        class(
            "unequal-lengths",
            "a pair whose sides differ in length",
            |c, _| c.chosen_lengths != c.rejected_lengths,
            always,
        ),
        class(
            "other-order",
            "the reference puts the pairs in another order than the policy",
            |c, _| {
                let order = |a: &Array1<f64>, b: &Array1<f64>| {
                    let difference = a - b;
                    let mut order: Vec<usize> = (0..difference.len()).collect();
                    order.sort_by(|a, b| difference[*a].total_cmp(&difference[*b]));
                    order
                };
                order(&c.policy_chosen, &c.policy_rejected) != order(&c.ref_chosen, &c.ref_rejected)
            },
            always,
        ),
        class("one-pair", "P = 1", |c, _| c.policy_chosen.len() == 1, always),
        class("several-rows", "P ≥ 2", |c, _| c.policy_chosen.len() > 1, always),
        class("five-pairs", "P = 5", |c, _| c.policy_chosen.len() == 5, always),
        class("many-pairs", "P ≥ 12", |c, _| c.policy_chosen.len() >= 12, always),
    ]
}
