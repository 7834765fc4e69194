//! Permuting the rows permutes the results.
//!
//! ### Claim
//! Permuting the rows permutes the results.
//!
//! ### Why it matters
//! Batches are sorted by length, sharded, gathered and shuffled. A component that depends on the
//! order of its rows mixes the rewards of one completion with the tokens of another.
//!
//! ### Does not hold for
//! Orders that break the declared layout: with `contiguous` groups only whole groups move.
//!
//! ### Bugs it has caught
//! verl #1943, #1440: outputs left in the order by length. LLaMA-Factory #7576: scores of other
//! rows.

use crate::broken;
use crate::contract::Pitfall;
use crate::invariant::{Doc, Invariant, Outcome, Probe, Stop};
use crate::laws::{Rows, difference, outputs, take_rows, text_difference};
use crate::text::pair;

/// The law, for the contract `C`.
pub fn law<C: Rows>() -> Invariant<C> {
    Invariant {
        id: "row-permutation",
        doc: Doc(include_str!("row_permutation.rs")),
        pitfall: Pitfall::MaskingAlignment,
        catches: &[],
        needs_gradient: false,
        applies: |_, _| true,
        check: check::<C>,
    }
}

fn check<C: Rows>(probe: &mut Probe<'_, C>) -> Outcome {
    if C::rows(probe.case) < 2 {
        return Err(Stop::Vacuous);
    }
    let whole = probe.finite_output()?;
    let order = C::permutation(probe.case, probe.options, &mut probe.pick);
    let permuted = probe.call(&C::take(probe.case, &order))?;
    for ((name, whole), (_, permuted)) in outputs(&whole.output).into_iter().zip(outputs(&permuted))
    {
        let allowed = 2.0 * probe.bounds(name);
        let [whole, allowed] = [whole, allowed].map(|a| take_rows::<C>(name, &a, &order));
        if let Some(found) = difference(&permuted, &whole, &allowed) {
            let [left, right] = pair(found.left, found.right);
            broken!(
                "with the rows in the order {order:?}, {name}{} is {}, but it was {} before; \
                 allowed difference {:.1e}",
                found.index,
                left,
                right,
                found.allowed,
            );
        }
    }
    if let Some((place, texts)) = text_difference::<C>(&whole.output, &permuted, Some(&order)) {
        broken!("with the rows in the order {order:?}, {place} is {texts} as before");
    }
    Ok(())
}
