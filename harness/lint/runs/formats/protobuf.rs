//! Messages of protocol buffers, field by field. Lengths are checked against what is there.

/// A value of a field, as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// A number of variable length.
    Varint(u64),
    /// Eight bytes.
    Eight([u8; 8]),
    /// Four bytes.
    Four([u8; 4]),
    /// A text, a message or packed numbers.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The bytes, where it has a length.
    pub(super) fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The text, where it is one.
    pub(super) fn text(self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }
}

/// The fields of a message with their numbers; they end where the message is malformed.
pub(super) fn fields(message: &[u8]) -> Fields<'_> {
    Fields { rest: message }
}

/// See [`fields`].
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<(u64, Value<'a>)> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Eight(self.take(8)?.try_into().ok()?),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Four(self.take(4)?.try_into().ok()?),
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_every_kind_are_read() {
        let message = [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1d, 0, 0, 0x80, 0x3f];
        let found: Vec<(u64, Value)> = fields(&message).collect();
        let expected =
            [(1, Value::Varint(150)), (2, Value::Bytes(b"hi")), (3, Value::Four([0, 0, 128, 63]))];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_length_beyond_the_end_ends_the_message() {
        assert_eq!(fields(&[0x12, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]).count(), 0);
        assert_eq!(fields(&[0xff; 20]).count(), 0);
        assert_eq!(fields(&[0x0b]).count(), 0);
    }
}
