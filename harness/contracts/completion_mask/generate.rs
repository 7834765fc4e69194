//! Cases of `completion-mask`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::{Array2, arr2};

use super::{CompletionMask, CompletionMaskCase, Empty, LARGEST_ID, Options};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::generate::masks;
use shakedown_core::generate::measure::complexity;
use shakedown_core::generate::pick::Pick;
use shakedown_core::value::place::Dtype;

/// Ids of large vocabularies begin here.
const LARGE_ID: i64 = 32_000;

/// The largest id that is drawn: vocabularies of today.
const VOCABULARY: i64 = 200_000;

/// More ids than this in one case are not exchanged for simpler ones one by one.
const FEW: usize = 96;

pub(super) fn valid(
    case: &CompletionMaskCase,
    options: &Options,
) -> std::result::Result<(), String> {
    rows::check_axes::<CompletionMask>(case)?;
    if case.tokens.ncols() == 0 && options.empty == Empty::Avoid {
        return Err("no column (T = 0), with `empty: avoid`".to_owned());
    }
    for ((row, token), id) in case.tokens.indexed_iter() {
        if !(0..=LARGEST_ID).contains(id) {
            return Err(format!("tokens[{row}, {token}] is {id}, expected 0 to {LARGEST_ID}"));
        }
    }
    Ok(())
}

/// The smallest ids without a meaning of their own, in order.
fn words(options: &Options) -> impl Iterator<Item = i64> {
    (0..).filter(|id| options.is_word(*id))
}

/// Words that a component may take for an id with a meaning: its neighbours, and what is equal to
/// it in 16 bits.
pub(super) fn lookalikes(options: &Options) -> Vec<i64> {
    let special = options.eos.iter().chain([&options.pad]);
    let near = special.flat_map(|id| [id - 16, id - 1, id + 1, id + (1 << 16)]);
    near.filter(|id| options.is_word(*id) && (0..=LARGEST_ID).contains(id)).collect()
}

/// A word as real batches have them: small, beside the ids that end a row or fill it, equal to one
/// of them in 16 bits, or of a large vocabulary.
fn word(u: &mut Unstructured<'_>, options: &Options) -> Result<i64> {
    let plain = words(options).nth(u.choose_index(6)?).expect("there are many words");
    let special = match u.choose_index(options.eos.len() + 1)? {
        0 => options.pad,
        place => options.eos[place - 1],
    };
    let id = match u.choose_index(8)? {
        0..=2 => plain,
        3 => special + one(u, &[1, -1, 2, -2, 7, -16])?,
        4 => special + (1 << 16),
        5 => one(u, &[32_001, 50_255, 151_644, VOCABULARY - 1])?,
        _ => u.int_in_range(0..=VOCABULARY)?,
    };
    Ok(if options.is_word(id) && (0..=LARGEST_ID).contains(&id) { id } else { plain })
}

pub(super) fn draw(u: &mut Unstructured<'_>, options: &Options) -> Result<CompletionMaskCase> {
    let (rows, columns) = masks::shape(u)?;
    // Bytes that have run out are 0, and should not give an empty batch.
    let has_columns = chance(u, 248)? || options.empty == Empty::Avoid;
    let columns = if has_columns { columns } else { 0 };
    let pool = (0..6).map(|_| word(u, options)).collect::<Result<Vec<i64>>>()?;
    let mut tokens = Array2::from_elem((rows, columns), options.pad);
    for mut row in tokens.rows_mut() {
        let style = u.choose_index(12)?;
        let (from, to) = (u.choose_index(columns + 1)?, u.choose_index(columns + 1)?);
        let (from, to) = (from.min(to), from.max(to));
        let mut pick = Pick::seeded(u.arbitrary()?);
        for (column, id) in row.iter_mut().enumerate() {
            let (word, eos) = (*pick.one(&pool), *pick.one(&options.eos));
            let any = *pick.one(&[word, word, eos, options.pad]);
            let word_or_pad = *pick.one(&[word, word, options.pad]);
            *id = match style {
                // Finished, and filled up.
                0 | 1 if column < to => word,
                0 | 1 if column == to => eos,
                0 | 1 => options.pad,
                // Cut off: in full rows, and before rows of others that are longer.
                2 => word,
                3 if column < to => word,
                3 => options.pad,
                // Finished, and something else behind it.
                4 if column < from => word,
                4 if column == from => eos,
                4 => any,
                // Pads in front.
                5 if column < from => options.pad,
                5 if column < to => word,
                5 if column == to => eos,
                5 => options.pad,
                // Pads inside.
                6 if column < to => word_or_pad,
                6 if column == to => eos,
                6 => options.pad,
                // The end in the last column.
                7 if column + 1 < columns => word,
                7 => eos,
                8 => word_or_pad,
                9 => *pick.one(&[eos, options.pad]),
                10 => options.pad,
                _ => any,
            };
        }
    }
    Ok(CompletionMaskCase { tokens })
}

