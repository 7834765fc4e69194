//! Whole characters come out as they went in.
//!
//! ### Claim
//! The bytes of a text are those of its tokens' pieces, where these are valid UTF-8.
//!
//! ### Why it matters
//! Decoding what was encoded must give it back: otherwise the reward reads another text than the
//! model wrote, and an answer in Chinese, an emoji or indented code is never right.
//!
//! ### Does not hold for
//! Rows whose bytes are no UTF-8.
//!
//! ### Bugs it has caught
//! `clean_up_tokenization_spaces`, on for years, takes the space before a full stop out.
//!
//! ### Example
//! ```diff
//! -        texts.append(data.decode(errors="replace").replace(" .", "."))
//! +        texts.append(data.decode(errors="replace"))
//! ```

use crate::token_decoder::{TokenDecoder, oracle};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenDecoder> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &[
        "token-by-token",
        "spaces-between-tokens",
        "pieces-for-their-bytes",
        "spaces-tidied-up",
        "white-space-trimmed",
        "first-space-lost",
        "spaces-collapsed",
        "accents-composed",
        "line-ends-converted",
        "cut-at-a-nul",
        "byte-order-mark-lost",
        "names-taken-out-of-the-text",
        "last-token-cut-although-no-eos",
        "first-token-cut",
    ],
    check,
);

fn check(probe: &mut Probe<'_, TokenDecoder>) -> Outcome {
    let returned = probe.output()?;
    let mut checked = false;
    for (row, tokens) in probe.case.tokens.rows().into_iter().enumerate() {
        let parts = oracle::parts(&tokens.to_vec(), probe.options);
        if parts.iter().any(|part| std::str::from_utf8(part).is_err()) {
            continue;
        }
        let Ok(expected) = String::from_utf8(parts.concat()) else { continue };
        checked = true;
        let found = returned.output.texts[row].as_str();
        if found != expected {
            broken!("texts[{row}] is {}", found_for(Some(found), Some(&expected)));
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
