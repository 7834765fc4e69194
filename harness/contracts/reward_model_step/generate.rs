//! Cases of `reward-model-step`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::{Array1, Array3, ArrayD, Axis, IxDyn};

use super::{Options, RewardModelStep, RewardModelStepCase, ends};
use crate::step;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::generate::measure::Measure;
use shakedown_core::generate::pick::Pick;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::round;

/// Ids are less.
const IDS: usize = 20;

/// The largest score: of a larger difference there is nothing left to learn.
const LARGEST_SCORE: f64 = 8.0;

/// The largest margin.
const LARGEST_MARGIN: f64 = 3.0;

/// The ids that are neither the end nor the pad.
fn words(options: &Options, vocabulary: usize) -> Vec<i64> {
    step::words(&[options.eos, options.pad], vocabulary)
}

/// How many tokens a completion has at least.
fn shortest(options: &Options) -> usize {
    1 + usize::from(options.skips_the_end())
}

pub(super) fn valid(
    case: &RewardModelStepCase,
    options: &Options,
    _: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<RewardModelStep>(case)?;
    let (updates, ids) = (case.scores.shape()[0], [options.eos, options.pad]);
    step::valid_pairs(&case.tokens, &options.plan(), updates, ids, IDS)?;
    let short = ends(case, options).iter().position(|end| end + 1 < shortest(options));
    if let Some(row) = short {
        return Err(format!("{} has no token before its end, the pad", step::side(row)));
    }
    if case.margins.is_some() != options.has_margins {
        return Err("`margins` go with `has_margins: true`".to_owned());
    }
    let scores = case.scores.iter().map(|x| ("score", *x, LARGEST_SCORE));
    let margins = case.margins.iter().flatten().map(|x| ("margin", *x, LARGEST_MARGIN));
    let is_far = |(_, x, most): &(&str, f64, f64)| x.is_nan() || x.abs() > *most;
    if let Some((what, x, most)) = scores.chain(margins).find(is_far) {
        return Err(format!("{what} {x} is not within ±{most}"));
    }
    Ok(())
}

