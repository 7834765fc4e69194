//! Known wrong behaviours of `completion-mask`: real bugs, and conventions mistaken for others.

use half::bf16;
use ndarray::Array2;

use super::oracle::length;
use super::{
    CompletionMask, CompletionMaskCase, CompletionMaskOutput, Options, Unfinished, reference,
};

type Fault = shakedown_core::contract::fault::Fault<CompletionMask>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [by_value(), declared(), ends(), pads(), lengths(), ids()];
    themes.into_iter().flatten().collect()
}

/// Flags by the value of an id alone, and ends by some of them.
fn by_value() -> Vec<Fault> {
    vec![
        Fault::new(
            "final-eos-dropped-when-pad-is-eos",
            "every pad is left out, and the end of a completion is one",
        )
        .seen(
            "trl #976, #988, #3200 (485852c94), #2793 (2241f1791), #6357 (707a7172e); ROLL \
             1f9d2171; NeMo-RL #120 (afefe6653)",
        )
        .under("{pad: 2}")
        .gives(&[
            |case, options, _| flagged(case, |row, token| row[token] != options.pad),
            |case, options, _| cut(case, |row| without_pads(row, options)),
        ]),
        Fault::new("every-eos-is-padding", "each eos is left out, and nothing else")
            .seen("trl #741 (9141aa42b), #884")
            .gives(&[|case, options, _| {
                flagged(case, |row, token| !options.eos.contains(&row[token]))
            }]),
        Fault::new("mask-by-token-value", "each eos and each pad is left out, wherever it stands")
            .seen("OpenRLHF de254567, 9d8b3fda, 01b8a23d")
            .gives(&[|case, options, _| flagged(case, |row, token| options.is_word(row[token]))]),
        Fault::new("only-one-eos-id", "one id of `eos` ends a row, the others do not")
            .seen("trl #7039")
            .under("{eos: [2, 3]}")
            .as_if(&[
                |options| Options { eos: options.eos[..1].to_vec(), ..options },
                |options| {
                    let last = options.eos.len() - 1;
                    Options { eos: options.eos[last..].to_vec(), ..options }
                },
            ]),
        Fault::new(
            "no-eos-id-never-stops",
            "no token ends a row: each of them is compared with null",
        )
        .seen("trl #2528 (a9b54a852)")
        .as_if(&[|options| Options { eos: Vec::new(), ..options }]),
    ]
}

/// Another convention than the one that is declared.
fn declared() -> Vec<Fault> {
    vec![
        Fault::new(
            "unfinished-row-counts-pads",
            "a row that was cut off counts the pads at its end too",
        )
        .seen("verl #3805")
        .as_if(&[|options| instead(options, Unfinished::Keep, Unfinished::All)]),
        Fault::new("eos-left-out", "the token that ends a completion does not count")
            .seen("trlx #401 (a369dad)")
            .as_if(&[|options| Options { include_eos: false, ..options }]),
        Fault::new(
            "eos-test-on-the-last-column",
            "a row has ended only where its last column is an eos",
        )
        .seen("trlx #420 (ec75e99)")
        .under("{unfinished: drop}")
        .gives(&[|case, options, _| {
            ended(case, options, |row| {
                let last = row.last().is_some_and(|id| options.eos.contains(id));
                if last { options.first_eos(row) } else { None }
            })
        }]),
        Fault::new(
            "eos-counted-though-excluded",
            "the token that ends a completion counts, where it is declared not to",
        )
        .seen("an option without effect")
        .under("{include_eos: false}")
        .as_if(&[|options| Options { include_eos: true, ..options }]),
        Fault::new(
            "unfinished-rows-kept",
            "rows without an eos count, where they are declared to be left out",
        )
        .seen("TRL `mask_truncated_completions` without effect")
        .under("{unfinished: drop}")
        .as_if(&[
            |options| instead(options, Unfinished::Drop, Unfinished::Keep),
            |options| instead(options, Unfinished::Drop, Unfinished::All),
        ]),
        Fault::new(
            "unfinished-rows-dropped",
            "rows without an eos are left out, where they are declared to count",
        )
        .seen("the overlong filter of DAPO where it is not declared")
        .as_if(&[|options| Options { unfinished: Unfinished::Drop, ..options }]),
    ]
}

