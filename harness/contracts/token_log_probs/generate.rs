//! Cases of `token-log-probs`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::{Array2, Array3, Axis};

use super::{
    Options, Shift, TokenLogProbs, TokenLogProbsCase, columns, position, scored, vocabulary,
};
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows::Rows;
use shakedown_core::generate::draw::{AWKWARD, chance, extreme, normal, one};
use shakedown_core::generate::measure::{Measure, complexity, simpler_numbers};
use shakedown_core::value::place::Dtype;

pub(super) fn valid(
    case: &TokenLogProbsCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    let (rows, length, size) = case.logits.dim();
    if case.tokens.dim() != (rows, length) {
        let tokens = case.tokens.shape();
        return Err(format!("tokens of shape {tokens:?}, expected [{rows}, {length}]"));
    }
    let least = 1 + options.shift.offset();
    if rows == 0 || length < least || size < 2 {
        return Err(format!(
            "logits of shape [{rows}, {length}, {size}], expected N ≥ 1, T ≥ {least}, V ≥ 2"
        ));
    }
    if let Some(token) = case.tokens.iter().find(|token| !(0..size as i64).contains(*token)) {
        return Err(format!("token {token} is outside 0 to {}", size - 1));
    }
    let most = held(options, dtype);
    for logit in &case.logits {
        if !(*logit == f64::NEG_INFINITY || logit.abs() <= most) {
            return Err(format!("logit {logit} is not -inf and not within ±{most}"));
        }
    }
    let mut positions = case.logits.lanes(Axis(2)).into_iter();
    if positions.any(|logits| logits.iter().all(|logit| logit.is_infinite())) {
        return Err("a position without a finite logit".to_owned());
    }
    let impossible = scored(case, options)
        .find(|(row, column, token)| case.logits[[*row, *column, *token]].is_infinite());
    if let Some((row, column, token)) = impossible {
        return Err(format!("the token {token} that logits[{row}, {column}] score has logit -inf"));
    }
    Ok(())
}

/// The largest logit with which every log-probability is a finite number of the dtype.
fn held(options: &Options, dtype: Dtype) -> f64 {
    0.5 * dtype.max() * options.temperature.min(1.0)
}

