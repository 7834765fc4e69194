//! A temperature behind the filters does not change what they keep.
//!
//! ### Claim
//! With the filters first, another temperature leaves the same tokens.
//!
//! ### Why it matters
//! Where the temperature comes last it shapes what is left and takes nothing away. A nucleus of
//! tempered logits is another nucleus.
//!
//! ### Does not hold for
//! `order: temperature-first`; components that do not read `temperature`; tokens tied at a
//! boundary; probabilities too small for the dtype at either temperature.
//!
//! ### Bugs it has caught
//! Temperature before the filters, where it is declared behind them.
//!
//! ### Example
//! Under `order="filters-first", top_p=0.75`:
//! ```diff
//! -    early, late = temperature, 1.0
//! +    early, late = (temperature, 1.0) if order == "temperature-first" else (1.0, temperature)
//!      filtered = logits / early
//! ```

use super::seen;
use crate::sampling_filter::oracle::Row;
use crate::sampling_filter::{Options, Order, SamplingFilter};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SamplingFilter> =
    Rule::new(Pitfall::Configuration, &["temperature-before-the-filters"], check)
        .under(|options| options.order == Order::FiltersFirst);

fn check(probe: &mut Probe<'_, SamplingFilter>) -> Outcome {
    if !probe.reads("temperature") {
        return Err(Stop::Vacuous);
    }
    let before = probe.finite_output()?;
    let temperature = 2.0 * probe.options.temperature;
    let options = Options { temperature, ..probe.options.clone() };
    let after = probe.call_under(probe.case, &options)?;
    let dtype = probe.place.dtype;
    let mut checked = false;
    for (row, logits) in probe.case.logits.rows().into_iter().enumerate() {
        let sorted = Row::of(logits, probe.options, dtype);
        if sorted.left.len() > 1 {
            continue;
        }
        checked = true;
        let kept = [&before.output.probs, &after.probs].map(|probs| {
            let tokens = &sorted.order[..seen(&sorted, dtype)];
            tokens.iter().filter(|token| probs[[row, **token]] > 0.0).count()
        });
        if kept[0] != kept[1] {
            broken!(
                "row {row} keeps {} tokens at the temperature {temperature}, but {} at {}",
                kept[1],
                kept[0],
                probe.options.temperature
            );
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
