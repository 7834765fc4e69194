//! Cases of `sampling-filter`: random draws, corners and classes.

use std::f64::consts::LN_2;

use arbitrary::{Result, Unstructured};
use ndarray::{Array2, ArrayView1, arr2};

use super::oracle::Row;
use super::{Options, SamplingFilter, SamplingFilterCase};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::draw::{AWKWARD, chance, normal, one};
use shakedown_core::value::place::Dtype;

/// The largest magnitude of a logit, and of one over the temperature.
const LARGEST: f64 = 1e4;

/// The largest one that is generated.
const GENERATED: f64 = 1e3;

/// No token.
const NONE: f64 = f64::NEG_INFINITY;

pub(super) fn valid(
    case: &SamplingFilterCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<SamplingFilter>(case)?;
    if case.logits.ncols() < 2 {
        return Err("a vocabulary of one token, expected V ≥ 2".to_owned());
    }
    let most = (LARGEST * options.temperature.min(1.0)).min(0.5 * dtype.max());
    for (row, logits) in case.logits.rows().into_iter().enumerate() {
        let fine = |logit: &f64| logit.abs() <= most || *logit == NONE;
        if let Some(logit) = logits.iter().find(|logit| !fine(logit)) {
            return Err(format!("logits[{row}] has {logit}, expected within ±{most} or -inf"));
        }
        if logits.iter().all(|logit| *logit == NONE) {
            return Err(format!("logits[{row}] has no finite number"));
        }
    }
    Ok(())
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<SamplingFilterCase> {
    let (rows, size) = draw_shape(u, options)?;
    let mut logits = vec![0.0; rows * size];
    for row in logits.chunks_mut(size) {
        draw_row(u, row, options)?;
    }
    let logits = Array2::from_shape_vec((rows, size), logits).expect("N·V logits");
    let mut case = SamplingFilterCase { logits };
    shakedown_core::value::record::round(&mut case, dtype);
    let fits = valid(&case, options, dtype).is_ok();
    Ok(if fits { case } else { SamplingFilterCase { logits: Array2::zeros((rows, size)) } })
}

/// N and V: small, and equal on purpose now and then, because broadcasting hides there.
fn draw_shape(u: &mut Unstructured<'_>, options: &Options) -> Result<(usize, usize)> {
    let rows = one(u, &[1, 2, 3, 1, 2, 4])?;
    let size = one(u, &[3, 4, 2, 5, 8, 3, 4, 6, 10])?;
    Ok(match u.arbitrary::<u8>()? {
        0..=24 => (rows.max(2), rows.max(2)),
        25..=40 => (rows.min(2), 16),
        41..=48 => (rows.min(2), 17),
        49..=52 => (1, 33),
        // More tokens than may or must survive.
        53..=60 => (1, least_kept(options).clamp(2, 64) + 2),
        _ => (rows, size),
    })
}

/// How many tokens a row must have before top-k takes one away, or before the least number that
/// must survive counts.
fn least_kept(options: &Options) -> usize {
    usize::try_from(options.top_k.unwrap_or(1).max(options.min_keep)).unwrap_or(usize::MAX)
}

/// The most tokens that are generated so that an option acts.
const MANY: usize = 1024;

/// The logits of one row, in one of the shapes on which real bugs showed.
fn draw_row(u: &mut Unstructured<'_>, logits: &mut [f64], options: &Options) -> Result<()> {
    let size = logits.len();
    let place = u.choose_index(size)?;
    let steep = options.temperature;
    match u.choose_index(12)? {
        0 => logits.fill(one(u, &[0.0, 0.0, 1.0, -3.0, 0.1])?),
        1 => {
            // Some zeros, of which top-p may take a share exactly.
            let zeros = one(u, &[4, 16, 2, 8, size])?.min(size);
            for (at, logit) in logits.iter_mut().enumerate() {
                *logit = if (at + place) % size < zeros { 0.0 } else { NONE };
            }
        }
        2 => {
            logits.fill(one(u, &[0.0, 1.0, -3.0])?);
            logits[place] += steep * one(u, &[5.0, 8.0, 16.0, 30.0, 64.0, 90.0, 120.0])?;
        }
        3 | 4 => {
            for logit in logits.iter_mut() {
                *logit = f64::from(one(u, &[0_i8, 1, 2, -1, 3, -2, 5, -3])?);
            }
        }
        5 => {
            for logit in logits.iter_mut() {
                *logit = one(u, &AWKWARD)?;
            }
        }
        6 => {
            let most = GENERATED * steep.min(1.0);
            let base = one(u, &[100.0, -100.0, most, -most])?;
            for logit in logits.iter_mut() {
                *logit = base - steep * f64::from(one(u, &[0_u8, 1, 2, 3])?);
            }
        }
        7 => {
            // Powers of two: prefix sums stand on shares such as 0.5 and 0.75, within rounding.
            let level = one(u, &[0.0, 1.0, -8.0])?;
            for (at, logit) in logits.iter_mut().enumerate() {
                let power = (at + place) % size;
                *logit = level - steep * LN_2 * (power.min(size - 2) as f64);
            }
        }
        8 | 9 => {
            for logit in logits.iter_mut() {
                *logit = if chance(u, 100)? { NONE } else { normal(u)? };
            }
            if logits[place] == NONE {
                logits[place] = one(u, &[0.0, -1.0, 2.0])?;
            }
        }
        _ => {
            let spread = one(u, &[1.0, 3.0, 12.0])? * steep.max(0.1);
            for logit in logits.iter_mut() {
                *logit = spread * normal(u)?;
            }
        }
    }
    Ok(())
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<SamplingFilterCase> {
    let mut cases = Vec::new();
    let steep = |margin: f64| margin * options.temperature;
    let most = GENERATED * options.temperature.min(1.0);
    let mut alone = |logits: &[f64]| {
        let logits = Array2::from_shape_vec((1, logits.len()), logits.to_vec()).expect("V logits");
        cases.push(SamplingFilterCase { logits });
    };
    for pair in [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, -1.0], [2.0, 0.0]] {
        alone(&pair);
    }
    for margin in [5.0, 20.0, 50.0, 90.0, 120.0] {
        alone(&[0.0, steep(margin)]);
        alone(&[steep(margin), 0.0, 0.0]);
    }
    for level in [100.0, most, -most] {
        alone(&[level, level]);
        alone(&[level, level - steep(1.0), level - steep(2.0)]);
    }
    for logits in [
        &[0.0, 0.0, 0.0][..],
        &[0.0, 1.0, -1.0],
        &[0.0, 1.0, 2.0],
        &[2.0, 1.0, 0.0],
        &[1.0, 0.0, 2.0],
        &[1.0, 1.0, 0.0],
        &[1.0, 0.0, 0.0],
        &[0.1, 0.7, -0.3],
        &[1.003, 0.997, 2.009],
        &[0.0, 1.0, -1.0, 3.0],
        &[3.0, 0.0, 1.0, 2.0],
        &[0.0, 1.0, 1.0, 2.0],
        &[0.0, NONE],
        &[NONE, 0.0],
        &[1.0, NONE, 0.0],
        &[NONE, 0.0, 1.0],
        &[NONE, NONE, 0.0],
        &[NONE, 2.0, NONE, 1.0, -20.0],
        &[3.0, 2.5, 2.0, 1.5, 1.0, 0.5, 0.0],
        // Prefix sums of 0.5 and 0.75, within rounding.
        &[0.0, steep(-LN_2), steep(-2.0 * LN_2), steep(-2.0 * LN_2)],
        &[steep(-LN_2), 0.0, steep(-LN_2)],
    ] {
        alone(logits);
    }
    for size in [4, 8, 16] {
        alone(&vec![0.0; size]);
        let with_others: Vec<f64> =
            (0..=size).map(|token| if token == 1 { NONE } else { 0.0 }).collect();
        alone(&with_others);
    }
    for size in [10, 17, 33] {
        alone(&vec![0.0; size]);
        alone(&(0..size).map(|token| (token % 5) as f64).collect::<Vec<_>>());
        alone(&(0..size).map(|token| (token * 7 % size) as f64 * 0.25).collect::<Vec<_>>());
    }
    let kept = least_kept(options);
    if (4..MANY).contains(&kept) {
        // More tokens than that: none of them negligible, and one before all others.
        let size = kept + 2;
        alone(
            &(0..size)
                .map(|at| steep(4.0 * (at * 7 % size) as f64 / size as f64))
                .collect::<Vec<_>>(),
        );
        alone(
            &(0..size).map(|token| if token == 1 { steep(9.0) } else { 0.0 }).collect::<Vec<_>>(),
        );
    }
    // One row sure, the other not.
    cases.push(SamplingFilterCase { logits: arr2(&[[0.0, 1.0], [0.0, 3.0]]) });
    // Distinct logits everywhere, so that no two rows can be taken for each other.
    for (rows, size) in [(2, 2), (2, 3), (3, 3), (3, 2), (4, 4), (2, 8), (4, 5)] {
        let logits = Array2::from_shape_fn((rows, size), |(row, token)| {
            let at = row * size + token;
            (at * at * 3 % 11) as f64 * 0.5 - 2.0
        });
        cases.push(SamplingFilterCase { logits });
    }
    cases.retain_mut(|case| {
        shakedown_core::value::record::round(case, dtype);
        valid(case, options, dtype).is_ok()
    });
    cases.sort_by_cached_key(SamplingFilter::measure);
    cases
}

/// The largest two logits of a row.
fn first_two(logits: ArrayView1<'_, f64>) -> (f64, f64) {
    logits.iter().fold((NONE, NONE), |(first, second), logit| {
        if *logit > first { (*logit, first) } else { (first, second.max(*logit)) }
    })
}

/// A row is near one-hot when its largest logit leads by this many temperatures.
pub(super) const DOMINANT: f64 = 5.0;

/// By how many temperatures the largest logit of a row leads the others.
pub(super) fn lead(logits: ArrayView1<'_, f64>, options: &Options) -> f64 {
    let (first, second) = first_two(logits);
    (first - second) / options.temperature
}

fn any(case: &SamplingFilterCase, is: impl Fn(ArrayView1<'_, f64>) -> bool) -> bool {
    case.logits.rows().into_iter().any(is)
}

/// Whether some row, as the definition sees it at f64, is one of these.
fn any_row(case: &SamplingFilterCase, options: &Options, is: impl Fn(&Row) -> bool) -> bool {
    any(case, |logits| is(&Row::of(logits, options, Dtype::F64)))
}

pub(super) fn classes() -> Vec<Class<SamplingFilter>> {
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let by_top_k: fn(&Options, Dtype) -> bool =
        |options, _| options.top_k.is_some_and(|k| k.max(options.min_keep) < 5);
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "tokens-taken-away",
            "a row of which the filters take a token",
            |c, o| any_row(c, o, |row| row.left[row.left.len() - 1] < row.size()),
            |options: &Options, _| options.top_k.is_some() && least_kept(options) < MANY,
        ),
        class(
            "nothing-taken-away",
            "a row that the filters leave as it is",
            |c, o| any_row(c, o, |row| row.left == [row.size()]),
            |o, _| o.top_k.is_none() && o.top_p.is_none() && o.min_p.is_none(),
        ),
        class(
            "tie-at-a-boundary",
            "a row of which more than one number of tokens may be left",
            |c, o| any_row(c, o, |row| row.left.len() > 1),
            by_top_k,
        ),
        class(
            "exact-boundary",
            "4 or 16 logits of 0, of which top-p takes a share exactly",
            |c, o| {
                let share = |size| o.top_p.is_some_and(|p| (p * size as f64).fract() == 0.0);
                any(c, |logits| {
                    let zeros = logits.iter().filter(|logit| **logit == 0.0).count();
                    let others = logits.iter().filter(|logit| logit.is_finite()).count() - zeros;
                    [4, 16].contains(&zeros) && others == 0 && share(zeros)
                })
            },
            |o, _| o.top_p.is_some_and(|p| (p * 4.0).fract() == 0.0),
        ),
        class(
            "few-possible-tokens",
            "a row with fewer finite logits than must survive",
            |c, o| any_row(c, o, |row| row.size() < o.min_keep as usize),
            |o, _| o.min_keep > 1,
        ),
        class(
            "uniform",
            "a row of equal logits",
            |c, _| any(c, |logits| logits.iter().all(|logit| *logit == logits[0])),
            always,
        ),
        class(
            "near-one-hot",
            "a row whose largest logit leads by 5 temperatures or more",
            |c, o| any(c, |logits| (DOMINANT..f64::INFINITY).contains(&lead(logits, o))),
            always,
        ),
        class(
            "sure",
            "a row whose largest logit leads by 88 temperatures or more, beyond exp in f32",
            |c, o| any(c, |logits| (88.0..f64::INFINITY).contains(&lead(logits, o))),
            always,
        ),
        class(
            "tied-maximum",
            "a row with two largest logits, and a smaller one",
            |c, o| {
                any(c, |logits| {
                    lead(logits, o) == 0.0 && logits.iter().any(|logit| *logit < logits[0])
                })
            },
            always,
        ),
        class(
            "unsorted",
            "a row whose logits neither rise nor fall",
            |c, _| {
                any(c, |logits| {
                    let sorted = |sign: f64| logits.iter().is_sorted_by_key(|logit| sign * *logit);
                    !sorted(1.0) && !sorted(-1.0)
                })
            },
            always,
        ),
        class(
            "far-from-zero",
            "a row whose logits are all of magnitude 88 or more",
            |c, _| any(c, |logits| logits.iter().all(|logit| logit.abs() >= 88.0)),
            |o, _| o.temperature >= 0.1,
        ),
        class(
            "neg-inf",
            "a logit of -inf",
            |c, _| c.logits.iter().any(|logit| *logit == NONE),
            always,
        ),
        class(
            "bf16-awkward",
            "a logit that bf16 does not hold",
            |c, _| c.logits.iter().any(|logit| Dtype::Bf16.round(*logit) != *logit),
            |_, dtype| dtype != Dtype::Bf16,
        ),
        class("two-tokens", "V = 2", |c, _| c.logits.ncols() == 2, always),
        class("wide-vocabulary", "V ≥ 16", |c, _| c.logits.ncols() >= 16, always),
        class("square", "N = V", |c, _| c.logits.is_square(), always),
        class("one-row", "N = 1", |c, _| c.logits.nrows() == 1, always),
        class("several-rows", "N ≥ 2", |c, _| c.logits.nrows() > 1, always),
    ]
}
