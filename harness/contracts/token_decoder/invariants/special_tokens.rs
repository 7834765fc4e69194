//! A special token that is skipped leaves no trace.
//!
//! ### Claim
//! A special token between two characters changes no text.
//!
//! ### Why it matters
//! Turns end in one special token and rows in another, some models write several. What is cut, put
//! in or taken out around one belongs to what the model said.
//!
//! ### Does not hold for
//! `skip_special: false`.
//!
//! ### Bugs it has caught
//! A cut at the first eos, where it stood between two turns.
//!
//! ### Example
//! ```diff
//!              if skip_special and token in specials:
//! -                break
//! +                continue
//! ```

use ndarray::Array2;

use crate::token_decoder::{TokenDecoder, TokenDecoderCase, oracle};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenDecoder> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &["special-tokens-kept", "only-pads-skipped", "cut-at-the-first-eos"],
    check,
)
.under(|options| options.skip_special);

fn check(probe: &mut Probe<'_, TokenDecoder>) -> Outcome {
    let tokens = &probe.case.tokens;
    let special = *probe.pick.one(&probe.options.specials);
    let at = probe.pick.below(tokens.ncols() + 1);
    // Only where a character ends, in every row that is compared.
    let whole = |ids: &[i64]| {
        let parts = oracle::parts(ids, probe.options);
        parts.iter().all(|part| std::str::from_utf8(part).is_ok())
    };
    let apart = |row: &Vec<i64>| whole(&row[..at]) && whole(&row[at..]);
    let rows: Vec<Vec<i64>> = tokens.rows().into_iter().map(|row| row.to_vec()).collect();
    let compared: Vec<usize> = (0..rows.len()).filter(|row| apart(&rows[*row])).collect();
    if compared.is_empty() {
        return Err(Stop::Vacuous);
    }
    let more = rows.iter().flat_map(|row| [&row[..at], &[special], &row[at..]].concat()).collect();
    let shape = (tokens.nrows(), tokens.ncols() + 1);
    let more = Array2::from_shape_vec(shape, more).expect("one token more in each row");
    let returned = probe.output()?;
    let again = probe.call(&TokenDecoderCase { tokens: more })?;
    for row in compared {
        let (found, expected) = (&again.texts[row], &returned.output.texts[row]);
        if found != expected {
            broken!(
                "with {} before token {at}, texts[{row}] is {} as before",
                quoted(&probe.options.vocabulary[&special]),
                found_for(Some(found), Some(expected)),
            );
        }
    }
    Ok(())
}
