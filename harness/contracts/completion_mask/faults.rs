//! Known wrong behaviours of `completion-mask`: real bugs, and conventions mistaken for others.

use half::bf16;
use ndarray::Array2;

use super::oracle::length;
use super::{
    CompletionMask, CompletionMaskCase, CompletionMaskOutput, Options, Unfinished, reference,
};
use crate::contract::fault::{Behaviour, Fault, Function, misbehaviours};

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault<CompletionMask>> {
    let fault = |id, summary, source, options, variants: &'static [Function<CompletionMask>]| {
        Fault { id, summary, source, options, behaviour: Behaviour::Gives(variants) }
    };
    let mut faults = vec![
        fault(
            "final-eos-dropped-when-pad-is-eos",
            "every pad is left out, and the end of a completion is one",
            "trl #976, #988, #3200 (485852c94), #2793 (2241f1791), #6357 (707a7172e); ROLL \
             1f9d2171; NeMo-RL #120 (afefe6653)",
            "{pad: 2}",
            &[
                |case, options, _| flagged(case, |row, token| row[token] != options.pad),
                |case, options, _| cut(case, |row| without_pads(row, options)),
            ],
        ),
        fault(
            "every-eos-is-padding",
            "each eos is left out, and nothing else",
            "trl #741 (9141aa42b), #884",
            "{}",
            &[|case, options, _| flagged(case, |row, token| !options.eos.contains(&row[token]))],
        ),
        fault(
            "mask-by-token-value",
            "each eos and each pad is left out, wherever it stands",
            "OpenRLHF de254567, 9d8b3fda, 01b8a23d",
            "{}",
            &[|case, options, _| flagged(case, |row, token| options.is_word(row[token]))],
        ),
        fault(
            "only-one-eos-id",
            "one id of `eos` ends a row, the others do not",
            "trl #7039",
            "{eos: [2, 3]}",
            &[
                |case, options, _| ended(case, options, |row| first_of(row, &options.eos[..1])),
                |case, options, _| {
                    let last = options.eos.len() - 1;
                    ended(case, options, |row| first_of(row, &options.eos[last..]))
                },
            ],
        ),
        fault(
            "no-eos-id-never-stops",
            "no token ends a row: each of them is compared with null",
            "trl #2528 (a9b54a852)",
            "{}",
            &[|case, options, _| ended(case, options, |_| None)],
        ),
        fault(
            "unfinished-row-counts-pads",
            "a row that was cut off counts the pads at its end too",
            "verl #3805",
            "{}",
            &[|case, options, _| {
                let unfinished = match options.unfinished {
                    Unfinished::Keep => Unfinished::All,
                    other => other,
                };
                under(case, &Options { unfinished, ..options.clone() })
            }],
        ),
        fault(
            "eos-left-out",
            "the token that ends a completion does not count",
            "trlx #401 (a369dad)",
            "{}",
            &[|case, options, _| under(case, &Options { include_eos: false, ..options.clone() })],
        ),
        fault(
            "eos-test-on-the-last-column",
            "a row has ended only where its last column is an eos",
            "trlx #420 (ec75e99)",
            "{unfinished: drop}",
            &[|case, options, _| {
                ended(case, options, |row| {
                    let last = row.last().is_some_and(|id| options.eos.contains(id));
                    if last { options.first_eos(row) } else { None }
                })
            }],
        ),
        fault(
            "eos-counted-though-excluded",
            "the token that ends a completion counts, where it is declared not to",
            "an option without effect",
            "{include_eos: false}",
            &[|case, options, _| under(case, &Options { include_eos: true, ..options.clone() })],
        ),
        fault(
            "unfinished-rows-kept",
            "rows without an eos count, where they are declared to be left out",
            "TRL `mask_truncated_completions` without effect",
            "{unfinished: drop}",
            &[
                |case, options, _| kept_though_dropped(case, options, Unfinished::Keep),
                |case, options, _| kept_though_dropped(case, options, Unfinished::All),
            ],
        ),
        fault(
            "unfinished-rows-dropped",
            "rows without an eos are left out, where they are declared to count",
            "the overlong filter of DAPO where it is not declared",
            "{}",
            &[|case, options, _| {
                under(case, &Options { unfinished: Unfinished::Drop, ..options.clone() })
            }],
        ),
        fault(
            "no-eos-taken-for-the-first-token",
            "a row without an eos ends at its first token",
            "plausible: argmax without any",
            "{}",
            &[|case, options, _| {
                ended(case, options, |row| {
                    options.first_eos(row).or(if row.is_empty() { None } else { Some(0) })
                })
            }],
        ),
        fault(
            "eos-at-the-first-token-overlooked",
            "an eos at position 0 ends no row",
            "plausible: `if index:` for `if index is not None:`",
            "{}",
            &[|case, options, _| {
                ended(case, options, |row| options.first_eos(row).filter(|first| *first > 0))
            }],
        ),
        fault(
            "last-eos-ends-the-row",
            "a row ends at its last eos, not at its first",
            "plausible: the position of the end searched from the back",
            "{}",
            &[|case, options, _| {
                ended(case, options, |row| row.iter().rposition(|id| options.eos.contains(id)))
            }],
        ),
        fault(
            "up-to-the-second-eos",
            "what stands between the first eos and the second counts",
            "plausible: cumsum(eos) <= 1, without the shift that keeps the first",
            "{}",
            &[|case, options, _| {
                cut(case, |row| match options.first_eos(row) {
                    Some(first) => {
                        let second = options.first_eos(&row[first + 1..]);
                        second.map_or(row.len(), |after| first + 1 + after)
                    }
                    None => length(row, options),
                })
            }],
        ),
        fault(
            "one-token-past-the-eos",
            "the token behind the end counts too",
            "plausible: a mask shifted for labels, used for tokens",
            "{}",
            &[|case, options, _| {
                cut(case, |row| {
                    let past = usize::from(options.first_eos(row).is_some());
                    length(row, options) + past
                })
            }],
        ),
        fault(
            "only-the-last-run-of-eos",
            "a row ends at the first of the pads at its end, whatever stands before",
            "the fix of final-eos-dropped-when-pad-is-eos by one token more",
            "{pad: 2}",
            &[|case, options, _| cut(case, |row| without_pads(row, options) + 1)],
        ),
        fault(
            "pad-taken-for-an-eos",
            "the first pad ends a row, and counts as its end",
            "plausible: pad and end taken for one id, as where there is no pad",
            "{}",
            &[|case, options, _| {
                ended(case, options, |row| row.iter().position(|id| !options.is_word(*id)))
            }],
        ),
        fault(
            "ends-at-the-first-pad",
            "a row ends before its first pad, also where tokens follow",
            "plausible: the length is the index of the first pad",
            "{}",
            &[|case, options, _| {
                cut(case, |row| {
                    let pad = row.iter().position(|id| *id == options.pad);
                    length(row, options).min(pad.unwrap_or(row.len()))
                })
            }],
        ),
        fault(
            "pads-inside-masked",
            "a pad between tokens that count does not count",
            "plausible: times (ids != pad), to be safe",
            "{}",
            &[|case, options, _| {
                let words = |row: &[i64], token| row[token] != options.pad;
                flagged(case, |row, token| token < length(row, options) && words(row, token))
            }],
        ),
        fault(
            "padding-mask-returned",
            "true where there is padding, not where there is none",
            "torchtune truncate_sequence_at_first_stop_token's convention",
            "{}",
            &[|case, options, _| reference::mask(case, options).mapv(|counts| !counts).into()],
        ),
        fault(
            "right-aligned",
            "as many flags as tokens, at the right end of the row",
            "plausible: the mask of a batch that is padded on the left",
            "{}",
            &[|case, options, _| {
                flagged(case, |row, token| token + length(row, options) >= row.len())
            }],
        ),
        fault(
            "lengths-along-the-other-axis",
            "where N = T, column t gets the length of row t",
            "trl 4db63af98, #6095: a broadcast that raises nothing in square batches",
            "{}",
            &[|case, options, _| {
                let right = reference::mask(case, options);
                if !right.is_square() {
                    return right.into();
                }
                let lengths: Vec<usize> = right
                    .rows()
                    .into_iter()
                    .map(|row| row.iter().filter(|m| **m).count())
                    .collect();
                Array2::from_shape_fn(right.dim(), |(_, token)| token < lengths[token]).into()
            }],
        ),
        fault(
            "one-length-for-the-batch",
            "all rows are as long as the longest, or as the shortest",
            "plausible: generation stopped for the batch, not for each row",
            "{}",
            &[
                |case, options, _| batch_length(case, options, |lengths| lengths.max()),
                |case, options, _| batch_length(case, options, |lengths| lengths.min()),
            ],
        ),
        fault(
            "last-token-of-unfinished-rows-lost",
            "the last token of a row that was cut off is taken for its end, which does not count",
            "plausible: T − 1 for T as the position of an end that is not there",
            "{include_eos: false, unfinished: all}",
            &[|case, options, _| {
                cut(case, |row| {
                    let lost = options.first_eos(row).is_none() && !options.include_eos;
                    length(row, options).saturating_sub(usize::from(lost))
                })
            }],
        ),
        fault(
            "negative-behind-the-second-eos",
            "1 less the number of ends before each token, not clamped at 0",
            "plausible: 1 - (cumsum(eos) - eos)",
            "{}",
            &[|case, options, _| {
                let mut mask = reference::mask(case, options).mapv(f64::from);
                for (row, mut mask) in case.tokens.rows().into_iter().zip(mask.rows_mut()) {
                    let mut ends = 0.0;
                    for (id, flag) in row.iter().zip(&mut mask) {
                        *flag = if ends > 1.0 { 1.0 - ends } else { *flag };
                        ends += f64::from(options.eos.contains(id));
                    }
                }
                mask.into()
            }],
        ),
        fault(
            "ids-compared-in-bf16",
            "ids are bf16, in which a large id is equal to its neighbours",
            "plausible: a batch cast to half precision, ids and all",
            "{eos: [50256], pad: 50256}",
            &[|case, options, _| {
                stored(case, options, |id| bf16::from_f64(id as f64).to_f64() as i64)
            }],
        ),
        fault(
            "ids-in-sixteen-bits",
            "ids beyond 65535 wrap around, and may come out as an eos",
            "plausible: uint16 token files, for vocabularies of twice the size",
            "{}",
            &[|case, options, _| stored(case, options, |id| id & 0xffff)],
        ),
        fault(
            "eos-id-hard-coded",
            "2 ends a row, whatever is declared",
            "an option without effect; Llama 2's id",
            "{eos: [3]}",
            &[|case, options, _| under(case, &Options { eos: vec![2], ..options.clone() })],
        ),
        fault(
            "pad-id-hard-coded",
            "0 is the pad, whatever is declared",
            "an option without effect; ids.bool() for a mask",
            "{pad: 1}",
            &[|case, options, _| under(case, &Options { pad: 0, ..options.clone() })],
        ),
    ];
    faults.extend(misbehaviours());
    faults
}

