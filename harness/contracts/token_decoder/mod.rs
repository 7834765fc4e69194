//! The text of the tokens that a model produced.
//!
//! in: `tokens`, integers `[N, T]` → out: `texts`, one string a row
//!
//! A rollout gives token ids; the reward reads text. Tokens are pieces of bytes, not of text: a
//! character may be spread over several of them. A detokeniser that works token by token, tidies
//! up spaces, or takes special tokens out by their names changes what the reward sees, and no
//! reward function can notice.
//!
//! Options:
//!
//! - `vocabulary`, a map from id to piece: the pieces that are generated, in the printable alphabet
//!   of byte-level vocabularies (`Ġ` is a space); those of special tokens as plain text.
//! - `specials`, ids: the special tokens, `pad` and `eos` among them.
//! - `pad`, `eos`, ids: may be equal.
//! - `skip_special`, `true` or `false`: whether special tokens are left out of the text.
//! - `padding_side`, `right` or `left`: where shorter rows are padded.
//!
//! What must hold: the text is that of the pieces' bytes one after the other, special tokens apart,
//! byte for byte: nothing is trimmed, tidied up, normalised or cut, not at an `eos` in the middle
//! either; padding on either side changes nothing (`skip_special`); a batch gives what its rows
//! give alone; bytes that are no UTF-8, as where a completion is cut in the middle of a character,
//! become U+FFFD (one or several) or nothing, never an exception, and leave all that stands around
//! them; the text of two sequences that each end a character is the text of both [one after the
//! other]. Where a skipped special token stands inside a character, its halves may be joined or
//! not.
//!
//! To check a tokenizer of your own, declare some of its pieces: those of `get_vocab()`, with the
//! ids they have. Only these are generated, so a few dozen do; with halves of characters and spaces
//! among them the invariants have something to say.
//!
//! ### Source
//! Byte-level pieces and their alphabet: Radford et al. 2019 (GPT-2, `bytes_to_unicode`).
//! Replacement of malformed bytes: The Unicode Standard, 3.9, and `errors="replace"` or `"ignore"`.

pub mod alphabet;
mod faults;
mod generate;
mod invariants;
mod oracle;
mod reference;

use std::collections::BTreeMap;

use arbitrary::Unstructured;
use ndarray::{Array1, Ix1, Ix2};

use shakedown_core::contract::cuts::Cuts;
use shakedown_core::contract::definition::Definition;
use shakedown_core::contract::options::options;
use shakedown_core::contract::rows::{Rows, along_axes};
use shakedown_core::contract::stage::Stage;
use shakedown_core::contract::{Contract, Parts};
use shakedown_core::generate::axes::Axes;
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::numeric::tolerance::ExpectedTexts;
use shakedown_core::value::choice::choice;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::record;
use shakedown_core::value::text::quoted;

record! {
    /// The inputs of `token-decoder`.
    ///
    /// # Shapes
    /// `N` completions of `T` tokens: `[N, T]`.
    pub struct TokenDecoderCase {
        /// The ids of the tokens.
        pub tokens: A::Int<Ix2>,
    }
}

record! {
    /// The output of `token-decoder`.
    ///
    /// # Shapes
    /// `[N]`.
    pub struct TokenDecoderOutput {
        /// The text of each completion.
        pub texts: A::Text<Ix1>,
    }
}

impl From<Array1<String>> for TokenDecoderOutput {
    fn from(texts: Array1<String>) -> Self {
        Self { texts }
    }
}

impl From<Vec<String>> for TokenDecoderOutput {
    fn from(texts: Vec<String>) -> Self {
        Array1::from_vec(texts).into()
    }
}

choice! {
    /// Where shorter rows are padded.
    pub enum Side {
        /// At the end.
        Right = "right",
        /// At the beginning.
        Left = "left",
    }
}

/// Pieces of a vocabulary by id.
pub type Vocabulary = BTreeMap<i64, String>;

options! {
    check: tokens_agree;
    draw: drawn;

    /// The options of `token-decoder`.
    pub struct Options {
        /// The pieces that are generated, by id: in the printable alphabet of byte-level
        /// vocabularies, as `get_vocab()` gives them (`Ġ` is a space); special ones as plain text.
        pub vocabulary: Vocabulary = vocabulary(PIECES);
        /// The ids of special tokens, `pad` and `eos` among them.
        pub specials: Vec<i64> = vec![0, 1, 2];
        /// The id that fills shorter rows.
        pub pad: i64 = 0;
        /// The id that ends a completion; may be `pad`.
        pub eos: i64 = 1;
        /// `true` or `false`: whether special tokens are left out of the text.
        pub skip_special: bool = true;
        /// `right` or `left`: where shorter rows are padded.
        pub padding_side: Side = Side::Right;
    }
}

/// The pieces of the default vocabulary: special tokens, letters, white space, the name of a
/// special token in parts, characters whole and in halves.
const PIECES: &[&[u8]] = &[
    b"<pad>",
    b"<eos>",
    b"<|im_end|>",
    b"a",
    b"b",
    b" ",
    b" the",
    b".",
    b"\n",
    b"\r",
    b"\0",
    b"<",
    b"eos",
    b">",
    b"\xc3",
    b"\xa9",
    "é".as_bytes(),
    b"e",
    "\u{301}".as_bytes(),
    b"\xf0\x9f",
    b"\x99\x82",
    b" '",
    b"s",
    b"  ",
    "\u{feff}".as_bytes(),
    b"1",
];

