//! Cases of `kl-estimate`: random draws, corners and classes.

use arbitrary::{Result, Unstructured};
use ndarray::{Array2, arr2};

use super::{Estimator, KlEstimate, KlEstimateCase, Options, oracle};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::draw::{normal, one, uniform};
use shakedown_core::generate::masks;
use shakedown_core::value::place::Dtype;

/// The largest magnitude of a log-probability.
const LARGEST: f64 = 500.0;

pub(super) fn valid(
    case: &KlEstimateCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<KlEstimate>(case)?;
    for ((at, log_prob), reference) in case.log_probs.indexed_iter().zip(&case.ref_log_probs) {
        token(*log_prob, *reference, options, dtype)
            .map_err(|why| format!("at [{}, {}] {why}", at.0, at.1))?;
    }
    Ok(())
}

/// The largest magnitude of a log-ratio: so much that a declared clamp is passed, whatever is said
/// of extremes. Before a clamp of the result stands an exponential, of k3, which may not leave the
/// format.
fn limit(options: &Options, dtype: Dtype) -> f64 {
    let result = options.clamp.map_or(0.0, |[lo, hi]| match options.estimator {
        Estimator::K1 => hi.max(-lo),
        Estimator::K2 => (2.0 * hi).sqrt(),
        Estimator::K3 => 0.0,
        Estimator::Abs => hi,
    });
    let ratio = options.log_ratio_clamp.unwrap_or(0.0);
    let beyond = [result, ratio].into_iter().filter(|clamp| *clamp > 0.0);
    let beyond = beyond.map(|clamp| (1.25 * clamp).max(clamp + 1.0).min(2.0 * LARGEST));
    beyond.fold(options.extreme_ratios.limit(dtype), f64::max)
}

/// Why one token is outside the contract, where it is.
fn token(
    log_prob: f64,
    reference: f64,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    let limit = limit(options, dtype);
    if !(log_prob.abs() <= LARGEST && reference.abs() <= LARGEST) {
        Err(format!("the log-probabilities are {log_prob} and {reference}"))
    } else if (log_prob - reference).abs() > limit {
        Err(format!("the log-ratio is {}, not within ±{limit}", log_prob - reference))
    } else if oracle::largest(log_prob, reference, options, dtype) > 0.5 * dtype.max() {
        Err("the exact result or its derivative is too large for the dtype".to_owned())
    } else {
        Ok(())
    }
}

/// At most this many tokens of a case are drawn.
const DRAWN: usize = 24;

