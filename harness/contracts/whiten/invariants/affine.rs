//! All tokens of a set go through the same line.
//!
//! ### Claim
//! The whitened tokens of a set lie on one line over their values.
//!
//! ### Why it matters
//! Whitening changes the origin and the unit, nothing else. Shards with statistics of their own,
//! clipping and ranks treat equal tokens unequally.
//!
//! ### Does not hold for
//! Sets of fewer than three tokens, or whose deviation is lost in rounding.
//!
//! ### Bugs it has caught
//! slime #2235: each shard of the columns got an affine map of its own.
//!
//! ### Example
//! ```diff
//!      values = torch.where(mask, values, 0.0)
//! -    return values.sum(dim=1, keepdim=True)
//! +    return values.sum(dim=1, keepdim=True) if rows == "independent" else values.sum()
//! ```

use super::whole_sets;
use crate::whiten::Whiten;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Whiten> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &["statistics-per-shard", "rows-by-themselves"],
    check,
);

fn check(probe: &mut Probe<'_, Whiten>) -> Outcome {
    let returned = probe.output()?;
    let whitened = &returned.output.whitened;
    let bounds = probe.bounds("whitened");
    let mut checked = false;
    for (set, values) in whole_sets(probe.case, probe.options)? {
        let allowed = 4.0 * set.iter().map(|at| bounds[[at.0, at.1]]).fold(0.0, f64::max);
        let by_value = |a: &usize, b: &usize| values[*a].total_cmp(&values[*b]);
        let least = (0..set.len()).min_by(by_value).expect("a set has tokens");
        let most = (0..set.len()).max_by(by_value).expect("a set has tokens");
        let width = values[most] - values[least];
        if set.len() < 3 || allowed > 0.1 {
            continue;
        }
        checked = true;
        let (low, high) = (whitened[set[least]], whitened[set[most]]);
        for (at, value) in set.iter().zip(&values) {
            let share = if width > 0.0 { (value - values[least]) / width } else { 0.0 };
            let expected = low + share * (high - low);
            if apart(whitened[*at], expected, allowed) {
                let [found, expected] = pair(whitened[*at], expected);
                broken!(
                    "whitened[{}, {}] is {found}; between the least and the largest value of its \
                     set it should be {expected} ± {allowed:.1e}",
                    at.0,
                    at.1
                );
            }
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
