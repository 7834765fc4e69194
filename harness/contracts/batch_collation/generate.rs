//! Cases of `batch-collation`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};

use super::{BatchCollation, BatchCollationCase, LARGEST_ID, Layout, Options, Row, Truncate};
use super::{case_of, rows};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows::check_axes;
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::generate::measure::complexity;
use shakedown_core::generate::pick::Pick;
use shakedown_core::value::place::Dtype;

/// The largest id that is drawn: vocabularies of today.
const VOCABULARY: i64 = 200_000;

/// Rows above a longer limit than this are not drawn.
const LONG: i64 = 40;

/// More tokens than this in one case are not exchanged for simpler ones one by one.
const FEW: usize = 48;

pub(super) fn valid(
    case: &BatchCollationCase,
    options: &Options,
) -> std::result::Result<(), String> {
    check_axes::<BatchCollation>(case)?;
    let least = i64::from(options.truncate == Truncate::KeepEnd);
    let fields = [
        ("prompts", &case.prompts, &case.prompt_lengths, 1),
        ("completions", &case.completions, &case.completion_lengths, least),
    ];
    for (name, ids, lengths, least) in fields {
        let columns = ids.ncols() as i64;
        for (row, length) in lengths.iter().enumerate() {
            if !(least..=columns).contains(length) {
                return Err(format!(
                    "row {row} of `{name}` has {length} tokens, expected {least} to {columns}"
                ));
            }
        }
        for ((row, column), id) in ids.indexed_iter() {
            if !(0..=LARGEST_ID).contains(id) {
                return Err(format!("{name}[{row}, {column}] is {id}, expected 0 to {LARGEST_ID}"));
            }
            if column as i64 >= lengths[row] && *id != options.pad {
                let pad = options.pad;
                return Err(format!("{name}[{row}, {column}] is {id}, expected the pad {pad}"));
            }
        }
    }
    Ok(())
}

/// The smallest ids that are not the pad, in order.
pub(super) fn words(options: &Options) -> impl Iterator<Item = i64> {
    (1..).filter(|id| *id != options.pad)
}

/// How long a part of a row is: short, or about as long as the limit.
fn length(u: &mut Unstructured<'_>, least: usize, limit: Option<usize>) -> Result<usize> {
    let short = one(u, &[1, 2, 3, 2, 1, 4, 5, 3, 7])?;
    let length = match (limit, u.choose_index(6)?) {
        (Some(limit), 0) => limit + 1,
        (Some(limit), 1) => limit,
        (Some(limit), 2) => limit.saturating_sub(1),
        (Some(limit), 3) => limit + short,
        _ => short,
    };
    Ok(length.max(least))
}

pub(super) fn draw(u: &mut Unstructured<'_>, options: &Options) -> Result<BatchCollationCase> {
    let count = one(u, &[2, 3, 1, 2, 4, 5, 2, 3, 8])?;
    let limit = options.max_length.filter(|most| *most <= LONG).map(|most| most as usize);
    let least = usize::from(options.truncate == Truncate::KeepEnd);
    let style = u.choose_index(8)?;
    let pool = (0..5)
        .map(|_| {
            Ok(match u.choose_index(8)? {
                0..=3 => one(u, &[5, 6, 7, 8])?,
                4 => options.pad,
                5 => one(u, &[0, 1, 2, 3])?,
                6 => one(u, &[32_001, 70_000, VOCABULARY - 1])?,
                _ => u.int_in_range(0..=VOCABULARY)?,
            })
        })
        .collect::<Result<Vec<i64>>>()?;
    let mut pick = Pick::seeded(u.arbitrary()?);
    let same = [length(u, 1, limit)?, length(u, least, limit)?];
    let refused = options.truncate == Truncate::Refuse && !chance(u, 40)?;
    let mut made: Vec<Row> = Vec::new();
    for row in 0..count {
        let [mut prompt, mut completion] = match style {
            // All rows equally long.
            0 => same,
            // One long row.
            1 if row + 1 == count => [same[0] + 6, same[1] + 3],
            1 => [1, 1],
            _ => [length(u, 1, limit)?, length(u, least, limit)?],
        };
        if style != 0 && chance(u, 40)? {
            completion = least;
        }
        if let (Some(limit), true) = (limit, chance(u, 64)?) {
            // A row of exactly the limit.
            prompt = prompt.min(limit.saturating_sub(least)).max(1);
            completion = limit.saturating_sub(prompt).max(least);
        }
        if let (Some(limit), true) = (limit, refused) {
            // Nothing to refuse.
            prompt = prompt.min(limit);
            completion = completion.min(limit - prompt);
        }
        let mut ids = |length: usize, ends_in_pad: bool| -> Vec<i64> {
            let mut ids: Vec<i64> = (0..length).map(|_| *pick.one(&pool)).collect();
            if let (Some(last), true) = (ids.last_mut(), ends_in_pad) {
                *last = options.pad;
            }
            ids
        };
        let ends = u.choose_index(6)?;
        made.push(Row { prompt: ids(prompt, ends == 0), completion: ids(completion, ends == 1) });
    }
    let more = match u.choose_index(8)? {
        0 => [1, 0],
        1 => [0, 2],
        2 => [3, 3],
        _ => [0, 0],
    };
    Ok(case_of(&made, options, more))
}

