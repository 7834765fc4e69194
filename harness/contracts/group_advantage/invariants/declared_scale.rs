//! The advantages of a group have the declared deviation.
//!
//! ### Claim
//! The advantages of a group have the deviation σ/σ', where σ' is what the options divide by.
//!
//! ### Why it matters
//! The size of the advantages is the size of the step. An ε meant for rewards of size 1 swallows
//! rewards of size 1e-3; a division by the variance multiplies them by a thousand.
//!
//! ### Does not hold for
//! Scales other than `std`; groups of one, or whose deviation is lost in rounding.
//!
//! ### Bugs it has caught
//! Stability constants of 0.1 and 1, where TRL adds 1e-4; missing square roots.
//!
//! ### Example
//! ```diff
//! -            centred = centred / (own.var(correction=ddof) + epsilon)
//! +            centred = centred / (own.std(correction=ddof) + epsilon)
//! ```

use super::{deviation, several};
use crate::group_advantage::{Baseline, EpsilonMode, GroupAdvantage, Scale};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupAdvantage> = Rule::new(
    Pitfall::StabilityConstant,
    &["epsilon-swallows-the-signal", "divided-by-the-variance", "biased-for-unbiased-deviation"],
    check,
)
.under(|options| options.scale == Scale::Std);

fn check(probe: &mut Probe<'_, GroupAdvantage>) -> Outcome {
    let returned = probe.finite_output()?;
    let bounds = probe.bounds("advantages");
    let options = probe.options;
    let mut checked = false;
    for (number, rows) in several(probe.case)? {
        let sigma = deviation(&probe.case.rewards, &rows, options.ddof);
        let divisor = match options.epsilon_mode {
            EpsilonMode::Add => sigma + options.epsilon,
            EpsilonMode::Clamp => sigma.max(options.epsilon),
        };
        let allowed = 2.0 * rows.iter().map(|row| bounds[[*row]]).fold(0.0, f64::max);
        if sigma == 0.0 || allowed > 0.1 {
            continue;
        }
        checked = true;
        let others = rows.len() as f64;
        let stretch =
            if options.baseline == Baseline::LeaveOneOut { others / (others - 1.0) } else { 1.0 };
        let (found, expected) = (
            deviation(&returned.output.advantages, &rows, options.ddof),
            stretch * sigma / divisor,
        );
        if apart(found, expected, allowed) {
            let [found, expected] = pair(found, expected);
            broken!(
                "the advantages of group {number} have deviation {found}, expected {expected} ± \
                 {allowed:.1e} (its rewards have {})",
                rounded(sigma),
            );
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
