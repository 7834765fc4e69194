//! Cases of `sequence-packing`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::{Array1, Array2};

use super::{LARGEST_ID, Options, Overlong, SequencePacking, SequencePackingCase};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::generate::pick::Pick;
use shakedown_core::value::place::Dtype;

/// Documents of a row's size, and longer ones, are made for rows of so many tokens at the most.
const NARROW: i64 = 64;

pub(super) fn valid(
    case: &SequencePackingCase,
    options: &Options,
) -> std::result::Result<(), String> {
    rows::check_axes::<SequencePacking>(case)?;
    let width = case.tokens.ncols() as i64;
    for (document, length) in case.lengths.iter().enumerate() {
        if !(1..=width).contains(length) {
            return Err(format!("lengths[{document}] is {length}, expected 1 to {width}"));
        }
        if options.overlong == Overlong::Avoid && options.is_overlong(*length) {
            let capacity = options.capacity;
            return Err(format!("lengths[{document}] is {length}, expected at most {capacity}"));
        }
    }
    for ((document, token), id) in case.tokens.indexed_iter() {
        let padding = token as i64 >= case.lengths[document];
        if padding && *id != options.pad {
            return Err(format!("tokens[{document}, {token}] is {id}, expected a pad"));
        }
        if padding && case.mask[[document, token]] {
            return Err(format!("mask[{document}, {token}] is true, and there is no token"));
        }
        if !(0..=LARGEST_ID).contains(id) {
            return Err(format!("tokens[{document}, {token}] is {id}, expected 0 to {LARGEST_ID}"));
        }
    }
    Ok(())
}

/// The same case with padding behind each document, and lengths that fit.
fn tidied(mut case: SequencePackingCase, options: &Options) -> SequencePackingCase {
    let width = case.tokens.ncols() as i64;
    let most = if options.overlong == Overlong::Avoid { options.capacity } else { width };
    case.lengths.mapv_inplace(|length| length.clamp(1, width.max(1)).min(most));
    for ((document, token), id) in case.tokens.indexed_iter_mut() {
        if token as i64 >= case.lengths[document] {
            *id = options.pad;
            case.mask[[document, token]] = false;
        }
    }
    case
}

/// A case of these documents: ids and which of them are trained.
fn of(documents: &[(Vec<i64>, Vec<bool>)], more: usize, options: &Options) -> SequencePackingCase {
    let longest = documents.iter().map(|(ids, _)| ids.len()).max().unwrap_or(1) + more;
    let at = |(document, token): (usize, usize)| {
        let (ids, trained) = &documents[document];
        ids.get(token).map(|id| (*id, trained[token]))
    };
    let shape = (documents.len(), longest);
    SequencePackingCase {
        tokens: Array2::from_shape_fn(shape, |place| at(place).map_or(options.pad, |(id, _)| id)),
        lengths: documents.iter().map(|(ids, _)| ids.len() as i64).collect(),
        mask: Array2::from_shape_fn(shape, |place| at(place).is_some_and(|(_, kept)| kept)),
    }
}

/// How long a document is: short, a row's size or a part of it, and longer where it may be.
fn length(u: &mut Unstructured<'_>, options: &Options) -> Result<i64> {
    let capacity = options.capacity;
    let short = capacity.min(6);
    if capacity > NARROW {
        return u.int_in_range(1..=short);
    }
    let long = match options.overlong {
        Overlong::Avoid => false,
        // Most batches of this kind have none, else nothing but the error is looked at.
        Overlong::Refuse => chance(u, 16)?,
        Overlong::Truncate | Overlong::Split => chance(u, 80)?,
    };
    if long {
        let more = [capacity + 1, 2 * capacity, 3 * capacity + 1, capacity + 2];
        return one(u, &more);
    }
    let length = match u.choose_index(8)? {
        0 | 1 => 1,
        2 => capacity,
        3 => capacity / 2,
        4 => capacity - 1,
        5 => capacity - capacity / 2,
        _ => u.int_in_range(1..=short)?,
    };
    Ok(length.max(1))
}

