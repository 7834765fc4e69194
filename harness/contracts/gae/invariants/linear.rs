//! GAE is linear in rewards and values.
//!
//! ### Claim
//! Twice the rewards and values give twice the results, and both apart add up to both together.
//!
//! ### Why it matters
//! A bias, a clamp or a normalisation hidden in the recursion shows here whatever its form.
//!
//! ### Does not hold for
//! Advantages with `whiten: true`; their returns are checked. Numbers that twice their size would
//! take out of the generated range.
//!
//! ### Bugs it has caught
//! Rewards and TD errors clipped by a default that nobody asked for.
//!
//! ### Example
//! ```diff
//! -        advantages[:, step] = delta.clamp(-1, 1) + gamma * lam * carried
//! +        advantages[:, step] = delta + gamma * lam * carried
//! ```

use ndarray::{Array2, ArrayD};

use crate::gae::{Gae, GaeOutput};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Gae> =
    Rule::new(Pitfall::AdvantageNormalisation, &["td-error-clipped", "whitened-unasked"], check);

/// An output field.
type Field = fn(&GaeOutput) -> &Array2<f64>;

fn check(probe: &mut Probe<'_, Gae>) -> Outcome {
    let before = probe.output()?;
    let mut doubled = probe.case.clone();
    let [mut rewards_only, mut values_only] = [probe.case.clone(), probe.case.clone()];
    for (at, _) in probe.case.mask.indexed_iter().filter(|(_, kept)| **kept) {
        doubled.rewards[at] *= 2.0;
        doubled.values[at] *= 2.0;
        rewards_only.values[at] = 0.0;
        values_only.rewards[at] = 0.0;
    }
    let twice = match probe.call(&doubled) {
        // Twice the numbers are too large.
        Err(Stop::Vacuous) => None,
        other => Some(other?),
    };
    let parts = [probe.call(&rewards_only)?, probe.call(&values_only)?];
    let fields: [(&str, Field); 2] =
        [("advantages", |output| &output.advantages), ("returns", |output| &output.returns)];
    for (name, field) in fields {
        if name == "advantages" && probe.options.whiten {
            continue;
        }
        let bounds = probe.related(name);
        let parts_bounds: ArrayD<f64> = [&rewards_only, &values_only]
            .map(|part| probe.bounds_in(&probe.expected_of(part), name))
            .iter()
            .fold(bounds.clone(), |sum, part| sum + part);
        for ((row, token), _) in probe.case.mask.indexed_iter().filter(|(_, kept)| **kept) {
            let at = [row, token];
            let single = field(&before.output)[at];
            if let Some(twice) = &twice {
                let what = format_args!("with twice the rewards and values {name}[{row}, {token}]");
                near(what, field(twice)[at], 2.0 * single, 4.0 * bounds[at])?;
            }
            let added = field(&parts[0])[at] + field(&parts[1])[at];
            let what = format_args!("of rewards and values apart, added, {name}[{row}, {token}]");
            near(what, added, single, parts_bounds[at])?;
        }
    }
    Ok(())
}
