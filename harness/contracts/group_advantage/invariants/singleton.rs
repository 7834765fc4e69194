//! A group of one gets what is declared.
//!
//! ### Claim
//! A group of one completion gets 0 or its reward, as declared.
//!
//! ### Why it matters
//! One completion has nothing to be compared with. Its deviation is 0 or undefined, and what
//! comes out is often NaN, or a reward divided by ε.
//!
//! ### Does not hold for
//! `baseline: none`, where it is a row like any other; `singleton: avoid`.
//!
//! ### Bugs it has caught
//! SB3 #1028: a deviation with ddof 1 over a single row.
//!
//! ### Example
//! ```diff
//! -        if len(own) < 1:
//! +        if len(own) < 2:
//!              continue
//! ```

use crate::group_advantage::{Baseline, GroupAdvantage, Singleton, members};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupAdvantage> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["one-row-unbiased-deviation", "singleton-keeps-its-reward", "singleton-gets-zero"],
    check,
)
.under(|options| options.baseline != Baseline::None && options.singleton != Singleton::Avoid);

fn check(probe: &mut Probe<'_, GroupAdvantage>) -> Outcome {
    let returned = probe.output()?;
    let expected = probe.expected();
    let mut checked = false;
    for rows in members(probe.case) {
        let scored: Vec<usize> =
            rows.into_iter().filter(|row| !probe.case.rewards[*row].is_nan()).collect();
        let [row] = scored[..] else { continue };
        checked = true;
        let (found, number) = (returned.output.advantages[row], expected[0].numbers[[row]]);
        if !probe.tolerance.accepts(found, number, expected[0].terms) {
            broken!(
                "row {row} is alone in its group with reward {}; advantages[{row}] is {}, expected \
                 {}",
                rounded(probe.case.rewards[row]),
                rounded(found),
                rounded(number.value),
            );
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
