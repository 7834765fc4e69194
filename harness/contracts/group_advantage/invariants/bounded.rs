//! No advantage is larger than a group of its size allows.
//!
//! ### Claim
//! An advantage is at most (G - 1)/√G (ddof 1) or √(G - 1) (ddof 0) for a group of G.
//!
//! ### Why it matters
//! One completion against the rest reaches the bound and none can pass it. What does was divided
//! by too little, or has a baseline that is not the mean.
//!
//! ### Does not hold for
//! `baseline` other than `mean`, `scale` other than `std`.
//!
//! ### Bugs it has caught
//! Residues divided by a tiny ε; sums for means.
//!
//! ### Example
//! ```diff
//! -        centred = centred - centred.sum()
//! +        centred = centred - centred.mean()
//! ```

use super::several;
use crate::group_advantage::{Baseline, GroupAdvantage, Scale};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupAdvantage> =
    Rule::new(Pitfall::AdvantageNormalisation, &["sum-for-mean"], check)
        .under(|options| options.baseline == Baseline::Mean && options.scale == Scale::Std);

fn check(probe: &mut Probe<'_, GroupAdvantage>) -> Outcome {
    let returned = probe.finite_output()?;
    let bounds = probe.bounds("advantages");
    for (number, rows) in several(probe.case)? {
        let size = rows.len() as f64;
        let largest = match probe.options.ddof {
            1 => (size - 1.0) / size.sqrt(),
            _ => (size - 1.0).sqrt(),
        };
        for row in rows {
            let advantage = returned.output.advantages[row];
            let allowed = largest + bounds[[row]];
            if advantage.abs() > allowed {
                broken!(
                    "advantages[{row}] of group {number} is {}, expected at most {} for {size} \
                     rows",
                    rounded(advantage),
                    rounded(largest),
                );
            }
        }
    }
    Ok(())
}
