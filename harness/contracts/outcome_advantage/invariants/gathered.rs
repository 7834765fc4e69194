//! Where in its row a reward stands does not matter.
//!
//! ### Claim
//! Moving all rewards of each row to one of its tokens changes no advantage.
//!
//! ### Why it matters
//! Some libraries write the score to the last token, others to the one before the end marker, and
//! penalties stand wherever they arose. The outcome is the sum, wherever its parts are.
//!
//! ### Does not hold for
//! Sums that the dtype does not hold.
//!
//! ### Bugs it has caught
//! Rewards read at the last token, or at the last column of a padded batch.
//!
//! ### Example
//! ```diff
//! -    outcomes = token_rewards[:, -1]
//! +    outcomes = (token_rewards * mask).sum(dim=1)
//! ```

use crate::outcome_advantage::{OutcomeAdvantage, kept};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<OutcomeAdvantage> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "outcome-is-the-last-reward",
        "outcome-is-the-last-column",
        "first-token-left-out",
        "outcome-is-the-largest-reward",
    ],
    check,
);

fn check(probe: &mut Probe<'_, OutcomeAdvantage>) -> Outcome {
    let before = probe.finite_output()?;
    let dtype = probe.place.dtype;
    let mut gathered = probe.case.clone();
    for (row, mask) in probe.case.mask.rows().into_iter().enumerate() {
        let tokens: Vec<usize> = (0..mask.len()).filter(|token| mask[*token]).collect();
        if tokens.is_empty() {
            continue;
        }
        let outcome: f64 = kept(probe.case, row).sum();
        let stored = dtype.round(outcome);
        let lost = (stored - outcome).abs() > dtype.arithmetic().unit_roundoff() * outcome.abs();
        if lost && !outcome.is_nan() {
            return Err(Stop::Vacuous);
        }
        tokens.iter().for_each(|token| gathered.token_rewards[[row, *token]] = 0.0);
        gathered.token_rewards[[row, *probe.pick.one(&tokens)]] = stored;
    }
    if same_bits(&gathered, probe.case) {
        return Err(Stop::Vacuous);
    }
    let after = probe.call(&gathered)?;
    let moved = probe.expected_of(&gathered);
    let allowed = probe.related("advantages") + probe.bounds_in(&moved, "advantages");
    let rewards = &gathered.token_rewards;
    unchanged(
        format_args!(
            "with the rewards of each row moved to one of its tokens (token_rewards {rewards}), \
             advantages"
        ),
        &after.advantages,
        &before.output.advantages,
        &only(allowed, |at: [usize; 2]| probe.case.mask[at]),
    )
}
