//! Cases of `model-forward`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};

use super::{ModelForward, ModelForwardCase, Options, Positions, Row, case_of, rows};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows::{self as axes, check_axes};
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::value::place::Dtype;

pub(super) fn valid(case: &ModelForwardCase, options: &Options) -> std::result::Result<(), String> {
    check_axes::<ModelForward>(case)?;
    if case.position_ids.is_some() != (options.positions == Positions::Given) {
        return Err("`position_ids` are there with `positions: given`, and only then".to_owned());
    }
    let columns = case.input_ids.ncols();
    if columns as i64 > options.columns {
        return Err(format!("{columns} columns, expected {} at most", options.columns));
    }
    for ((row, column), id) in case.input_ids.indexed_iter() {
        if !(0..options.vocabulary).contains(id) {
            let most = options.vocabulary - 1;
            return Err(format!("input_ids[{row}, {column}] is {id}, expected 0 to {most}"));
        }
    }
    for (at, mask) in case.attention_mask.rows().into_iter().enumerate() {
        let count = mask.iter().filter(|kept| **kept).count();
        let before = mask.iter().take_while(|kept| !**kept).count();
        let padding = options.padding;
        if count == 0 {
            match options.empty_rows {
                true => continue,
                false => return Err(format!("row {at} has no token")),
            }
        }
        if mask.iter().skip(before).take(count).any(|kept| !kept) {
            return Err(format!("row {at} of attention_mask has a gap"));
        }
        let behind = columns - before - count;
        if (before > 0 && !padding.is_on_the_left()) || (behind > 0 && !padding.is_on_the_right()) {
            return Err(format!("row {at} is padded on a side that `padding` excludes"));
        }
    }
    let Some(positions) = &case.position_ids else { return Ok(()) };
    for ((row, column), position) in positions.indexed_iter() {
        let kept = |column: usize| case.attention_mask[[row, column]];
        let next = match column.checked_sub(1) {
            Some(last) if kept(last) && kept(column) => positions[[row, last]] + 1,
            _ => 0,
        };
        let begins = *position == 0 && options.packed;
        if *position != next && !begins {
            return Err(format!("position_ids[{row}, {column}] is {position}, expected {next}"));
        }
    }
    Ok(())
}

pub(super) fn draw(u: &mut Unstructured<'_>, options: &Options) -> Result<ModelForwardCase> {
    let count = one(u, &[2, 1, 3, 2, 4])?;
    let most = options.columns as usize;
    let width = one(u, &[3, 4, 2, 5, 1, 7, 12, most])?.min(most);
    let full = chance(u, 40)?;
    let mut made = Vec::new();
    for _ in 0..count {
        let mut padding = [0, 0];
        if !full {
            padding[0] = one(u, &[0, 0, 1, 2, 3])?;
            padding[1] = one(u, &[0, 1, 0, 2, 3])?;
        }
        let before = if options.padding.is_on_the_left() { padding[0] } else { 0 };
        let behind = if options.padding.is_on_the_right() { padding[1] } else { 0 };
        let before = before.min(width - 1);
        let tokens = (width - before).saturating_sub(behind).max(1);
        let mut sequences = vec![Vec::new()];
        for at in 0..tokens {
            if at > 0 && options.packed && chance(u, 90)? {
                sequences.push(Vec::new());
            }
            let id = u.int_in_range(0..=options.vocabulary - 1)?;
            sequences.last_mut().expect("one is there").push(id);
        }
        if options.empty_rows && chance(u, 40)? {
            sequences.clear();
        }
        made.push(Row { before, sequences });
    }
    if !options.padding.is_on_the_right() {
        push_to_the_end(&mut made);
    }
    let mut case = case_of(&made, options, 0);
    for (id, kept) in case.input_ids.iter_mut().zip(&case.attention_mask) {
        if !kept {
            *id = u.int_in_range(0..=options.vocabulary - 1)?;
        }
    }
    let fits = valid(&case, options).is_ok();
    Ok(if fits { case } else { case_of(&[alone(&[0])], options, 0) })
}

/// Rows that all end in the last column.
fn push_to_the_end(made: &mut [Row]) {
    let width = made.iter().map(Row::width).max().unwrap_or(0);
    for row in made.iter_mut() {
        row.before += width - row.width();
    }
}

