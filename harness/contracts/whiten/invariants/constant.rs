//! Equal values say nothing.
//!
//! ### Claim
//! Up to 16 equal values of at most 10 give at most 0.05 each, whatever the value.
//!
//! ### Why it matters
//! Equal rewards, or a batch of zeros, are common at the start and at the end of training. The
//! residue of their rounded mean, divided by a deviation of nearly nothing, is a signal made of
//! noise; without an ε it is NaN.
//!
//! ### Does not hold for
//! `shift_mean: false`, larger values, longer sets and half formats.
//!
//! ### Bugs it has caught
//! A missing ε; a variance made of squares that falls below 0.
//!
//! ### Example
//! ```diff
//! -    squares = masked_sum(values**2, mask, rows) - count * mean**2
//! +    squares = masked_sum((values - mean) ** 2, mask, rows)
//! ```

use super::whole_sets;
use crate::whiten::Whiten;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Whiten> = Rule::new(
    Pitfall::StabilityConstant,
    &["epsilon-missing", "variance-of-squares-unguarded", "mean-never-subtracted"],
    check,
)
.under(|options| options.shift_mean)
.at(|place| matches!(place.dtype, Dtype::F32 | Dtype::F64));

/// What a token of a set without signal may get.
const LARGEST: f64 = 0.05;

fn check(probe: &mut Probe<'_, Whiten>) -> Outcome {
    let returned = probe.output()?;
    let mut checked = false;
    for (set, values) in whole_sets(probe.case, probe.options)? {
        let equal = values.iter().all(|value| *value == values[0]);
        if !equal || set.len() > 16 || values[0].abs() > 10.0 {
            continue;
        }
        checked = true;
        for at in set {
            let found = returned.output.whitened[at];
            if apart(found, 0.0, LARGEST) {
                broken!(
                    "all values are {}, but whitened[{}, {}] is {}, expected 0 ± {LARGEST}",
                    number(values[0]),
                    at.0,
                    at.1,
                    rounded(found),
                );
            }
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
