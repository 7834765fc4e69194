//! Only the quotient of logits and temperature counts.
//!
//! ### Claim
//! With the temperature first, twice the logits at twice the temperature give the same.
//!
//! ### Why it matters
//! Filters that see the logits before the temperature keep another set: what is sampled is then
//! not what the declared options say, and nothing else shows it.
//!
//! ### Does not hold for
//! `order: filters-first`; components that do not read `temperature`; logits that doubling takes
//! beyond the contract.
//!
//! ### Bugs it has caught
//! Temperature after the filters, where it is declared before; temperatures that are clamped.
//!
//! ### Example
//! Under `top_p=0.75`:
//! ```diff
//! -    early, late = 1.0, temperature
//! +    early, late = (temperature, 1.0) if order == "temperature-first" else (1.0, temperature)
//!      filtered = logits / early
//! ```

use crate::sampling_filter::{Options, Order, SamplingFilter};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SamplingFilter> = Rule::new(
    Pitfall::Configuration,
    &["temperature-after-the-filters", "temperature-multiplied", "temperature-clamped"],
    check,
)
.under(|options| options.order == Order::TemperatureFirst);

fn check(probe: &mut Probe<'_, SamplingFilter>) -> Outcome {
    if !probe.reads("temperature") {
        return Err(Stop::Vacuous);
    }
    let before = probe.finite_output()?;
    let mut doubled = probe.case.clone();
    doubled.logits *= 2.0;
    let temperature = 2.0 * probe.options.temperature;
    let after = probe.call_under(&doubled, &Options { temperature, ..probe.options.clone() })?;
    let allowed = 4.0 * probe.bounds("probs");
    let what = format_args!("with twice the logits at the temperature {temperature}, probs");
    close(what, &after.probs, &before.output.probs, &allowed)
}
