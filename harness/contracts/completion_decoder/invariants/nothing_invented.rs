//! A text is made of pieces of its completion.
//!
//! ### Claim
//! The characters of a text stand in its completion, in the same order.
//!
//! ### Why it matters
//! What the reward function sees must be what the model wrote. A decoder that completes tags or
//! changes letters rewards what was never sampled.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! Closing tags added to truncated completions; letters made small.

use super::super::{CompletionDecoder, Options};
use crate::broken;
use crate::contract::Pitfall;
use crate::invariant::{Outcome, Probe};
use crate::place::Place;
use crate::text::quoted;

pub(super) const PITFALL: Pitfall = Pitfall::DecodingStringProcessing;
pub(super) const CATCHES: &[&str] = &["lower-case"];

pub(super) fn applies(_: &Options, _: Place) -> bool {
    true
}

pub(super) fn check(probe: &mut Probe<'_, CompletionDecoder>) -> Outcome {
    let returned = probe.output()?;
    for (row, completion) in probe.case.completions.iter().enumerate() {
        let text = &returned.output.texts[row];
        let mut rest = completion.chars();
        if let Some(invented) = text.chars().find(|c| !rest.any(|own| own == *c)) {
            broken!(
                "texts[{row}] is {}, but {} does not stand there in {}",
                quoted(text),
                quoted(&invented.to_string()),
                quoted(completion),
            );
        }
    }
    Ok(())
}
