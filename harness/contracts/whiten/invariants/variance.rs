//! Whitened values have variance 1, as far as ε lets them.
//!
//! ### Claim
//! The whitened tokens of a set have the variance var/(var + ε), or var/max(var, ε).
//!
//! ### Why it matters
//! The size of the advantages is the size of the step: it must not depend on the reward model's
//! units, nor on an ε that is larger than the variance.
//!
//! ### Does not hold for
//! Sets of fewer than two tokens, or whose variance is lost in rounding.
//!
//! ### Bugs it has caught
//! Biased variances for unbiased ones; an ε that swallows the values.
//!
//! ### Example
//! ```diff
//! -    variance = squares / count.clamp(min=1)
//! +    variance = squares / (count - ddof).clamp(min=1)
//! ```

use super::whole_sets;
use crate::whiten::{Whiten, protected, statistics};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Whiten> = Rule::new(
    Pitfall::StabilityConstant,
    &[
        "biased-for-unbiased-variance",
        "epsilon-swallows-the-variance",
        "not-divided",
        "divided-by-the-variance",
        "statistics-per-shard",
    ],
    check,
);

fn check(probe: &mut Probe<'_, Whiten>) -> Outcome {
    let returned = probe.output()?;
    let bounds = probe.bounds("whitened");
    let ddof = probe.options.ddof;
    let mut checked = false;
    for (set, values) in whole_sets(probe.case, probe.options)? {
        let (_, variance) = statistics(&values, ddof);
        let allowed = 2.0 * set.iter().map(|at| bounds[[at.0, at.1]]).fold(0.0, f64::max);
        if variance == 0.0 || allowed > 0.1 {
            continue;
        }
        checked = true;
        let whitened: Vec<f64> = set.iter().map(|at| returned.output.whitened[*at]).collect();
        let found = statistics(&whitened, ddof).1.sqrt();
        let expected = variance.sqrt() / protected(variance, probe.options);
        if apart(found, expected, allowed) {
            let [found, expected] = pair(found, expected);
            broken!(
                "the {} tokens from {:?} on have deviation {found}, expected {expected} ± \
                 {allowed:.1e}",
                set.len(),
                set[0]
            );
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
