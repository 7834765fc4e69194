//! What the filters leave is what the definition leaves.
//!
//! ### Claim
//! The tokens left are the most likely ones, as many as the filters ask for; only ties are a
//! choice.
//!
//! ### Why it matters
//! Tolerances on probabilities forgive a token too many where it is rare, and rare tokens are what
//! the filters are for. Whether a token can come at all is yes or no: it has probability 0
//! exactly, or not.
//!
//! ### Does not hold for
//! Which of the tokens of equal logits are kept, and how many of them; a token at which the mass
//! comes within rounding of top-p; probabilities too small for the dtype.
//!
//! ### Bugs it has caught
//! transformers #18976, #18983: the shifted sum was compared with >, which keeps a token too many
//! where the mass is top-p exactly.
//!
//! ### Example
//! Under `top_p=0.75`:
//! ```diff
//! -        beyond = mass > top_p
//! +        beyond = (mass >= top_p) & (mass > 0)
//! ```

use super::{rows, seen};
use crate::sampling_filter::SamplingFilter;
use crate::sampling_filter::oracle::Row;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SamplingFilter> = Rule::new(
    Pitfall::Sampling,
    &[
        "nucleus-keeps-one-extra",
        "crossing-token-dropped",
        "raw-probabilities-returned",
        "top-k-keeps-one-extra",
        "top-k-takes-its-last",
        "top-k-without-effect",
        "top-p-without-effect",
        "min-p-without-effect",
        "top-p-of-the-full-distribution",
        "min-keep-ignored",
        "min-p-absolute",
        "nucleus-in-vocabulary-order",
        "filter-fills-with-a-number",
        "dust-on-every-token",
    ],
    check,
);

fn check(probe: &mut Probe<'_, SamplingFilter>) -> Outcome {
    let returned = probe.finite_output()?;
    let probs = &returned.output.probs;
    let dtype = probe.place.dtype;
    for (row, sorted, found) in rows(probe.case, probs, probe.options, dtype) {
        let seen = seen(&sorted, dtype);
        let kept = |place: &usize| found[sorted.order[*place]] > 0.0;
        let count = (0..seen).filter(kept).count();
        if !sorted.left.iter().any(|left| *left.min(&seen) == count) {
            broken!("row {row} keeps {count} tokens, expected {}", choices(&sorted));
        }
        let (start, end) = match count {
            0 => (0, 0),
            _ => sorted.level(count - 1),
        };
        // Where all that can be seen are kept, one that cannot may have left a trace.
        let end = if count == seen { sorted.size() } else { end };
        let missing = (0..start).find(|place| !kept(place));
        let extra = (end..sorted.size()).find(kept);
        if let Some(place) = missing {
            let token = sorted.order[place];
            broken!("row {row} keeps {count} tokens, but not {token}, which is likelier than some");
        }
        if let Some(place) = extra {
            let token = sorted.order[place];
            broken!("row {row} keeps token {token}, expected only the {count} likeliest");
        }
    }
    Ok(())
}

/// `2`, `2 or 4`, `2 to 4`.
fn choices(row: &Row) -> String {
    match row.left[..] {
        [one] => format!("{one}"),
        [fewest, most] => format!("{fewest} or {most}"),
        _ => format!("{} to {}", row.left[0], row.left[row.left.len() - 1]),
    }
}
