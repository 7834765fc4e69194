//! Too high is as bad as too low.
//!
//! ### Claim
//! Negating values, old values and returns changes nothing.
//!
//! ### Why it matters
//! A squared error and a range that is as wide above as below know no sign. A one-sided one makes
//! the critic an optimist or a pessimist.
//!
//! ### Does not hold for
//! Batches without a token.
//!
//! ### Bugs it has caught
//! No real one yet; clip ranges that reach to one side only break it.

use super::super::{ValueLoss, is_empty};
use super::mapped;
use crate::contract::invariant::Rule;
use crate::contract::probe::broken;
use crate::contract::probe::{Outcome, Probe, Stop};
use crate::contract::stage::Pitfall;
use crate::numeric::tolerance::apart;
use crate::value::text::pair;

pub(super) const RULE: Rule<ValueLoss> =
    Rule::new(Pitfall::ProbabilityRatio, &["clipped-from-above-only"], check);

fn check(probe: &mut Probe<'_, ValueLoss>) -> Outcome {
    if is_empty(probe.case) {
        return Err(Stop::Vacuous);
    }
    let before = probe.finite_output()?.output.loss[()];
    let negated = mapped(probe.case, |value, old, target| (-value, -old, -target));
    let after = probe.call(&negated)?.loss[()];
    let allowed = 2.0 * probe.bounds("loss")[[]];
    if apart(after, before, allowed) {
        let [found, expected] = pair(after, before);
        broken!(
            "with values, old values and returns negated, the loss is {found}, before it was \
             {expected} ± {allowed:.1e}"
        );
    }
    Ok(())
}
