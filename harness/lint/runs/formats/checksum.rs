//! The checksums of logs: CRC-32C as TensorBoard writes it, masked, and CRC-32 as W&B does.

/// A table for a reversed polynomial.
const fn table(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ polynomial } else { value >> 1 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
}

static CASTAGNOLI: [u32; 256] = table(0x82f6_3b78);
static IEEE: [u32; 256] = table(0xedb8_8320);

fn sum<'a>(table: &[u32; 256], bytes: impl IntoIterator<Item = &'a u8>) -> u32 {
    let step = |sum: u32, byte: &u8| (sum >> 8) ^ table[usize::from(sum as u8 ^ byte)];
    !bytes.into_iter().fold(!0, step)
}

/// CRC-32C of bytes, masked so that a checksum of checksums is none that is seen.
pub(super) fn masked(bytes: &[u8]) -> u32 {
    mask(sum(&CASTAGNOLI, bytes))
}

fn mask(sum: u32) -> u32 {
    sum.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Whether a chunk of a LevelDB log has this checksum: W&B's CRC-32, or LevelDB's own.
pub(super) fn is_of_chunk(checksum: u32, kind: u8, data: &[u8]) -> bool {
    let bytes = || std::iter::once(&kind).chain(data);
    sum(&IEEE, bytes()) == checksum || mask(sum(&CASTAGNOLI, bytes())) == checksum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_the_published_ones() {
        assert_eq!(sum(&CASTAGNOLI, b"123456789"), 0xe306_9283);
        assert_eq!(sum(&IEEE, b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_chunk_has_its_kind_in_its_checksum() {
        assert!(is_of_chunk(0xcbf4_3926, b'1', b"23456789"));
        assert!(is_of_chunk(mask(0xe306_9283), b'1', b"23456789"));
        assert!(!is_of_chunk(0xcbf4_3926, b'2', b"23456789"));
    }
}
