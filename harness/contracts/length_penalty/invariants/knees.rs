//! The penalty is exact where it begins and ends.
//!
//! ### Claim
//! At 0, L − C, L − 1, L and L + 1 tokens the penalty is the number that its shape says.
//!
//! ### Why it matters
//! Most completions are shorter than the first knee or were cut at the limit. An error of one token
//! at either is an error in nearly all rewards.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! `<` for `<=`; a buffer behind the limit; a length without its end-of-sequence token.
//!
//! ### Example
//! ```diff
//! -        over = lengths - max_length
//! +        over = lengths - (max_length - buffer)
//! ```

use crate::length_penalty::{LengthPenalty, Options, Shape};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<LengthPenalty> = Rule::new(
    Pitfall::Configuration,
    &[
        "limit-is-too-long",
        "step-at-the-buffer",
        "line-starts-at-the-limit",
        "line-not-bounded",
        "last-token-not-counted",
        "cosine-of-half-the-limit",
    ],
    check,
);

/// Lengths at which the penalty is known without its formula, with what it is there.
fn known(options: &Options) -> Vec<(i64, f64)> {
    let Options { shape, max_length, buffer, min, max, .. } = *options;
    let slope = 1.0 / (buffer as f64).max(1.0);
    let almost = if buffer == 0 { 0.0 } else { slope - 1.0 };
    let at_limit = if buffer == 0 { 0.0 } else { -1.0 };
    let mut known = match shape {
        Shape::Step => vec![(0, 0.0), (max_length, 0.0), (max_length + 1, -1.0)],
        Shape::Cosine => vec![(0, max), (max_length, min), (max_length + 1, min)],
        Shape::LinearOverlong | Shape::LinearUnbounded => {
            let beyond = if shape == Shape::LinearOverlong { -1.0 } else { -1.0 - slope };
            vec![
                (0, 0.0),
                (max_length - buffer, 0.0),
                (max_length - 1, almost),
                (max_length, at_limit),
                (max_length + 1, beyond),
            ]
        }
    };
    if shape == Shape::Cosine && max_length % 2 == 0 {
        known.push((max_length / 2, 0.5 * (min + max)));
    }
    known
}

fn check(probe: &mut Probe<'_, LengthPenalty>) -> Outcome {
    let known = known(probe.options);
    let returned = probe.output()?;
    let bounds = probe.bounds("rewards");
    let mut checked = false;
    for (row, length) in probe.case.lengths.indexed_iter() {
        for (_, value) in known.iter().filter(|(known, _)| known == length) {
            let (found, expected) = (returned.output.rewards[row], value * probe.options.factor);
            if apart(found, expected, bounds[row]) {
                let [found, expected] = pair(found, expected);
                broken!(
                    "a completion of {length} tokens gets {found}, expected {expected} ± {:.1e}",
                    bounds[row]
                );
            }
            checked = true;
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
