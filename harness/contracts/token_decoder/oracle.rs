//! The definition of `token-decoder`: the bytes of the pieces, one after the other, as text.

use super::Options;
use shakedown_core::numeric::tolerance::Wanted;

/// What is expected of one row.
pub(super) fn text(row: &[i64], options: &Options) -> Wanted {
    let mut accepted: Vec<Option<String>> = Vec::new();
    let mut accept = |text: String| {
        let text = Some(text);
        if !accepted.contains(&text) {
            accepted.push(text);
        }
    };
    let parts = parts(row, options);
    let joined = vec![parts.concat()];
    for parts in [joined, parts] {
        for malformed in MALFORMED {
            accept(parts.iter().map(|part| decoded(part, malformed)).collect());
        }
    }
    Wanted::OneOf(accepted)
}

/// The bytes of a row, in parts: a skipped special token ends one.
pub(super) fn parts(row: &[i64], options: &Options) -> Vec<Vec<u8>> {
    let mut parts = vec![Vec::new()];
    for id in row {
        if options.skip_special && options.is_special(*id) {
            parts.push(Vec::new());
        } else if let Some(part) = parts.last_mut() {
            part.extend(options.bytes(*id));
        }
    }
    parts
}

/// What stands for bytes that are no UTF-8, given how many there are and whether they are the
/// last ones: one U+FFFD for each part of a character, nothing, one for each byte, or one but not
/// at the end.
const MALFORMED: [fn(usize, bool) -> usize; 4] =
    [|_, _| 1, |_, _| 0, |bytes, _| bytes, |_, last| usize::from(!last)];

/// The text of some bytes.
fn decoded(bytes: &[u8], malformed: fn(usize, bool) -> usize) -> String {
    let mut text = String::new();
    let mut until = 0;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        until += chunk.valid().len() + chunk.invalid().len();
        if !chunk.invalid().is_empty() {
            let count = malformed(chunk.invalid().len(), until == bytes.len());
            text.extend(std::iter::repeat_n('\u{fffd}', count));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids of pieces of the default vocabulary.
    fn ids(pieces: &[&[u8]]) -> Vec<i64> {
        let place = |piece: &&[u8]| super::super::PIECES.iter().position(|known| known == piece);
        pieces.iter().map(|piece| place(piece).expect("a piece") as i64).collect()
    }

    fn accepted(pieces: &[&[u8]], options: &Options) -> Vec<String> {
        match text(&ids(pieces), options) {
            Wanted::OneOf(texts) => texts.into_iter().flatten().collect(),
            Wanted::Pieces(_) | Wanted::Open => Vec::new(),
        }
    }

    #[test]
    fn halves_of_a_character_are_put_together() {
        let options = Options::default();
        assert_eq!(
            accepted(&[b"a", b"\xf0\x9f", b"\x99\x82", b" the", b"."], &options),
            ["a🙂 the."]
        );
        assert_eq!(accepted(&[b"\xc3", b"\xa9"], &options), ["é"]);
    }

    #[test]
    fn half_a_character_is_replaced_or_left_out() {
        let options = Options::default();
        let found = accepted(&[b"a", b"\xf0\x9f"], &options);
        assert_eq!(found, ["a\u{fffd}", "a", "a\u{fffd}\u{fffd}"]);
        let found = accepted(&[b"\xc3", b"a", b"\xc3"], &options);
        assert_eq!(found, ["\u{fffd}a\u{fffd}", "a", "\u{fffd}a"]);
    }

    #[test]
    fn special_tokens_are_skipped_or_written_out() {
        let skipped = Options::default();
        assert_eq!(accepted(&[b"a", b"<eos>", b"b", b"<pad>"], &skipped), ["ab"]);
        let found = accepted(&[b"\xc3", b"<eos>", b"\xa9"], &skipped);
        assert!(found.contains(&"é".to_owned()) && found.contains(&"\u{fffd}\u{fffd}".to_owned()));
        let written = Options { skip_special: false, ..Options::default() };
        assert_eq!(accepted(&[b"a", b"<eos>", b"<pad>"], &written), ["a<eos><pad>"]);
    }

    #[test]
    fn the_name_of_a_special_token_is_text() {
        assert_eq!(accepted(&[b"<", b"eos", b">"], &Options::default()), ["<eos>"]);
    }
}
