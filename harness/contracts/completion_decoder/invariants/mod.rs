//! What must hold of `completion-decoder`: the laws that apply, and one file for each of its own.

use crate::completion_decoder::CompletionDecoder;
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<CompletionDecoder>> {
    let mut all = laws::universal();
    all.extend([
        laws::oracle::law().catching(&[
            "greedy-think-block",
            "unclosed-block-kept",
            "block-opened-in-the-prompt-kept",
            "first-closing-tag-taken",
            "artefact-stripped-as-characters",
        ]),
        laws::row_permutation::law().catching(&["first-row-for-all"]),
        laws::row_split::law().catching(&["rows-without-text-left-out-of-place"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    CompletionDecoder;
    no_artefacts,
    kept_markers,
    plain_text,
    nothing_invented,
    non_empty,
    idempotent,
    padding_irrelevant,
    opening_tag_irrelevant,
    reasoning_removed,
}
