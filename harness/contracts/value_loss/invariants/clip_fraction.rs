//! The share of clipped tokens is what it says.
//!
//! ### Claim
//! clip_fraction is the share of the tokens whose clipped error is the larger.
//!
//! ### Why it matters
//! It tells whether the critic moves too fast. A share of all cells shrinks with the padding, and
//! one that counts every value that moved far also counts those whose own error decides.
//!
//! ### Does not hold for
//! Components that do not return it; tokens whose clipping rounding decides; batches without a
//! token.
//!
//! ### Bugs it has caught
//! slime counts |V - V_old| > c; trlx took means of masked arrays.

use super::super::{ValueLoss, is_empty};
use crate::contract::invariant::Rule;
use crate::contract::probe::broken;
use crate::contract::probe::{Outcome, Probe, Stop};
use crate::contract::stage::Pitfall;
use crate::numeric::tolerance::apart;
use crate::value::text::rounded;

pub(super) const RULE: Rule<ValueLoss> = Rule::new(
    Pitfall::Aggregation,
    &["moved-values-counted-as-clipped", "clip-fraction-over-padding"],
    check,
);

fn check(probe: &mut Probe<'_, ValueLoss>) -> Outcome {
    let returned = probe.output()?;
    let Some(found) = &returned.output.clip_fraction else { return Err(Stop::Vacuous) };
    if is_empty(probe.case) {
        return Err(Stop::Vacuous);
    }
    let expected = probe.expected();
    let expected = expected.iter().find(|expected| expected.field == "clip_fraction");
    let expected = expected.expect("the oracle gives it").numbers[[]];
    let allowed = probe.tolerance.bound(expected, 1);
    if apart(found[()], expected.value, allowed) {
        broken!(
            "clip_fraction is {}, expected {} ± {allowed:.1e}",
            rounded(found[()]),
            rounded(expected.value)
        );
    }
    Ok(())
}