/// The right mask under other options.
fn under(case: &CompletionMaskCase, options: &Options) -> CompletionMaskOutput {
    reference::mask(case, options).into()
}

/// The mask whose flags follow from a row and a position in it.
fn flagged(
    case: &CompletionMaskCase,
    flag: impl Fn(&[i64], usize) -> bool,
) -> CompletionMaskOutput {
    let rows: Vec<Vec<i64>> = case.tokens.rows().into_iter().map(|row| row.to_vec()).collect();
    Array2::from_shape_fn(case.tokens.dim(), |(row, token)| flag(&rows[row], token)).into()
}

/// The mask of rows of other lengths.
fn cut(case: &CompletionMaskCase, length: impl Fn(&[i64]) -> usize) -> CompletionMaskOutput {
    let lengths = case.tokens.rows().into_iter().map(|row| length(&row.to_vec()));
    let lengths: Vec<usize> = lengths.collect();
    Array2::from_shape_fn(case.tokens.dim(), |(row, token)| token < lengths[row]).into()
}

/// The mask of rows that end elsewhere, or do not end.
fn ended(
    case: &CompletionMaskCase,
    options: &Options,
    end: impl Fn(&[i64]) -> Option<usize>,
) -> CompletionMaskOutput {
    cut(case, |row| match (end(row), options.unfinished) {
        (Some(end), _) => end + usize::from(options.include_eos),
        (None, Unfinished::Keep) => without_pads(row, options),
        (None, Unfinished::All) => row.len(),
        (None, Unfinished::Drop) => 0,
    })
}