/// Which tokens of a document are trained: all, a completion behind a prompt, the last one, turns,
/// or none.
fn trained(u: &mut Unstructured<'_>, length: i64) -> Result<Vec<bool>> {
    let style = u.choose_index(8)?;
    let from = u.int_in_range(0..=length - 1)?;
    let gaps = u64::from_le_bytes(u.arbitrary()?);
    let trained = |token: i64| match style {
        0 => true,
        1..=3 => token >= from,
        4 => token + 1 == length,
        5 => false,
        _ => gaps >> (token % 64) & 1 == 1,
    };
    Ok((0..length).map(trained).collect())
}

pub(super) fn draw(u: &mut Unstructured<'_>, options: &Options) -> Result<SequencePackingCase> {
    let count = one(u, &[1, 2, 3, 3, 4, 4, 5, 6, 8, 12])?;
    let style = u.choose_index(6)?;
    let mut pick = Pick::seeded(u.arbitrary()?);
    let mut documents = Vec::new();
    let mut next = 5;
    for document in 0..count {
        let length = match style {
            // One long document among documents of one token.
            0 if document == 1 => options.capacity.min(NARROW),
            0 => 1,
            1 => options.capacity.min(2),
            _ => length(u, options)?,
        };
        let trained = trained(u, length)?;
        let pads = pick.below(4) == 0;
        let ids = (0..length).map(|_| {
            next += 1;
            match pick.below(12) {
                0 | 1 if pads => options.pad,
                2 => 0,
                3 => 150_000 + next,
                4 => 7,
                _ => next,
            }
        });
        documents.push((ids.collect(), trained));
    }
    let more = if chance(u, 40)? { 2 } else { 0 };
    Ok(of(&documents, more, options))
}

/// Documents of these lengths whose ids tell them apart, with this many tokens of a prompt.
fn told(lengths: &[i64], prompt: i64, options: &Options) -> SequencePackingCase {
    let mut next = 0;
    let documents: Vec<(Vec<i64>, Vec<bool>)> = lengths
        .iter()
        .map(|length| {
            let ids = (0..*length).map(|token| next + token + 1).collect();
            next += length;
            (ids, (0..*length).map(|token| token >= prompt).collect())
        })
        .collect();
    of(&documents, 0, options)
}

pub(super) fn corners(options: &Options) -> Vec<SequencePackingCase> {
    let c = options.capacity.min(NARROW);
    let mut lists = vec![
        vec![1],
        vec![2],
        vec![1, 1],
        vec![2, 1],
        vec![1, 2],
        vec![3, 2, 1],
        vec![1, 1, 1],
        vec![1; 5],
        vec![3, 1, 2],
        vec![2, 3, 3, 2],
    ];
    if options.capacity <= NARROW {
        lists.extend([
            vec![c],
            vec![c, c],
            vec![c, 1],
            vec![1, c],
            vec![c - 1, 1],
            vec![c - 1, 1, 2],
            vec![c / 2, c - c / 2, c],
            vec![c / 2 + 1, c / 2 + 1, c / 2 + 1],
            vec![1, 1, c, 1],
            vec![c + 1],
            vec![c + 1, 1],
            vec![2 * c],
            vec![3 * c + 1],
            vec![1, 2 * c, c + 1],
            vec![2 * c, 3 * c + 1],
        ]);
    }
    let mut cases = Vec::new();
    for list in lists {
        if list.contains(&0) {
            continue;
        }
        for prompt in 0..3 {
            cases.push(told(&list, prompt, options));
        }
        let mut last = told(&list, 0, options);
        for ((document, token), trained) in last.mask.indexed_iter_mut() {
            *trained = token as i64 + 1 == last.lengths[document];
        }
        cases.push(last);
        let mut pads = told(&list, 0, options);
        pads.tokens.fill(options.pad);
        cases.push(pads);
        let mut holes = told(&list, 0, options);
        for ((_, token), trained) in holes.mask.indexed_iter_mut() {
            *trained &= token % 2 == 0;
        }
        cases.push(holes);
    }
    cases.retain(|case| valid(case, options).is_ok());
    cases.sort_by_cached_key(SequencePacking::measure);
    cases.dedup();
    cases
}

