//! Cases of `token-entropy`: random draws, corners and classes.

use arbitrary::{Result, Unstructured};
use ndarray::{Array3, ArrayView1};

use super::{NegInf, Options, TokenEntropy, TokenEntropyCase, positions, vocabulary};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::draw::{AWKWARD, chance, normal, one};
use shakedown_core::value::place::Dtype;

/// The largest magnitude of a logit over the temperature. Beyond it the two forms of the entropy
/// have no digit in common.
const LARGEST: f64 = 1e4;

/// The largest one that is generated.
const GENERATED: f64 = 1e3;

pub(super) fn valid(
    case: &TokenEntropyCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<TokenEntropy>(case)?;
    if vocabulary(case) < 2 {
        return Err("a vocabulary of one token, expected V ≥ 2".to_owned());
    }
    positions(case).try_for_each(|(at, logits)| check_position(at, logits, options, dtype))
}

/// Whether the logits of a position are within the contract.
pub(crate) fn check_position(
    (row, column): (usize, usize),
    logits: ArrayView1<'_, f64>,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    let most = (LARGEST * options.temperature).min(0.5 * dtype.max());
    let masked = options.neg_inf != NegInf::Avoid;
    let fine = |logit: &f64| logit.abs() <= most || (masked && *logit == f64::NEG_INFINITY);
    if let Some(logit) = logits.iter().find(|logit| !fine(logit)) {
        return Err(format!("logits[{row}, {column}] has {logit}, expected within ±{most}"));
    }
    if logits.iter().all(|logit| logit.is_infinite()) {
        return Err(format!("logits[{row}, {column}] has no finite number"));
    }
    Ok(())
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<TokenEntropyCase> {
    let (rows, columns, size) = draw_shape(u)?;
    let mut logits = vec![0.0; rows * columns * size];
    for position in logits.chunks_mut(size) {
        draw_position(u, position, options)?;
    }
    let logits = Array3::from_shape_vec((rows, columns, size), logits).expect("N·T·V logits");
    let mut case = TokenEntropyCase { logits };
    shakedown_core::value::record::round(&mut case, dtype);
    let fits = valid(&case, options, dtype).is_ok();
    Ok(if fits { case } else { TokenEntropyCase { logits: Array3::zeros(case.logits.dim()) } })
}

/// N, T and V: small, and equal on purpose now and then, because broadcasting hides there.
fn draw_shape(u: &mut Unstructured<'_>) -> Result<(usize, usize, usize)> {
    let rows = one(u, &[2, 1, 3, 2, 1, 4])?;
    let columns = one(u, &[1, 2, 3, 2, 4, 5])?;
    let size = one(u, &[3, 4, 2, 5, 8, 3, 4, 6])?;
    let side = rows.max(2);
    Ok(match u.arbitrary::<u8>()? {
        0..=24 => (side, side, size),
        25..=49 => (side, side, side),
        50..=57 => (rows.min(2), columns.min(2), 17),
        58..=61 => (1, columns.min(2), 33),
        _ => (rows, columns, size),
    })
}

/// The logits of one position, in one of the shapes on which real bugs showed.
pub(crate) fn draw_position(
    u: &mut Unstructured<'_>,
    logits: &mut [f64],
    options: &Options,
) -> Result<()> {
    let size = logits.len();
    let place = u.choose_index(size)?;
    let steep = options.temperature;
    match u.choose_index(10)? {
        0 => logits.fill(one(u, &AWKWARD)?),
        1 | 2 => {
            logits.fill(one(u, &[0.0, 0.0, 1.0, -3.0])?);
            logits[place] += steep * one(u, &[5.0, 8.0, 16.0, 30.0, 50.0, 64.0, 90.0, 120.0])?;
        }
        3 => {
            for logit in logits.iter_mut() {
                *logit = f64::from(one(u, &[0_i8, 1, 2, -1, 3, -2, 5, -3])?);
            }
        }
        4 => {
            for logit in logits.iter_mut() {
                *logit = one(u, &AWKWARD)?;
            }
        }
        5 => {
            let most = GENERATED * steep.min(1.0);
            let base = one(u, &[100.0, -100.0, most, -most])?;
            for logit in logits.iter_mut() {
                *logit = base - steep * f64::from(one(u, &[0_u8, 1, 2, 3])?);
            }
        }
        6 => {
            // Steps that bf16 does not hold.
            for logit in logits.iter_mut() {
                *logit = 2.0 + normal(u)? / 64.0;
            }
        }
        7 if options.neg_inf != NegInf::Avoid => {
            for logit in logits.iter_mut() {
                *logit = if chance(u, 100)? { f64::NEG_INFINITY } else { normal(u)? };
            }
            if logits[place].is_infinite() {
                logits[place] = one(u, &[0.0, -1.0, 2.0])?;
            }
        }
        _ => {
            let spread = one(u, &[1.0, 3.0, 12.0])?;
            for logit in logits.iter_mut() {
                *logit = spread * normal(u)?;
            }
        }
    }
    Ok(())
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<TokenEntropyCase> {
    let mut cases = Vec::new();
    let none = f64::NEG_INFINITY;
    let steep = |margin: f64| margin * options.temperature;
    let most = GENERATED * options.temperature.min(1.0);
    let mut alone = |logits: &[f64]| {
        let shape = (1, 1, logits.len());
        let logits = Array3::from_shape_vec(shape, logits.to_vec()).expect("V logits");
        cases.push(TokenEntropyCase { logits });
    };
    for pair in [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, -1.0], [0.0, 2.0]] {
        alone(&pair);
    }
    for margin in [5.0, 20.0, 50.0, 90.0, 120.0] {
        alone(&[0.0, steep(margin)]);
        alone(&[steep(margin), 0.0, 0.0]);
    }
    for level in [0.1, 100.0, most, -most] {
        alone(&[level, level]);
        alone(&[level, level - steep(1.0)]);
    }
    for logits in [
        &[0.0, 0.0, 0.0][..],
        &[0.0, 1.0, 2.0],
        &[1.0, 1.0, 0.0],
        &[0.1, 0.7, -0.3],
        &[1.003, 0.997, 2.009],
        &[0.0, 1.0, -1.0, 3.0],
        &[0.0, none],
        &[none, 0.0],
        &[0.0, none, 0.0],
        &[0.0, none, 1.0],
        &[none, none, 0.0],
        &[none, 2.0, none, 1.0, -20.0],
    ] {
        alone(logits);
    }
    for size in [4, 8, 17, 33] {
        alone(&vec![0.0; size]);
        alone(&(0..size).map(|entry| (entry % 5) as f64).collect::<Vec<_>>());
    }
    // Distinct logits everywhere, so that no two positions can be taken for each other.
    for (rows, columns, size) in
        [(2, 1, 2), (1, 2, 2), (2, 2, 2), (3, 3, 3), (2, 2, 3), (2, 3, 4), (3, 1, 3)]
    {
        let logits = Array3::from_shape_fn((rows, columns, size), |(row, column, entry)| {
            let at = (row * columns + column) * size + entry;
            (at * at * 3 % 11) as f64 * 0.5 - 2.0
        });
        cases.push(TokenEntropyCase { logits });
    }
    cases.retain_mut(|case| {
        shakedown_core::value::record::round(case, dtype);
        valid(case, options, dtype).is_ok()
    });
    cases.sort_by_cached_key(TokenEntropy::measure);
    cases
}

/// A position is near one-hot when its largest logit leads by this many temperatures.
pub(crate) const DOMINANT: f64 = 5.0;

/// By how many temperatures the largest logit of a position leads the others.
pub(crate) fn lead(logits: ArrayView1<'_, f64>, options: &Options) -> f64 {
    let [mut first, mut second] = [f64::NEG_INFINITY; 2];
    for logit in logits {
        if *logit > first {
            (first, second) = (*logit, first);
        } else {
            second = second.max(*logit);
        }
    }
    (first - second) / options.temperature
}

fn any(case: &TokenEntropyCase, is: impl Fn(ArrayView1<'_, f64>) -> bool) -> bool {
    positions(case).any(|(_, logits)| is(logits))
}

pub(super) fn classes() -> Vec<Class<TokenEntropy>> {
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "uniform",
            "a position of equal logits",
            |c, _| any(c, |logits| logits.iter().all(|logit| *logit == logits[0])),
            always,
        ),
        class(
            "near-one-hot",
            "a position whose largest logit leads by 5 temperatures or more",
            |c, o| any(c, |logits| (DOMINANT..f64::INFINITY).contains(&lead(logits, o))),
            always,
        ),
        class(
            "sure",
            "a position whose largest logit leads by 88 temperatures or more, beyond exp in f32",
            |c, o| any(c, |logits| (88.0..f64::INFINITY).contains(&lead(logits, o))),
            always,
        ),
        class(
            "tied-maximum",
            "a position with two largest logits, and a smaller one",
            |c, o| {
                any(c, |logits| {
                    lead(logits, o) == 0.0 && logits.iter().any(|logit| *logit != logits[0])
                })
            },
            always,
        ),
        class(
            "far-from-zero",
            "a position whose logits are all of magnitude 88 or more",
            |c, _| any(c, |logits| logits.iter().all(|logit| logit.abs() >= 88.0)),
            always,
        ),
        class(
            "neg-inf",
            "a logit of -inf",
            |c, _| any(c, |logits| logits.iter().any(|logit| logit.is_infinite())),
            |options, _| options.neg_inf != NegInf::Avoid,
        ),
        class(
            "bf16-awkward",
            "a logit that bf16 does not hold",
            |c, _| c.logits.iter().any(|logit| Dtype::Bf16.round(*logit) != *logit),
            |_, dtype| dtype != Dtype::Bf16,
        ),
        class("two-tokens", "V = 2", |c, _| vocabulary(c) == 2, always),
        class("wide-vocabulary", "V ≥ 17", |c, _| vocabulary(c) >= 17, always),
        class(
            "square",
            "N = T ≥ 2",
            |c, _| c.logits.dim().0 == c.logits.dim().1 && c.logits.dim().0 > 1,
            always,
        ),
        class("one-row", "N = 1", |c, _| c.logits.dim().0 == 1, always),
        class("several-rows", "N ≥ 2", |c, _| c.logits.dim().0 > 1, always),
        class("one-column", "T = 1", |c, _| c.logits.dim().1 == 1, always),
        class("several-columns", "T ≥ 2", |c, _| c.logits.dim().1 > 1, always),
    ]
}
