//! Each document is there once, token for token.
//!
//! ### Claim
//! The segments are the documents, or the pieces of them that are declared, each once.
//!
//! ### Why it matters
//! A document that is lost is not trained, one that is there twice counts double, and one that is
//! cut or joined teaches another text. The loss goes down all the same.
//!
//! ### Does not hold for
//! The order of documents and rows, which is free. With `cut: anywhere` only the tokens are
//! compared, not where they stand.
//!
//! ### Bugs it has caught
//! ms-swift #9771: a split document comes back as a list, which the packer takes for none.
//!
//! ### Example
//! ```diff
//! -    rows = pack([tokens.shape[1]] * len(tokens), capacity)
//! +    rows = pack(lengths.tolist(), capacity)
//! ```

use super::{segments, unmatched, whole};
use crate::sequence_packing::SequencePacking;
use crate::sequence_packing::oracle::pieces;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SequencePacking> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "split-pieces-lost",
        "separator-inserted",
        "equal-documents-once",
        "last-row-dropped",
        "last-document-dropped",
        "a-document-twice",
        "padding-packed-too",
        "pads-dropped-inside",
        "truncated-on-the-left",
        "truncated-one-short",
        "padding-is-a-segment",
        "rest-dropped",
        "one-token-short",
        "truncated-though-split",
        "split-though-truncated",
        "cut-anywhere",
        "row-dropped-when-full",
    ],
    check,
);

fn check(probe: &mut Probe<'_, SequencePacking>) -> Outcome {
    let returned = probe.finite_output()?;
    let output = &returned.output;
    let pieces = pieces(probe.case, probe.options);
    let segments = segments(&output.segments);
    if probe.options.cuts_anywhere() {
        let found = segments.iter().filter_map(|one| one.of(&output.packed));
        let found: Vec<i64> = found.flatten().collect();
        let expected: Vec<i64> = pieces.into_iter().flat_map(|piece| piece.tokens).collect();
        return match unmatched(&found, &expected) {
            (Some(id), _) => {
                broken!("the id {id} stands more often in the rows than in the documents")
            }
            (_, Some(id)) => {
                broken!("the id {id} stands more often in the documents than in the rows")
            }
            (None, None) => Ok(()),
        };
    }
    let mut found: Vec<Vec<i64>> = Vec::new();
    for segment in &segments {
        match segment.of(&output.packed) {
            Some(tokens) => found.push(tokens),
            None => {
                let at = [segment.row, segment.from];
                let ids = (segment.from..segment.to).map(|token| output.packed[[at[0], token]]);
                let id = ids.into_iter().find(|id| whole(*id).is_none()).unwrap_or(f64::NAN);
                broken!("{} has the id {}, expected a whole number", segment.place(), number(id));
            }
        }
    }
    let expected: Vec<Vec<i64>> = pieces.iter().map(|piece| piece.tokens.clone()).collect();
    let (extra, missing) = unmatched(&found, &expected);
    let (count, wanted) = (found.len(), expected.len());
    if let Some(missing) = missing {
        let at = pieces.iter().find(|piece| piece.tokens == missing).expect("it is one of them");
        let document = at.document;
        let instead = extra.map(|extra| format!("; {extra:?} is one")).unwrap_or_default();
        broken!(
            "{missing:?} of document {document} is no segment{instead}: {count} segments, expected \
             {wanted}"
        );
    }
    if let Some(extra) = extra {
        broken!("{extra:?} is a segment once more than a document: {count}, expected {wanted}");
    }
    Ok(())
}
