//! A longer completion never gets more.
//!
//! ### Claim
//! One token more, or many, never raises the reward.
//!
//! ### Why it matters
//! A place where the reward rises with the length is an incentive to write on until it is reached:
//! the opposite of what the penalty is for.
//!
//! ### Does not hold for
//! `cosine` with `min` above `max`, which is for wrong answers and rises on purpose.
//!
//! ### Bugs it has caught
//! A cosine that is not held at the limit rises again beyond it.
//!
//! ### Example
//! Under `shape="cosine"`:
//! ```diff
//! -        share = lengths / max_length
//! +        share = (lengths / max_length).clamp(max=1)
//! ```

use crate::length_penalty::{LengthPenalty, LengthPenaltyCase, Shape};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<LengthPenalty> = Rule::new(
    Pitfall::LogSpaceSign,
    &["cosine-beyond-the-limit", "cosine-ends-exchanged", "beyond-is-free", "sign-lost"],
    check,
)
.under(|options| options.shape != Shape::Cosine || options.min <= options.max);

fn check(probe: &mut Probe<'_, LengthPenalty>) -> Outcome {
    let before = probe.output()?;
    let limit = probe.options.max_length;
    let more = *probe.pick.one(&[1, 2, limit / 4 + 1, limit]);
    let longer = LengthPenaltyCase { lengths: probe.case.lengths.mapv(|length| length + more) };
    let after = probe.call(&longer)?;
    let after_bounds = probe.bounds_in(&probe.expected_of(&longer), "rewards");
    let allowed = probe.bounds("rewards") + after_bounds;
    for (row, length) in probe.case.lengths.indexed_iter() {
        let (found, expected) = (after.rewards[row], before.output.rewards[row]);
        if found.is_nan() || found > expected + allowed[row] {
            let [found, expected] = pair(found, expected);
            broken!(
                "a completion of {length} tokens gets {expected}, one of {} gets {found}, which \
                 is more; allowed difference {:.1e}",
                length + more,
                allowed[row]
            );
        }
    }
    Ok(())
}