/// A row ends elsewhere.
fn ends() -> Vec<Fault> {
    vec![
        Fault::new(
            "no-eos-taken-for-the-first-token",
            "a row without an eos ends at its first token",
        )
        .seen("plausible: argmax without any")
        .gives(&[|case, options, _| {
            ended(case, options, |row| {
                options.first_eos(row).or(if row.is_empty() { None } else { Some(0) })
            })
        }]),
        Fault::new("eos-at-the-first-token-overlooked", "an eos at position 0 ends no row")
            .seen("plausible: `if index:` for `if index is not None:`")
            .gives(&[|case, options, _| {
                ended(case, options, |row| options.first_eos(row).filter(|first| *first > 0))
            }]),
        Fault::new("last-eos-ends-the-row", "a row ends at its last eos, not at its first")
            .seen("plausible: the position of the end searched from the back")
            .gives(&[|case, options, _| {
                ended(case, options, |row| row.iter().rposition(|id| options.eos.contains(id)))
            }]),
        Fault::new(
            "up-to-the-second-eos",
            "what stands between the first eos and the second counts",
        )
        .seen("plausible: cumsum(eos) <= 1, without the shift that keeps the first")
        .gives(&[|case, options, _| {
            cut(case, |row| match options.first_eos(row) {
                Some(first) => {
                    let second = options.first_eos(&row[first + 1..]);
                    second.map_or(row.len(), |after| first + 1 + after)
                }
                None => length(row, options),
            })
        }]),
        Fault::new("one-token-past-the-eos", "the token behind the end counts too")
            .seen("plausible: a mask shifted for labels, used for tokens")
            .gives(&[|case, options, _| {
                cut(case, |row| {
                    let past = usize::from(options.first_eos(row).is_some());
                    length(row, options) + past
                })
            }]),
        Fault::new(
            "only-the-last-run-of-eos",
            "a row ends at the first of the pads at its end, whatever stands before",
        )
        .seen("the fix of final-eos-dropped-when-pad-is-eos by one token more")
        .under("{pad: 2}")
        .gives(&[|case, options, _| cut(case, |row| without_pads(row, options) + 1)]),
    ]
}

/// Pads taken for something else.
fn pads() -> Vec<Fault> {
    vec![
        Fault::new("pad-taken-for-an-eos", "the first pad ends a row, and counts as its end")
            .seen("plausible: pad and end taken for one id, as where there is no pad")
            .gives(&[|case, options, _| {
                ended(case, options, |row| row.iter().position(|id| !options.is_word(*id)))
            }]),
        Fault::new(
            "ends-at-the-first-pad",
            "a row ends before its first pad, also where tokens follow",
        )
        .seen("plausible: the length is the index of the first pad")
        .gives(&[|case, options, _| {
            cut(case, |row| {
                let pad = row.iter().position(|id| *id == options.pad);
                length(row, options).min(pad.unwrap_or(row.len()))
            })
        }]),
        Fault::new("pads-inside-masked", "a pad between tokens that count does not count")
            .seen("plausible: times (ids != pad), to be safe")
            .gives(&[|case, options, _| {
                let words = |row: &[i64], token| row[token] != options.pad;
                flagged(case, |row, token| token < length(row, options) && words(row, token))
            }]),
    ]
}

