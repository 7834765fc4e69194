//! Cases of `critic-step`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::{Array2, ArrayD, Axis, IxDyn};

use super::{CriticStep, CriticStepCase, Options, Targets, length};
use crate::step;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::generate::measure::Measure;
use shakedown_core::generate::pick::Pick;
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::round;

/// Ids are less.
const IDS: usize = 20;

/// The largest value, score and return.
const LARGEST: f64 = 8.0;

/// The largest divergence of a token.
const LARGEST_KL: f64 = 4.0;

pub(super) fn draw_beta(u: &mut Unstructured<'_>, options: &Options) -> Result<f64> {
    let has_rewards = options.targets == Targets::Gae;
    if has_rewards { one(u, &[0.0, 0.1, 0.5]) } else { Ok(0.0) }
}

pub(super) fn draw_aggregate(u: &mut Unstructured<'_>, _: &Options) -> Result<Aggregate> {
    use Aggregate::{SeqMeanTokenMean, SeqMeanTokenSum, TokenMean, TokenSum};
    one(u, &[TokenMean, TokenMean, SeqMeanTokenMean, SeqMeanTokenSum, TokenSum])
}

/// The ids that are neither the end nor the pad.
fn words(options: &Options, vocabulary: usize) -> Vec<i64> {
    step::words(&[options.eos, options.pad], vocabulary)
}

/// The smallest vocabulary that has the end, the pad and two words.
fn smallest_vocabulary(options: &Options) -> usize {
    step::smallest_vocabulary(&[options.eos, options.pad])
}

/// How many completions a case has at least: those of each generation make its micro-batches.
fn least(options: &Options) -> usize {
    options.plan().generations * options.plan().parts()
}

pub(super) fn valid(
    case: &CriticStepCase,
    options: &Options,
    _: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<CriticStep>(case)?;
    let (updates, plan) = (case.values.shape()[0], options.plan());
    if updates != plan.updates() {
        return Err(format!("values of {updates} updates, expected {}", plan.updates()));
    }
    let rows = case.tokens.nrows();
    if !rows.is_multiple_of(least(options)) {
        let parts = format!("{} micro-batches of {} generations", plan.parts(), plan.generations);
        return Err(format!("{rows} completions do not make {parts}"));
    }
    for row in 0..rows {
        valid_row(case, options, row).map_err(|wrong| format!("completion {row} {wrong}"))?;
    }
    let makes = options.targets == Targets::Gae;
    for (name, is_there, expected, when) in [
        ("scores", case.scores.is_some(), makes, "targets: gae"),
        ("kls", case.kls.is_some(), options.beta > 0.0, "beta > 0"),
        ("returns", case.returns.is_some(), !makes, "targets: given"),
    ] {
        if is_there != expected {
            return Err(format!("`{name}` go with `{when}`"));
        }
    }
    let numbers = case.values.iter().chain(case.scores.iter().flatten());
    let numbers = numbers.chain(case.returns.iter().flatten()).map(|x| (x, LARGEST));
    let kls = case.kls.iter().flatten().map(|x| (x, LARGEST_KL));
    match numbers.chain(kls).find(|(x, most)| x.is_nan() || x.abs() > *most) {
        Some((x, most)) => Err(format!("{x} is not within ±{most}")),
        None => Ok(()),
    }
}

/// Whether a completion ends or fills its row, and begins and ends with what the policy wrote.
fn valid_row(
    case: &CriticStepCase,
    options: &Options,
    row: usize,
) -> std::result::Result<(), String> {
    let tokens = case.tokens.row(row);
    if tokens.iter().any(|id| *id == options.eos) {
        step::end_of(tokens, [options.eos, options.pad], IDS)?;
    } else if let Some(id) =
        tokens.iter().find(|id| **id == options.pad || !(0..IDS as i64).contains(*id))
    {
        return Err(format!("has no end, and the id {id}"));
    }
    let length = length(case, options, row);
    for (at, flag) in case.mask.row(row).iter().enumerate() {
        let must = at < length && (!options.holes || at == 0 || at + 1 == length);
        if *flag && at >= length || !*flag && must {
            return Err(format!("has a mask of {flag} at token {at}"));
        }
    }
    Ok(())
}