/// A batch with a letter for each token: prompts and completions, one after the other. `P` is a
/// token with the id of the pad, other letters are words in their order.
fn batch(parts: &[&str], options: &Options, more: [usize; 2]) -> BatchCollationCase {
    let words: Vec<i64> = words(options).take(26).collect();
    let id = |letter: u8| match letter {
        b'P' => options.pad,
        letter => words[usize::from(letter - b'a')],
    };
    let ids = |text: &str| text.bytes().map(id).collect();
    let row = |pair: &[&str]| Row { prompt: ids(pair[0]), completion: ids(pair[1]) };
    case_of(&parts.chunks(2).map(row).collect::<Vec<_>>(), options, more)
}

#[rustfmt::skip]
const CORNERS: &[&[&str]] = &[
    &["a", ""], &["a", "b"], &["P", ""], &["P", "P"], &["P", "a"], &["a", "P"],
    &["ab", ""], &["ab", "c"], &["a", "bc"], &["ab", "cd"], &["aP", "b"], &["a", "bP"],
    &["ab", "cP"], &["Pa", "b"], &["a", "Pb"],
    &["a", "b", "c", "d"], &["a", "", "b", "c"], &["a", "b", "c", ""],
    &["a", "b", "cd", "e"], &["ab", "c", "d", "e"], &["a", "bc", "d", "e"],
    &["a", "b", "c", "de"], &["ab", "cd", "e", "fg"], &["ab", "c", "d", "ef"],
    &["a", "bP", "c", "d"], &["aP", "b", "c", "de"], &["a", "bP", "cde", "fg"],
    &["abc", "de", "f", "gh"], &["abc", "d", "ef", "ghij"],
    &["a", "b", "c", "d", "e", "f"], &["ab", "c", "d", "ef", "g", ""],
    &["ab", "cde", "fgh", "ij", "k", "l"], &["abcde", "f", "g", "hijkl"],
    &["abcd", "efgh"], &["abc", "defgh", "ij", "klmnop"],
    &["a", "b", "c", "d", "efghij", "klmnop"], &["abcdefghi", "jklmnopqr", "s", "t"],
    &["abcdefghijklmnopqrst", "uvwxyz", "a", "b"],
];

/// A text of so many letters, not all the same.
fn letters(count: usize) -> String {
    ('a'..='i').cycle().take(count).collect()
}

