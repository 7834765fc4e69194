//! Cases of `sft-step`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::{Array2, ArrayD, Axis, IxDyn};

use super::{Options, SftStep, SftStepCase, Trained, oracle};
use crate::step;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::contract::step::Stepped as _;
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::generate::measure::Measure;
use shakedown_core::generate::pick::Pick;
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::round;

/// The largest logit.
const LARGEST_LOGIT: f64 = 30.0;

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

pub(super) fn valid(
    case: &SftStepCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<SftStep>(case)?;
    let (rows, _) = case.tokens.dim();
    let (updates, vocabulary) = (case.logits.shape()[0], case.logits.shape()[3]);
    let plan = options.plan();
    if updates != plan.updates() {
        return Err(format!("logits of {updates} updates, expected {}", plan.updates()));
    }
    if !rows.is_multiple_of(plan.parts()) {
        return Err(format!("{rows} sequences do not make {} micro-batches", plan.parts()));
    }
    if vocabulary < smallest_vocabulary(options) {
        let least = smallest_vocabulary(options);
        return Err(format!("a vocabulary of {vocabulary}, expected {least} or more"));
    }
    for row in 0..rows {
        valid_row(case, options, row)?;
    }
    if let Some(z) = case.logits.iter().find(|z| z.is_nan() || z.abs() > LARGEST_LOGIT) {
        return Err(format!("logit {z} is not within ±{LARGEST_LOGIT}"));
    }
    let expected = oracle::expected(case, options, dtype);
    let known = expected[0].numbers.iter().all(|number| number.value.is_finite());
    if known { Ok(()) } else { Err("the gradient is undefined".to_owned()) }
}

/// Whether a sequence ends, and has a mask of the kind that is declared: that of its equals.
fn valid_row(case: &SftStepCase, options: &Options, row: usize) -> std::result::Result<(), String> {
    let (mask, vocabulary) = (case.mask.row(row), case.logits.shape()[3]);
    let end = step::end_of(case.tokens.row(row), [options.eos, options.pad], vocabulary);
    let end = end.map_err(|wrong| format!("sequence {row} {wrong}"))?;
    if mask.iter().skip(end + 1).any(|flag| *flag) {
        return Err(format!("sequence {row} has a trained pad"));
    }
    let equal = |other: &usize| case.tokens.row(*other) == case.tokens.row(row);
    if let Some(other) = (0..row).filter(equal).find(|other| case.mask.row(*other) != mask) {
        return Err(format!("sequences {other} and {row} are one with two masks"));
    }
    let trained = mask.iter().filter(|flag| **flag).count();
    let first = mask.iter().position(|flag| *flag);
    let is_one_block = first.is_some_and(|first| trained == end + 1 - first);
    let fits = match options.trained {
        Trained::Text => trained == end + 1,
        Trained::Completion => is_one_block,
        Trained::Turns => trained > 0,
    };
    if fits {
        return Ok(());
    }
    let expected = match options.trained {
        Trained::Text => "all tokens",
        Trained::Completion => "the last tokens up to the end, one at least",
        Trained::Turns => "one token at least",
    };
    Err(format!("the mask of sequence {row} has not {expected}"))
}

/// The sizes of a case.
#[derive(Clone, Copy)]
struct Sizes {
    rows: usize,
    width: usize,
    vocabulary: usize,
}

impl Sizes {
    /// Those nearest to the wanted ones that the options allow.
    fn fitting(options: &Options, rows: usize, width: usize) -> Sizes {
        let rows = rows.next_multiple_of(options.plan().parts());
        Sizes { rows, width, vocabulary: smallest_vocabulary(options) }
    }
}

/// A case of sequences of these lengths: `word` gives a word and `is_trained` says whether a token
/// is trained that need not be, by the row and the place.
fn made(
    options: &Options,
    sizes: Sizes,
    lengths: &[usize],
    mut word: impl FnMut(usize, usize) -> i64,
    mut is_trained: impl FnMut(usize, usize) -> bool,
    logit: impl FnMut(&IxDyn) -> f64,
) -> SftStepCase {
    let Sizes { rows, width, vocabulary } = sizes;
    let mut tokens = Array2::from_elem((rows, width), options.pad);
    let mut mask = Array2::from_elem((rows, width), false);
    for (row, length) in lengths.iter().copied().enumerate() {
        for at in 0..length {
            tokens[[row, at]] = if at + 1 == length { options.eos } else { word(row, at) };
            let before = at > 0 && mask[[row, at - 1]];
            mask[[row, at]] = match options.trained {
                Trained::Text => true,
                Trained::Completion => before || at + 1 == length || is_trained(row, at),
                Trained::Turns => is_trained(row, at),
            };
        }
        if !mask.row(row).iter().any(|flag| *flag) {
            mask[[row, length - 1]] = true;
        }
    }
    let updates = options.plan().updates();
    let mut logit = logit;
    let logits = ArrayD::from_shape_fn(IxDyn(&[updates, rows, width, vocabulary]), |at| logit(&at));
    alike(SftStepCase { tokens, mask, logits, micro_batches: None })
}