/// Pieces under the ids 0, 1, 2 and so on.
fn vocabulary(pieces: &[&[u8]]) -> Vocabulary {
    let pieces = pieces.iter().map(|piece| alphabet::piece(piece));
    (0..).zip(pieces).collect()
}

/// Every id that is named is in the vocabulary, and every piece has bytes.
fn tokens_agree(options: &Options) -> Result<(), (&'static str, String)> {
    if let Some(id) = options.specials.iter().find(|id| !options.vocabulary.contains_key(id)) {
        return Err(("specials", format!("{id} is not in `vocabulary`")));
    }
    for (name, id) in [("pad", options.pad), ("eos", options.eos)] {
        if !options.specials.contains(&id) {
            return Err((name, format!("expected one of `specials`, found {id}")));
        }
    }
    let mut plain = 0;
    for (id, piece) in &options.vocabulary {
        if piece.is_empty() || *id < 0 {
            return Err(("vocabulary", format!("{id} is no id, or has no piece")));
        }
        if options.specials.contains(id) {
            continue;
        }
        plain += 1;
        if alphabet::bytes(piece).is_none() {
            let piece = quoted(piece);
            let message = format!("{id} is {piece}, expected the alphabet of byte-level pieces");
            return Err(("vocabulary", message));
        }
    }
    if plain == 0 {
        return Err(("vocabulary", "expected a piece that is not special".to_owned()));
    }
    Ok(())
}

/// The ids of special tokens are drawn together with the vocabulary.
fn drawn(u: &mut Unstructured<'_>) -> arbitrary::Result<Options> {
    let skip_special = !chance(u, 80)?;
    let padding_side = one(u, Side::ALL)?;
    let (pad, eos) = one(u, &[(0, 1), (1, 1), (0, 0), (2, 1), (1, 2)])?;
    let options = Options { pad, eos, skip_special, padding_side, ..Options::default() };
    if chance(u, 96)? {
        // Special tokens behind the others, with a gap, as real tokenizers add them.
        let last = PIECES.len() as i64 + 100;
        let moved = |id: i64| if id < 3 { id + last } else { id - 3 };
        let vocabulary = options.vocabulary.into_iter().map(|(id, piece)| (moved(id), piece));
        return Ok(Options {
            vocabulary: vocabulary.collect(),
            specials: options.specials.into_iter().map(moved).collect(),
            pad: moved(pad),
            eos: moved(eos),
            ..Options { vocabulary: Vocabulary::new(), specials: Vec::new(), ..options }
        });
    }
    Ok(options)
}

impl Options {
    /// Whether a token is special.
    fn is_special(&self, id: i64) -> bool {
        self.specials.contains(&id)
    }

    /// The bytes of a token.
    ///
    /// # Panics
    /// If it is not in the vocabulary.
    fn bytes(&self, id: i64) -> Vec<u8> {
        let piece = &self.vocabulary[&id];
        let bytes = if self.is_special(id) { None } else { alphabet::bytes(piece) };
        bytes.unwrap_or_else(|| piece.clone().into_bytes())
    }

    /// The ids that are not special.
    fn plain(&self) -> Vec<i64> {
        self.vocabulary.keys().copied().filter(|id| !self.is_special(*id)).collect()
    }
}

/// The contract: the text of tokens.
#[derive(Clone, Copy, Debug)]
pub struct TokenDecoder;

impl Definition for TokenDecoder {
    type Case = TokenDecoderCase;
    type Output = TokenDecoderOutput;
    type Options = Options;
}

impl Contract for TokenDecoder {
    const ID: &'static str = "token-decoder";
    const STAGE: Stage = Stage::Decoding;
    const DOC: &'static str = include_str!("mod.rs");
    const EXAMPLE: &'static str = include_str!("example.py");
    const AXES: Axes = Axes::new(&[("tokens", "NT"), ("texts", "N")]);
    const REGRESSIONS: &'static [(&'static str, &'static str)] = crate::regressions::TOKEN_DECODER;
    const PARTS: Parts<Self> = Parts {
        draw: |u, options, _| generate::draw(u, options),
        corners: |options, _| generate::corners(options),
        valid: |case, options, _| generate::valid(case, options),
        classes: generate::classes,
        reference: |case, options, _| {
            let rows = case.tokens.rows().into_iter();
            rows.map(|row| reference::text(&row.to_vec(), options)).collect::<Vec<_>>().into()
        },
        invariants: invariants::all,
        faults: faults::all,
    };

    fn small(options: &Options, _: Dtype) -> Vec<TokenDecoderCase> {
        generate::small(options)
    }

    fn simpler(case: &TokenDecoderCase, options: &Options, _: Dtype) -> Vec<TokenDecoderCase> {
        generate::simpler(case, options)
    }

    fn oracle_texts(case: &TokenDecoderCase, options: &Options) -> Vec<ExpectedTexts> {
        let rows = case.tokens.rows().into_iter();
        let texts = rows.map(|row| oracle::text(&row.to_vec(), options)).collect();
        vec![ExpectedTexts { field: "texts", texts }]
    }

    fn cuts() -> Option<&'static dyn Cuts> {
        Some(along_axes::<Self>())
    }
}

impl Rows for TokenDecoder {}
