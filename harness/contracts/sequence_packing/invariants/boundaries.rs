//! It can be told where each document begins.
//!
//! ### Claim
//! The segments of a row are 1, 2, … in order, one for each document or piece, and none for two.
//!
//! ### Why it matters
//! Attention and positions are kept apart by these numbers. Two documents with one number see each
//! other, and the second is trained on a context that it will never have.
//!
//! ### Does not hold for
//! How many there are with `cut: anywhere`, where it is open what a piece is.
//!
//! ### Bugs it has caught
//! prime-rl #2392: a boundary is where a position is 0, and second pieces of documents have none.
//!
//! ### Example
//! Under `overlong="split", split_positions="any"`:
//! ```diff
//! -            positions[here] = torch.arange(begin, end)
//! -            segments[row, :stop] = (positions[row, :stop] == 0).cumsum(0)
//! +            positions[here] = torch.arange(end - begin)
//! +            segments[here] = number
//! ```

use super::segments;
use crate::sequence_packing::SequencePacking;
use crate::sequence_packing::oracle::pieces;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SequencePacking> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "boundary-only-at-zero",
        "one-segment-for-the-row",
        "segments-from-zero",
        "segments-counted-on",
        "one-token-documents-joined",
        "segment-per-parity",
        "boundary-one-late",
        "pieces-in-one-segment",
    ],
    check,
);

fn check(probe: &mut Probe<'_, SequencePacking>) -> Outcome {
    let returned = probe.finite_output()?;
    let numbers = &returned.output.segments;
    for (row, numbers) in numbers.rows().into_iter().enumerate() {
        let mut before = 0.0;
        for (token, found) in numbers.iter().enumerate() {
            // Where padding stands is the business of `padding`.
            if *found == 0.0 {
                break;
            }
            let goes_on = *found == before && token > 0;
            if !goes_on && *found != before + 1.0 {
                let [found, next] = [*found, before + 1.0].map(number);
                let or = if token > 0 { format!("{} or ", number(before)) } else { String::new() };
                broken!("segments[{row}, {token}] is {found}, expected {or}{next}");
            }
            before = *found;
        }
    }
    if !probe.options.cuts_anywhere() {
        let pieces = pieces(probe.case, probe.options);
        let (found, expected) = (segments(numbers).len(), pieces.len());
        if found != expected {
            broken!("there are {found} segments, expected {expected}: as many as documents");
        }
    }
    Ok(())
}
