//! Padding is at the end of a row, and is nothing else.
//!
//! ### Claim
//! Padding ends a row, with `pad` for its ids and `ignore` for its labels, and is no row by itself.
//!
//! ### Why it matters
//! A label under padding is trained. A row of nothing else is a forward pass for nothing, and its
//! mean is 0 / 0.
//!
//! ### Does not hold for
//! Positions at padding, which may be anything.
//!
//! ### Bugs it has caught
//! AReaL #1104: a row that is exactly full gets its padding all the same, as an empty document.
//!
//! ### Example
//! ```diff
//! -    labels = tokens.new_full(shape, pad)
//! +    labels = tokens.new_full(shape, ignore)
//! ```

use crate::sequence_packing::SequencePacking;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SequencePacking> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "row-of-padding",
        "labels-in-the-padding",
        "padded-on-the-left",
        "pad-hard-coded",
        "padded-between-documents",
        "ignore-hard-coded",
        "ids-under-the-padding",
    ],
    check,
);

fn check(probe: &mut Probe<'_, SequencePacking>) -> Outcome {
    let returned = probe.finite_output()?;
    let output = &returned.output;
    let (pad, ignore) = (probe.options.pad as f64, probe.options.ignore as f64);
    for (row, numbers) in output.segments.rows().into_iter().enumerate() {
        let first = numbers.iter().position(|segment| *segment == 0.0).unwrap_or(numbers.len());
        if let Some(behind) = (first..numbers.len()).find(|token| numbers[*token] != 0.0) {
            broken!("segments[{row}, {first}] is 0, and segments[{row}, {behind}] is not");
        }
        if first == 0 {
            broken!("row {row} is padding only");
        }
        for token in first..numbers.len() {
            let found = output.packed[[row, token]];
            if found != pad {
                let [found, pad] = [found, pad].map(number);
                broken!("packed[{row}, {token}] is {found}, expected {pad}: it is padding");
            }
            let label = output.labels.as_ref().map(|labels| labels[[row, token]]);
            if let Some(found) = label.filter(|label| *label != ignore) {
                let [found, ignore] = [found, ignore].map(number);
                broken!("labels[{row}, {token}] is {found}, expected {ignore}: it is padding");
            }
        }
    }
    Ok(())
}