/// A batch with one letter for each token: `W` and `X` are words, `E` is the first id that ends a
/// row, `F` the last one, and `P` is the pad.
fn batch(rows: &[&str], options: &Options) -> CompletionMaskCase {
    let words: Vec<i64> = words(options).take(2).collect();
    let id = |letter| match letter {
        b'W' => words[0],
        b'X' => words[1],
        b'E' => options.eos[0],
        b'F' => options.eos[options.eos.len() - 1],
        _ => options.pad,
    };
    let ids = rows.iter().flat_map(|row| row.bytes().map(id)).collect();
    let tokens = Array2::from_shape_vec((rows.len(), rows[0].len()), ids);
    CompletionMaskCase { tokens: tokens.expect("rows are of one length") }
}

#[rustfmt::skip]
const CORNERS: &[&[&str]] = &[
    &[""], &["", ""], &["", "", ""],
    &["W"], &["E"], &["F"], &["P"],
    &["WW"], &["WE"], &["WF"], &["WP"], &["EW"], &["EE"], &["EF"], &["EP"], &["FW"], &["FE"],
    &["PW"], &["PE"], &["PP"],
    &["WWE"], &["WEW"], &["WEP"], &["WEE"], &["WEF"], &["WFE"], &["WFP"], &["WWP"], &["WPP"],
    &["WPW"], &["WPE"], &["PWE"], &["PWW"], &["PPW"], &["PPE"], &["EWW"], &["EWE"], &["EPP"],
    &["EPW"], &["FWE"], &["PEP"],
    &["WXWE"], &["WEXE"], &["WFXE"], &["WPXE"], &["PPWE"], &["WEPX"], &["PPWP"], &["WPXP"],
    &["WEXEPP"], &["WXEPPP"], &["PWXPWE"], &["EWXWXWXW"], &["WXWXWXWE"],
    &["W", "E"], &["E", "W"], &["P", "W"], &["E", "P"],
    &["WE", "WX"], &["WX", "WE"], &["EP", "WE"], &["WP", "WE"], &["PP", "WX"], &["EW", "WF"],
    &["WEP", "WXE"], &["WPP", "WXW"], &["PWE", "WXE"],
    &["WEP", "WXE", "EPP"], &["WXW", "WPP", "WEP"], &["WXW", "EPP", "WXE"],
    &["WEPP", "WXFP", "WXWX"],
    &["WXWXWXWXWXWXEPPP"], &["WXWXWXWXWXWXWXWX"],
];

