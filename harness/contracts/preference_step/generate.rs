//! Cases of `preference-step`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::{Array3, ArrayD, Axis, IxDyn};

use super::{Kind, Options, PreferenceStep, PreferenceStepCase, oracle};
use crate::step;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::contract::step::Stepped as _;
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::generate::measure::Measure;
use shakedown_core::generate::pick::Pick;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::round;

/// The largest logit.
const LARGEST_LOGIT: f64 = 30.0;

/// The largest difference of two models' logits: more, and a loss is flat.
const FURTHEST: f64 = 6.0;

pub(super) fn draw_smoothing(u: &mut Unstructured<'_>, options: &Options) -> Result<f64> {
    match options.kind {
        Kind::Exo => one(u, &[0.1, 0.001, 0.3]),
        kind if kind.is_smoothed() => one(u, &[0.0, 0.1, 0.0, 0.3]),
        _ => Ok(0.0),
    }
}

pub(super) fn draw_gamma(u: &mut Unstructured<'_>, options: &Options) -> Result<f64> {
    match options.kind {
        Kind::Sigmoid => one(u, &[0.0, 0.0, 0.5]),
        Kind::Simpo => one(u, &[0.5, 0.0, 1.4]),
        _ => Ok(0.0),
    }
}

pub(super) fn draw_reference(u: &mut Unstructured<'_>, options: &Options) -> Result<bool> {
    match options.kind {
        Kind::Sigmoid | Kind::Hinge | Kind::IpoNorm => one(u, &[true, false, true]),
        _ => Ok(true),
    }
}

pub(super) fn draw_alpha(u: &mut Unstructured<'_>, options: &Options) -> Result<f64> {
    let may_be = !options.uses_reference() && options.kind != Kind::Orpo;
    if may_be { one(u, &[0.0, 0.25, -0.5]) } else { Ok(0.0) }
}

pub(super) fn draw_nll_weight(u: &mut Unstructured<'_>, options: &Options) -> Result<f64> {
    match options.kind {
        Kind::Orpo => one(u, &[1.0, 0.5]),
        _ => one(u, &[0.0, 0.0, 1.0, 0.5]),
    }
}

/// The ids that are neither the end nor the pad.
fn words(options: &Options, vocabulary: usize) -> Vec<i64> {
    step::words(&[options.eos, options.pad], vocabulary)
}

/// The smallest vocabulary that has the end, the pad and two words.
fn smallest_vocabulary(options: &Options) -> usize {
    step::smallest_vocabulary(&[options.eos, options.pad])
}

pub(super) fn valid(
    case: &PreferenceStepCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<PreferenceStep>(case)?;
    let (updates, vocabulary) = (case.logits.shape()[0], case.logits.shape()[4]);
    if vocabulary < smallest_vocabulary(options) {
        let least = smallest_vocabulary(options);
        return Err(format!("a vocabulary of {vocabulary}, expected {least} or more"));
    }
    let ids = [options.eos, options.pad];
    step::valid_pairs(&case.tokens, &options.plan(), updates, ids, vocabulary)?;
    if case.ref_logits.is_some() != options.uses_reference() {
        return Err("`ref_logits` go with `has_reference`, but for `orpo` and `simpo`".to_owned());
    }
    let tables = case.logits.iter().chain(case.ref_logits.iter().flatten());
    if let Some(z) = tables.copied().find(|z| z.is_nan() || z.abs() > LARGEST_LOGIT) {
        return Err(format!("logit {z} is not within ±{LARGEST_LOGIT}"));
    }
    for table in case.logits.outer_iter() {
        let apart = |(a, b): (&f64, &f64)| (a - b).abs();
        let others = case.ref_logits.iter().flatten();
        if table.iter().zip(others).map(apart).fold(0.0, f64::max) > FURTHEST {
            return Err(format!("policy and reference are more than {FURTHEST} apart"));
        }
    }
    let expected = oracle::expected(case, options, dtype);
    let known = expected[0].numbers.iter().all(|number| number.value.is_finite());
    if known { Ok(()) } else { Err("the gradient is undefined".to_owned()) }
}

/// The sizes of a case.
#[derive(Clone, Copy)]
struct Sizes {
    pairs: usize,
    width: usize,
    vocabulary: usize,
}

impl Sizes {
    /// Those nearest to the wanted ones that the options allow.
    fn fitting(options: &Options, pairs: usize, width: usize) -> Sizes {
        let pairs = pairs.next_multiple_of(options.plan().parts());
        Sizes { pairs, width, vocabulary: smallest_vocabulary(options) }
    }
}

