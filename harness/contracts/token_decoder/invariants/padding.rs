//! Padding is not text.
//!
//! ### Claim
//! More pads, on the left or on the right, change no text.
//!
//! ### Why it matters
//! How far a row is padded depends on the other rows of its batch, and the side on the program
//! that generated it. Neither has anything to do with what the model said.
//!
//! ### Does not hold for
//! `skip_special: false`, which writes pads out.
//!
//! ### Bugs it has caught
//! With pad == eos and padding on the left, a cut at the first eos leaves nothing.
//!
//! ### Example
//! ```diff
//! -        length = sum(token not in specials for token in row)
//! -        for token in row[:length]:
//! +        for token in row:
//! ```

use ndarray::{Array2, Axis, concatenate};

use crate::token_decoder::{TokenDecoder, TokenDecoderCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenDecoder> = Rule::new(
    Pitfall::MaskingAlignment,
    &["special-tokens-kept", "last-token-cut-although-no-eos", "first-token-cut"],
    check,
)
.under(|options| options.skip_special);

fn check(probe: &mut Probe<'_, TokenDecoder>) -> Outcome {
    let tokens = &probe.case.tokens;
    let columns = *probe.pick.one(&[1, 2, 5]);
    let pads = Array2::from_elem((tokens.nrows(), columns), probe.options.pad);
    let returned = probe.output()?;
    for (side, padded) in [
        ("right", concatenate![Axis(1), tokens.view(), pads.view()]),
        ("left", concatenate![Axis(1), pads.view(), tokens.view()]),
    ] {
        let again = probe.call(&TokenDecoderCase { tokens: padded })?;
        for (row, (found, expected)) in again.texts.iter().zip(&returned.output.texts).enumerate() {
            if found != expected {
                broken!(
                    "with {columns} more pads on the {side}, texts[{row}] is {} as before",
                    found_for(Some(found), Some(expected)),
                );
            }
        }
    }
    Ok(())
}
