//! What is whitened at the end has mean 0 over the batch, and a deviation of at most 1.
//!
//! ### Claim
//! The whitened rows sum to zero, and their deviation is not above 1.
//!
//! ### Why it matters
//! The whitening is what makes the size of a step independent of how many functions there are. A
//! mean that stays pushes every completion of the batch the same way.
//!
//! ### Does not hold for
//! `final: none`; rows that no function scored, which have no part in it.
//!
//! ### Bugs it has caught
//! Whitening that divides and does not centre; whitening that never happens.
//!
//! ### Example
//! Under `final="add"`:
//! ```diff
//! -        combined[scored] /= combined[scored].std() + 1e-4
//! +        combined[scored] = standardised(combined[scored])
//! ```

use super::{statistics, valued};
use crate::reward_combination::{Final, RewardCombination};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardCombination> =
    Rule::new(Pitfall::AdvantageNormalisation, &["not-whitened", "final-not-centred"], check)
        .under(|options| options.r#final != Final::None);

fn check(probe: &mut Probe<'_, RewardCombination>) -> Outcome {
    let combined = &probe.finite_output()?.output.combined;
    let bounds = probe.bounds("combined");
    let rows = valued(probe.case);
    let numbers: Vec<f64> = rows.iter().map(|row| combined[*row]).collect();
    let allowed: f64 = rows.iter().map(|row| bounds[[*row]]).sum();
    if rows.is_empty() || allowed.is_infinite() {
        return Err(Stop::Vacuous);
    }
    near("the sum of the whitened rows", numbers.iter().sum(), 0.0, allowed)?;
    if let [_, _, ..] = numbers[..] {
        let (_, deviation) = statistics(&numbers, probe.options.final_ddof);
        if apart(deviation, 0.0, 1.0 + 2.0 * allowed) {
            broken!("the whitened rows have deviation {}, expected 1 at most", rounded(deviation));
        }
    }
    Ok(())
}
