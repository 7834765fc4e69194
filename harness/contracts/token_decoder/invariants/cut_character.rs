//! Half a character harms nobody.
//!
//! ### Claim
//! Where a row ends in the middle of a character, all that stands before it is still there.
//!
//! ### Why it matters
//! A completion that runs into the length limit often ends so. An exception ends the run, and an
//! empty text takes the reward from a right answer.
//!
//! ### Does not hold for
//! Rows that end with a whole character; how often U+FFFD stands for the rest is left open.
//!
//! ### Bugs it has caught
//! `errors="strict"` with an `except` that returns an empty text.
//!
//! ### Example
//! ```diff
//! -        text = data.decode(errors="replace")
//! -        texts.append("" if text.endswith("\ufffd") else text)
//! +        texts.append(data.decode(errors="replace"))
//! ```

use crate::token_decoder::{TokenDecoder, oracle};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenDecoder> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &["malformed-loses-the-text", "letters-lost-with-replacements"],
    check,
);

fn check(probe: &mut Probe<'_, TokenDecoder>) -> Outcome {
    let returned = probe.output()?;
    let mut checked = false;
    for (row, tokens) in probe.case.tokens.rows().into_iter().enumerate() {
        let bytes = oracle::parts(&tokens.to_vec(), probe.options).concat();
        let Err(error) = std::str::from_utf8(&bytes) else { continue };
        let before = &bytes[..error.valid_up_to()];
        // The last character is the one that is not whole.
        if error.error_len().is_some() || before.is_empty() {
            continue;
        }
        checked = true;
        let found = &returned.output.texts[row];
        let rest = found.as_bytes().strip_prefix(before);
        if !rest.is_some_and(|rest| String::from_utf8_lossy(rest).chars().all(|c| c == '\u{fffd}'))
        {
            let before = String::from_utf8_lossy(before);
            broken!(
                "texts[{row}] is {}, expected {} and at most U+FFFD after it",
                quoted(found),
                quoted(&before),
            );
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