/// The largest logit that is generated.
fn limit(options: &Options, dtype: Dtype) -> f64 {
    extreme(dtype).min(0.9 * held(options, dtype))
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<TokenLogProbsCase> {
    let offset = options.shift.offset();
    let (rows, length, size) = draw_shape(u, 1 + offset)?;
    let most = limit(options, dtype);
    let mut logits = Vec::with_capacity(rows * length * size);
    for _ in 0..rows * length {
        let from = logits.len();
        logits.resize(from + size, 0.0);
        draw_position(u, &mut logits[from..], options.temperature, most)?;
    }
    let mut tokens = Vec::with_capacity(rows * length);
    for row in 0..rows {
        for column in 0..length {
            let from = (row * length + column).saturating_sub(offset) * size;
            let scored = &logits[from..from + size];
            let token = match u.choose_index(6)? {
                0 | 1 => argmax(scored),
                2 => 0,
                3 => size - 1,
                _ => u.choose_index(size)?,
            };
            let possible = scored[token].is_finite() || column < offset;
            tokens.push(if possible { token } else { argmax(scored) } as i64);
        }
    }
    let case = TokenLogProbsCase {
        logits: Array3::from_shape_vec((rows, length, size), logits).expect("N·T·V logits"),
        tokens: Array2::from_shape_vec((rows, length), tokens).expect("N·T tokens"),
    };
    assert_eq!(valid(&case, options, dtype), Ok(()));
    Ok(case)
}

/// N, T and V: small, and equal on purpose now and then, because broadcasting hides there.
fn draw_shape(u: &mut Unstructured<'_>, shortest: usize) -> Result<(usize, usize, usize)> {
    let rows = one(u, &[2, 1, 3, 2, 1, 4])?;
    let length = one(u, &[1, 2, 3, 2, 4, 5])?.max(shortest);
    let size = one(u, &[3, 4, 2, 5, 8, 3, 4, 6])?;
    let side = rows.max(2);
    Ok(match u.arbitrary::<u8>()? {
        0..=24 => (side, side, size),
        25..=49 => (side, side, side),
        50..=57 => (rows.min(2), length.min(2), 17),
        58..=61 => (1, length.min(2), 33),
        _ => (rows, length, size),
    })
}

/// The logits of one position, in one of the shapes on which real bugs showed.
fn draw_position(
    u: &mut Unstructured<'_>,
    logits: &mut [f64],
    temperature: f64,
    most: f64,
) -> Result<()> {
    let size = logits.len();
    let far = most.min(1e4);
    let pattern = u.choose_index(13)?;
    let place = u.choose_index(size)?;
    match pattern {
        0 => logits.fill(one(u, &AWKWARD)?),
        1 | 2 => {
            logits.fill(one(u, &[0.0, 0.0, 1.0, -3.0])?);
            let margin = one(u, &[5.0, 8.0, 16.0, 20.0, 30.0, 50.0, 64.0, 90.0])?;
            logits[place] += margin * temperature.max(1.0);
        }
        3 => {
            for logit in logits.iter_mut() {
                *logit = f64::from(one(u, &[0_i8, 1, 2, -1, 3, -2, 5, -3])?);
            }
        }
        4 => {
            // A tie for the largest.
            for logit in logits.iter_mut() {
                *logit = f64::from(one(u, &[0_i8, -1, 1, -4])?);
            }
            logits[place] = 2.0;
            logits[(place + 1) % size] = 2.0;
        }
        5 => {
            for logit in logits.iter_mut() {
                *logit = one(u, &AWKWARD)?;
            }
        }
        6 | 7 => {
            let base = one(u, &[1e3, -1e3, far, -far])?;
            for logit in logits.iter_mut() {
                *logit = base + f64::from(one(u, &[0_i8, 1, -1, 2, -2])?);
            }
        }
        8 => {
            for logit in logits.iter_mut() {
                *logit = one(u, &[0.0, far, -far, 1e3, -1e3])?;
            }
        }
        9 => {
            // Steps that bf16 does not hold.
            for logit in logits.iter_mut() {
                *logit = 2.0 + normal(u)? / 64.0;
            }
        }
        10 => {
            for logit in logits.iter_mut() {
                *logit = if chance(u, 100)? { f64::NEG_INFINITY } else { normal(u)? };
            }
            if logits[place].is_infinite() {
                logits[place] = one(u, &[0.0, -1.0, 2.0, -90.0])?;
            }
        }
        _ => {
            let spread = one(u, &[1.0, 3.0, 12.0])?;
            for logit in logits.iter_mut() {
                *logit = spread * normal(u)?;
            }
        }
    }
    for logit in logits {
        // Not `clamp`: -inf stays.
        if logit.is_finite() && logit.abs() > most {
            *logit = most.copysign(*logit);
        }
    }
    Ok(())
}

/// The first of the largest.
pub(super) fn argmax(logits: &[f64]) -> usize {
    let mut best = 0;
    for (entry, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = entry;
        }
    }
    best
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<TokenLogProbsCase> {
    let mut cases = Vec::new();
    let steep = |margin: f64| margin * options.temperature.max(1.0);
    let far = limit(options, dtype).min(1e4);
    let none = f64::NEG_INFINITY;
    let offset = options.shift.offset();
    let alone = |cases: &mut Vec<TokenLogProbsCase>, logits: &[f64], tokens: &[i64]| {
        for token in tokens {
            let mut values = logits.to_vec();
            values.resize(logits.len() * (1 + offset), 0.0);
            let mut scored = vec![0; offset];
            scored.push(*token);
            cases.push(from_parts((1, 1 + offset, logits.len()), values, scored));
        }
    };
    for pair in [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, -1.0], [0.0, 2.0]] {
        alone(&mut cases, &pair, &[0, 1]);
    }
    alone(&mut cases, &[0.0, none], &[0]);
    alone(&mut cases, &[none, 0.0], &[1]);
    // Distinct logits everywhere, so that no two positions can be taken for each other.
    for (rows, length, size) in [(2, 1, 2), (1, 2, 2), (2, 2, 2), (3, 3, 3), (2, 2, 3), (2, 3, 4)] {
        let length = length.max(1 + offset);
        let count = rows * length;
        let logits = (0..count * size).map(|i| (i * 7 % 11) as f64 * 0.5 - 2.0).collect();
        let tokens = (0..count).map(|i| (i * 5 % 7 % size) as i64).collect();
        cases.push(from_parts((rows, length, size), logits, tokens));
    }
    for margin in [5.0, 20.0, 50.0, 90.0, 120.0] {
        alone(&mut cases, &[0.0, steep(margin)], &[0, 1]);
    }
    for margin in [10.0, 30.0, 90.0] {
        alone(&mut cases, &[0.0, steep(margin), 0.0], &[0, 1]);
    }
    for level in [0.1, 100.0, 1e3, far, -far] {
        alone(&mut cases, &[level, level], &[0]);
        alone(&mut cases, &[level, level + 1.0], &[0, 1]);
    }
    for [low, high] in [[0.0, 1e3], [-1e3, 0.0], [0.0, far], [-far, far]] {
        alone(&mut cases, &[low, high], &[0, 1]);
    }
    alone(&mut cases, &[0.0, 0.0, 0.0], &[0]);
    alone(&mut cases, &[0.0, 1.0, 2.0], &[0, 1, 2]);
    alone(&mut cases, &[1.0, 1.0, 0.0], &[0, 2]);
    alone(&mut cases, &[0.0, none, 1.0], &[0, 2]);
    alone(&mut cases, &[none, none, 0.0], &[2]);
    alone(&mut cases, &[none, 0.0, 0.0], &[1]);
    alone(&mut cases, &[0.1, 0.7, -0.3], &[0, 1]);
    alone(&mut cases, &[1.003, 0.997, 2.009], &[0, 1]);
    alone(&mut cases, &[0.0, 1.0, -1.0, 3.0], &[0, 3]);
    alone(&mut cases, &[none, 2.0, none, 1.0, -20.0], &[1, 4]);
    for size in [4, 8, 17, 33] {
        alone(&mut cases, &vec![0.0; size], &[0]);
        let steps: Vec<f64> = (0..size).map(|entry| (entry % 5) as f64).collect();
        alone(&mut cases, &steps, &[0, size as i64 - 1]);
    }
    cases.retain_mut(|case| {
        shakedown_core::value::record::round(case, dtype);
        valid(case, options, dtype).is_ok()
    });
    cases
}

