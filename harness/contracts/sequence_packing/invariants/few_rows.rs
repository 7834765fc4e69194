//! There are not many more rows than are needed.
//!
//! ### Claim
//! There are at most 2·⌈tokens / `capacity`⌉ rows.
//!
//! ### Why it matters
//! Packing is there to save steps. One that leaves rows half empty saves none, and its batches look
//! the same.
//!
//! ### Does not hold for
//! Nothing: whoever puts a document into the row before, where it fits, keeps the bound. Tokens
//! that were cut off do not count.
//!
//! ### Bugs it has caught
//! One document a row, as without packing.
//!
//! ### Example
//! ```diff
//! -            if max(lengths) > room:
//! +            if end - begin > room:
//!                  rows.append([])
//! ```

use crate::sequence_packing::SequencePacking;
use crate::sequence_packing::oracle::{most_rows, pieces, total};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SequencePacking> =
    Rule::new(Pitfall::Configuration, &["one-document-a-row", "room-for-the-longest"], check);

fn check(probe: &mut Probe<'_, SequencePacking>) -> Outcome {
    let returned = probe.finite_output()?;
    let tokens = total(&pieces(probe.case, probe.options));
    let (found, most) = (returned.output.packed.nrows(), most_rows(tokens, probe.options));
    if found > most {
        let capacity = probe.options.capacity;
        broken!("{tokens} tokens are in {found} rows of {capacity}, expected at most {most}");
    }
    Ok(())
}