/// The right lengths, used or counted wrongly.
fn lengths() -> Vec<Fault> {
    vec![
        Fault::new("padding-mask-returned", "true where there is padding, not where there is none")
            .seen("torchtune truncate_sequence_at_first_stop_token's convention")
            .gives(&[|case, options, _| {
                reference::mask(case, options).mapv(|counts| !counts).into()
            }]),
        Fault::new("right-aligned", "as many flags as tokens, at the right end of the row")
            .seen("plausible: the mask of a batch that is padded on the left")
            .gives(&[|case, options, _| {
                flagged(case, |row, token| token + length(row, options) >= row.len())
            }]),
        Fault::new(
            "lengths-along-the-other-axis",
            "where N = T, column t gets the length of row t",
        )
        .seen("trl 4db63af98, #6095: a broadcast that raises nothing in square batches")
        .gives(&[|case, options, _| {
            let right = reference::mask(case, options);
            if !right.is_square() {
                return right.into();
            }
            let lengths: Vec<usize> =
                right.rows().into_iter().map(|row| row.iter().filter(|m| **m).count()).collect();
            Array2::from_shape_fn(right.dim(), |(_, token)| token < lengths[token]).into()
        }]),
        Fault::new(
            "one-length-for-the-batch",
            "all rows are as long as the longest, or as the shortest",
        )
        .seen("plausible: generation stopped for the batch, not for each row")
        .gives(&[
            |case, options, _| batch_length(case, options, |lengths| lengths.max()),
            |case, options, _| batch_length(case, options, |lengths| lengths.min()),
        ]),
        Fault::new(
            "last-token-of-unfinished-rows-lost",
            "the last token of a row that was cut off is taken for its end, which does not count",
        )
        .seen("plausible: T − 1 for T as the position of an end that is not there")
        .under("{include_eos: false, unfinished: all}")
        .gives(&[|case, options, _| {
            cut(case, |row| {
                let lost = options.first_eos(row).is_none() && !options.include_eos;
                length(row, options).saturating_sub(usize::from(lost))
            })
        }]),
        Fault::new(
            "negative-behind-the-second-eos",
            "1 less the number of ends before each token, not clamped at 0",
        )
        .seen("plausible: 1 - (cumsum(eos) - eos)")
        .gives(&[|case, options, _| {
            let mut mask = reference::mask(case, options).mapv(f64::from);
            for (row, mut mask) in case.tokens.rows().into_iter().zip(mask.rows_mut()) {
                let mut ends = 0.0;
                for (id, flag) in row.iter().zip(&mut mask) {
                    *flag = if ends > 1.0 { 1.0 - ends } else { *flag };
                    ends += f64::from(options.eos.contains(id));
                }
            }
            mask.into()
        }]),
    ]
}

/// Ids that are not held exactly, or not those that are declared.
fn ids() -> Vec<Fault> {
    vec![
        Fault::new(
            "ids-compared-in-bf16",
            "ids are bf16, in which a large id is equal to its neighbours",
        )
        .seen("plausible: a batch cast to half precision, ids and all")
        .under("{eos: [50256], pad: 50256}")
        .gives(&[|case, options, _| {
            stored(case, options, |id| bf16::from_f64(id as f64).to_f64() as i64)
        }]),
        Fault::new(
            "ids-in-sixteen-bits",
            "ids beyond 65535 wrap around, and may come out as an eos",
        )
        .seen("plausible: uint16 token files, for vocabularies of twice the size")
        .gives(&[|case, options, _| stored(case, options, |id| id & 0xffff)]),
        Fault::new("eos-id-hard-coded", "2 ends a row, whatever is declared")
            .seen("an option without effect; Llama 2's id")
            .under("{eos: [3]}")
            .as_if(&[|options| Options { eos: vec![2], ..options }]),
        Fault::new("pad-id-hard-coded", "0 is the pad, whatever is declared")
            .seen("an option without effect; ids.bool() for a mask")
            .under("{pad: 1}")
            .as_if(&[|options| Options { pad: 0, ..options }]),
    ]
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

/// One meaning of `unfinished` taken for another.
fn instead(options: Options, declared: Unfinished, taken: Unfinished) -> Options {
    let same = options.unfinished == declared;
    Options { unfinished: if same { taken } else { options.unfinished }, ..options }
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
    reference::mask(&CompletionMaskCase { tokens }, &options).into()
}
