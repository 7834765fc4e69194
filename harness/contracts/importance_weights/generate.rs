//! Cases of `importance-weights`: random draws, corners and classes.

use arbitrary::{Result, Unstructured};
use ndarray::{Array1, Array2, arr2};

use super::oracle::{self, Token, Verdict};
use super::{
    ExtremeRatios, ImportanceWeights, ImportanceWeightsCase, Level, Normalize, Options, Select,
    is_empty, tokens_of,
};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows::{self, Masked};
use shakedown_core::generate::axes::from_fields;
use shakedown_core::generate::draw::{normal, one, uniform};
use shakedown_core::generate::masks;
use shakedown_core::laws;
use shakedown_core::numeric::conventions::{EmptyMask, MaskedValues};
use shakedown_core::numeric::tolerance::apart;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::{Record as _, round, same_bits};

/// The largest magnitude of a log-probability.
const LARGEST: f64 = 500.0;

/// The largest magnitude of an advantage.
const LARGEST_ADVANTAGE: f64 = 1e3;

/// The largest magnitude of a log-ratio, and of the exponent on each level in use: so much that a
/// declared clamp is passed.
fn limit(options: &Options, dtype: Dtype) -> f64 {
    let free: f64 = match (options.normalize, options.extreme_ratios, dtype) {
        (Normalize::Tokens | Normalize::Sequences, ..) => 3.0,
        (_, ExtremeRatios::Finite, _) => 120.0,
        (_, ExtremeRatios::Avoid, Dtype::F16) => 10.0,
        (_, ExtremeRatios::Avoid, _) => 80.0,
    };
    let beyond = options.log_ratio_clamp.map_or(0.0, |c| (1.25 * c).max(c + 1.0));
    // What a clamp makes of a large exponent is small.
    let large = options.log_ratio_clamp.is_some() && options.normalize == Normalize::None;
    free.max(beyond).max(if large { 100.0 } else { 0.0 }).min(2.0 * LARGEST)
}

pub(super) fn valid(
    case: &ImportanceWeightsCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<ImportanceWeights>(case)?;
    let fields = [("log_probs", &case.log_probs), ("sampler_log_probs", &case.sampler_log_probs)];
    masks::check(&case.mask, options.holes, &fields, options.masked_values, LARGEST)?;
    match (&case.advantages, options.drift) {
        (None, Some(_)) => return Err("`advantages` are missing, and `drift` is set".to_owned()),
        (Some(_), None) => return Err("`advantages` are there, and `drift` is null".to_owned()),
        (Some(advantages), Some(_)) => {
            if let Some(bad) = advantages.iter().find(|a| apart(**a, 0.0, LARGEST_ADVANTAGE)) {
                return Err(format!("an advantage is {bad}"));
            }
        }
        (None, None) => {}
    }
    if options.empty_mask == EmptyMask::Avoid && is_empty(case) {
        return Err("no token counts".to_owned());
    }
    (0..case.mask.nrows()).try_for_each(|row| exponents(case, row, options, dtype))?;
    finite(case, options, dtype)
}

/// Whether the exponents of a row are within the limit.
fn exponents(
    case: &ImportanceWeightsCase,
    row: usize,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    let limit = limit(options, dtype);
    let gap = |column| case.log_probs[[row, column]] - case.sampler_log_probs[[row, column]];
    let gaps: Vec<f64> = tokens_of(case, row).into_iter().map(gap).collect();
    let sums = options.level == Level::Sequence || options.select == Select::Sequence;
    let sum = if sums { gaps.iter().sum() } else { 0.0 };
    match gaps.iter().chain([&sum]).find(|x| x.abs() > limit) {
        Some(x) => Err(format!("an exponent of row {row} is {x}, not within ±{limit}")),
        None => Ok(()),
    }
}