/// The case where equal sequences have equal masks.
fn alike(mut case: SftStepCase) -> SftStepCase {
    for row in 1..case.tokens.nrows() {
        let equal = |other: &usize| case.tokens.row(*other) == case.tokens.row(row);
        if let Some(first) = (0..row).find(equal) {
            let mask = case.mask.row(first).to_owned();
            case.mask.row_mut(row).assign(&mask);
        }
    }
    case
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<SftStepCase> {
    let parts = options.plan().parts();
    let rows = if parts == 1 { one(u, &[2, 1, 3, 4])? } else { parts * one(u, &[1, 2])? };
    let mut sizes = Sizes::fitting(options, rows, one(u, &[3, 2, 4, 1, 6])?);
    sizes.vocabulary += u.choose_index(3)?;
    let (alike, full) = (chance(u, 64)?, chance(u, 48)?);
    let spread = one(u, &[1.0, 2.0, 0.0, 4.0])?;
    let share = one(u, &[128, 200, 60, 255])?;
    let mut pick = Pick::seeded(u64::from_le_bytes(u.arbitrary()?));
    let mut lengths = Vec::new();
    for _ in 0..sizes.rows {
        lengths.push(if full { sizes.width } else { 1 + pick.below(sizes.width) });
    }
    let words = words(options, sizes.vocabulary);
    let [mut flags, mut logits] = [pick.bits(), pick.bits()].map(Pick::seeded);
    let mut case = made(
        options,
        sizes,
        &lengths,
        |_, at| if alike { words[at % words.len()] } else { *pick.one(&words) },
        |_, _| flags.below(255) < share,
        |_| spread * (logits.below(17) as f64 - 8.0) / 8.0,
    );
    round(&mut case, dtype);
    Ok(case)
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<SftStepCase> {
    let mut cases = Vec::new();
    for (rows, width, prompt, liked) in [
        (1, 1, 0, 0.0),
        (1, 2, 1, 0.0),
        (2, 1, 0, 0.5),
        (2, 2, 1, 0.0),
        (2, 3, 1, 0.5),
        (2, 4, 2, -0.5),
        (3, 4, 1, 1.0),
        (4, 5, 2, 0.3),
    ] {
        let sizes = Sizes::fitting(options, rows, width);
        let words = words(options, sizes.vocabulary);
        let lengths: Vec<usize> = (0..sizes.rows).map(|row| width - row % width).collect();
        let mut case = made(
            options,
            sizes,
            &lengths,
            |row, at| words[(row + at) % words.len()],
            |row, at| at >= prompt && (at + row) % 2 == 0,
            |at| (at[3] % 3) as f64 * 0.5 + liked * ((at[0] + at[2]) % 2) as f64,
        );
        round(&mut case, dtype);
        if valid(&case, options, dtype).is_ok() && !cases.contains(&case) {
            cases.push(case);
        }
    }
    cases
}

/// Fewer sequences, simpler words; then what the axes give.
pub(super) fn simpler(case: &SftStepCase, options: &Options) -> Vec<SftStepCase> {
    let (rows, parts) = (case.tokens.nrows(), options.plan().parts());
    let mut simpler = Vec::new();
    // As many as the micro-batches need, from the beginning, from the end, without one part.
    for kept in [parts, rows / 2 / parts * parts, rows.saturating_sub(parts)] {
        if kept > 0 && kept < rows {
            for first in [0, rows - kept] {
                let kept: Vec<usize> = (first..first + kept).collect();
                simpler.push(rows::select::<SftStep, _>(case, 'N', &kept));
            }
        }
    }
    let vocabulary = case.logits.shape()[3];
    let words = words(options, vocabulary);
    for (from, to) in words.iter().skip(1).flat_map(|from| words.iter().map(move |to| (from, to))) {
        if to < from && case.tokens.iter().any(|id| id == from) {
            let tokens = case.tokens.mapv(|id| if id == *from { *to } else { id });
            simpler.push(SftStepCase { tokens, ..case.clone() });
        }
    }
    for row in 1..rows {
        let mut order: Vec<usize> = (0..rows).collect();
        order.swap(row - 1, row);
        simpler.push(rows::select::<SftStep, _>(case, 'N', &order));
    }
    // One model for all updates.
    let mut still = case.clone();
    let first = case.logits.index_axis(Axis(0), 0).to_owned();
    for mut table in still.logits.outer_iter_mut() {
        table.assign(&first);
    }
    simpler.push(still);
    // A sequence one token shorter; one column less, for which all that fill it are shorter.
    let width = case.tokens.ncols();
    for left_out in 0..width {
        let columns: Vec<usize> = (0..width - 1).collect();
        let filling =
            |row: &usize| case.tokens.row(*row).iter().take(width - 1).all(|id| *id != options.eos);
        let whole: Vec<usize> = (0..rows).filter(filling).collect();
        let narrower = shorter(case, options, &whole, left_out);
        simpler.push(rows::select::<SftStep, _>(&narrower, 'T', &columns));
        simpler.extend((0..rows).map(|row| shorter(case, options, &[row], left_out)));
    }
    simpler.extend(rows::simpler::<SftStep>(case));
    simpler
}

/// The case where some sequences lack a token.
fn shorter(case: &SftStepCase, options: &Options, rows: &[usize], left_out: usize) -> SftStepCase {
    let mut shorter = case.clone();
    for row in rows.iter().copied() {
        let tokens = step::without(case.tokens.row(row), left_out, options.pad);
        let mask = case.mask.row(row).mapv(i64::from);
        let mask = step::without(mask.view(), left_out, 0).mapv(|flag| flag == 1);
        shorter.tokens.row_mut(row).assign(&tokens);
        shorter.mask.row_mut(row).assign(&mask);
    }
    alike(shorter)
}

/// Small cases from which shrinking may start: sequences of up to three tokens, and models that
/// like some tokens more or less.
pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<SftStepCase> {
    let mut cases = Vec::new();
    for (rows, width) in [(1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (2, 3), (3, 2)] {
        let sizes = Sizes::fitting(options, rows, width);
        let words = words(options, sizes.vocabulary);
        let mut pick = Pick::seeded((8 * rows + width) as u64);
        for _ in 0..16 {
            let lengths: Vec<usize> = (0..sizes.rows).map(|_| 1 + pick.below(width)).collect();
            let [mut flags, mut logits] = [pick.bits(), pick.bits()].map(Pick::seeded);
            let mut case = made(
                options,
                sizes,
                &lengths,
                |_, _| *pick.one(&words[..2]),
                |_, _| flags.below(2) == 0,
                |_| *logits.one(&[0.0, 0.0, 0.0, 1.0, -1.0, 2.0]),
            );
            round(&mut case, dtype);
            if valid(&case, options, dtype).is_ok() {
                cases.push(case);
            }
        }
    }
    cases
}

pub(super) fn measure(case: &SftStepCase) -> Measure {
    rows::measure::<SftStep>(case)
}

/// How many tokens of each sequence are trained.
fn trained(case: &SftStepCase) -> Vec<usize> {
    case.mask.rows().into_iter().map(|row| row.iter().filter(|flag| **flag).count()).collect()
}

pub(super) fn classes() -> Vec<Class<SftStep>> {
    let class = |id, meaning, contains, generated| -> Class<SftStep> {
        Class { id, meaning, contains, generated }
    };
    vec![
        class(
            "prompt",
            "a sequence whose first token is not trained",
            |case, _| case.mask.column(0).iter().any(|flag| !*flag),
            |options, _| options.trained != Trained::Text,
        ),
        class(
            "end-alone",
            "a sequence whose end alone is trained",
            |case, options| {
                let rows = case.tokens.rows().into_iter().zip(case.mask.rows());
                rows.into_iter().any(|(tokens, mask)| {
                    let mut kept = tokens.iter().zip(mask).filter(|(_, flag)| **flag);
                    kept.all(|(id, _)| *id == options.eos)
                })
            },
            |_, _| true,
        ),
        class(
            "holes",
            "a sequence with tokens between trained ones that are not",
            |case, _| {
                case.mask.rows().into_iter().any(|row| {
                    let first = row.iter().position(|flag| *flag);
                    let last = row.iter().rposition(|flag| *flag);
                    let span = first.zip(last).map_or(0, |(first, last)| last + 1 - first);
                    row.iter().filter(|flag| **flag).count() < span
                })
            },
            |options, _| options.trained == Trained::Turns,
        ),
        class(
            "shorter-sequence",
            "a sequence that ends before the others",
            |case, options| {
                let last = case.tokens.ncols() - 1;
                let tokens = case.tokens.rows().into_iter();
                tokens.into_iter().any(|row| row.iter().take(last).any(|id| *id == options.eos))
            },
            |_, _| true,
        ),
        class(
            "unequal-counts",
            "sequences with different numbers of trained tokens",
            |case, _| trained(case).windows(2).any(|pair| pair[0] != pair[1]),
            |_, _| true,
        ),
        class(
            "shared-prefix",
            "two sequences begin with the same token",
            |case, options| {
                let shape = SftStep::shape(case, options);
                let shares = |row: usize| shape.home(row, 1) != [row, 1];
                shape.width() > 1 && (0..shape.all_rows()).any(shares)
            },
            |_, _| true,
        ),
        class(
            "moved-model",
            "a model that an update has moved",
            |case, _| {
                let first = case.logits.index_axis(Axis(0), 0);
                case.logits.outer_iter().any(|table| table != first)
            },
            |options, _| options.plan().updates() > 1,
        ),
    ]
}
