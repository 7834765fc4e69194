//! Cases of `token-rewards`: random draws, corners and classes.

use arbitrary::{Result, Unstructured};
use ndarray::{Array1, Array2, arr1, arr2};

use super::{KlEstimator, Options, TokenRewards, TokenRewardsCase, Unfinished, is_empty, oracle};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::contract::rows::Masked;
use shakedown_core::generate::axes::from_fields;
use shakedown_core::generate::draw::{AWKWARD, chance, normal, one, repeating, uniform};
use shakedown_core::generate::masks;
use shakedown_core::laws;
use shakedown_core::numeric::conventions::{EmptyMask, MaskedValues};
use shakedown_core::numeric::tolerance::apart;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::{Record, round};

/// The largest magnitude of a log-probability.
const LARGEST: f64 = 500.0;

/// The largest magnitude of a score.
const LARGEST_SCORE: f64 = 1e3;

/// How far policy and reference are apart at most where no clamp holds them.
fn free(dtype: Dtype) -> f64 {
    if dtype == Dtype::F16 { 10.0 } else { 12.0 }
}

/// How far they are apart at most: a clamp must be passed, whichever it is. k3 is an exponential
/// before its result is clamped, and so never far beyond.
fn limit(options: &Options, dtype: Dtype) -> f64 {
    let of_result = options.kl_clamp.map(|[lo, hi]| match options.kl_estimator {
        KlEstimator::K1 => hi.max(-lo),
        KlEstimator::K2 => (2.0 * hi).sqrt(),
        KlEstimator::K3 => 0.0,
        KlEstimator::Abs => hi,
    });
    let clamps = options.log_ratio_clamp.into_iter().chain(of_result);
    let beyond = clamps.map(|clamp| (1.25 * clamp).max(clamp + 1.0).max(15.0));
    beyond.fold(free(dtype), f64::max).min(2.0 * LARGEST)
}

pub(super) fn valid(
    case: &TokenRewardsCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<TokenRewards>(case)?;
    let fields = [("log_probs", &case.log_probs), ("ref_log_probs", &case.ref_log_probs)];
    masks::check(&case.mask, options.holes, &fields, options.masked_values, LARGEST)?;
    if case.finished.is_some() != (options.unfinished != Unfinished::None) {
        return Err("`finished` goes with `unfinished: subtract`, `replace` or `scale`".to_owned());
    }
    if let Some(score) = case.scores.iter().find(|score| apart(**score, 0.0, LARGEST_SCORE)) {
        return Err(format!("a score of {score}, not within ±{LARGEST_SCORE}"));
    }
    if options.empty_mask == EmptyMask::Avoid && is_empty(case) {
        return Err("no token counts".to_owned());
    }
    let limit = limit(options, dtype);
    for ((at, a), b) in case.log_probs.indexed_iter().zip(&case.ref_log_probs) {
        let counts = case.mask[at] || options.masked_values == MaskedValues::Finite;
        if counts && apart(a - b, 0.0, limit) {
            let (row, token) = at;
            return Err(format!("at [{row}, {token}] the log-ratio is not within ±{limit}"));
        }
    }
    let half = 0.5 * dtype.max();
    let fits = |value: f64| value.is_nan() || value.abs() <= half;
    let expected = oracle::token_rewards(case, options, dtype);
    let kl = oracle::divergences(case, options, dtype);
    let numbers = expected.iter().flat_map(|field| &field.numbers).map(|number| number.value);
    let numbers = numbers.chain(kl.into_iter().flatten().map(|kl| kl.value));
    if numbers.into_iter().all(fits) {
        Ok(())
    } else {
        Err("a reward or a divergence is too large for the dtype".to_owned())
    }
}