/// Up to three documents of a few lengths, or one long one and two of one token, with the plainest
/// ids and flags.
pub(super) fn small(options: &Options) -> Vec<SequencePackingCase> {
    let capacity = options.capacity;
    let mut lengths = vec![1, 2, 3];
    if capacity <= 4 {
        lengths.extend([capacity, capacity + 1, 2 * capacity]);
        lengths.sort_unstable();
        lengths.dedup();
    }
    let mut lists: Vec<Vec<i64>> = vec![Vec::new()];
    let mut all = Vec::new();
    for most in [7, 7, 3] {
        lists = lists
            .iter()
            .flat_map(|list| {
                let few = lengths.iter().take(most);
                few.map(|length| [&list[..], &[*length]].concat()).collect::<Vec<_>>()
            })
            .collect();
        all.extend(lists.iter().cloned());
    }
    if capacity <= 16 {
        all.extend((4..=capacity).map(|length| vec![length, 1, 1]));
    }
    let mut cases = Vec::new();
    for list in all {
        let ids: [&dyn Fn(usize) -> i64; 4] =
            [&|_| options.pad, &|_| 0, &|_| 1, &|document| document as i64 + 1];
        for id in ids {
            for prompt in [0, 1, i64::MAX] {
                let mut case = told(&list, prompt, options);
                for ((document, token), to) in case.tokens.indexed_iter_mut() {
                    if (token as i64) < case.lengths[document] {
                        *to = id(document);
                    }
                }
                cases.push(case);
            }
        }
        cases.push(told(&list, 0, options));
        cases.push(told(&list, 1, options));
    }
    cases.retain(|case| valid(case, options).is_ok());
    cases
}

/// Fewer and shorter documents, simpler ids, more of them trained.
pub(super) fn simpler(case: &SequencePackingCase, options: &Options) -> Vec<SequencePackingCase> {
    let mut candidates = rows::simpler::<SequencePacking>(case);
    let (documents, width) = case.tokens.dim();
    for limit in 1..width as i64 {
        let mut shorter = case.clone();
        shorter.lengths.mapv_inplace(|length| length.min(limit));
        let kept: Vec<usize> = (0..limit as usize).collect();
        candidates.push(rows::select::<SequencePacking, _>(&shorter, 'T', &kept));
    }
    let mut plain = case.clone();
    plain.lengths = Array1::from_elem(documents, width as i64);
    candidates.push(plain);
    for document in 0..documents {
        for token in 0..width {
            // One token of one document less: what is behind it moves up.
            if case.lengths[document] > 1 && (token as i64) < case.lengths[document] {
                let mut less = case.clone();
                for at in token..width - 1 {
                    less.tokens[[document, at]] = case.tokens[[document, at + 1]];
                    less.mask[[document, at]] = case.mask[[document, at + 1]];
                }
                less.lengths[document] -= 1;
                candidates.push(less);
            }
        }
    }
    candidates.into_iter().map(|case| tidied(case, options)).collect()
}