fn from_parts(
    shape: (usize, usize, usize),
    logits: Vec<f64>,
    tokens: Vec<i64>,
) -> TokenLogProbsCase {
    TokenLogProbsCase {
        logits: Array3::from_shape_vec(shape, logits).expect("N·T·V logits"),
        tokens: Array2::from_shape_vec((shape.0, shape.1), tokens).expect("N·T tokens"),
    }
}

/// Rows, columns, vocabulary, distinct logits, tokens, the numbers, and how early the complex ones
/// stand.
pub(super) fn measure(case: &TokenLogProbsCase) -> Measure {
    let (rows, length, size) = case.logits.dim();
    let tokens: u64 = case.tokens.iter().map(|token| token.unsigned_abs()).sum();
    let (mut numbers, mut early) = (0, 0);
    for (place, logit) in case.logits.iter().enumerate() {
        let complexity = complexity(*logit);
        numbers += complexity;
        early += complexity * (case.logits.len() - 1 - place) as u64;
    }
    let distinct = distinct(case).len() as u64;
    Measure(vec![rows as u64, length as u64, size as u64, distinct, tokens, numbers, early])
}

fn distinct(case: &TokenLogProbsCase) -> Vec<f64> {
    let mut logits: Vec<f64> = case.logits.iter().copied().collect();
    logits.sort_by(f64::total_cmp);
    logits.dedup_by_key(|logit| logit.to_bits());
    logits
}