/// A case of so many completions, or more: how long each is, whether it comes to its end, its
/// words, whether a token is the policy's, and its numbers: values by update, scores, divergences
/// and returns.
struct Made<'a> {
    length: &'a mut dyn FnMut(usize) -> usize,
    ends: &'a mut dyn FnMut(usize) -> bool,
    word: &'a mut dyn FnMut(usize, usize) -> i64,
    is_kept: &'a mut dyn FnMut(usize, usize) -> bool,
    value: &'a mut dyn FnMut(usize) -> f64,
    score: &'a mut dyn FnMut() -> f64,
    kl: &'a mut dyn FnMut() -> f64,
}

impl Made<'_> {
    fn case(self, options: &Options, [rows, width]: [usize; 2], dtype: Dtype) -> CriticStepCase {
        let rows = rows.next_multiple_of(least(options));
        let mut tokens = Array2::from_elem((rows, width), options.pad);
        let mut mask = Array2::from_elem((rows, width), false);
        for row in 0..rows {
            let length = (self.length)(row).clamp(1, width);
            let ends = length < width || (self.ends)(row);
            for at in 0..length {
                let last = at + 1 == length;
                let is_end = last && ends;
                tokens[[row, at]] = if is_end { options.eos } else { (self.word)(row, at) };
                let must = !options.holes || at == 0 || last;
                mask[[row, at]] = must || (self.is_kept)(row, at);
            }
        }
        let makes = options.targets == Targets::Gae;
        let shape = (rows, width);
        let of_mask = |numbers: Array2<f64>| {
            let mut numbers = numbers;
            numbers.zip_mut_with(&mask, |x, kept| *x = if *kept { *x } else { 0.0 });
            numbers
        };
        let updates = IxDyn(&[options.plan().updates(), rows, width]);
        let mut case = CriticStepCase {
            values: ArrayD::from_shape_fn(updates, |at| (self.value)(at[0])),
            scores: makes.then(|| (0..rows).map(|_| (self.score)()).collect()),
            kls: (options.beta > 0.0)
                .then(|| of_mask(Array2::from_shape_simple_fn(shape, &mut *self.kl))),
            returns: (!makes)
                .then(|| of_mask(Array2::from_shape_simple_fn(shape, &mut *self.score))),
            tokens,
            mask,
            micro_batches: None,
        };
        round(&mut case, dtype);
        case
    }
}