pub(super) fn corners(options: &Options) -> Vec<BatchCollationCase> {
    let mut cases: Vec<BatchCollationCase> = Vec::new();
    let zero = Row { prompt: vec![0], completion: Vec::new() };
    cases.push(case_of(std::slice::from_ref(&zero), options, [0, 0]));
    cases.push(case_of(&[Row { completion: vec![0], ..zero }], options, [0, 0]));
    for parts in CORNERS {
        cases.push(batch(parts, options, [0, 0]));
    }
    cases.push(batch(&["ab", "c", "d", "ef"], options, [1, 0]));
    cases.push(batch(&["ab", "c", "d", "ef"], options, [0, 2]));
    if let Some(most) = options.max_length.filter(|most| *most <= LONG).map(|most| most as usize) {
        for [prompt, completion] in [
            [most, 1],
            [most + 1, 1],
            [1, most],
            [1, most + 2],
            [most + 2, most + 1],
            [most.max(2) - 1, 1],
            [1, most.max(2) - 1],
        ] {
            let (prompt, completion) = (letters(prompt), letters(completion));
            cases.push(batch(&[&prompt, &completion], options, [0, 0]));
            cases.push(batch(&[&prompt, &completion, "a", "b"], options, [0, 0]));
            cases.push(batch(&["a", "b", &prompt, &completion], options, [0, 0]));
        }
    }
    let mut large = batch(&["ab", "c"], options, [0, 0]);
    large.prompts[[0, 1]] = VOCABULARY - 1;
    cases.push(large);
    cases.retain(|case| valid(case, options).is_ok());
    let mut distinct: Vec<BatchCollationCase> = Vec::new();
    for case in cases {
        if !distinct.contains(&case) {
            distinct.push(case);
        }
    }
    distinct.sort_by_cached_key(BatchCollation::measure);
    distinct
}

/// All rows of a few short lengths over a few ids, pairs of rows, and three rows of one token each.
pub(super) fn small(options: &Options) -> Vec<BatchCollationCase> {
    let mut ids = vec![0, 1, 2, options.pad];
    ids.sort_unstable();
    ids.dedup();
    let lengths = [[1, 0], [1, 1], [1, 2], [2, 0], [2, 1], [3, 1], [1, 3], [2, 2]];
    let mut shapes: Vec<Vec<[usize; 2]>> = lengths.iter().map(|of| vec![*of]).collect();
    for first in &lengths[..5] {
        shapes.extend(lengths[..5].iter().map(|second| vec![*first, *second]));
    }
    for [prompt, completion] in [[1, 0], [1, 1]] {
        shapes.push(vec![[prompt, completion]; 3]);
    }
    let mut cases = Vec::new();
    for shape in shapes {
        let count: usize = shape.iter().flatten().sum();
        let all = ids.len().pow(count.min(8) as u32);
        let mut pick = Pick::seeded(count as u64);
        for number in 0..all.min(96) {
            let mut place = 0;
            let mut part = |length: usize| -> Vec<i64> {
                let part = (0..length).map(|_| {
                    place += 1;
                    let digit = number / ids.len().pow(place - 1) % ids.len();
                    if all <= 96 { ids[digit] } else { *pick.one(&ids) }
                });
                part.collect()
            };
            let row = |[prompt, completion]: &[usize; 2]| Row {
                prompt: part(*prompt),
                completion: part(*completion),
            };
            cases.push(case_of(&shape.iter().map(row).collect::<Vec<_>>(), options, [0, 0]));
        }
    }
    for completion in [vec![], vec![0]] {
        let large = Row { prompt: vec![1 << 16], completion };
        cases.push(case_of(&[large], options, [0, 0]));
    }
    cases.retain(|case| valid(case, options).is_ok());
    cases
}