fn alone(ids: &[i64]) -> Row {
    Row { before: 0, sequences: vec![ids.to_vec()] }
}

/// Rows of a few columns: a digit is a token, `.` is padding, and `|` begins another sequence.
#[rustfmt::skip]
const CORNERS: &[&[&str]] = &[
    &["0"], &["1"], &["00"], &["01"], &["10"], &["11"], &["012"], &["210"], &["0112"], &["01201"],
    &["0."], &["01."], &["01.."], &[".0"], &[".01"], &["..01"], &[".01."], &[".012"],
    &["0|0"], &["0|1"], &["01|0"], &["01|01"], &["01|2"], &["0|1|2"], &["01|20|1"],
    &["0", "1"], &["0", "0"], &["01", "10"], &["01", "2."], &["01", ".2"], &["012", "1..", "20."],
    &["012", "..1", ".20"], &["012", "..1", "20."], &["01", ".."], &["01", "1.", ".."],
    &["01|2", "0|1|2"], &["01|2.", ".1|0"], &["0120120121"], &["01201201", "120120.."],
];

pub(super) fn corners(options: &Options) -> Vec<ModelForwardCase> {
    let mut cases: Vec<ModelForwardCase> = CORNERS
        .iter()
        .map(|texts| {
            let made: Vec<Row> = texts.iter().map(|text| row(text)).collect();
            let width = texts[0].replace('|', "").len();
            let needed = made.iter().map(Row::width).max().unwrap_or(0).max(1);
            case_of(&made, options, width.saturating_sub(needed))
        })
        .collect();
    // As long as rows may be: what bends behind so many tokens shows there.
    let longest = (0..options.columns).map(|at| at % 3 % options.vocabulary).collect();
    cases.push(case_of(&[Row { before: 0, sequences: vec![longest] }], options, 0));
    if !options.packed {
        cases.retain(|case| rows(case).iter().all(|row| row.sequences.len() < 2));
    }
    cases.retain(|case| valid(case, options).is_ok());
    let mut distinct: Vec<ModelForwardCase> = Vec::new();
    for case in cases {
        if !distinct.contains(&case) {
            distinct.push(case);
        }
    }
    distinct.sort_by_cached_key(ModelForward::measure);
    distinct
}

fn row(text: &str) -> Row {
    let before = text.bytes().take_while(|letter| *letter == b'.').count();
    let sequences = text.trim_matches('.').split('|').filter(|part| !part.is_empty());
    let ids = |part: &str| part.bytes().map(|letter| i64::from(letter - b'0')).collect();
    Row { before, sequences: sequences.map(ids).collect() }
}

/// All rows of up to three columns over two ids and padding, and pairs of the shorter ones.
pub(super) fn small(options: &Options) -> Vec<ModelForwardCase> {
    let mut texts: Vec<String> = vec![String::new()];
    let mut all: Vec<Vec<String>> = Vec::new();
    for _ in 0..3 {
        texts = texts
            .iter()
            .flat_map(|text| ['0', '1', '.'].map(|letter| format!("{text}{letter}")))
            .collect();
        all.push(texts.clone());
    }
    // No gap between tokens.
    all.iter_mut().for_each(|texts| texts.retain(|text| !text.trim_matches('.').contains('.')));
    let mut cases = Vec::new();
    let mut push = |texts: &[&String]| {
        let made: Vec<Row> = texts.iter().map(|text| row(text)).collect();
        let needed = made.iter().map(Row::width).max().unwrap_or(0).max(1);
        cases.push(case_of(&made, options, texts[0].len() - needed));
    };
    for texts in &all {
        texts.iter().for_each(|text| push(&[text]));
    }
    for first in &all[1] {
        all[1].iter().for_each(|second| push(&[first, second]));
    }
    cases.retain(|case| valid(case, options).is_ok());
    cases
}