/// Log-ratios on which real bugs showed.
const GAPS: [f64; 16] =
    [0.0, 1.0, -1.0, 0.1, -0.1, 0.5, -0.5, 2.0, -2.0, 1e-3, -1e-3, 5.0, -5.0, 3.0, -3.0, 1e-4];

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<KlEstimateCase> {
    let shape = masks::shape(u)?;
    let pattern = u.choose_index(7)?;
    let limit = limit(options, dtype).min(LARGEST);
    let c = options.log_ratio_clamp.unwrap_or(20.0);
    let [lo, hi] = options.clamp.unwrap_or([-10.0, 10.0]);
    let count = shape.0 * shape.1;
    let mut tokens = Vec::with_capacity(count);
    for _ in 0..count.min(DRAWN) {
        let gap = match pattern {
            0 => one(u, &GAPS)?,
            1 => 0.05 * normal(u)?,
            2 => one(u, &[0.0, 0.01, -0.02, 0.1, 0.3, -0.25])?,
            3 => one(u, &[21.0, -21.0, 41.0, -41.0, 60.0, -60.0, 100.0, -100.0, limit, -limit])?,
            4 => one(u, &[c, -c, c + 1.0, -c - 1.0, lo, hi, hi + 0.5, lo - 0.5, 0.5 * hi])?,
            5 => 0.0,
            _ => uniform(u, -4.0, 4.0)?,
        };
        let level = match pattern {
            2 => uniform(u, -300.0, -40.0)?,
            _ => 0.0 - one(u, &[0.0, 0.0, 1.0, 0.1, 2.0, 0.5, 5.0, 13.0])?,
        };
        // Both at most 0.
        let pair = if gap > 0.0 { (level, level - gap) } else { (level + gap, level) };
        let (a, b) = (dtype.round(pair.0), dtype.round(pair.1));
        let fits = |pair: &(f64, f64)| token(pair.0, pair.1, options, dtype).is_ok();
        tokens.push([(a, b), (b, a)].into_iter().find(fits).unwrap_or((0.0, 0.0)));
    }
    // Large cases repeat them, so that they do not take more bytes than a fuzzer can steer.
    let drawn = tokens.len();
    let tokens = (0..count).map(|at| tokens[(at + at / drawn) % drawn]);
    let (log_probs, references): (Vec<f64>, Vec<f64>) = tokens.unzip();
    let array = |values| Array2::from_shape_vec(shape, values).expect("N·T numbers");
    Ok(KlEstimateCase { log_probs: array(log_probs), ref_log_probs: array(references) })
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<KlEstimateCase> {
    let mut cases = Vec::new();
    let mut case = |log_probs: Array2<f64>, ref_log_probs: Array2<f64>| {
        cases.push(KlEstimateCase { log_probs, ref_log_probs });
    };
    let limit = limit(options, dtype).min(LARGEST);
    let mut gaps = vec![0.0, 1.0, 2.0, 0.5, 0.1, 1e-3, 3.0, 5.0, 9.0, 11.0, 15.0, 21.0, 41.0];
    gaps.extend([50.0, 89.0, 100.0, limit]);
    gaps.extend(options.log_ratio_clamp.iter().flat_map(|c| [*c, c + 1.0, 1.25 * c]));
    gaps.extend(options.clamp.iter().flatten().flat_map(|bound| {
        let bound = bound.abs();
        [bound, bound + 1.0]
    }));
    for gap in gaps {
        case(arr2(&[[0.0]]), arr2(&[[0.0 - gap]]));
        case(arr2(&[[0.0 - gap]]), arr2(&[[0.0]]));
    }
    for level in [-1.0, -64.0, -110.0, -200.0] {
        case(arr2(&[[level]]), arr2(&[[level]]));
        case(arr2(&[[level - 0.1]]), arr2(&[[level]]));
        case(arr2(&[[level]]), arr2(&[[level - 0.25]]));
        case(arr2(&[[level]]), arr2(&[[level - 1.0]]));
    }
    case(arr2(&[[0.0, -1.0]]), arr2(&[[0.0, 0.0]]));
    case(arr2(&[[0.0, 0.0]]), arr2(&[[0.0, -1.0]]));
    case(arr2(&[[0.0], [-1.0]]), arr2(&[[0.0], [0.0]]));
    case(arr2(&[[-1.0, -2.0]]), arr2(&[[-2.0, -1.0]]));
    case(arr2(&[[-1.0, -2.0], [-4.0, -0.5]]), arr2(&[[-2.0, -2.0], [-1.0, -0.5]]));
    case(arr2(&[[-1.0, -2.0, -3.0]]), arr2(&[[-3.0, -2.0, -1.0]]));
    let steps = |factor: usize, (rows, tokens): (usize, usize)| {
        Array2::from_shape_fn((rows, tokens), |(row, token)| {
            -0.25 * ((factor * (row * tokens + token) + row) % 11) as f64
        })
    };
    for shape in [(3, 3), (2, 5), (1, 16)] {
        case(steps(3, shape), steps(7, shape));
    }
    cases.retain_mut(|case| {
        shakedown_core::value::record::round(case, dtype);
        valid(case, options, dtype).is_ok()
    });
    cases.sort_by_cached_key(KlEstimate::measure);
    cases.dedup_by(|a, b| shakedown_core::value::record::same_bits(a, b));
    cases
}

pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<KlEstimateCase> {
    let values = [0.0, -1.0, -2.0];
    rows::small::<KlEstimate>(&[("log_probs", &values), ("ref_log_probs", &values)], options, dtype)
}

/// Whether some token's log-ratio is such.
fn any(case: &KlEstimateCase, is: impl Fn(f64) -> bool) -> bool {
    case.log_probs.iter().zip(&case.ref_log_probs).any(|(a, b)| is(a - b))
}

/// Whether the estimate at a log-ratio is outside the declared clamp.
fn result_clamped(options: &Options, d: f64) -> bool {
    let value = oracle::value(options.estimator, oracle::clamped(options, d));
    options.clamp.is_some_and(|[lo, hi]| value < lo || value > hi)
}

pub(super) fn classes() -> Vec<Class<KlEstimate>> {
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "equal",
            "policy and reference agree everywhere",
            |c, _| !any(c, |d| d != 0.0),
            always,
        ),
        class(
            "small-gap",
            "a log-ratio of at most 0.01, not 0",
            |c, _| any(c, |d| d != 0.0 && d.abs() <= 0.01),
            always,
        ),
        class(
            "policy-above",
            "a token that the policy likes more than the reference, by a factor of e",
            |c, _| any(c, |d| d >= 1.0),
            always,
        ),
        class(
            "policy-below",
            "a token that the policy likes less than the reference, by a factor of e",
            |c, _| any(c, |d| d <= -1.0),
            always,
        ),
        class(
            "rare-token",
            "a log-probability below -64 beside a log-ratio within 1",
            |c, _| {
                let mut pairs = c.log_probs.iter().zip(&c.ref_log_probs);
                pairs.any(|(a, b)| *a < -64.0 && (a - b).abs() <= 1.0 && a != b)
            },
            always,
        ),
        class(
            "far-apart",
            "a log-ratio beyond 20",
            |c, _| any(c, |d| d.abs() > 20.0),
            |options, dtype| options.extreme_ratios.limit(dtype) > 20.0,
        ),
        class(
            "beyond-exp",
            "a log-ratio beyond 88.7, where exp leaves f32",
            |c, _| any(c, |d| d.abs() > 88.73),
            |options, dtype| options.extreme_ratios.limit(dtype) > 88.73,
        ),
        class(
            "log-ratio-clamped",
            "a log-ratio beyond `log_ratio_clamp`",
            |c, o| o.log_ratio_clamp.is_some_and(|limit| any(c, |d| d.abs() > limit)),
            |options, dtype| {
                // In a coarse format c and what is a little more may be one number.
                let limit = dtype.round(limit(options, dtype).min(LARGEST));
                options.log_ratio_clamp.is_some_and(|c| c < limit)
            },
        ),
        class(
            "result-clamped",
            "an estimate outside `clamp`",
            |c, o| any(c, |d| result_clamped(o, d)),
            |options, dtype| {
                let limit = limit(options, dtype).min(LARGEST);
                [limit, -limit].iter().any(|d| result_clamped(options, *d))
            },
        ),
        class("one-row", "N = 1", |c, _| c.log_probs.nrows() == 1, always),
        class("one-column", "T = 1", |c, _| c.log_probs.ncols() == 1, always),
        class(
            "square",
            "N = T ≥ 2",
            |c, _| c.log_probs.is_square() && c.log_probs.nrows() > 1,
            always,
        ),
        class("long-rows", "T ≥ 12", |c, _| c.log_probs.ncols() >= 12, always),
        class(
            "exponential-beyond-the-clamp",
            "a log-ratio whose exponential leaves f32, and a finite result",
            |c, o| o.estimator == Estimator::K3 && any(c, |d| d < -88.73),
            |options, dtype| {
                options.estimator == Estimator::K3
                    && options.extreme_ratios.limit(dtype) > 88.73
                    && token(-100.0, 0.0, options, dtype).is_ok()
            },
        ),
    ]
}
