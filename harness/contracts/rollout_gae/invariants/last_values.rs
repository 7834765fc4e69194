//! What follows the window counts where the window cuts an episode.
//!
//! ### Claim
//! The value after the last step counts, times γ, where that step ended no episode, and only there.
//!
//! ### Why it matters
//! A cut is not an end: without the value that follows, every window teaches that life ends with
//! it. And an end is not a cut: with the value, the next episode pays for the last.
//!
//! ### Does not hold for
//! γ = 0, where nothing that follows counts.
//!
//! ### Bugs it has caught
//! SB3 #183: the last stored value stood for the one that follows.
//!
//! ### Example
//! ```diff
//! -    next_values = values[-1]
//! +    next_values = last_values
//! ```

use crate::rollout_gae::RolloutGae;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RolloutGae> = Rule::new(
    Pitfall::MaskingAlignment,
    &["bootstrap-with-the-last-stored-value", "last-done-ignored", "cut-taken-for-an-end"],
    check,
)
.under(|options| options.gamma > 0.0);

fn check(probe: &mut Probe<'_, RolloutGae>) -> Outcome {
    let mut changed = probe.case.clone();
    // Small integers, so that their difference is exact in every format.
    let old = changed.last_values.mapv(|_| *probe.pick.one(&[0.0, 1.0, -2.0]));
    changed.last_values.assign(&old);
    let first = probe.call(&changed)?;
    let raised = *probe.pick.one(&[4.0, 8.0]);
    changed.last_values += raised;
    let second = probe.call(&changed)?;
    let bounds = probe.bounds_in(&probe.expected_of(&changed), "advantages");
    let ends = probe.case.ends(probe.options);
    let last = ends.nrows() - 1;
    for env in 0..ends.ncols() {
        let at = [last, env];
        let counts = if ends[at] { 0.0 } else { probe.options.gamma };
        let found = second.advantages[at] - first.advantages[at];
        let allowed = 2.0 * bounds[at];
        if apart(found, counts * raised, allowed) {
            let [found, expected] = pair(found, counts * raised);
            let ended = if ends[at] { "ended" } else { "did not end" };
            broken!(
                "the last step of environment {env} {ended} its episode; with last_values {raised} \
                 higher advantages[{last}, {env}] rises by {found}, expected {expected} ± \
                 {allowed:.1e}"
            );
        }
    }
    Ok(())
}