/// Fewer rows, fewer tokens, less padding, and simpler ids.
pub(super) fn simpler(case: &ModelForwardCase, options: &Options) -> Vec<ModelForwardCase> {
    let rows = rows(case);
    let needed = rows.iter().map(Row::width).max().unwrap_or(0).max(1);
    let more = case.input_ids.ncols().saturating_sub(needed);
    let mut candidates = Vec::new();
    let mut push = |rows: &[Row], more: usize| candidates.push(case_of(rows, options, more));
    push(&rows, 0);
    push(&rows, more.saturating_sub(1));
    push(&rows, more);
    if rows.len() > 1 {
        for at in 0..rows.len() {
            push(&rows[at..=at], more);
            let mut fewer = rows.clone();
            fewer.remove(at);
            push(&fewer, more);
        }
        let mut exchanged = rows.clone();
        exchanged.reverse();
        push(&exchanged, more);
    }
    let mut with = |change: &dyn Fn(&mut Row)| {
        let mut changed = rows.clone();
        changed.iter_mut().for_each(change);
        candidates.push(case_of(&changed, options, more));
        for at in 0..rows.len() {
            let mut changed = rows.clone();
            change(&mut changed[at]);
            candidates.push(case_of(&changed, options, more));
        }
    };
    with(&|row| row.before = 0);
    with(&|row| row.before = row.before.saturating_sub(1));
    with(&|row| row.sequences.truncate(1));
    with(&|row| drop(row.sequences.drain(..row.sequences.len().min(1))));
    with(&|row| row.sequences = vec![row.sequences.concat()]);
    with(&|row| row.sequences.iter_mut().flatten().for_each(|id| *id = 0));
    with(&|row| row.sequences.iter_mut().flatten().for_each(|id| *id = (*id).min(1)));
    for at in 0..case.input_ids.ncols() {
        with(&|row| {
            if let Some(sequence) = row.sequences.last_mut() {
                sequence.truncate(sequence.len() - 1 - at.min(sequence.len() - 1));
                row.sequences.retain(|sequence| !sequence.is_empty());
            }
        });
        with(&|row| {
            let mut place = 0;
            for sequence in &mut row.sequences {
                sequence.retain(|_| {
                    place += 1;
                    place != at + 1
                });
            }
            row.sequences.retain(|sequence| !sequence.is_empty());
        });
        for to in [0, 1, 2] {
            with(&|row| {
                if let Some(id) = row.sequences.iter_mut().flatten().nth(at) {
                    *id = (*id).min(to);
                }
            });
        }
    }
    candidates.extend(axes::simpler::<ModelForward>(case));
    candidates
}

pub(super) fn classes() -> Vec<Class<ModelForward>> {
    fn any(case: &ModelForwardCase, is: impl Fn(&[bool]) -> bool) -> bool {
        case.attention_mask.rows().into_iter().any(|row| is(&row.to_vec()))
    }
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "no-padding",
            "tokens only",
            |c: &ModelForwardCase, _: &Options| c.attention_mask.iter().all(|kept| *kept),
            always,
        ),
        class(
            "right-padding",
            "a row that ends in padding",
            |c, _| any(c, |row| row[0] && !row[row.len() - 1]),
            |options, _| options.padding.is_on_the_right() && options.columns > 1,
        ),
        class(
            "left-padding",
            "a row that begins with padding",
            |c, _| any(c, |row| !row[0] && row[row.len() - 1]),
            |options, _| options.padding.is_on_the_left() && options.columns > 1,
        ),
        class(
            "empty-row",
            "a row of padding only, beside others",
            |c, _| c.input_ids.nrows() > 1 && any(c, |row| !row.contains(&true)),
            |options, _| options.empty_rows,
        ),
        class(
            "packed-row",
            "a row of two sequences or more",
            |c, _| rows(c).iter().any(|row| row.sequences.len() > 1),
            |options, _| options.packed && options.columns > 1,
        ),
        class("one-row", "N = 1", |c, _| c.input_ids.nrows() == 1, always),
        class("several-rows", "N ≥ 2", |c, _| c.input_ids.nrows() > 1, always),
        class("one-column", "T = 1", |c, _| c.input_ids.ncols() == 1, always),
        class(
            "long-row",
            "a row of 6 tokens or more",
            |c, _| any(c, |row| row.iter().filter(|kept| **kept).count() >= 6),
            |options, _| options.columns >= 6,
        ),
    ]
}