/// More distinct logits than this are not replaced by each other one by one.
const FEW: usize = 24;

pub(super) fn simpler(case: &TokenLogProbsCase) -> Vec<TokenLogProbsCase> {
    let mut candidates = Vec::new();
    smaller(case, &mut candidates);
    simpler_tokens(case, &mut candidates);
    let change = |change: &dyn Fn(f64) -> f64| TokenLogProbsCase {
        logits: case.logits.mapv(|logit| if logit.is_finite() { change(logit) } else { logit }),
        ..case.clone()
    };
    let replace = |from: f64, to: f64| TokenLogProbsCase {
        logits: case.logits.mapv(|logit| if same(logit, from) { to } else { logit }),
        ..case.clone()
    };
    let values = distinct(case);
    let finite: Vec<f64> = values.iter().copied().filter(|logit| logit.is_finite()).collect();
    for constant in [0.0, 1.0, -1.0].iter().chain(&finite) {
        candidates.push(change(&|_| *constant));
    }
    if values.len() <= FEW {
        for from in &values {
            for to in &values {
                candidates.push(replace(*from, *to));
            }
        }
    }
    for decimals in 0..4 {
        let scale = 10_f64.powi(decimals);
        candidates.push(change(&|logit| (logit * scale).round() / scale));
    }
    for origin in [finite.first(), finite.last()].into_iter().flatten() {
        candidates.push(change(&|logit| logit - origin));
    }
    candidates.push(change(&f64::abs));
    candidates.push(change(&|logit| (logit / 2.0).trunc()));
    for from in &values {
        for to in simpler_logits(*from) {
            candidates.push(replace(*from, to));
        }
    }
    for (index, logit) in case.logits.indexed_iter() {
        for to in simpler_logits(*logit) {
            let mut changed = case.clone();
            changed.logits[index] = to;
            candidates.push(changed);
        }
    }
    if values.len() <= FEW {
        later(case, &mut candidates);
    }
    candidates
}

/// Complex numbers change places with simpler ones behind them: so that two cases which differ
/// only in where a number stands have one minimum.
fn later(case: &TokenLogProbsCase, candidates: &mut Vec<TokenLogProbsCase>) {
    let places: Vec<((usize, usize, usize), f64)> =
        case.logits.indexed_iter().map(|(place, logit)| (place, *logit)).collect();
    for (from, (first, complex)) in places.iter().enumerate() {
        for (second, simple) in places[from + 1..].iter().rev() {
            if complexity(*simple) < complexity(*complex) {
                let mut changed = case.clone();
                changed.logits.swap(*first, *second);
                candidates.push(changed);
            }
        }
    }
}

/// Simpler numbers, and integers a share closer to 0: so that the search for the smallest margin
/// on which a bug shows does not go down in steps of one.
fn simpler_logits(x: f64) -> Vec<f64> {
    let mut candidates = simpler_numbers(x);
    if x.is_finite() && x.abs() > 8.0 {
        candidates.extend((2..=12).map(|k| (x - x / f64::from(1 << k)).trunc()));
        candidates.retain(|candidate| complexity(*candidate) < complexity(x));
        candidates.sort_by(|a, b| complexity(*a).cmp(&complexity(*b)).then(a.total_cmp(b)));
        candidates.dedup();
    }
    candidates
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits()
}