/// Fewer rows, fewer tokens, fewer columns of pads, and simpler tokens.
pub(super) fn simpler(case: &BatchCollationCase, options: &Options) -> Vec<BatchCollationCase> {
    let rows = rows(case);
    let mut candidates = Vec::new();
    let mut push = |rows: &[Row]| candidates.push(case_of(rows, options, [0, 0]));
    push(&rows);
    if rows.len() > 1 {
        rows.iter().for_each(|row| push(std::slice::from_ref(row)));
        rows.windows(2).for_each(&mut push);
        for left_out in 0..rows.len() {
            let mut fewer = rows.clone();
            fewer.remove(left_out);
            push(&fewer);
            if left_out > 0 {
                let mut exchanged = rows.clone();
                exchanged.swap(left_out - 1, left_out);
                push(&exchanged);
            }
        }
    }
    // The longest prompt or completion of all is one token shorter.
    for of_prompt in [true, false] {
        let longest = rows.iter().map(|row| part(row, of_prompt).len()).max().unwrap_or(0);
        let mut shorter = rows.clone();
        for row in &mut shorter {
            part_mut(row, of_prompt).truncate(longest.saturating_sub(1));
        }
        push(&shorter);
    }
    for at in 0..rows.len() {
        for of_prompt in [true, false] {
            let length = part(&rows[at], of_prompt).len();
            let mut with = |change: &dyn Fn(&mut Vec<i64>)| {
                let mut changed = rows.clone();
                change(part_mut(&mut changed[at], of_prompt));
                push(&changed);
            };
            with(&|ids| ids.truncate(length / 2));
            with(&|ids| ids.truncate(length.saturating_sub(1)));
            with(&|ids| drop(ids.drain(..length.min(1))));
            with(&|ids| *ids = vec![0]);
            with(&|ids| ids.fill(0));
            with(&|ids| ids.fill(1));
        }
    }
    let plain = [0, 1, 2, 3, options.pad, 1 << 16];
    let mut ids: Vec<i64> =
        rows.iter().flat_map(|row| row.prompt.iter().chain(&row.completion)).copied().collect();
    if ids.len() > FEW {
        return candidates;
    }
    let simpler = |id: i64| {
        let cost = |id: i64| complexity(id as f64);
        [plain.as_slice(), &[id / 2]].concat().into_iter().filter(move |to| cost(*to) < cost(id))
    };
    ids.sort_unstable();
    ids.dedup();
    for from in ids {
        for to in simpler(from) {
            let mut changed = rows.clone();
            for row in &mut changed {
                let all = row.prompt.iter_mut().chain(&mut row.completion);
                all.filter(|id| **id == from).for_each(|id| *id = to);
            }
            candidates.push(case_of(&changed, options, [0, 0]));
        }
    }
    for at in 0..rows.len() {
        for of_prompt in [true, false] {
            for (place, id) in part(&rows[at], of_prompt).iter().enumerate() {
                for to in simpler(*id) {
                    let mut changed = rows.clone();
                    part_mut(&mut changed[at], of_prompt)[place] = to;
                    candidates.push(case_of(&changed, options, [0, 0]));
                }
            }
        }
    }
    candidates
}

fn part(row: &Row, of_prompt: bool) -> &[i64] {
    if of_prompt { &row.prompt } else { &row.completion }
}

fn part_mut(row: &mut Row, of_prompt: bool) -> &mut Vec<i64> {
    if of_prompt { &mut row.prompt } else { &mut row.completion }
}

/// What a person looks at first: two lengths, an end that is also the pad, an empty completion.
pub(super) fn samples(options: &Options) -> Vec<BatchCollationCase> {
    let samples: [&[&str]; 4] =
        [&["abc", "de", "f", "gh"], &["a", "bP", "cd", "e"], &["ab", "", "c", "def"], &["a", "b"]];
    let cases = samples.iter().map(|parts| batch(parts, options, [0, 0]));
    cases.filter(|case| valid(case, options).is_ok()).collect()
}