/// How long a row is without the pads at its end.
fn without_pads(row: &[i64], options: &Options) -> usize {
    row.iter().rposition(|id| *id != options.pad).map_or(0, |last| last + 1)
}

/// The first position at which one of some ids stands.
fn first_of(row: &[i64], ids: &[i64]) -> Option<usize> {
    row.iter().position(|id| ids.contains(id))
}

/// The mask in which rows without an end count where they are declared not to.
fn kept_though_dropped(
    case: &CompletionMaskCase,
    options: &Options,
    kept: Unfinished,
) -> CompletionMaskOutput {
    let dropped = options.unfinished == Unfinished::Drop;
    let unfinished = if dropped { kept } else { options.unfinished };
    under(case, &Options { unfinished, ..options.clone() })
}

/// The mask of rows that are all of one length.
fn batch_length(
    case: &CompletionMaskCase,
    options: &Options,
    one: impl Fn(&mut dyn Iterator<Item = usize>) -> Option<usize>,
) -> CompletionMaskOutput {
    let rows = case.tokens.rows().into_iter();
    let length = one(&mut rows.map(|row| length(&row.to_vec(), options))).unwrap_or(0);
    cut(case, |_| length)
}

/// The mask of ids that are held in another format, the declared ones too.
fn stored(
    case: &CompletionMaskCase,
    options: &Options,
    stored: impl Fn(i64) -> i64,
) -> CompletionMaskOutput {
    let tokens = case.tokens.mapv(&stored);
    let eos = options.eos.iter().map(|id| stored(*id)).collect();
    let options = Options { eos, pad: stored(options.pad), ..options.clone() };
    under(&CompletionMaskCase { tokens }, &options)
}