/// Log-ratios on which real bugs showed.
const GAPS: [f64; 12] = [0.0, 1.0, -1.0, 0.1, -0.1, 0.5, -0.5, 2.0, -2.0, 1e-3, 5.0, -5.0];

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<TokenRewardsCase> {
    let shape = masks::shape(u)?;
    let mask = masks::mask(u, shape, options.holes)?;
    let cells = shape.0 * shape.1;
    let pattern = u.choose_index(6)?;
    let limit = limit(options, dtype).min(LARGEST);
    let c = options.log_ratio_clamp.unwrap_or(5.0);
    let [lo, hi] = options.kl_clamp.unwrap_or([-10.0, 10.0]);
    let gaps = repeating(u, cells, |u| {
        let gap = match pattern {
            0 => one(u, &GAPS)?,
            1 => 0.05 * normal(u)?,
            2 => one(u, &[c, -c, c + 1.0, -c - 1.0, lo, hi, hi + 1.0, lo - 1.0, limit, -limit])?,
            3 => one(u, &[1.0, -1.0, 9.0, -9.0, 11.0, -11.0, 15.0, -15.0])?,
            4 => 0.0,
            _ => uniform(u, -4.0, 4.0)?,
        };
        Ok(gap.clamp(-limit, limit))
    })?;
    let levels = repeating(u, cells, |u| one(u, &[0.0, 1.0, 0.1, 2.0, 0.5, 5.0, 13.0]))?;
    let scores = draw_scores(u, shape.0, options)?;
    let style = u.choose_index(4)?;
    let finished = (0..shape.0).map(|_| {
        Ok(match style {
            0 => false,
            1 => true,
            _ => chance(u, 128)?,
        })
    });
    let finished: Array1<bool> = finished.collect::<Result<Vec<bool>>>()?.into();
    let array = |numbers: Vec<f64>| Array2::from_shape_vec(shape, numbers).expect("N·T numbers");
    // Both at most 0.
    let policy = levels.iter().zip(&gaps).map(|(level, gap)| 0.0 - level + gap.min(0.0));
    let reference = levels.iter().zip(&gaps).map(|(level, gap)| 0.0 - level - gap.max(0.0));
    let mut case: TokenRewardsCase = TokenRewardsCase {
        scores,
        log_probs: array(policy.collect()),
        ref_log_probs: array(reference.collect()),
        mask,
        finished: (options.unfinished != Unfinished::None).then_some(finished),
    };
    let mask = case.mask.clone();
    for (at, _) in mask.indexed_iter().filter(|(_, kept)| !**kept) {
        for field in [&mut case.log_probs, &mut case.ref_log_probs] {
            field[at] = masks::poison(u, options.masked_values, TokenRewards::POISON)?;
        }
    }
    round(&mut case, dtype);
    if valid(&case, options, dtype).is_ok() {
        return Ok(case);
    }
    // Rounded beyond what may be, or too large for the dtype: the same with smaller numbers.
    if is_empty(&case) && options.empty_mask == EmptyMask::Avoid {
        case.mask.fill(true);
    }
    for (at, a) in case.log_probs.indexed_iter_mut() {
        if apart(*a - case.ref_log_probs[at], 0.0, 2.0) {
            (*a, case.ref_log_probs[at]) = (-1.0, -1.0);
        }
    }
    if valid(&case, options, dtype).is_err() {
        case.log_probs.fill(-1.0);
        case.ref_log_probs.fill(-1.0);
        case.scores.fill(0.0);
    }
    Ok(case)
}