pub(super) fn corners(options: &Options) -> Vec<CompletionMaskCase> {
    let mut cases: Vec<CompletionMaskCase> = Vec::new();
    for rows in CORNERS {
        let case = batch(rows, options);
        // Where there is one end, or the pad is one, several of them are the same.
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    let mut large = batch(&["WEP"], options);
    large.tokens[[0, 0]] = VOCABULARY - 1;
    if options.is_word(VOCABULARY - 1) {
        cases.push(large);
    }
    cases.retain(|case| valid(case, options).is_ok());
    cases.sort_by_cached_key(CompletionMask::measure);
    cases
}

/// All rows of one to three tokens, and all pairs of rows of one or two, over a few ids; and rows
/// that begin with a word like one of them.
pub(super) fn small(options: &Options) -> Vec<CompletionMaskCase> {
    let mut ids = vec![options.pad, options.eos[0], options.eos[options.eos.len() - 1]];
    ids.extend(words(options).take(2));
    ids.sort_unstable();
    ids.dedup();
    let mut cases = Vec::new();
    for shape in [(1, 1), (1, 2), (2, 1), (1, 3), (2, 2)] {
        let count = shape.0 * shape.1;
        for number in 0..ids.len().pow(count as u32) {
            let digit = |place: usize| number / ids.len().pow(place as u32) % ids.len();
            let tokens = (0..count).map(|place| ids[digit(place)]).collect();
            let tokens = Array2::from_shape_vec(shape, tokens).expect("as many as cells");
            cases.push(CompletionMaskCase { tokens });
        }
    }
    for like in lookalikes(options) {
        cases.push(CompletionMaskCase { tokens: arr2(&[[like]]) });
        cases.extend(ids.iter().map(|id| CompletionMaskCase { tokens: arr2(&[[like, *id]]) }));
    }
    cases
}

/// Fewer tokens, smaller ids, and the plainest ids of each meaning or of none, for all tokens of an
/// id or for one.
pub(super) fn simpler(case: &CompletionMaskCase, options: &Options) -> Vec<CompletionMaskCase> {
    let mut candidates = rows::simpler::<CompletionMask>(case);
    if case.tokens.len() > FEW {
        return candidates;
    }
    let mut plain = vec![options.pad];
    plain.extend(&options.eos);
    plain.extend(words(options).take(3));
    plain.extend(lookalikes(options));
    let simpler = |id: i64| {
        let simpler = plain.iter().copied();
        simpler.filter(move |plain| complexity(*plain as f64) < complexity(id as f64))
    };
    let mut ids: Vec<i64> = case.tokens.iter().copied().collect();
    ids.sort_unstable();
    ids.dedup();
    for from in ids {
        for to in simpler(from) {
            let tokens = case.tokens.mapv(|id| if id == from { to } else { id });
            candidates.push(CompletionMaskCase { tokens });
        }
    }
    for (at, id) in case.tokens.indexed_iter() {
        for to in simpler(*id) {
            let mut tokens = case.tokens.clone();
            tokens[at] = to;
            candidates.push(CompletionMaskCase { tokens });
        }
    }
    candidates
}

/// What a person looks at first: an end, an end inside, none, and pads.
pub(super) fn samples(options: &Options) -> Vec<CompletionMaskCase> {
    let rows: [&[&str]; 5] = [&["WXEP"], &["WEXE"], &["WXPP"], &["WPXE"], &["EPPP", "WXWX"]];
    rows.iter().map(|rows| batch(rows, options)).collect()
}

pub(super) fn classes() -> Vec<Class<CompletionMask>> {
    /// Whether a row of a case is of some kind: it takes the row, and where the row ends.
    fn any(
        case: &CompletionMaskCase,
        options: &Options,
        is: impl Fn(&[i64], Option<usize>) -> bool,
    ) -> bool {
        case.tokens.rows().into_iter().any(|row| {
            let row = row.to_vec();
            is(&row, options.first_eos(&row))
        })
    }
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let pad_is_no_eos: fn(&Options, Dtype) -> bool = |options, _| !options.pad_is_eos();
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "no-column",
            "T = 0",
            |case: &CompletionMaskCase, _: &Options| case.tokens.ncols() == 0,
            |options: &Options, _| options.empty == Empty::Generate,
        ),
        class(
            "eos-first",
            "a row that ends at its first token",
            |case, options| any(case, options, |_, first| first == Some(0)),
            always,
        ),
        class(
            "eos-last",
            "a row of two tokens or more that ends at its last one",
            |case, options| {
                any(case, options, |row, first| row.len() > 1 && first == Some(row.len() - 1))
            },
            always,
        ),
        class(
            "tokens-behind-the-eos",
            "a row that has ended, with a word behind it",
            |case, options| {
                any(case, options, |row, first| {
                    first.is_some_and(|at| row[at..].iter().any(|id| options.is_word(*id)))
                })
            },
            always,
        ),
        class(
            "eos-twice",
            "a row with two ends, and a word between them",
            |case, options| {
                any(case, options, |row, first| {
                    let Some(first) = first else { return false };
                    let last = row.iter().rposition(|id| options.eos.contains(id)).unwrap_or(first);
                    row[first..last].iter().any(|id| options.is_word(*id))
                })
            },
            always,
        ),
        class(
            "another-eos",
            "a row whose first end is not the first id of `eos`",
            |case, options| {
                any(case, options, |row, first| {
                    first.is_some_and(|first| row[first] != options.eos[0])
                })
            },
            |options, _| options.eos.iter().any(|id| *id != options.eos[0]),
        ),
        class(
            "finished-and-padded",
            "a row with a word, then an end, then pads only",
            |case, options| {
                any(case, options, |row, first| {
                    first.is_some_and(|at| {
                        at > 0
                            && at + 1 < row.len()
                            && row[at + 1..].iter().all(|id| *id == options.pad)
                    })
                })
            },
            always,
        ),
        class(
            "unfinished",
            "a row that is full of words",
            |case, options| {
                any(case, options, |row, _| {
                    !row.is_empty() && row.iter().all(|id| options.is_word(*id))
                })
            },
            always,
        ),
        class(
            "unfinished-and-padded",
            "a row without an end that begins with a word and ends in pads",
            |case, options| {
                any(case, options, |row, first| {
                    first.is_none()
                        && row.first().is_some_and(|id| options.is_word(*id))
                        && row.last() == Some(&options.pad)
                })
            },
            pad_is_no_eos,
        ),
        class(
            "pads-only",
            "a row of pads",
            |case, options| {
                any(case, options, |row, _| {
                    !row.is_empty() && row.iter().all(|id| *id == options.pad)
                })
            },
            always,
        ),
        class(
            "pads-in-front",
            "a row that begins with a pad, and has a word before any end",
            |case, options| {
                any(case, options, |row, first| {
                    let sampled = &row[..first.unwrap_or(row.len())];
                    sampled.first() == Some(&options.pad)
                        && sampled.iter().any(|id| options.is_word(*id))
                })
            },
            pad_is_no_eos,
        ),
        class(
            "pads-inside",
            "a row with a pad between two words, before any end",
            |case, options| {
                any(case, options, |row, first| {
                    let sampled = &row[..first.unwrap_or(row.len())];
                    let word = |id: &i64| options.is_word(*id);
                    let (from, to) =
                        (sampled.iter().position(word), sampled.iter().rposition(word));
                    let inside = from.zip(to).map(|(from, to)| &sampled[from..to]);
                    inside.is_some_and(|inside| inside.contains(&options.pad))
                })
            },
            pad_is_no_eos,
        ),
        class(
            "large-ids",
            "a word whose id is 32000 or more",
            |case, options| case.tokens.iter().any(|id| *id >= LARGE_ID && options.is_word(*id)),
            always,
        ),
        class(
            "unequal-lengths",
            "rows that end at different columns",
            |case, options| {
                let ends = case.tokens.rows().into_iter();
                let ends: Vec<_> = ends.map(|row| options.first_eos(&row.to_vec())).collect();
                ends.iter().any(|end| *end != ends[0])
            },
            always,
        ),
        class("one-row", "N = 1", |case, _| case.tokens.nrows() == 1, always),
        class("one-column", "T = 1", |case, _| case.tokens.ncols() == 1, always),
        class(
            "square",
            "N = T ≥ 2",
            |case, _| case.tokens.is_square() && case.tokens.nrows() > 1,
            always,
        ),
        class("long-rows", "T ≥ 12", |case, _| case.tokens.ncols() >= 12, always),
    ]
}
