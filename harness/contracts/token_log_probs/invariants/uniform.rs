//! Equal logits give every token the same probability.
//!
//! ### Claim
//! Where the k possible tokens of a position have equal logits, each has log-probability -ln k.
//!
//! ### Why it matters
//! The one value that everybody knows without a computer, whatever the temperature and the level
//! of the logits. It shows the base of the logarithm, a factor, and a normaliser over another
//! number of tokens.
//!
//! ### Does not hold for
//! Positions with different finite logits.
//!
//! ### Bugs it has caught
//! Logarithms to base 2; sums and means over the vocabulary.
//!
//! ### Example
//! ```diff
//! -    log_probs = torch.softmax(scaled, dim=-1).log2()
//! +    log_probs = torch.log_softmax(scaled, dim=-1)
//! ```

use crate::token_log_probs::{TokenLogProbs, position, scored};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenLogProbs> = Rule::new(
    Pitfall::LogSpaceSign,
    &[
        "logarithm-in-another-base",
        "normaliser-without-the-scored-token",
        "first-or-last-entry-left-out",
        "minus-infinity-replaced-by-a-number",
    ],
    check,
);

fn check(probe: &mut Probe<'_, TokenLogProbs>) -> Outcome {
    let returned = probe.output()?;
    let bounds = probe.bounds("log_probs");
    let mut checked = false;
    for (row, column, token) in scored(probe.case, probe.options) {
        let logits = position(probe.case, row, column);
        let possible = || logits.iter().filter(|logit| logit.is_finite());
        if possible().any(|logit| *logit != logits[token]) {
            continue;
        }
        checked = true;
        let count = possible().count();
        let (found, expected) = (returned.output.log_probs[[row, column]], -(count as f64).ln());
        let allowed = bounds[[row, column]];
        let what =
            format_args!("{count} tokens are equally likely, but log_probs[{row}, {column}]");
        near(what, found, expected, allowed)?;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