/// A number from -1 to 1.
fn unit(pick: &mut Pick) -> f64 {
    (pick.below(33) as f64 - 16.0) / 16.0
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<CriticStepCase> {
    let least = least(options);
    let rows = if least == 1 { one(u, &[2, 1, 3, 4])? } else { least * one(u, &[1, 2])? };
    let width = one(u, &[3, 2, 4, 1, 6])?;
    let vocabulary = smallest_vocabulary(options) + u.choose_index(3)?;
    let (full, cut) = (chance(u, 48)?, chance(u, 96)?);
    // Not 1, 2 or 4: no value is moved by just as much as a clip allows.
    let spread = one(u, &[1.1, 2.1, 0.0, 4.1])?;
    let moved = one(u, &[0.55, 1.1, 0.0, 2.1])?;
    let share = one(u, &[128, 60, 200])?;
    let seeds: [u64; 7] = u.arbitrary()?;
    let [mut lengths, mut ids, mut flags, mut values, mut steps, mut scores, mut kls] =
        seeds.map(Pick::seeded);
    let words = words(options, vocabulary);
    let made = Made {
        length: &mut |_| if full { width } else { 1 + lengths.below(width) },
        ends: &mut |_| !cut,
        word: &mut |_, _| *ids.one(&words),
        is_kept: &mut |_, _| flags.below(255) < share,
        value: &mut |update| {
            let away = if update > 0 { moved * unit(&mut steps) } else { 0.0 };
            spread * unit(&mut values) + away
        },
        score: &mut || 2.0 * unit(&mut scores),
        kl: &mut || unit(&mut kls),
    };
    Ok(made.case(options, [rows, width], dtype))
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<CriticStepCase> {
    let words = words(options, smallest_vocabulary(options));
    let mut cases = Vec::new();
    for (rows, width, spread, score) in [
        (1, 1, 0.0, 1.0),
        (1, 2, 0.0, 1.0),
        (1, 2, 0.6, 1.0),
        (2, 1, 0.6, 0.0),
        (2, 2, -0.6, 1.0),
        (2, 3, 1.1, -1.0),
        (2, 4, 0.3, 2.0),
        (3, 3, -1.1, 0.5),
        (4, 5, 2.1, 1.0),
    ] {
        let (mut count, mut scored) = (0, 0);
        let made = Made {
            length: &mut |row| width - row % width,
            ends: &mut |row| row % 3 == 0,
            word: &mut |row, at| words[(row + at) % words.len()],
            is_kept: &mut |row, at| (row + at) % 2 == 0,
            value: &mut |update| {
                count += 1;
                spread * ((count + 2 * update) % 5) as f64 / 2.0
            },
            score: &mut || {
                scored += 1;
                score * (scored % 3) as f64 / 2.0
            },
            kl: &mut || spread / 4.0,
        };
        let case = made.case(options, [rows, width], dtype);
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    cases
}

/// Fewer completions, shorter ones; one table for all updates; then what the axes give.
pub(super) fn simpler(case: &CriticStepCase, options: &Options) -> Vec<CriticStepCase> {
    let (rows, width) = case.tokens.dim();
    let least = least(options);
    let mut simpler = Vec::new();
    for kept in [least, rows / 2 / least * least, rows.saturating_sub(least)] {
        if kept > 0 && kept < rows {
            for first in [0, rows - kept] {
                let kept: Vec<usize> = (first..first + kept).collect();
                simpler.push(rows::select::<CriticStep, _>(case, 'N', &kept));
            }
        }
    }
    for row in 1..rows {
        let mut order: Vec<usize> = (0..rows).collect();
        order.swap(row - 1, row);
        simpler.push(rows::select::<CriticStep, _>(case, 'N', &order));
    }
    let mut still = case.clone();
    let first = case.values.index_axis(Axis(0), 0);
    still.values.outer_iter_mut().for_each(|mut table| table.assign(&first));
    simpler.push(still);
    for left_out in 0..width {
        let columns: Vec<usize> = (0..width).filter(|at| *at != left_out).collect();
        let narrower = rows::select::<CriticStep, _>(case, 'T', &columns);
        simpler.push(ended(narrower, options));
        simpler.extend((0..rows).map(|row| shorter(case, options, row, left_out)));
    }
    simpler.extend(rows::simpler::<CriticStep>(case));
    simpler
}

/// The case where nothing behind an end is the policy's, and the last token before it is.
fn ended(mut case: CriticStepCase, options: &Options) -> CriticStepCase {
    for row in 0..case.tokens.nrows() {
        let length = length(&case, options, row);
        if length > 0 {
            case.mask[[row, 0]] = true;
            case.mask[[row, length - 1]] = true;
        }
    }
    case
}

/// The case where a completion lacks a token, and all that is said of it.
fn shorter(
    case: &CriticStepCase,
    options: &Options,
    row: usize,
    left_out: usize,
) -> CriticStepCase {
    let mut shorter = case.clone();
    let tokens = step::without(case.tokens.row(row), left_out, options.pad);
    shorter.tokens.row_mut(row).assign(&tokens);
    let moved = |at: usize| if at < left_out { at } else { at + 1 };
    let width = case.tokens.ncols();
    for at in 0..width {
        let from = moved(at);
        shorter.mask[[row, at]] = from < width && case.mask[[row, from]];
        for (new, old) in [(&mut shorter.kls, &case.kls), (&mut shorter.returns, &case.returns)] {
            if let (Some(new), Some(old)) = (new, old) {
                new[[row, at]] = old.get([row, from]).copied().unwrap_or(0.0);
            }
        }
        for update in 0..case.values.shape()[0] {
            let from = from.min(width - 1);
            shorter.values[[update, row, at]] = case.values[[update, row, from]];
        }
    }
    ended(shorter, options)
}

/// Small cases from which shrinking may start: completions of up to three tokens.
pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<CriticStepCase> {
    let words = words(options, smallest_vocabulary(options));
    let mut cases = Vec::new();
    for (rows, width) in [(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 2)] {
        let mut pick = Pick::seeded((8 * rows + width) as u64);
        for _ in 0..16 {
            let seeds = [pick.bits(), pick.bits(), pick.bits(), pick.bits(), pick.bits()];
            let [mut lengths, mut flags, mut values, mut scores, mut kls] = seeds.map(Pick::seeded);
            let made = Made {
                length: &mut |_| 1 + lengths.below(width),
                ends: &mut |_| true,
                word: &mut |_, _| words[0],
                is_kept: &mut |_, _| flags.below(2) == 0,
                value: &mut |_| *values.one(&[0.0, 0.0, 1.0, -1.0, 2.0]),
                score: &mut || *scores.one(&[1.0, 0.0, 2.0]),
                kl: &mut || *kls.one(&[0.0, 1.0]),
            };
            cases.push(made.case(options, [rows, width], dtype));
        }
    }
    cases
}

pub(super) fn measure(case: &CriticStepCase) -> Measure {
    rows::measure::<CriticStep>(case)
}

pub(super) fn classes() -> Vec<Class<CriticStep>> {
    let class = |id, meaning, contains, generated| -> Class<CriticStep> {
        Class { id, meaning, contains, generated }
    };
    vec![
        class(
            "shorter-completion",
            "a completion that ends before the others",
            |case, options| {
                let width = case.tokens.ncols();
                (0..case.tokens.nrows()).any(|row| length(case, options, row) < width)
            },
            |_, _| true,
        ),
        class(
            "cut-completion",
            "a completion that does not come to its end",
            |case, options| {
                case.tokens.rows().into_iter().any(|row| !row.iter().any(|id| *id == options.eos))
            },
            |_, _| true,
        ),
        class(
            "one-token",
            "a completion of one token",
            |case, options| (0..case.tokens.nrows()).any(|row| length(case, options, row) == 1),
            |_, _| true,
        ),
        class(
            "holes",
            "a completion with tokens that the policy did not write",
            |case, options| {
                let kept = |row: usize| case.mask.row(row).iter().filter(|flag| **flag).count();
                (0..case.tokens.nrows()).any(|row| kept(row) < length(case, options, row))
            },
            |options, _| options.holes,
        ),
        class(
            "far-values",
            "a value that has moved from its old one by more than the clip",
            |case, options| {
                let shape =
                    <CriticStep as shakedown_core::contract::step::Stepped>::shape(case, options);
                let clip = options.clip.unwrap_or(f64::INFINITY);
                case.values.outer_iter().enumerate().any(|(update, table)| {
                    let first = shape.first_update(shape.generation(update));
                    let old = case.values.index_axis(Axis(0), first);
                    table.iter().zip(old).any(|(now, old)| (now - old).abs() > clip)
                })
            },
            |options, _| options.clip.is_some() && options.plan().updates_of_a_generation() > 1,
        ),
        class(
            "moved-values",
            "values that an update has moved",
            |case, _| {
                let first = case.values.index_axis(Axis(0), 0);
                case.values.outer_iter().any(|table| table != first)
            },
            |options, _| options.plan().updates() > 1,
        ),
    ]
}
