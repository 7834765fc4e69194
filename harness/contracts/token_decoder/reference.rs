//! The reference implementation of `token-decoder`, as a tokenizer does it.

use super::Options;

/// The text of one row.
pub(super) fn text(row: &[i64], options: &Options) -> String {
    let kept = row.iter().filter(|id| !(options.skip_special && options.is_special(**id)));
    let bytes: Vec<u8> = kept.flat_map(|id| options.bytes(*id)).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
