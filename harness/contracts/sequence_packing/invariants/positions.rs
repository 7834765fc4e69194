//! Positions count up from where a document begins.
//!
//! ### Claim
//! In each segment positions begin at 0 and rise by one; a piece may begin where it stood.
//!
//! ### Why it matters
//! A model reads word order from them, and attention kernels cut a row where they fall back to 0. A
//! document that begins at position 1000 looks like the end of a long one.
//!
//! ### Does not hold for
//! Padding, at which anything may stand. With `split_positions: any` a piece may begin at its place
//! in its document; with `cut: anywhere` too it is not known which that is.
//!
//! ### Bugs it has caught
//! unsloth #1066, #3699 and #4100, transformers #22161: one list of positions for all rows.
//!
//! ### Example
//! ```diff
//! -            positions[row] = torch.arange(capacity)
//! +            positions[here] = torch.arange(end - begin)
//! ```

use super::segments;
use crate::sequence_packing::oracle::pieces;
use crate::sequence_packing::{Overlong, SequencePacking, SplitPositions};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SequencePacking> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "positions-of-the-first-row",
        "positions-run-on",
        "positions-from-one",
        "positions-of-the-document",
        "one-position-for-a-segment",
    ],
    check,
);

fn check(probe: &mut Probe<'_, SequencePacking>) -> Outcome {
    let returned = probe.finite_output()?;
    let output = &returned.output;
    let Some(positions) = &output.positions else { return Err(Stop::Vacuous) };
    let options = probe.options;
    let split = options.overlong == Overlong::Split;
    let any = split && options.split_positions == SplitPositions::Any;
    let pieces = pieces(probe.case, options);
    for segment in segments(&output.segments) {
        let (row, from) = (segment.row, segment.from);
        let first = positions[[row, from]];
        let tokens = segment.of(&output.packed);
        let begins = |begin: usize| first == begin as f64;
        let allowed = match any {
            _ if first == 0.0 => true,
            true if options.cuts_anywhere() => first > 0.0 && first.fract() == 0.0,
            true => {
                pieces.iter().any(|one| Some(&one.tokens) == tokens.as_ref() && begins(one.begin))
            }
            false => false,
        };
        if !allowed {
            let place = segment.place();
            broken!(
                "positions[{row}, {from}] is {}, expected 0: a segment begins ({place})",
                number(first)
            );
        }
        for token in from + 1..segment.to {
            let (found, expected) = (positions[[row, token]], first + (token - from) as f64);
            if found != expected {
                let [found, expected] = [found, expected].map(number);
                broken!("positions[{row}, {token}] is {found}, expected {expected}: one more");
            }
        }
    }
    Ok(())
}
