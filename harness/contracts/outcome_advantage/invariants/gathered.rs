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

use super::super::{OutcomeAdvantage, kept};
use crate::contract::invariant::Rule;
use crate::contract::probe::broken;
use crate::contract::probe::{Outcome, Probe, Stop};
use crate::contract::stage::Pitfall;
use crate::numeric::tolerance::apart;
use crate::value::record::same_bits;
use crate::value::text::pair;

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
    let allowed = probe.bounds("advantages") + probe.bounds_in(&moved, "advantages");
    for ((at, from), kept) in before.output.advantages.indexed_iter().zip(&probe.case.mask) {
        let allowed = allowed[[at.0, at.1]];
        if *kept && apart(after.advantages[at], *from, allowed) {
            let [found, expected] = pair(after.advantages[at], *from);
            broken!(
                "with the rewards of each row moved to one of its tokens (token_rewards {}), \
                 advantages[{}, {}] is {found}, before it was {expected} ± {allowed:.1e}",
                gathered.token_rewards,
                at.0,
                at.1
            );
        }
    }
    Ok(())
}