/// Fewer rows, columns and tokens of the vocabulary.
fn smaller(case: &TokenLogProbsCase, candidates: &mut Vec<TokenLogProbsCase>) {
    let (rows, length, size) = case.logits.dim();
    if rows > 1 {
        let rest = |dropped: usize| (0..rows).filter(move |row| *row != dropped);
        candidates.extend((0..rows).map(|row| TokenLogProbs::take(case, &[row])));
        candidates
            .extend((0..rows).map(|row| TokenLogProbs::take(case, &rest(row).collect::<Vec<_>>())));
    }
    let mut take = |kept: Vec<usize>| {
        candidates.push(TokenLogProbsCase {
            logits: case.logits.select(Axis(1), &kept).as_standard_layout().into_owned(),
            tokens: case.tokens.select(Axis(1), &kept).as_standard_layout().into_owned(),
        });
    };
    if length > 1 {
        (0..length).for_each(|column| take(vec![column]));
        (1..length).filter(|_| length > 2).for_each(|column| take(vec![column - 1, column]));
        (0..length).for_each(|dropped| take((0..length).filter(|c| *c != dropped).collect()));
    }
    if size > 2 {
        let half = size / 2;
        candidates.push(with_vocabulary(case, &(0..half.max(2)).collect::<Vec<_>>()));
        candidates.push(with_vocabulary(case, &(size - half.max(2)..size).collect::<Vec<_>>()));
        for dropped in (0..size).rev() {
            let kept: Vec<usize> = (0..size).filter(|entry| *entry != dropped).collect();
            candidates.push(with_vocabulary(case, &kept));
        }
    }
}

/// The case with some entries of the vocabulary only, in that order. A token whose entry is gone
/// becomes token 0.
pub(super) fn with_vocabulary(case: &TokenLogProbsCase, kept: &[usize]) -> TokenLogProbsCase {
    let renamed = |token: &i64| {
        let token = usize::try_from(*token).unwrap_or(usize::MAX);
        kept.iter().position(|entry| *entry == token).unwrap_or(0) as i64
    };
    TokenLogProbsCase {
        logits: case.logits.select(Axis(2), kept).as_standard_layout().into_owned(),
        tokens: case.tokens.map(renamed),
    }
}

/// Smaller tokens: by another name for the same entry of the vocabulary, or another entry.
fn simpler_tokens(case: &TokenLogProbsCase, candidates: &mut Vec<TokenLogProbsCase>) {
    let size = vocabulary(case);
    candidates.push(TokenLogProbsCase { tokens: case.tokens.mapv(|_| 0), ..case.clone() });
    for other in (1..size.min(FEW)).rev() {
        for entry in 0..other {
            let mut order: Vec<usize> = (0..size).collect();
            order.swap(entry, other);
            candidates.push(with_vocabulary(case, &order));
        }
    }
    for (index, token) in case.tokens.indexed_iter() {
        for smaller in (0..*token).take(FEW) {
            let mut changed = case.clone();
            changed.tokens[index] = smaller;
            candidates.push(changed);
        }
    }
}

/// How far the largest logit of a position leads the others, in units of the temperature, and
/// which it is.
pub(super) fn lead(
    case: &TokenLogProbsCase,
    options: &Options,
    at: (usize, usize),
) -> (f64, usize) {
    let logits = position(case, at.0, at.1);
    let mut best = 0;
    let mut second = f64::NEG_INFINITY;
    for (entry, logit) in logits.iter().enumerate().skip(1) {
        if *logit > logits[best] {
            second = logits[best];
            best = entry;
        } else {
            second = second.max(*logit);
        }
    }
    ((logits[best] - second) / options.temperature, best)
}

/// A position is near one-hot when its largest logit leads by this much.
pub(super) const DOMINANT: f64 = 5.0;

fn any_position(
    case: &TokenLogProbsCase,
    options: &Options,
    is: impl Fn(usize, usize, usize) -> bool,
) -> bool {
    scored(case, options).any(|(row, column, token)| is(row, column, token))
}