fn draw_scores(u: &mut Unstructured<'_>, rows: usize, options: &Options) -> Result<Array1<f64>> {
    let pattern = u.choose_index(6)?;
    let [lo, hi] = options.score_clip.unwrap_or([-5.0, 5.0]);
    let p = options.penalty;
    let scores = repeating(u, rows, |u| {
        let score = match pattern {
            0 => one(u, &[0.0, 1.0])?,
            1 => one(u, &[7.0, -7.0, 0.0, 1.0, -1.0, 0.5])?,
            2 => one(u, &AWKWARD)?,
            3 => one(u, &[lo - 1.0, hi + 1.0, lo, hi, 0.5 * (lo + hi), lo + p, hi + p])?,
            4 => one(u, &[LARGEST_SCORE, -LARGEST_SCORE, 0.0, 100.0])?,
            _ => 3.0 * normal(u)?,
        };
        Ok(score.clamp(-LARGEST_SCORE, LARGEST_SCORE))
    })?;
    Ok(scores.into())
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<TokenRewardsCase> {
    let (o, x) = (true, false);
    let mut cases = Vec::new();
    let mut case = |scores: &[f64], gaps: Array2<f64>, mask: Array2<bool>, finished: &[bool]| {
        cases.push(TokenRewardsCase {
            scores: arr1(scores),
            // The sign of the smaller of 0 and −0 is the compiler's; that of their sum is not.
            log_probs: gaps.mapv(|gap| 0.0 + gap.min(0.0)),
            ref_log_probs: gaps.mapv(|gap| 0.0 - gap.max(0.0)),
            mask,
            finished: (options.unfinished != Unfinished::None).then(|| arr1(finished)),
        });
    };
    let limit = limit(options, dtype).min(LARGEST);
    let mut gaps = vec![0.0, 1.0, 2.0, 0.5, 0.1, 5.0, 9.0, 11.0, 15.0, 21.0, limit];
    gaps.extend(options.log_ratio_clamp.iter().flat_map(|c| [*c, c + 1.0]));
    gaps.extend(options.kl_clamp.iter().flatten().flat_map(|end| [end.abs(), end.abs() + 1.0]));
    for gap in gaps {
        for gap in [gap, -gap] {
            case(&[0.0], arr2(&[[gap]]), arr2(&[[o]]), &[o]);
        }
    }
    let [lo, hi] = options.score_clip.unwrap_or([-5.0, 5.0]);
    for score in [0.0, 1.0, -1.0, 7.0, -7.0, lo - 1.0, hi + 1.0, 2.0, 0.5] {
        for finished in [o, x] {
            case(&[score], arr2(&[[0.0]]), arr2(&[[o]]), &[finished]);
            case(&[score], arr2(&[[1.0]]), arr2(&[[o]]), &[finished]);
        }
    }
    case(&[1.0], arr2(&[[0.0]]), arr2(&[[x]]), &[o]);
    for mask in [[o, x], [x, o], [x, x], [o, o]] {
        for finished in [o, x] {
            case(&[1.0], arr2(&[[0.0, 0.0]]), arr2(&[mask]), &[finished]);
            case(&[1.0], arr2(&[[1.0, 0.0]]), arr2(&[mask]), &[finished]);
            case(&[0.0], arr2(&[[0.0, 1.0]]), arr2(&[mask]), &[finished]);
            case(&[2.0], arr2(&[[1.0, -2.0]]), arr2(&[mask]), &[finished]);
        }
    }
    case(&[0.0, 1.0], arr2(&[[0.0], [1.0]]), arr2(&[[o], [o]]), &[x, o]);
    case(&[1.0, 0.0], arr2(&[[1.0], [0.0]]), arr2(&[[o], [o]]), &[o, x]);
    case(&[1.0, 2.0], arr2(&[[0.0, 0.0], [1.0, 0.0]]), arr2(&[[o, x], [o, o]]), &[o, x]);
    case(&[1.0, 2.0], arr2(&[[0.0, 1.0], [1.0, 2.0]]), arr2(&[[x, x], [o, o]]), &[x, o]);
    case(&[1.0, 2.0], arr2(&[[1.0, 0.0], [2.0, -1.0]]), arr2(&[[o, o], [x, o]]), &[x, x]);
    case(&[1.0, 0.0, 2.0], arr2(&[[0.0; 3], [1.0; 3], [2.0; 3]]), arr2(&[[o; 3]; 3]), &[o, x, o]);
    let ragged = arr2(&[[o, o, o], [o, o, x], [x, o, x]]);
    let steps = arr2(&[[1.0, 2.0, -1.0], [0.5, -2.0, 1.0], [1.0, -0.25, 0.5]]);
    case(&[3.0, -1.0, 0.5], steps, ragged, &[x, o, x]);
    case(&[1.0], arr2(&[[1.0, 1.0, 1.0]]), arr2(&[[o, x, o]]), &[o]);
    case(&[0.0], arr2(&[[0.0, 2.0, 0.0]]), arr2(&[[o, x, o]]), &[o]);
    case(&[7.0], arr2(&[[0.0, 1.0, 3.0, 3.0, -1.0, 0.5]]), arr2(&[[o, o, x, x, o, x]]), &[x]);
    case(&[LARGEST_SCORE], arr2(&[[0.0, 1.0]]), arr2(&[[o, o]]), &[o]);
    let long = Array2::from_shape_fn((2, 16), |(row, token)| (((row + token) % 5) as f64) - 2.0);
    case(&[1.0, -1.0], long, Array2::from_shape_fn((2, 16), |(_, token)| token < 12), &[o, x]);
    if options.masked_values == MaskedValues::Any {
        for poison in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for mask in [[o, x], [x, o]] {
                let mut poisoned: TokenRewardsCase = TokenRewardsCase {
                    scores: arr1(&[1.0]),
                    log_probs: arr2(&[[-1.0, -1.0]]),
                    ref_log_probs: arr2(&[[-1.0, -1.0]]),
                    mask: arr2(&[mask]),
                    finished: (options.unfinished != Unfinished::None).then(|| arr1(&[o])),
                };
                let masked = usize::from(mask[0]);
                poisoned.log_probs[[0, masked]] = poison;
                cases.push(poisoned.clone());
                poisoned.ref_log_probs[[0, masked]] = poison;
                cases.push(poisoned);
            }
        }
    }
    cases.retain_mut(|case| {
        round(case, dtype);
        valid(case, options, dtype).is_ok()
    });
    cases.sort_by_cached_key(TokenRewards::measure);
    cases.dedup_by(|a, b| shakedown_core::value::record::same_bits(a, b));
    cases
}

pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<TokenRewardsCase> {
    let values: [(&str, &[f64]); 3] = [
        ("scores", &[0.0, 1.0, 2.0]),
        ("log_probs", &[0.0, -1.0]),
        ("ref_log_probs", &[0.0, -1.0]),
    ];
    let mut fields = <TokenRewardsCase as Record>::fields();
    fields.retain(|field| field.name != "finished" || options.unfinished != Unfinished::None);
    let mut cases: Vec<TokenRewardsCase> = Vec::new();
    for fields in TokenRewards::AXES.small(&values, &fields) {
        let mut case = from_fields(fields);
        round(&mut case, dtype);
        if valid(&case, options, dtype).is_ok() {
            cases.push(case);
        }
    }
    cases
}

/// Whether the log-ratio of some token that counts is such.
fn any(case: &TokenRewardsCase, is: impl Fn(f64) -> bool) -> bool {
    let gap = |at: (usize, usize)| case.log_probs[at] - case.ref_log_probs[at];
    case.mask.indexed_iter().any(|(at, kept)| *kept && is(gap(at)))
}

/// Whether a log-ratio of this size is generated at a dtype, as it is or rounded down.
fn reaches(options: &Options, dtype: Dtype, gap: f64) -> bool {
    limit(options, dtype).min(LARGEST) >= gap
}

/// Whether the score of a row is clipped.
fn clips(case: &TokenRewardsCase, options: &Options) -> bool {
    options.score_clip.is_some_and(|clip| {
        let free = Options { score_clip: None, ..options.clone() };
        let score = |row| oracle::shaped(case, &free, row).value;
        (0..case.scores.len()).any(|row| !(clip[0]..=clip[1]).contains(&score(row)))
    })
}

pub(super) fn classes() -> Vec<Class<TokenRewards>> {
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let told: fn(&Options, Dtype) -> bool = |options, _| options.unfinished != Unfinished::None;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    let mut classes = laws::masks::classes::<TokenRewards>();
    classes.extend([
        class("several-rows", "N ≥ 2", |c: &TokenRewardsCase, _| c.scores.len() > 1, always),
        class("full-row", "a row of two tokens or more that has no room behind them", full, always),
        class(
            "equal-policies",
            "policy and reference agree at every token",
            |c, _| !is_empty(c) && !any(c, |d| d != 0.0),
            always,
        ),
        class(
            "likelier",
            "a token likelier by e than to the reference",
            |c, _| any(c, |d| d >= 1.0),
            always,
        ),
        class(
            "less-likely",
            "a token less likely by e than to the reference",
            |c, _| any(c, |d| d <= -1.0),
            always,
        ),
        class(
            "far-apart",
            "a log-ratio of 14 or more, which a clamp holds",
            |c, _| any(c, |d| d.abs() >= 14.0),
            |options, dtype| reaches(options, dtype, 15.0) && dtype != Dtype::F16,
        ),
        class(
            "log-ratio-clamped",
            "a log-ratio beyond `log_ratio_clamp`",
            |c, o| o.log_ratio_clamp.is_some_and(|limit| any(c, |d| d.abs() > limit)),
            |options, dtype| {
                // In a coarse format c and what is a little more may be one number.
                let most = dtype.round(limit(options, dtype).min(LARGEST));
                options.log_ratio_clamp.is_some_and(|c| c < most)
            },
        ),
        class(
            "score-of-zero",
            "a row with tokens and a score of 0",
            |c, _| {
                let mut rows = c.scores.iter().zip(c.mask.rows());
                rows.any(|(score, mask)| *score == 0.0 && mask.iter().any(|kept| *kept))
            },
            always,
        ),
        class(
            "large-score",
            "a score of 7 or more, of either sign",
            |c, _| c.scores.iter().any(|s| s.abs() >= 7.0),
            always,
        ),
        class("score-clipped", "a score outside `score_clip`", clips, |options, _| {
            options.score_clip.is_some_and(|[lo, hi]| lo > -500.0 || hi < 500.0)
        }),
        class(
            "all-finished",
            "every completion came to its end",
            |c, _| c.finished.as_ref().is_some_and(|f| f.iter().all(|f| *f)),
            told,
        ),
        class(
            "none-finished",
            "no completion came to its end",
            |c, _| c.finished.as_ref().is_some_and(|f| !f.iter().any(|f| *f)),
            told,
        ),
        class(
            "some-finished",
            "one completion came to its end and another did not",
            |c, _| {
                let finished = c.finished.as_ref();
                finished.is_some_and(|f| f.iter().any(|f| *f) && !f.iter().all(|f| *f))
            },
            told,
        ),
    ]);
    classes
}

fn full(case: &TokenRewardsCase, _: &Options) -> bool {
    case.mask.rows().into_iter().any(|row| {
        let tokens = row.iter().filter(|kept| **kept).count();
        tokens > 1 && row[row.len() - 1]
    })
}
