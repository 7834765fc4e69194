//! A linear penalty does not jump.
//!
//! ### Claim
//! At both knees of a linear penalty one token changes it by its slope, 1/C, at the most.
//!
//! ### Why it matters
//! The line is there so that a token more or less makes a small difference. A jump at either end is
//! the step that the buffer was meant to soften.
//!
//! ### Does not hold for
//! `cosine` and `step`; a buffer of 0.
//!
//! ### Bugs it has caught
//! A quotient by the limit for one by the buffer; integer division.

use ndarray::Array1;

use super::super::{LengthPenalty, LengthPenaltyCase, Options, Shape};
use crate::broken;
use crate::contract::Pitfall;
use crate::invariant::{Outcome, Probe};
use crate::place::Place;
use crate::text::rounded;
use crate::tolerance::apart;

pub(super) const PITFALL: Pitfall = Pitfall::Configuration;
pub(super) const CATCHES: &[&str] =
    &["line-over-the-limit", "whole-steps-only", "whole-steps-towards-zero", "beyond-is-free"];

pub(super) fn applies(options: &Options, _: Place) -> bool {
    let linear = matches!(options.shape, Shape::LinearOverlong | Shape::LinearUnbounded);
    linear && options.buffer > 0
}

pub(super) fn check(probe: &mut Probe<'_, LengthPenalty>) -> Outcome {
    let Options { max_length, buffer, factor, .. } = *probe.options;
    let knee = *probe.pick.one(&[max_length - buffer, max_length]);
    let around: Vec<i64> = [knee - 1, knee, knee + 1].into_iter().filter(|n| *n >= 0).collect();
    let around = LengthPenaltyCase { lengths: Array1::from_vec(around) };
    let found = probe.call(&around)?.rewards;
    let bounds = probe.bounds_in(&probe.expected_of(&around), "rewards");
    for row in 1..found.len() {
        let allowed = factor / buffer as f64 + bounds[row] + bounds[row - 1];
        if apart(found[row], found[row - 1], allowed) {
            broken!(
                "completions of {} and {} tokens get {} and {}, expected them within {allowed:.3}: \
                 the knee is at {knee}",
                around.lengths[row - 1],
                around.lengths[row],
                rounded(found[row - 1]),
                rounded(found[row]),
            );
        }
    }
    Ok(())
}
