//! Cases of `token-decoder`: random draws, corners and classes. Any token of the vocabulary may
//! stand anywhere; rows end in an eos and pads, or do not.

use arbitrary::{Result, Unstructured};
use ndarray::{Array2, arr2};

use super::{Options, Side, TokenDecoder, TokenDecoderCase, oracle};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::generate::masks;

/// The most tokens of a case.
const TOKENS: usize = 4096;

/// Of a larger vocabulary these many pieces are put into small cases.
const FEW_PIECES: usize = 28;

pub(super) fn valid(case: &TokenDecoderCase, options: &Options) -> std::result::Result<(), String> {
    rows::check_axes::<TokenDecoder>(case)?;
    if case.tokens.len() > TOKENS {
        return Err(format!("{} tokens, expected {TOKENS} at the most", case.tokens.len()));
    }
    match case.tokens.indexed_iter().find(|(_, id)| !options.vocabulary.contains_key(*id)) {
        Some(((row, at), id)) => Err(format!("tokens[{row}, {at}] is {id}: not in `vocabulary`")),
        None => Ok(()),
    }
}

/// Pieces that are not whole characters, of an option's vocabulary.
fn halves(options: &Options) -> Vec<i64> {
    let half = |id: &i64| std::str::from_utf8(&options.bytes(*id)).is_err();
    options.plain().into_iter().filter(half).collect()
}

pub(super) fn draw(u: &mut Unstructured<'_>, options: &Options) -> Result<TokenDecoderCase> {
    let (rows, columns) = masks::shape(u)?;
    let (plain, halves) = (options.plain(), halves(options));
    let mut tokens = Array2::from_elem((rows, columns), options.pad);
    for mut row in tokens.rows_mut() {
        let length = if chance(u, 128)? { columns } else { u.int_in_range(0..=columns)? };
        let ends = chance(u, 128)?;
        let mut content = Vec::new();
        for at in 0..length {
            content.push(match u.choose_index(16)? {
                // Two dozen are drawn, the rest repeats them in another order.
                _ if at >= 24 => content[(at * 7 + at / 24) % 24],
                _ if ends && at + 1 == length => options.eos,
                0 => one(u, &options.specials)?,
                1..4 if !halves.is_empty() => one(u, &halves)?,
                // A piece and the one after it, which often belong together.
                4 | 5 if at > 0 => {
                    let last = content[at - 1];
                    plain.iter().copied().find(|id| *id > last).unwrap_or(plain[0])
                }
                _ => one(u, &plain)?,
            });
        }
        let first = if options.padding_side == Side::Left { columns - length } else { 0 };
        for (at, id) in content.into_iter().enumerate() {
            row[first + at] = id;
        }
    }
    Ok(TokenDecoderCase { tokens })
}

/// A case of one row.
fn row(ids: &[i64]) -> TokenDecoderCase {
    let tokens = Array2::from_shape_vec((1, ids.len()), ids.to_vec());
    TokenDecoderCase { tokens: tokens.expect("one row") }
}

pub(super) fn corners(options: &Options) -> Vec<TokenDecoderCase> {
    let plain = options.plain();
    let few = |ids: Vec<i64>| ids.into_iter().take(FEW_PIECES).collect::<Vec<_>>();
    let (first, last) = (plain[0], plain[plain.len() - 1]);
    let lowest = *options.vocabulary.keys().next().expect("a vocabulary has pieces");
    let mut cases = vec![row(&[lowest])];
    cases.extend(few(plain.clone()).iter().map(|id| row(&[*id])));
    cases.extend(few(options.specials.clone()).iter().map(|id| row(&[first, *id, last])));
    let halves = few(halves(options));
    for pair in halves.windows(2).take(12) {
        cases.push(row(&[first, pair[0]]));
        cases.push(row(&[pair[1], first]));
        cases.push(row(pair));
        cases.push(row(&[pair[0], options.eos, pair[1]]));
    }
    let Options { pad, eos, .. } = *options;
    for ids in [
        vec![first, eos],
        vec![first, eos, pad, pad],
        vec![pad, pad, first, eos],
        vec![pad, first, pad],
        vec![first, first, eos, eos],
        vec![first, eos, last, eos, pad],
        vec![pad, pad],
        vec![first; 40],
        plain.iter().copied().take(64).collect(),
    ] {
        cases.push(row(&ids));
    }
    cases.push(TokenDecoderCase { tokens: arr2(&[[first, last], [last, eos]]) });
    cases.push(TokenDecoderCase { tokens: arr2(&[[first, pad], [last, first]]) });
    cases.push(TokenDecoderCase { tokens: arr2(&[[pad, pad], [last, first]]) });
    let pick = |(row, at): (usize, usize)| plain[(row * 5 + at * 3) % plain.len()];
    cases.push(TokenDecoderCase { tokens: Array2::from_shape_fn((12, 3), pick) });
    cases.sort_by_cached_key(TokenDecoder::measure);
    cases.dedup();
    cases
}