pub(super) fn classes() -> Vec<Class<SequencePacking>> {
    /// Whether a document is of some kind: it takes its ids and which of them are trained.
    fn any(case: &SequencePackingCase, is: impl Fn(&[i64], &[bool]) -> bool) -> bool {
        let documents = super::reference::documents(case).into_iter();
        documents.into_iter().any(|document| is(&document.tokens, &document.trained))
    }
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let narrow: fn(&Options, Dtype) -> bool = |options, _| options.capacity <= NARROW;
    let wide: fn(&Options, Dtype) -> bool = |options, _| options.capacity > 2;
    let several: fn(&Options, Dtype) -> bool = |options, _| options.capacity > 1;
    let overlong: fn(&Options, Dtype) -> bool =
        |options, _| options.overlong != Overlong::Avoid && options.capacity <= NARROW;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "one-token",
            "a document of one token",
            |case: &SequencePackingCase, _: &Options| case.lengths.iter().any(|x| *x == 1),
            always,
        ),
        class("one-document", "N = 1", |case, _| case.lengths.len() == 1, always),
        class("several-rows", "N ≥ 2", |case, _| case.lengths.len() > 1, always),
        class(
            "unequal-lengths",
            "documents of different lengths",
            |case, _| case.lengths.iter().any(|length| *length != case.lengths[0]),
            several,
        ),
        class(
            "full-row",
            "a document that fills a row exactly",
            |case, options| case.lengths.iter().any(|length| *length == options.capacity),
            narrow,
        ),
        class(
            "full-together",
            "two documents that fill a row exactly, and a third",
            |case, options| {
                let lengths = &case.lengths;
                lengths.len() > 2
                    && lengths.windows(2).into_iter().any(|two| two.sum() == options.capacity)
            },
            |options, _| (2..=NARROW).contains(&options.capacity),
        ),
        class(
            "one-long",
            "one long document among documents of one token",
            |case, _| {
                let long = case.lengths.iter().filter(|length| **length > 1).count();
                case.lengths.len() > 2 && long == 1
            },
            several,
        ),
        class(
            "pads-inside",
            "a pad in front of another id of its document",
            |case, options| {
                any(case, |ids, _| {
                    let pad = ids.iter().position(|id| *id == options.pad);
                    pad.is_some_and(|pad| ids[pad..].iter().any(|id| *id != options.pad))
                })
            },
            wide,
        ),
        class(
            "prompt-masked",
            "a document whose first tokens are not trained, and all behind them are",
            |case, _| {
                any(case, |_, trained| {
                    let first = trained.iter().position(|trained| *trained);
                    first.is_some_and(|at| at > 0 && trained[at..].iter().all(|one| *one))
                })
            },
            several,
        ),
        class(
            "only-the-last-token",
            "a document of two tokens or more of which only the last is trained",
            |case, _| {
                any(case, |_, trained| {
                    let count = trained.iter().filter(|trained| **trained).count();
                    trained.len() > 1 && count == 1 && trained.last() == Some(&true)
                })
            },
            several,
        ),
        class(
            "nothing-trained",
            "a document without a trained token",
            |case, _| any(case, |_, trained| trained.iter().all(|trained| !trained)),
            always,
        ),
        class(
            "holes",
            "a document with a token between two trained ones that is not",
            |case, _| {
                any(case, |_, trained| {
                    let first = trained.iter().position(|trained| *trained);
                    let last = trained.iter().rposition(|trained| *trained);
                    let inside = first.zip(last).map(|(first, last)| &trained[first..=last]);
                    inside.is_some_and(|inside| inside.contains(&false))
                })
            },
            wide,
        ),
        class(
            "large-ids",
            "an id beyond 65535",
            |case, options| case.tokens.iter().any(|id| *id > 65_535 && *id != options.pad),
            always,
        ),
        class(
            "one-too-long",
            "a document of `capacity` + 1 tokens",
            |case, options| case.lengths.iter().any(|length| *length == options.capacity + 1),
            overlong,
        ),
        class(
            "two-rows-long",
            "a document of 2·`capacity` tokens",
            |case, options| case.lengths.iter().any(|length| *length == 2 * options.capacity),
            overlong,
        ),
        class(
            "over-three-rows",
            "a document of 3·`capacity` + 1 tokens",
            |case, options| case.lengths.iter().any(|length| *length == 3 * options.capacity + 1),
            overlong,
        ),
        class(
            "more-than-a-row",
            "more tokens than a row holds",
            |case, options| case.lengths.sum() > options.capacity,
            narrow,
        ),
    ]
}
