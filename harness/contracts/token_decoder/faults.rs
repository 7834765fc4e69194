//! Known wrong behaviours of `token-decoder`: real bugs, and conventions mistaken for others.

use ndarray::s;

use super::{Options, TokenDecoder, TokenDecoderCase, TokenDecoderOutput, reference};

type Fault = shakedown_core::contract::fault::Fault<TokenDecoder>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [pieces(), white_space(), bytes(), specials(), cuts()];
    themes.into_iter().flatten().collect()
}

/// The text is not that of the pieces' bytes.
fn pieces() -> Vec<Fault> {
    vec![
        Fault::new(
            "token-by-token",
            "every token is decoded on its own: characters in several tokens are lost",
        )
        .seen("exo #1691: `tokenizer.decode([id])` for each id of a stream")
        .gives(&[|case, options, _| {
            each(case, |row| row.iter().map(|id| reference::text(&[*id], options)).collect())
        }]),
        Fault::new("spaces-between-tokens", "a space stands between the pieces")
            .seen("plausible: `\" \".join(...)`, or a decoder of whole words")
            .gives(&[|case, options, _| {
                each(case, |row| {
                    let texts = row.iter().map(|id| reference::text(&[*id], options));
                    texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
                })
            }]),
        Fault::new(
            "pieces-for-their-bytes",
            "the letters of the vocabulary stand in the text: `Ġthe`",
        )
        .seen("plausible: `\"\".join(tokenizer.convert_ids_to_tokens(ids))`")
        .gives(&[|case, options, _| {
            each(case, |row| {
                let kept = row.iter().filter(|id| !skipped(**id, options));
                kept.map(|id| options.vocabulary[id].as_str()).collect()
            })
        }]),
    ]
}

/// White space, and characters that look alike.
fn white_space() -> Vec<Fault> {
    vec![
        Fault::new("spaces-tidied-up", "spaces before full stops and apostrophes are taken out")
            .seen(
                "transformers #31187, #32575, #44915: `clean_up_tokenization_spaces`, \
                 long the default",
            )
            .gives(&[|case, options, _| {
                changed(case, options, |text| text.replace(" .", ".").replace(" '", "'"))
            }]),
        Fault::new("white-space-trimmed", "white space at the ends is lost")
            .seen("plausible: `.strip()` in the detokeniser")
            .gives(&[|case, options, _| changed(case, options, |text| text.trim().to_owned())]),
        Fault::new("first-space-lost", "the space in front of the first word is lost")
            .seen("a SentencePiece decoder for byte-level pieces")
            .gives(&[|case, options, _| {
                changed(case, options, |text| text.strip_prefix(' ').unwrap_or(&text).to_owned())
            }]),
        Fault::new("spaces-collapsed", "two spaces become one")
            .seen(
                "plausible: `\" \".join(text.split(\" \"))` and its relatives; indented \
                 code is lost",
            )
            .gives(&[|case, options, _| changed(case, options, |text| text.replace("  ", " "))]),
        Fault::new("accents-composed", "a letter and its accent become one character")
            .seen("plausible: NFC, the normalisation that belongs before the tokenizer")
            .gives(&[|case, options, _| {
                changed(case, options, |text| text.replace("e\u{301}", "é"))
            }]),
        Fault::new("line-ends-converted", "a carriage return becomes a line feed")
            .seen("plausible: universal line ends, where the text goes through a file")
            .gives(&[|case, options, _| {
                changed(case, options, |text| text.replace("\r\n", "\n").replace('\r', "\n"))
            }]),
    ]
}

/// What is no text to a string of another kind, or no UTF-8.
fn bytes() -> Vec<Fault> {
    vec![
        Fault::new("cut-at-a-nul", "the text ends at a NUL")
            .seen("plausible: a string of C on the way")
            .gives(&[|case, options, _| {
                changed(case, options, |text| text.split('\0').next().unwrap_or("").to_owned())
            }]),
        Fault::new("byte-order-mark-lost", "a byte order mark at the beginning is lost")
            .seen("plausible: decoded as `utf-8-sig`")
            .gives(&[|case, options, _| {
                let mark = '\u{feff}';
                changed(case, options, |text| text.strip_prefix(mark).unwrap_or(&text).to_owned())
            }]),
        Fault::new("malformed-loses-the-text", "one byte that is no UTF-8 empties the text")
            .seen("mlx-vlm #835: `errors=\"strict\"`; here the exception is caught")
            .gives(&[|case, options, _| {
                let strict = |text: String| Some(text).filter(|text| !text.contains('\u{fffd}'));
                changed(case, options, |text| strict(text).unwrap_or_default())
            }]),
        Fault::new("malformed-cuts-the-text", "the text ends at the first byte that is no UTF-8")
            .seen("plausible: what comes before the error is taken for all")
            .gives(&[|case, options, _| {
                let first = |text: String| text.split('\u{fffd}').next().unwrap_or("").to_owned();
                changed(case, options, first)
            }]),
        Fault::new(
            "letters-lost-with-replacements",
            "what is cut from the end because of U+FFFD takes a letter with it",
        )
        .seen("plausible: `text[:-2]` for an incomplete character")
        .gives(&[|case, options, _| {
            changed(case, options, |mut text| {
                if text.ends_with('\u{fffd}') {
                    text.pop();
                    text.pop();
                }
                text
            })
        }]),
    ]
}

