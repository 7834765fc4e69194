//! Whitened values have mean 0, or the mean that they had.
//!
//! ### Claim
//! The whitened tokens of a set have mean 0, or the old mean where it is declared to stay.
//!
//! ### Why it matters
//! A mean that is left over pushes all tokens up or down at once, whatever they are worth. It is
//! what remains when pads had a part in the statistics.
//!
//! ### Does not hold for
//! Sets of fewer than two tokens.
//!
//! ### Bugs it has caught
//! torchtune's `shift_mean` has the opposite sense of verl's; trlx took the mean of the padded
//! matrix.
//!
//! ### Example
//! ```diff
//! -    if shift_mean:
//! +    if not shift_mean:
//!          whitened = whitened + mean
//! ```

use super::whole_sets;
use crate::whiten::Whiten;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Whiten> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &[
        "statistics-over-padding",
        "mean-added-back",
        "mean-not-added-back",
        "mean-never-subtracted",
        "mean-of-row-means",
        "mean-over-std-precedence",
        "batch-for-row",
    ],
    check,
);

fn check(probe: &mut Probe<'_, Whiten>) -> Outcome {
    let returned = probe.output()?;
    let bounds = probe.bounds("whitened");
    for (set, values) in whole_sets(probe.case, probe.options)? {
        let count = set.len() as f64;
        let found = set.iter().map(|at| returned.output.whitened[*at]).sum::<f64>() / count;
        let old = values.iter().sum::<f64>() / count;
        let expected = if probe.options.shift_mean { 0.0 } else { old };
        let allowed = set.iter().map(|at| bounds[[at.0, at.1]]).sum::<f64>() / count;
        if apart(found, expected, allowed) {
            let [found, expected] = pair(found, expected);
            broken!(
                "the {count} tokens from {:?} on have mean {found}, expected {expected} ± \
                 {allowed:.1e}",
                set[0]
            );
        }
    }
    Ok(())
}