/// Whether the dtype holds every weight, also if rounding decides that it is not dropped, and its
/// arithmetic the mean by which they are divided.
fn finite(
    case: &ImportanceWeightsCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    let rows = oracle::judged(case, options, dtype);
    let divided = options.normalize != Normalize::None;
    let most = if divided { 1e30 } else { 0.5 * dtype.max() };
    for token in rows.iter().flatten() {
        let weight = oracle::undivided(token, options).unwrap_or(token.weight).value;
        if weight.abs() > most {
            return Err(format!("a weight of {weight:e}, which the dtype does not hold"));
        }
    }
    let of_row = |row: &Vec<Token>| row.iter().map(|t| oracle::undivided(t, options)).collect();
    let weights: Option<Vec<Vec<_>>> = rows.iter().map(of_row).collect();
    let mean = weights.filter(|_| divided && !is_empty(case));
    let mean = mean.map_or(1.0, |weights| oracle::mean(&weights, options.normalize).value);
    // verl and slime divide by no mean of 1e-8 or less.
    if mean > 0.0 && mean < 1e-7 {
        return Err(format!("a mean weight of {mean:e}, which may as well be none"));
    }
    Ok(())
}

/// Log-ratios on which real bugs showed.
const GAPS: [f64; 16] =
    [0.0, 0.5, -0.5, 1.0, -1.0, 0.9, -0.9, 2.0, -2.0, 0.01, -0.01, 0.1, -0.1, 3.0, -3.0, -1.5];

/// Log-ratios on both sides of everything that the options bound.
fn bounds(options: &Options) -> Vec<f64> {
    let ratios = [
        options.clamp_low,
        options.clamp_high,
        options.select_low,
        options.select_high,
        options.veto,
    ];
    let mut exponents: Vec<f64> = ratios.into_iter().flatten().map(f64::ln).collect();
    exponents.extend(options.log_ratio_clamp.iter().flat_map(|c| [*c, -*c]));
    exponents.extend(options.drift.map(|limit| -limit));
    exponents.retain(|x| x.is_finite());
    // Eighths, so that a short number stands in what is shown.
    let eighth = |x: f64| (8.0 * x).round() / 8.0;
    let around = |x: f64| match x.abs() {
        // What is that near to 1 has both of its sides within an eighth.
        near if near > 0.0 && near < 0.125 => [0.75 * x, 1.25 * x],
        _ => [eighth(x + 0.2), eighth(x - 0.2)],
    };
    exponents.into_iter().flat_map(around).collect()
}

/// At most so many rows are drawn, and so many tokens of a row; the rest repeats them.
const DRAWN: (usize, usize) = (4, 8);