pub(super) fn classes() -> Vec<Class<BatchCollation>> {
    fn any(case: &BatchCollationCase, is: impl Fn(&Row) -> bool) -> bool {
        rows(case).iter().any(is)
    }
    fn limit(options: &Options) -> usize {
        options.max_length.map_or(usize::MAX, |most| most as usize)
    }
    fn width(case: &BatchCollationCase, options: &Options) -> usize {
        rows(case).iter().map(|row| row.length().min(limit(options))).max().unwrap_or(0)
    }
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let limited: fn(&Options, Dtype) -> bool =
        |options, _| options.max_length.is_some_and(|most| most <= LONG);
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "equally-long",
            "two rows or more, all of one length: no padding",
            |case: &BatchCollationCase, _: &Options| {
                let rows = rows(case);
                rows.len() > 1 && rows.iter().all(|row| row.length() == rows[0].length())
            },
            always,
        ),
        class(
            "unequal-lengths",
            "two rows of different length",
            |case, _| {
                let rows = rows(case);
                rows.iter().any(|row| row.length() != rows[0].length())
            },
            always,
        ),
        class(
            "one-long-row",
            "a row twice as long as all others",
            |case, _| {
                let mut lengths: Vec<usize> = rows(case).iter().map(Row::length).collect();
                lengths.sort_unstable();
                lengths.len() > 1 && lengths[lengths.len() - 1] >= 2 * lengths[lengths.len() - 2]
            },
            always,
        ),
        class(
            "empty-completion",
            "a completion of no token",
            |case, _| any(case, |row| row.completion.is_empty()),
            |options, _| options.truncate != Truncate::KeepEnd,
        ),
        class(
            "as-wide-as-the-prompts",
            "P = C ≥ 2",
            |case, _| case.prompts.ncols() == case.completions.ncols() && case.prompts.ncols() > 1,
            always,
        ),
        class(
            "square",
            "N = P ≥ 2",
            |case, _| case.prompts.is_square() && case.prompts.nrows() > 1,
            always,
        ),
        class("one-row", "N = 1", |case, _| case.prompts.nrows() == 1, always),
        class("several-rows", "N ≥ 2", |case, _| case.prompts.nrows() > 1, always),
        class(
            "prompt-ends-in-the-pad",
            "a prompt whose last token has the id of the pad",
            |case, options| any(case, |row| row.prompt.last() == Some(&options.pad)),
            always,
        ),
        class(
            "completion-ends-in-the-pad",
            "a completion whose last token has the id of the pad",
            |case, options| any(case, |row| row.completion.last() == Some(&options.pad)),
            always,
        ),
        class(
            "wide-inputs",
            "more columns than the longest prompt or completion has tokens",
            |case, _| {
                let longest = |lengths: &ndarray::Array1<i64>| lengths.iter().copied().max();
                longest(&case.prompt_lengths) < Some(case.prompts.ncols() as i64)
                    || longest(&case.completion_lengths).max(Some(1))
                        < Some(case.completions.ncols() as i64)
            },
            always,
        ),
        class(
            "as-long-as-allowed",
            "a row of exactly `max_length` tokens",
            |case, options| any(case, |row| row.length() == limit(options)),
            |options, dtype| {
                let both = options.truncate == Truncate::KeepEnd;
                options.max_length.is_some_and(|most| (1 + i64::from(both)..=LONG).contains(&most))
                    && dtype.max() > 0.0
            },
        ),
        class(
            "long-prompt",
            "a prompt longer than `max_length`",
            |case, options| any(case, |row| row.prompt.len() > limit(options)),
            limited,
        ),
        class(
            "long-completion",
            "a completion longer than `max_length`",
            |case, options| any(case, |row| row.completion.len() > limit(options)),
            limited,
        ),
        class(
            "a-multiple-already",
            "a longest row of a multiple of `multiple_of` tokens",
            |case, options| {
                options
                    .multiple_of
                    .is_some_and(|of| width(case, options).is_multiple_of(of as usize))
            },
            |options, _| {
                let most = options.max_length.unwrap_or(i64::MAX);
                options.multiple_of.is_some_and(|of| of <= 8 && of <= most)
            },
        ),
        class(
            "rounded-up",
            "a longest row of no multiple of `multiple_of` tokens",
            |case, options| {
                options
                    .multiple_of
                    .is_some_and(|of| !width(case, options).is_multiple_of(of as usize))
            },
            |options, _| options.multiple_of.is_some_and(|of| of > 1),
        ),
        class(
            "large-ids",
            "an id of 65536 or more",
            |case, _| {
                any(case, |row| row.prompt.iter().chain(&row.completion).any(|x| *x >> 16 > 0))
            },
            always,
        ),
        class(
            "two-sides",
            "prompts of different length, and completions too",
            |case, _| {
                let rows = rows(case);
                rows.iter().any(|row| row.prompt.len() != rows[0].prompt.len())
                    && rows.iter().any(|row| row.completion.len() != rows[0].completion.len())
            },
            |options, _| options.layout == Layout::Split || options.max_length != Some(1),
        ),
    ]
}