/// A case of so many pairs, or more, and of this width, or more: how long the completions are,
/// their words, a score at an update, and the margin of a pair.
fn made(
    options: &Options,
    [pairs, width]: [usize; 2],
    mut length: impl FnMut(usize, usize, usize) -> usize,
    mut word: impl FnMut(usize, usize, usize) -> i64,
    mut score: impl FnMut(usize) -> f64,
    margin: impl FnMut(usize) -> f64,
) -> RewardModelStepCase {
    let plan = options.plan();
    let (pairs, least) = (pairs.next_multiple_of(plan.parts()), shortest(options));
    let width = width.max(least);
    let mut tokens = Array3::from_elem((pairs, 2, width), options.pad);
    for pair in 0..pairs {
        for side in 0..2 {
            let length = length(pair, side, width).max(least);
            for at in 0..length {
                let last = at + 1 == length;
                tokens[[pair, side, at]] = if last { options.eos } else { word(pair, side, at) };
            }
        }
    }
    let shape = IxDyn(&[plan.updates(), pairs, 2, width]);
    let margins = options.has_margins.then(|| (0..pairs).map(margin).collect::<Array1<f64>>());
    RewardModelStepCase {
        tokens,
        scores: ArrayD::from_shape_fn(shape, |at| score(at[0])),
        margins,
        micro_batches: None,
    }
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<RewardModelStepCase> {
    let parts = options.plan().parts();
    let pairs = if parts == 1 { one(u, &[2, 1, 3, 2])? } else { parts * one(u, &[1, 2])? };
    let width = one(u, &[3, 2, 4, 1, 5])?;
    let vocabulary = smallest_vocabulary(options) + u.choose_index(3)?;
    let (alike, full) = (chance(u, 80)?, chance(u, 48)?);
    let spread = one(u, &[1.0, 2.0, 0.0, 4.0])?;
    let moved = one(u, &[0.5, 1.0, 0.0, 2.0])?;
    let seeds: [u64; 5] = u.arbitrary()?;
    let [mut lengths, mut ids, mut scores, mut steps, mut margins] = seeds.map(Pick::seeded);
    let words = words(options, vocabulary);
    let mut case = made(
        options,
        [pairs, width],
        |_, _, width| if full { width } else { 1 + lengths.below(width) },
        |_, _, at| if alike { words[at % words.len()] } else { *ids.one(&words) },
        |update| {
            let away =
                if update > 0 { moved * (steps.below(33) as f64 - 16.0) / 16.0 } else { 0.0 };
            spread * (scores.below(33) as f64 - 16.0) / 16.0 + away
        },
        |_| (margins.below(9) as f64 - 2.0) / 4.0,
    );
    round(&mut case, dtype);
    Ok(case)
}

/// The smallest vocabulary that has the end, the pad and two words.
fn smallest_vocabulary(options: &Options) -> usize {
    step::smallest_vocabulary(&[options.eos, options.pad])
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<RewardModelStepCase> {
    let words = words(options, smallest_vocabulary(options));
    let mut cases = Vec::new();
    for (pairs, width, spread) in [
        (1, 1, 0.0),
        (1, 2, 0.0),
        (1, 2, 0.5),
        (2, 2, -0.5),
        (2, 3, 1.0),
        (2, 4, 0.25),
        (3, 3, -1.0),
        (3, 5, 2.0),
        (4, 4, 4.0),
    ] {
        let mut count = 0;
        let mut case = made(
            options,
            [pairs, width],
            |pair, side, width| width - (pair + side) % width,
            |pair, side, at| words[(pair + side * at) % words.len()],
            |update| {
                count += 1;
                spread * ((count + update) % 5) as f64 / 2.0
            },
            |pair| (pair + 1) as f64 / 2.0 % 2.0,
        );
        round(&mut case, dtype);
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    cases
}

/// Fewer pairs, simpler words, shorter completions; then what the axes give.
pub(super) fn simpler(case: &RewardModelStepCase, options: &Options) -> Vec<RewardModelStepCase> {
    let with = |tokens| RewardModelStepCase { tokens, ..case.clone() };
    let (words, parts) = (words(options, IDS), options.plan().parts());
    let mut simpler = step::fewer_pairs::<RewardModelStep>(case, &case.tokens, parts, &words, with);
    // One table for all updates.
    let mut still = case.clone();
    let first = case.scores.index_axis(Axis(0), 0);
    still.scores.outer_iter_mut().for_each(|mut table| table.assign(&first));
    simpler.push(still);
    let ids = [options.eos, options.pad];
    simpler.extend(step::shorter_pairs::<RewardModelStep>(&case.tokens, ids, with));
    simpler.extend(rows::simpler::<RewardModelStep>(case));
    simpler
}

/// Small cases from which shrinking may start: completions of up to three tokens.
pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<RewardModelStepCase> {
    let words = words(options, smallest_vocabulary(options));
    let mut cases = Vec::new();
    for (pairs, width) in [(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 2)] {
        let mut pick = Pick::seeded((8 * pairs + width) as u64);
        for _ in 0..16 {
            let seeds = [pick.bits(), pick.bits(), pick.bits(), pick.bits()];
            let [mut lengths, mut ids, mut scores, mut margins] = seeds.map(Pick::seeded);
            let mut case = made(
                options,
                [pairs, width],
                |_, _, width| 1 + lengths.below(width),
                |_, _, _| *ids.one(&words),
                |_| *scores.one(&[0.0, 0.0, 1.0, -1.0, 2.0]),
                |_| *margins.one(&[1.0, 0.0, 0.5]),
            );
            round(&mut case, dtype);
            cases.push(case);
        }
    }
    cases
}

pub(super) fn measure(case: &RewardModelStepCase) -> Measure {
    rows::measure::<RewardModelStep>(case)
}

pub(super) fn classes() -> Vec<Class<RewardModelStep>> {
    let class = |id, meaning, contains, generated| -> Class<RewardModelStep> {
        Class { id, meaning, contains, generated }
    };
    vec![
        class(
            "unequal-lengths",
            "a pair whose completions have different lengths",
            |case, options| ends(case, options).chunks(2).any(|pair| pair[0] != pair[1]),
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
            "unequal-margins",
            "pairs with different margins",
            |case, _| {
                let margins = case.margins.as_ref().map(|margins| margins.to_vec());
                margins.is_some_and(|margins| margins.iter().any(|x| *x != margins[0]))
            },
            |options, _| options.has_margins,
        ),
        class(
            "moved-scores",
            "scores that an update has moved",
            |case, _| {
                let first = case.scores.index_axis(Axis(0), 0);
                case.scores.outer_iter().any(|table| table != first)
            },
            |options, _| options.plan().updates() > 1,
        ),
    ]
}
