//! No special token is left.
//!
//! ### Claim
//! No artefact stands in a text.
//!
//! ### Why it matters
//! A reward function that compares strings sees `42<eos>` and scores 0, for every completion that
//! ends.
//!
//! ### Does not hold for
//! Components that declare other `artefacts`.
//!
//! ### Bugs it has caught
//! AReaL #846: one of several stop tokens removed. Padding on the left that only a right strip was
//! written for.

use super::super::{CompletionDecoder, Options};
use crate::broken;
use crate::contract::Pitfall;
use crate::invariant::{Outcome, Probe, Stop};
use crate::place::Place;
use crate::text::quoted;

pub(super) const PITFALL: Pitfall = Pitfall::DecodingStringProcessing;
pub(super) const CATCHES: &[&str] = &[
    "one-of-several-stops-removed",
    "artefacts-removed-at-the-end-only",
    "only-one-artefact-known",
    "artefacts-removed-once-each",
];

pub(super) fn applies(options: &Options, _: Place) -> bool {
    !options.artefacts.is_empty()
}

pub(super) fn check(probe: &mut Probe<'_, CompletionDecoder>) -> Outcome {
    let returned = probe.output()?;
    let mut checked = false;
    for (row, text) in returned.output.texts.iter().enumerate() {
        for artefact in &probe.options.artefacts {
            checked |= probe.case.completions[row].contains(&**artefact);
            if text.contains(&**artefact) {
                broken!("texts[{row}] is {}, with {} in it", quoted(text), quoted(artefact));
            }
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
