//! Text goes on where it stopped.
//!
//! ### Claim
//! The text of a row and another after it is the text of the one and the text of the other.
//!
//! ### Why it matters
//! Turns of a conversation, a prompt and its completion, the parts of a stream are decoded one by
//! one. What is done to the beginning or the end of each then stands in the middle of the text.
//!
//! ### Does not hold for
//! Rows whose bytes are no UTF-8.
//!
//! ### Bugs it has caught
//! The space in front of a word, lost at every seam.
//!
//! ### Example
//! ```diff
//! -        texts.append(data.decode(errors="replace").removeprefix(" "))
//! +        texts.append(data.decode(errors="replace"))
//! ```

use ndarray::{Axis, concatenate};

use crate::token_decoder::{TokenDecoder, TokenDecoderCase, oracle};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenDecoder> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &[
        "spaces-between-tokens",
        "white-space-trimmed",
        "first-space-lost",
        "cut-at-the-first-eos",
        "last-token-cut-although-no-eos",
        "first-token-cut",
    ],
    check,
);

fn check(probe: &mut Probe<'_, TokenDecoder>) -> Outcome {
    let tokens = &probe.case.tokens;
    let whole = |row: usize| {
        let parts = oracle::parts(&tokens.row(row).to_vec(), probe.options);
        parts.iter().all(|part| std::str::from_utf8(part).is_ok())
    };
    let rows: Vec<usize> = (0..tokens.nrows()).filter(|row| whole(*row)).collect();
    if rows.is_empty() {
        return Err(Stop::Vacuous);
    }
    // Each row is followed by the next of those that end a character.
    let next = |place: usize| rows[(place + 1) % rows.len()];
    let order: Vec<usize> = (0..rows.len()).map(next).collect();
    let [firsts, seconds] = [&rows, &order].map(|rows| tokens.select(Axis(0), rows));
    let both = concatenate![Axis(1), firsts, seconds];
    let returned = probe.output()?;
    let joined = probe.call(&TokenDecoderCase { tokens: both })?;
    for (place, found) in joined.texts.iter().enumerate() {
        let [first, second] = [rows[place], order[place]];
        let texts = &returned.output.texts;
        let expected = [texts[first].as_str(), texts[second].as_str()].concat();
        if *found != expected {
            broken!(
                "the text of row {first} with row {second} after it is {}",
                found_for(Some(found), Some(&expected)),
            );
        }
    }
    Ok(())
}
