//! Labels went with their tokens.
//!
//! ### Claim
//! Each label is that of a trained token of its document, and `ignore` elsewhere.
//!
//! ### Why it matters
//! Prompts are not trained, and the last token of a document says nothing of the first one of the
//! next. One place off, a model learns to predict its own prompts, and unlearns where to stop.
//!
//! ### Does not hold for
//! `cut: anywhere`, where a label can be at a place of its own; segments that are no documents,
//! which are the business of `every-document-once`.
//!
//! ### Bugs it has caught
//! torchtune #2613: one shift over a packed row. OpenRLHF #781: masks of later documents one early.
//!
//! ### Example
//! Under `shift="next"`:
//! ```diff
//! -        labels = F.pad(labels[:, 1:], (0, 1), value=ignore)
//! +        last = segments != F.pad(segments[:, 1:], (0, 1))
//! +        labels = F.pad(labels[:, 1:], (0, 1), value=ignore).masked_fill(last, ignore)
//! ```

use super::segments;
use crate::sequence_packing::oracle::{Piece, pieces};
use crate::sequence_packing::{Options, SequencePacking};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SequencePacking> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "label-across-documents",
        "mask-starts-one-early",
        "mask-ignored",
        "mask-turned-round",
        "mask-of-the-first-document",
        "masks-left-in-the-order-of-the-input",
        "shift-ignored",
        "shifted-twice",
        "shifted-the-other-way",
        "first-label-kept",
        "first-label-lost",
        "pad-ids-not-trained",
        "ignore-hard-coded",
        "only-what-follows-the-prompt",
        "last-label-lost",
    ],
    check,
)
.under(|options: &Options| !options.cuts_anywhere());

fn check(probe: &mut Probe<'_, SequencePacking>) -> Outcome {
    let returned = probe.finite_output()?;
    let output = &returned.output;
    let Some(labels) = &output.labels else { return Err(Stop::Vacuous) };
    // Of two documents with the same tokens either may be meant, but not one of them twice.
    let mut left: Vec<Piece> = pieces(probe.case, probe.options);
    let mut checked = false;
    for segment in segments(&output.segments) {
        let tokens = segment.of(&output.packed);
        let same = left.iter().position(|piece| Some(&piece.tokens) == tokens.as_ref());
        let Some(same) = same else { continue };
        let found = segment.of(labels);
        let own = left.iter().position(|piece| {
            Some(&piece.tokens) == tokens.as_ref() && Some(&piece.labels) == found.as_ref()
        });
        let Some(own) = own else {
            let expected = &left[same];
            let at = (segment.from..segment.to).zip(&expected.labels);
            let wrong = at.map(|(token, label)| (token, labels[[segment.row, token]], *label));
            let wrong = wrong.into_iter().find(|(_, found, label)| *found != *label as f64);
            let (token, found, label) = wrong.expect("they are not the same");
            let (row, document, found) = (segment.row, expected.document, number(found));
            broken!("labels[{row}, {token}] is {found}, expected {label} (document {document})");
        };
        left.swap_remove(own);
        checked = true;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
