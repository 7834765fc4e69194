//! The alphabet in which byte-level vocabularies write their pieces: one printable character for
//! each byte.
//!
//! Bytes that print in Latin-1 stand for themselves; the others, in order, for the characters from
//! U+0100 on: a space is `Ġ`, a line feed `Ċ`.

/// Whether a byte stands for itself.
fn prints(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff)
}

/// The bytes that do not, in order.
fn others() -> impl Iterator<Item = u8> {
    (0..=u8::MAX).filter(|byte| !prints(*byte))
}

/// The piece that some bytes are written as.
pub fn piece(bytes: &[u8]) -> String {
    let letter = |byte: &u8| match others().position(|other| other == *byte) {
        Some(place) => ('\u{100}'..).nth(place).unwrap_or_default(),
        None => char::from(*byte),
    };
    bytes.iter().map(letter).collect()
}

/// The bytes that a piece stands for; `None` where it is not of the alphabet.
pub fn bytes(piece: &str) -> Option<Vec<u8>> {
    let byte = |c: char| match u8::try_from(u32::from(c)) {
        Ok(byte) => Some(byte).filter(|byte| prints(*byte)),
        Err(_) => others().nth(u32::from(c) as usize - 0x100),
    };
    piece.chars().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_letter() {
        for byte in 0..=u8::MAX {
            let piece = piece(&[byte]);
            assert_eq!(piece.chars().count(), 1);
            assert_eq!(bytes(&piece), Some(vec![byte]));
        }
    }

    #[test]
    fn the_letters_are_those_of_known_vocabularies() {
        assert_eq!(piece(b" the\n\t\r\0"), "ĠtheĊĉčĀ");
        assert_eq!(piece("é🙂".as_bytes()), "Ã©ðŁĻĤ");
        assert_eq!(piece(&[0x7f, 0xad]), "ġŃ");
        assert_eq!(bytes("a b"), None);
        assert_eq!(bytes("答"), None);
    }
}