/// A case: how long the completions are, their words, a logit of the reference, and how far the
/// policy is from it, given the update, the side, and whether the logit is that of the token.
fn made(
    options: &Options,
    sizes: Sizes,
    mut length: impl FnMut(usize, usize) -> usize,
    mut word: impl FnMut(usize, usize, usize) -> i64,
    mut logit: impl FnMut(usize) -> f64,
    mut away: impl FnMut(usize, usize, bool) -> f64,
) -> PreferenceStepCase {
    let Sizes { pairs, width, vocabulary } = sizes;
    let mut tokens = Array3::from_elem((pairs, 2, width), options.pad);
    for pair in 0..pairs {
        for side in 0..2 {
            let length = length(pair, side);
            for at in 0..length {
                let last = at + 1 == length;
                tokens[[pair, side, at]] = if last { options.eos } else { word(pair, side, at) };
            }
        }
    }
    let shape = [pairs, 2, width, vocabulary];
    let reference = ArrayD::from_shape_fn(IxDyn(&shape), |at| logit(at[3]));
    let mut policy = |update: usize| {
        let mut table = reference.clone();
        for (at, z) in table.indexed_iter_mut() {
            let is_token = tokens[[at[0], at[1], at[2]]] == at[3] as i64;
            *z += away(update, at[1], is_token).clamp(-FURTHEST, FURTHEST);
        }
        table
    };
    let policies: Vec<ArrayD<f64>> = (0..options.plan().updates()).map(&mut policy).collect();
    let views: Vec<_> = policies.iter().map(|table| table.view()).collect();
    PreferenceStepCase {
        tokens,
        logits: ndarray::stack(Axis(0), &views).expect("tables of one shape"),
        ref_logits: options.uses_reference().then_some(reference),
        micro_batches: None,
    }
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<PreferenceStepCase> {
    let parts = options.plan().parts();
    let pairs = if parts == 1 { one(u, &[2, 1, 3, 2])? } else { parts * one(u, &[1, 2])? };
    let mut sizes = Sizes::fitting(options, pairs, one(u, &[3, 2, 4, 1, 5])?);
    sizes.vocabulary += u.choose_index(3)?;
    let (alike, full) = (chance(u, 80)?, chance(u, 48)?);
    let spread = one(u, &[1.0, 2.0, 0.0, 4.0])?;
    let moved = one(u, &[0.5, 1.0, 0.0, 2.0])?;
    // Margins that are large enough for a hinge to bend.
    let liked = one(u, &[0.0, 0.0, 5.5, -3.5, 2.0])?;
    let seeds: [u64; 4] = u.arbitrary()?;
    let [mut lengths, mut ids, mut logits, mut steps] = seeds.map(Pick::seeded);
    let words = words(options, sizes.vocabulary);
    let mut case = made(
        options,
        sizes,
        |_, _| if full { sizes.width } else { 1 + lengths.below(sizes.width) },
        |_, _, at| if alike { words[at % words.len()] } else { *ids.one(&words) },
        |_| spread * (logits.below(17) as f64 - 8.0) / 8.0,
        |_, side, is_token| {
            let liked = if is_token { [liked, -liked][side] } else { 0.0 };
            liked + moved * (steps.below(33) as f64 - 16.0) / 16.0
        },
    );
    round(&mut case, dtype);
    if valid(&case, options, dtype).is_err() {
        return Ok(corners(options, dtype).swap_remove(0));
    }
    Ok(case)
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<PreferenceStepCase> {
    let mut cases = Vec::new();
    for (pairs, width, moved, liked) in [
        (1, 1, 0.0, 0.0),
        (1, 2, 0.0, 0.0),
        (1, 2, 0.5, 0.0),
        (2, 2, -0.5, 0.0),
        (2, 3, 0.5, 0.0),
        (2, 4, 1.0, 0.0),
        (2, 5, 0.0, 5.5),
        (2, 5, 0.25, -5.5),
        (3, 3, -1.0, 0.0),
        (4, 4, 0.25, 2.0),
    ] {
        let sizes = Sizes::fitting(options, pairs, width);
        let words = words(options, sizes.vocabulary);
        let mut count = 0;
        let mut case = made(
            options,
            sizes,
            |pair, side| width - (pair + side) % width,
            |pair, side, at| words[(pair + side * at) % words.len()],
            |id| (id % 3) as f64 * 0.5,
            |update, side, is_token| {
                count += 1;
                let liked = if is_token { [liked, -liked][side] } else { 0.0 };
                liked + moved * ((count + update) % 3) as f64
            },
        );
        round(&mut case, dtype);
        if valid(&case, options, dtype).is_ok() && !cases.contains(&case) {
            cases.push(case);
        }
    }
    cases
}

/// Fewer pairs, simpler words; then what the axes give.
pub(super) fn simpler(case: &PreferenceStepCase, options: &Options) -> Vec<PreferenceStepCase> {
    let with = |tokens| PreferenceStepCase { tokens, ..case.clone() };
    let words = words(options, case.logits.shape()[4]);
    let parts = options.plan().parts();
    let mut simpler = step::fewer_pairs::<PreferenceStep>(case, &case.tokens, parts, &words, with);
    // One policy for all updates; the reference.
    let first = Some(case.logits.index_axis(Axis(0), 0));
    let reference = case.ref_logits.as_ref().map(|table| table.view());
    for still in [first, reference].into_iter().flatten() {
        let mut simple = case.clone();
        simple.logits.outer_iter_mut().for_each(|mut table| table.assign(&still));
        simpler.push(simple);
    }
    let ids = [options.eos, options.pad];
    simpler.extend(step::shorter_pairs::<PreferenceStep>(&case.tokens, ids, with));
    simpler.extend(rows::simpler::<PreferenceStep>(case));
    simpler
}

/// Small cases from which shrinking may start: completions of up to three tokens, and policies
/// that like some tokens more or less.
pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<PreferenceStepCase> {
    let mut cases = Vec::new();
    for (pairs, width) in [(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 2)] {
        let sizes = Sizes::fitting(options, pairs, width);
        let words = words(options, sizes.vocabulary);
        let mut pick = Pick::seeded((8 * pairs + width) as u64);
        for _ in 0..16 {
            let seeds = [pick.bits(), pick.bits(), pick.bits(), pick.bits()];
            let [mut lengths, mut ids, mut logits, mut steps] = seeds.map(Pick::seeded);
            let mut case = made(
                options,
                sizes,
                |_, _| 1 + lengths.below(width),
                |_, _, _| *ids.one(&words[..2]),
                |_| *logits.one(&[0.0, 0.0, 0.0, 1.0]),
                |_, _, _| *steps.one(&[0.0, 0.0, 0.0, 1.0, -1.0, 2.0]),
            );
            round(&mut case, dtype);
            if valid(&case, options, dtype).is_ok() {
                cases.push(case);
            }
        }
    }
    cases
}

pub(super) fn measure(case: &PreferenceStepCase) -> Measure {
    rows::measure::<PreferenceStep>(case)
}

/// How many tokens each completion of each pair has.
fn lengths(case: &PreferenceStepCase, options: &Options) -> Vec<[usize; 2]> {
    let trained = PreferenceStep::trained(case, options);
    let length = |row: usize| trained.row(row).iter().filter(|flag| **flag).count();
    (0..case.tokens.dim().0).map(|pair| [length(2 * pair), length(2 * pair + 1)]).collect()
}

pub(super) fn classes() -> Vec<Class<PreferenceStep>> {
    let class = |id, meaning, contains, generated| -> Class<PreferenceStep> {
        Class { id, meaning, contains, generated }
    };
    vec![
        class(
            "unequal-lengths",
            "a pair whose completions have different lengths",
            |case, options| lengths(case, options).iter().any(|[a, b]| a != b),
            |_, _| true,
        ),
        class(
            "equal-completions",
            "a pair of two equal completions",
            |case, _| case.tokens.outer_iter().any(|pair| pair.row(0) == pair.row(1)),
            |_, _| true,
        ),
        class(
            "shared-prefix",
            "a pair whose completions begin with the same token and differ",
            |case, _| {
                case.tokens
                    .outer_iter()
                    .any(|pair| pair[[0, 0]] == pair[[1, 0]] && pair.row(0) != pair.row(1))
            },
            |_, _| true,
        ),
        class(
            "several-pairs",
            "a micro-batch of several pairs",
            |case, options| case.tokens.dim().0 > options.plan().parts(),
            |_, _| true,
        ),
        class(
            "policy-is-the-reference",
            "a policy that equals the reference",
            |case, _| {
                let reference = case.ref_logits.as_ref();
                reference.is_some_and(|z| case.logits.outer_iter().any(|table| table == z))
            },
            |options, _| options.uses_reference(),
        ),
        class(
            "moved-policy",
            "a policy that an update has moved",
            |case, _| {
                let first = case.logits.index_axis(Axis(0), 0);
                case.logits.outer_iter().any(|table| table != first)
            },
            |options, _| options.plan().updates() > 1,
        ),
    ]
}