fn dominated(case: &TokenLogProbsCase, options: &Options, scored: impl Fn(bool) -> bool) -> bool {
    any_position(case, options, |row, column, token| {
        let (lead, best) = lead(case, options, (row, column));
        (DOMINANT..f64::INFINITY).contains(&lead) && scored(token == best)
    })
}

pub(super) fn classes() -> Vec<Class<TokenLogProbs>> {
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let steep: fn(&Options, Dtype) -> bool =
        |options, dtype| limit(options, dtype) >= 40.0 * options.temperature;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "near-one-hot",
            "a scored position whose largest logit leads by 5 temperatures or more",
            |c, o| dominated(c, o, |_| true),
            steep,
        ),
        class(
            "dominant-scored",
            "a near-one-hot position that scores its largest logit",
            |c, o| dominated(c, o, |own| own),
            steep,
        ),
        class(
            "dominant-not-scored",
            "a near-one-hot position that scores another token",
            |c, o| dominated(c, o, |own| !own),
            steep,
        ),
        class(
            "hopeless-token",
            "a scored token more than 18 temperatures below the largest logit",
            |c, o| {
                any_position(c, o, |row, column, token| {
                    let (_, best) = lead(c, o, (row, column));
                    let logits = position(c, row, column);
                    logits[best] - logits[token] > 18.0 * o.temperature
                })
            },
            steep,
        ),
        class(
            "most-likely-scored",
            "a scored token with the largest logit of its position",
            |c, o| any_position(c, o, |row, column, token| lead(c, o, (row, column)).1 == token),
            always,
        ),
        class(
            "uniform",
            "a scored position of equal logits",
            |c, o| {
                any_position(c, o, |row, column, _| {
                    let logits = position(c, row, column);
                    logits.iter().all(|logit| *logit == logits[0])
                })
            },
            always,
        ),
        class(
            "tied-maximum",
            "a scored position with two largest logits, and a smaller one",
            |c, o| {
                any_position(c, o, |row, column, _| {
                    let logits = position(c, row, column);
                    lead(c, o, (row, column)).0 == 0.0 && logits.iter().any(|x| *x != logits[0])
                })
            },
            always,
        ),
        class(
            "neg-inf",
            "a scored position with a logit of -inf",
            |c, o| {
                any_position(c, o, |row, column, _| {
                    position(c, row, column).iter().any(|logit| logit.is_infinite())
                })
            },
            always,
        ),
        class(
            "extreme-logits",
            "a finite logit of 1000 or more",
            |c, _| c.logits.iter().any(|logit| logit.is_finite() && logit.abs() >= 1e3),
            |options, dtype| limit(options, dtype) >= 1e3,
        ),
        class(
            "far-from-zero",
            "a scored position whose logits differ by less than a hundredth of their size",
            |c, o| {
                any_position(c, o, |row, column, _| {
                    let logits = position(c, row, column);
                    let least = logits.iter().copied().fold(f64::INFINITY, f64::min);
                    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    least.abs() >= 50.0 && (most - least) < 0.01 * least.abs()
                })
            },
            |options, dtype| limit(options, dtype) >= 1e3,
        ),
        class(
            "bf16-awkward",
            "a logit that bf16 does not hold",
            |c, _| c.logits.iter().any(|logit| Dtype::Bf16.round(*logit) != *logit),
            |_, dtype| dtype != Dtype::Bf16,
        ),
        class(
            "first-token",
            "token 0 is scored",
            |c, o| any_position(c, o, |_, _, token| token == 0),
            always,
        ),
        class(
            "last-token",
            "token V - 1 is scored",
            |c, o| any_position(c, o, |_, _, token| token + 1 == vocabulary(c)),
            always,
        ),
        class("two-tokens", "V = 2", |c, _| vocabulary(c) == 2, always),
        class("wide-vocabulary", "V ≥ 17", |c, _| vocabulary(c) >= 17, always),
        class("square", "N = T ≥ 2", |c, _| c.tokens.is_square() && c.tokens.nrows() > 1, always),
        class(
            "cube",
            "N = T = V",
            |c, _| c.tokens.is_square() && c.tokens.nrows() == vocabulary(c),
            always,
        ),
        class("one-row", "N = 1", |c, _| c.tokens.nrows() == 1, always),
        class("several-rows", "N ≥ 2", |c, _| c.tokens.nrows() > 1, always),
        class("one-token-row", "rows of one scored token", |c, o| columns(c, o) == 1, always),
        class(
            "several-tokens",
            "rows of two scored tokens or more",
            |c, o| columns(c, o) > 1,
            always,
        ),
        class(
            "square-output",
            "N = T - 1 ≥ 2 with `shift: next`",
            |c, o| {
                o.shift == Shift::Next && c.tokens.nrows() > 1 && columns(c, o) == c.tokens.nrows()
            },
            |options, _| options.shift == Shift::Next,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use shakedown_core::contract::{erased, stream};
    use shakedown_core::value::record::typed;

    /// The stream of a seed.
    fn cases(
        seed: u64,
        options: &Options,
        dtype: Dtype,
    ) -> impl Iterator<Item = TokenLogProbsCase> + use<> {
        let options = Arc::new(options.clone()) as _;
        let cases = stream::cases(erased::of::<TokenLogProbs>(), Vec::new(), seed, &options, dtype);
        cases.map(|(_, case)| typed(case))
    }

    fn each_setting(test: impl Fn(&Options, Dtype)) {
        for (dtype, _) in Dtype::ALL {
            for temperature in [1.0, 0.1, 0.6, 2.0, 1e-3, 50.0] {
                for shift in Shift::ALL {
                    let options = Options { temperature, shift: *shift, ..Options::default() };
                    test(&options, dtype);
                }
            }
        }
    }

    #[test]
    fn drawn_cases_and_corners_are_valid_and_reach_every_class() {
        each_setting(|options, dtype| {
            let corners = corners(options, dtype).len();
            let cases: Vec<_> = cases(3, options, dtype).take(corners + 256).collect();
            for case in &cases {
                assert_eq!(valid(case, options, dtype), Ok(()), "{case:?}");
            }
            for class in classes() {
                let reached = cases.iter().any(|case| (class.contains)(case, options));
                let generated = (class.generated)(options, dtype);
                assert!(reached || !generated, "{} at {dtype:?} {options:?}", class.id);
            }
        });
    }

    #[test]
    fn constant_and_exhausted_bytes_give_valid_cases() {
        each_setting(|options, dtype| {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                for count in [0, 1, 3, 17, 64, 1024] {
                    let (contract, bytes) = (erased::of::<TokenLogProbs>(), vec![byte; count]);
                    let case = stream::from_bytes(contract, &bytes, options, dtype);
                    assert_eq!(valid(case.typed(), options, dtype), Ok(()));
                }
            }
        });
    }

    #[test]
    fn the_smallest_corner_comes_first() {
        each_setting(|options, dtype| {
            let corners = corners(options, dtype);
            let least = corners.iter().map(measure).min();
            assert_eq!(Some(measure(&corners[0])), least);
            assert_eq!(corners[0].logits.dim(), (1, 1 + options.shift.offset(), 2));
        });
    }

    #[test]
    fn simpler_cases_are_mostly_valid_and_some_are_smaller() {
        let options = Options::default();
        for case in cases(9, &options, Dtype::F32).take(300).skip(150) {
            let limit = measure(&case);
            let simpler = simpler(&case);
            let good = simpler
                .iter()
                .filter(|case| valid(case, &options, Dtype::F32).is_ok() && measure(case) < limit);
            assert!(good.count() > 0 || simpler.is_empty(), "{case:?}");
        }
    }
}