/// Every short row of the first pieces, and pairs of rows.
pub(super) fn small(options: &Options) -> Vec<TokenDecoderCase> {
    let mut ids: Vec<i64> = options.plain().into_iter().take(FEW_PIECES).collect();
    ids.extend(&options.specials);
    let mut cases = Vec::new();
    for first in &ids {
        cases.push(row(&[*first]));
        for second in &ids {
            cases.push(row(&[*first, *second]));
            cases.push(TokenDecoderCase { tokens: arr2(&[[*first], [*second]]) });
        }
    }
    let plain = options.plain()[0];
    for special in &options.specials {
        for ends in [[plain, plain], [plain, options.eos], [options.eos, plain]] {
            cases.push(row(&[ends[0], *special, ends[1]]));
        }
    }
    cases
}

/// Simpler cases: as for every grid, and lower ids of the vocabulary.
pub(super) fn simpler(case: &TokenDecoderCase, options: &Options) -> Vec<TokenDecoderCase> {
    let mut cases = rows::simpler::<TokenDecoder>(case);
    if case.tokens.len() <= FEW_PIECES {
        for (at, id) in case.tokens.indexed_iter() {
            let lower = options.vocabulary.range(..*id).map(|(lower, _)| *lower);
            for lower in lower.take(FEW_PIECES) {
                let mut tokens = case.tokens.clone();
                tokens[at] = lower;
                cases.push(TokenDecoderCase { tokens });
            }
        }
    }
    cases
}

pub(super) fn classes() -> Vec<Class<TokenDecoder>> {
    fn any(case: &TokenDecoderCase, is: impl Fn(&[i64]) -> bool) -> bool {
        case.tokens.rows().into_iter().any(|row| is(&row.to_vec()))
    }
    let always: fn(&Options, shakedown_core::value::place::Dtype) -> bool = |_, _| true;
    let split: fn(&Options, shakedown_core::value::place::Dtype) -> bool =
        |options, _| !halves(options).is_empty();
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "split-character",
            "a character whose bytes are in several tokens",
            |case: &TokenDecoderCase, options: &Options| {
                any(case, |row| {
                    let parts = oracle::parts(row, options);
                    let whole = parts.iter().all(|part| std::str::from_utf8(part).is_ok());
                    let half = |id: &i64| std::str::from_utf8(&options.bytes(*id)).is_err();
                    whole && row.iter().any(half)
                })
            },
            |options, _| {
                let bytes: Vec<Vec<u8>> =
                    halves(options).iter().map(|id| options.bytes(*id)).collect();
                let whole = |pair: &[Vec<u8>]| std::str::from_utf8(&pair.concat()).is_ok();
                bytes.windows(2).take(12).any(whole)
            },
        ),
        class(
            "malformed",
            "bytes that are no UTF-8",
            |case, options| {
                any(case, |row| {
                    let parts = oracle::parts(row, options);
                    parts.iter().any(|part| std::str::from_utf8(part).is_err())
                })
            },
            split,
        ),
        class(
            "special-inside",
            "a special token between others",
            |case, options| {
                any(case, |row| {
                    row.windows(3).any(|w| {
                        let [before, it, after] =
                            [w[0], w[1], w[2]].map(|id| options.is_special(id));
                        !before && it && !after
                    })
                })
            },
            always,
        ),
        class(
            "padded",
            "a row that ends or begins with a pad",
            |case, options| {
                any(case, |row| {
                    row.len() > 1 && [row[0], row[row.len() - 1]].contains(&options.pad)
                })
            },
            always,
        ),
        class(
            "several-eos",
            "a row with more than one eos",
            |case, options| {
                any(case, |row| row.iter().filter(|id| **id == options.eos).count() > 1)
            },
            always,
        ),
        class(
            "no-eos",
            "a row without an eos",
            |case, options| any(case, |row| !row.contains(&options.eos)),
            always,
        ),
        class(
            "nothing-but-special",
            "a row of special tokens only",
            |case, options| any(case, |row| row.iter().all(|id| options.is_special(*id))),
            always,
        ),
        class(
            "white-space-at-an-end",
            "a text that begins or ends with white space",
            |case, options| {
                any(case, |row| {
                    let bytes = oracle::parts(row, options).concat();
                    let text = String::from_utf8_lossy(&bytes);
                    text.trim() != text
                })
            },
            |options, _| {
                let white =
                    |id: &i64| options.bytes(*id).first().is_some_and(u8::is_ascii_whitespace);
                options.plain().iter().take(FEW_PIECES).any(white)
            },
        ),
        class("one-row", "N = 1", |case, _| case.tokens.nrows() == 1, always),
        class(
            "several-rows",
            "rows that are not all the same",
            |case, _| case.tokens.rows().into_iter().any(|row| row != case.tokens.row(0)),
            always,
        ),
        class("one-token", "T = 1", |case, _| case.tokens.ncols() == 1, always),
        class(
            "square",
            "N = T > 1",
            |case, _| case.tokens.is_square() && case.tokens.len() > 1,
            always,
        ),
        class("many-rows", "N ≥ 12", |case, _| case.tokens.nrows() >= 12, always),
    ]
}