/// Special tokens are written out, skipped or looked for in the text.
fn specials() -> Vec<Fault> {
    vec![
        Fault::new(
            "special-tokens-kept",
            "special tokens are written out, where they are to be skipped",
        )
        .seen("plausible: `skip_special_tokens` forgotten")
        .as_if(&[|options| Options { skip_special: false, ..options }]),
        Fault::new("special-tokens-lost", "special tokens are skipped, where they are to be kept")
            .seen("an answer tag that is a special token vanishes: skip_special_tokens=True")
            .under("{skip_special: false}")
            .as_if(&[|options| Options { skip_special: true, ..options }]),
        Fault::new("only-pads-skipped", "of the special tokens only the pad is skipped")
            .seen("TRL decode_and_strip_padding, as it was")
            .as_if(&[|options| {
                let pad = vec![options.pad];
                let specials = if options.skip_special { pad } else { options.specials };
                Options { specials, ..options }
            }]),
        Fault::new(
            "names-taken-out-of-the-text",
            "the name of a special token is taken out where it is plain text",
        )
        .seen("plausible: `.replace(tokenizer.eos_token, \"\")`")
        .gives(&[|case, options, _| {
            changed(case, options, |text| {
                let names = options.specials.iter().map(|id| &options.vocabulary[id]);
                names.fold(text, |text, name| text.replace(name.as_str(), ""))
            })
        }]),
    ]
}

/// Tokens are cut from a row.
fn cuts() -> Vec<Fault> {
    vec![
        Fault::new(
            "cut-at-the-first-eos",
            "what follows an eos is lost; where pads are eos and stand left, everything",
        )
        .seen("plausible: `ids[:ids.index(eos)]`; pad == eos with padding on the left")
        .gives(&[|case, options, _| {
            each(case, |row| {
                let end = row.iter().position(|id| *id == options.eos).unwrap_or(row.len());
                reference::text(&row[..end], options)
            })
        }]),
        Fault::new(
            "last-token-cut-although-no-eos",
            "the last token is cut whether it is an eos or not",
        )
        .seen("vLLM #3016, #3150, #3672: the stop string is cut although it is absent")
        .on(&[|case, _| case.tokens.slice_collapse(s![.., ..-1])]),
        Fault::new("first-token-cut", "the first token is taken for one that begins a sequence")
            .seen("plausible: `ids[1:]`, where the tokenizer adds none")
            .on(&[|case, _| case.tokens.slice_collapse(s![.., 1..])]),
        Fault::new("id-zero-skipped", "the token of id 0 is lost")
            .seen("plausible: `if id` for `if id is not None`, or 0 taken for the pad")
            .under(
                "{vocabulary: {0: a, 1: b, 2: <pad>, 3: <eos>}, specials: [2, 3], pad: 2, eos: 3}",
            )
            .gives(&[|case, options, _| {
                each(case, |row| {
                    let kept: Vec<i64> = row.iter().copied().filter(|id| *id != 0).collect();
                    reference::text(&kept, options)
                })
            }]),
        Fault::new(
            "length-of-the-first-row",
            "every row is cut to the tokens that the first one has before its pads",
        )
        .seen("plausible: one length for the batch")
        .on(&[|case, options| {
            let first = case.tokens.row(0);
            let pads = first.iter().rev().take_while(|id| **id == options.pad).count();
            let length = first.len() - pads;
            case.tokens.slice_collapse(s![.., ..length]);
        }]),
    ]
}

/// Whether a token is left out of the text.
fn skipped(id: i64, options: &Options) -> bool {
    options.skip_special && options.specials.contains(&id)
}

/// What each row gives.
fn each(case: &TokenDecoderCase, text: impl Fn(&[i64]) -> String) -> TokenDecoderOutput {
    let rows = case.tokens.rows().into_iter();
    rows.map(|row| text(&row.to_vec())).collect::<Vec<_>>().into()
}

/// The right texts, each changed.
fn changed(
    case: &TokenDecoderCase,
    options: &Options,
    change: impl Fn(String) -> String,
) -> TokenDecoderOutput {
    each(case, |row| change(reference::text(row, options)))
}