/// The log-ratios of a row, as one of the ways in which samplers are off.
fn gaps(u: &mut Unstructured<'_>, count: usize, options: &Options, limit: f64) -> Result<Vec<f64>> {
    let style = u.choose_index(9)?;
    let near = bounds(options);
    let same = one(u, &GAPS)?;
    let far = one(u, &[20.0, -20.0, 80.0, -80.0, limit, -limit, 5.0, -5.0])?;
    let place = u.choose_index(count)?;
    let mut gaps = Vec::with_capacity(count);
    for token in 0..count {
        gaps.push(match style {
            0 => one(u, &GAPS)?,
            1 => same,
            2 if token == place => far.clamp(-limit, limit),
            2 => one(u, &[0.0, 0.01, -0.01, 0.1])?,
            3 if near.is_empty() => one(u, &GAPS)?,
            3 => one(u, &near)?,
            4 => 0.5 * normal(u)?,
            5 => 0.0,
            6 => same * if token % 2 == 0 { 1.0 } else { -1.0 },
            7 => 0.01 * if same < 0.0 { -1.0 } else { 1.0 },
            _ => uniform(u, -2.0, 2.0)?,
        });
    }
    Ok(gaps)
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<ImportanceWeightsCase> {
    let shape = masks::shape(u)?;
    let mut mask = masks::mask(u, shape, options.holes)?;
    if options.empty_mask == EmptyMask::Avoid && !mask.iter().any(|kept| *kept) {
        mask[[0, 0]] = true;
    }
    let limit = limit(options, dtype).min(LARGEST);
    let mut drawn = Vec::new();
    for _ in 0..shape.0.min(DRAWN.0) {
        let gaps = gaps(u, shape.1.min(DRAWN.1), options, limit)?;
        let level = 0.0 - one(u, &[1.0, 0.0, 0.5, 2.0, 0.1, 13.0, 110.0])?;
        let advantage = one(u, &[-1.0, 1.0, 0.0, -0.5, 2.0, -1e-3])?;
        drawn.push((gaps, level, advantage));
    }
    let of_row = |row: usize| &drawn[row % drawn.len()];
    let gap = |(row, token): (usize, usize)| {
        let (gaps, ..) = of_row(row);
        gaps[(token + token / gaps.len() + row / drawn.len()) % gaps.len()]
    };
    let mut case = of_gaps(&Array2::from_shape_fn(shape, gap), |row| of_row(row).1, mask, dtype);
    if options.drift.is_some() {
        let advantages = Array1::from_shape_fn(shape.0, |row| of_row(row).2);
        case.advantages = Some(advantages.mapv(|x| dtype.round(x)));
    }
    let mask = case.mask.clone();
    for (at, _) in mask.indexed_iter().filter(|(_, kept)| !**kept) {
        for field in [&mut case.log_probs, &mut case.sampler_log_probs] {
            let poison = masks::poison(u, options.masked_values, ImportanceWeights::POISON)?;
            field[at] = dtype.round(poison);
        }
    }
    fit(&mut case, options, dtype);
    Ok(case)
}

/// A case of these log-ratios, the larger logarithm of each token being that of its row.
fn of_gaps(
    gaps: &Array2<f64>,
    level: impl Fn(usize) -> f64,
    mask: Array2<bool>,
    dtype: Dtype,
) -> ImportanceWeightsCase {
    let of = |sign: f64| {
        Array2::from_shape_fn(gaps.dim(), |at| {
            dtype.round(level(at.0) - (0.0_f64).max(-sign * gaps[at]))
        })
    };
    let (log_probs, sampler_log_probs) = (of(1.0), of(-1.0));
    ImportanceWeightsCase { log_probs, sampler_log_probs, mask, advantages: None }
}

/// Halves the log-ratios of rows that are outside the contract, until they are not.
fn fit(case: &mut ImportanceWeightsCase, options: &Options, dtype: Dtype) {
    for row in 0..case.mask.nrows() {
        for attempt in 0..12 {
            let alone = rows::select::<ImportanceWeights, _>(case, 'N', &[row]);
            let fits = exponents(&alone, 0, options, dtype).is_ok()
                && finite(&alone, options, dtype).is_ok();
            if fits {
                break;
            }
            for column in tokens_of(case, row) {
                let (own, sampler) =
                    (case.log_probs[[row, column]], case.sampler_log_probs[[row, column]]);
                let gap = if attempt == 11 { 0.0 } else { 0.5 * (own - sampler) };
                case.log_probs[[row, column]] = dtype.round(sampler + gap);
            }
        }
    }
    if valid(case, options, dtype).is_err() {
        for (at, _) in case.mask.indexed_iter().filter(|(_, kept)| **kept) {
            case.log_probs[at] = case.sampler_log_probs[at];
        }
    }
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<ImportanceWeightsCase> {
    let (o, x) = (true, false);
    let mut cases = Vec::new();
    let mut case = |gaps: Array2<f64>, mask: Array2<bool>, advantages: &[f64]| {
        let mut case = of_gaps(&gaps, |_| 0.0, mask, dtype);
        let of_row = |row| advantages[row % advantages.len()];
        case.advantages = options.drift.map(|_| Array1::from_shape_fn(gaps.nrows(), of_row));
        cases.push(case);
    };
    let limit = limit(options, dtype).min(LARGEST);
    let mut single = vec![0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 0.01, -0.01];
    single.extend([10.0, -10.0, 20.0, -20.0, 80.0, -80.0, 100.0, -100.0, limit, -limit]);
    single.extend(bounds(options));
    for gap in single {
        case(arr2(&[[gap]]), arr2(&[[o]]), &[0.0]);
        if options.drift.is_some() {
            case(arr2(&[[gap]]), arr2(&[[o]]), &[-1.0]);
            case(arr2(&[[gap]]), arr2(&[[o]]), &[1.0]);
        }
    }
    case(arr2(&[[0.0]]), arr2(&[[x]]), &[-1.0]);
    for mask in [[o, x], [x, o], [o, o], [x, x]] {
        for gaps in [[1.0, -1.0], [0.5, 0.5], [-1.0, 0.0], [-2.0, 2.0], [3.0, 0.0], [0.0, -3.0]] {
            case(arr2(&[gaps]), arr2(&[mask]), &[-1.0]);
        }
    }
    for gap in bounds(options) {
        case(arr2(&[[gap, gap]]), arr2(&[[o, o]]), &[-1.0]);
        case(arr2(&[[gap, 0.0]]), arr2(&[[o, o]]), &[-1.0]);
        case(arr2(&[[0.5 * gap, 0.5 * gap]]), arr2(&[[o, o]]), &[-1.0]);
        case(arr2(&[[gap], [0.0]]), arr2(&[[o], [o]]), &[-1.0, 1.0]);
        case(arr2(&[[gap + 1.0, gap - 1.0]]), arr2(&[[o, o]]), &[-1.0]);
    }
    for signs in [[-1.0, 1.0], [1.0, -1.0], [0.0, -1.0]] {
        case(arr2(&[[1.0], [-1.0]]), arr2(&[[o], [o]]), &signs);
        case(arr2(&[[-1.0, -1.0], [-1.0, 0.5]]), arr2(&[[o, o], [o, o]]), &signs);
        case(arr2(&[[-2.0, 0.0], [0.5, 0.5]]), arr2(&[[o, o], [o, x]]), &signs);
        case(arr2(&[[0.5, 0.5], [-0.5, 1.0]]), arr2(&[[o, o], [x, x]]), &signs);
        case(arr2(&[[-3.0, 1.0, 0.0], [0.1, 0.1, 2.0]]), arr2(&[[o, o, o], [o, o, x]]), &signs);
        case(arr2(&[[1.0, -1.0, 1.0], [-1.0, 1.0, 3.0]]), arr2(&[[o, o, o], [o, x, x]]), &signs);
    }
    case(arr2(&[[0.5, 3.0, 0.5]]), arr2(&[[o, x, o]]), &[-1.0]);
    case(arr2(&[[0.01, 0.01, 0.01]]), arr2(&[[o, o, o]]), &[-1.0]);
    case(arr2(&[[0.01; 3]; 3]), arr2(&[[o, o, o], [o, o, x], [o, x, x]]), &[1.0, -1.0]);
    let steps = |(rows, tokens): (usize, usize)| {
        Array2::from_shape_fn((rows, tokens), |(row, token)| {
            0.25 * ((5 * token + 3 * row) % 7) as f64 - 0.75
        })
    };
    for shape in [(3, 3), (2, 5), (1, 16)] {
        case(steps(shape), Array2::from_elem(shape, o), &[-1.0, 1.0]);
    }
    for gap in [0.5, -1.0, 0.0] {
        let mut rare = of_gaps(&arr2(&[[gap]]), |_| -110.0, arr2(&[[o]]), dtype);
        rare.advantages = options.drift.map(|_| Array1::from_elem(1, -1.0));
        cases.push(rare);
    }
    if options.masked_values == MaskedValues::Any {
        for poison in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut poisoned = of_gaps(&arr2(&[[0.5, 0.0]]), |_| 0.0, arr2(&[[o, x]]), dtype);
            poisoned.log_probs[[0, 1]] = poison;
            poisoned.sampler_log_probs[[0, 1]] = poison;
            poisoned.advantages = options.drift.map(|_| Array1::from_elem(1, -1.0));
            cases.push(poisoned);
        }
    }
    cases.retain_mut(|case| {
        round(case, dtype);
        valid(case, options, dtype).is_ok()
    });
    cases.sort_by_cached_key(ImportanceWeights::measure);
    cases.dedup_by(|a, b| same_bits(a, b));
    cases
}

pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<ImportanceWeightsCase> {
    let palettes: [(&str, &[f64]); 3] = [
        ("log_probs", &[0.0, -1.0, -2.0]),
        ("sampler_log_probs", &[0.0, -1.0]),
        ("advantages", &[0.0, 1.0, -1.0]),
    ];
    let fields = <ImportanceWeightsCase>::fields();
    let all = ImportanceWeights::AXES.small(&palettes, &fields);
    let mut cases: Vec<ImportanceWeightsCase> = all.into_iter().map(from_fields).collect();
    cases.retain_mut(|case| {
        case.advantages = case.advantages.take().filter(|_| options.drift.is_some());
        round(case, dtype);
        valid(case, options, dtype).is_ok()
    });
    cases
}

/// The log-ratios of the tokens of each row that count.
fn rows_of(case: &ImportanceWeightsCase) -> Vec<Vec<f64>> {
    let row = |row: usize| {
        let gap = |column| case.log_probs[[row, column]] - case.sampler_log_probs[[row, column]];
        tokens_of(case, row).into_iter().map(gap).collect()
    };
    (0..case.mask.nrows()).map(row).collect()
}

fn any_row(case: &ImportanceWeightsCase, is: impl Fn(&[f64]) -> bool) -> bool {
    rows_of(case).iter().any(|row| is(row))
}

fn any_gap(case: &ImportanceWeightsCase, is: impl Fn(f64) -> bool) -> bool {
    any_row(case, |row| row.iter().any(|gap| is(*gap)))
}

/// Whether something holds of a token as the definition has it.
fn any_token(case: &ImportanceWeightsCase, options: &Options, is: impl Fn(&Token) -> bool) -> bool {
    oracle::judged(case, options, Dtype::F32).iter().flatten().any(is)
}

/// Whether there are rows that the drift drops and tells by their advantage.
fn any_advantage(case: &ImportanceWeightsCase, is: impl Fn(f64) -> bool) -> bool {
    case.advantages.iter().flatten().any(|advantage| is(*advantage))
}

pub(super) fn classes() -> Vec<Class<ImportanceWeights>> {
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let with_drift: fn(&Options, Dtype) -> bool = |options, _| options.drift.is_some();
    let mut classes = laws::masks::classes::<ImportanceWeights>();
    classes.extend([
        class(
            "on-policy",
            "policy and sampler agree at every token",
            |c, _| !any_gap(c, |d| d != 0.0),
            always,
        ),
        class(
            "nearly-on-policy",
            "a row of log-ratios within 0.02, none of which is 0",
            |c, _| any_row(c, |r| !r.is_empty() && r.iter().all(|d| *d != 0.0 && d.abs() <= 0.02)),
            always,
        ),
        class(
            "rare-token",
            "a log-probability below -64 beside a log-ratio within 1",
            |c, _| {
                let tokens = c.mask.indexed_iter().filter(|(_, kept)| **kept);
                tokens.into_iter().any(|(at, _)| {
                    let (own, sampler) = (c.log_probs[at], c.sampler_log_probs[at]);
                    own < -64.0 && own != sampler && (own - sampler).abs() <= 1.0
                })
            },
            always,
        ),
        class(
            "policy-above",
            "a token that the policy likes better than the sampler, by a factor of 1.6",
            |c, _| any_gap(c, |d| d >= 0.47),
            always,
        ),
        class(
            "policy-below",
            "a token that the policy likes less than the sampler, by a factor of 1.6",
            |c, _| any_gap(c, |d| d <= -0.47),
            always,
        ),
        class(
            "constant-gap",
            "a row of two tokens or more with the same log-ratio, not 0",
            |c, _| any_row(c, |r| r.len() > 1 && r[0] != 0.0 && r.iter().all(|d| *d == r[0])),
            always,
        ),
        class(
            "cancelling",
            "a row with log-ratios of at least 0.4 whose sum is within 0.2",
            |c, _| {
                any_row(c, |r| {
                    r.iter().any(|d| d.abs() >= 0.4) && r.iter().sum::<f64>().abs() <= 0.2
                })
            },
            always,
        ),
        class(
            "one-token-far-off",
            "a row with one log-ratio beyond 4.5 and others within 1",
            |c, _| {
                any_row(c, |r| {
                    let far = r.iter().filter(|d| d.abs() > 4.5).count();
                    let near = r.iter().filter(|d| d.abs() <= 1.0).count();
                    far == 1 && near > 0 && far + near == r.len()
                })
            },
            |options, dtype| {
                limit(options, dtype) >= 20.0 && options.extreme_ratios == ExtremeRatios::Avoid
            },
        ),
        class(
            "far-apart",
            "a log-ratio beyond 20",
            |c, _| any_gap(c, |d| d.abs() > 20.0),
            |options, dtype| options.normalize == Normalize::None && limit(options, dtype) > 79.0,
        ),
        class(
            "beyond-exp",
            "a log-ratio beyond 88.7, where exp leaves f32",
            |c, _| any_gap(c, |d| d.abs() > 88.73),
            |options, dtype| options.normalize == Normalize::None && limit(options, dtype) > 99.0,
        ),
        class(
            "overflow-of-no-weight",
            "a ratio that f32 does not hold, and that is clamped or dropped",
            |c, o| any_token(c, o, |t| t.ratio > 3.5e38),
            |_, _| false,
        ),
        class(
            "log-ratio-clamped",
            "an exponent beyond `log_ratio_clamp`",
            |c, o| {
                o.log_ratio_clamp
                    .is_some_and(|clamp| any_token(c, o, |t| t.ratio.ln().abs() >= clamp - 1e-9))
            },
            |options, _| options.log_ratio_clamp.is_some_and(|c| c <= 20.0),
        ),
        class(
            "clamped",
            "a ratio outside `clamp_low` and `clamp_high`",
            |c, o| any_token(c, o, |t| t.clamped == Verdict::Yes),
            |options, _| options.clamp_high == Some(2.0) && options.log_ratio_clamp.is_none(),
        ),
        class(
            "dropped",
            "a token that is dropped, for whatever reason",
            |c, o| any_token(c, o, |t| t.dropped == Verdict::Yes),
            |options, _| options.veto == Some(0.5) && options.log_ratio_clamp.is_none(),
        ),
        class(
            "dropped-beside-kept",
            "a dropped token in a batch with one that is kept",
            |c, o| {
                any_token(c, o, |t| t.dropped == Verdict::Yes)
                    && any_token(c, o, |t| t.dropped == Verdict::No)
            },
            |options, _| options.veto == Some(0.5) && options.select == Select::None,
        ),
        class(
            "all-dropped",
            "every token is dropped",
            |c, o| !is_empty(c) && !any_token(c, o, |t| t.dropped != Verdict::Yes),
            |options, _| options.veto == Some(0.5),
        ),
        class(
            "undecided",
            "a token of which rounding decides whether it is dropped",
            |c, o| any_token(c, o, |t| t.dropped == Verdict::Open),
            |_, _| false,
        ),
        class(
            "negative-advantage",
            "a row of negative advantage",
            |c, _| any_advantage(c, |a| a < 0.0),
            with_drift,
        ),
        class(
            "positive-advantage",
            "a row of positive advantage",
            |c, _| any_advantage(c, |a| a > 0.0),
            with_drift,
        ),
        class(
            "advantage-of-zero",
            "a row of advantage 0",
            |c, _| any_advantage(c, |a| a == 0.0),
            with_drift,
        ),
        class(
            "several-rows",
            "two rows or more with tokens that differ in their log-ratios",
            |c, _| {
                let mut rows = rows_of(c);
                rows.retain(|row| !row.is_empty());
                rows.iter().any(|row| *row != rows[0])
            },
            always,
        ),
        class(
            "masked-gap",
            "other numbers for policy and sampler under the mask",
            |c, _| {
                let masked = c.mask.indexed_iter().filter(|(_, kept)| !**kept);
                masked.into_iter().any(|(at, _)| c.log_probs[at] != c.sampler_log_probs[at])
            },
            always,
        ),
    ]);
    classes
}
