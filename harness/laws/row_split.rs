//! Rows that have nothing to do with each other do not influence each other.
//!
//! ### Claim
//! A batch gives what its independent parts give one at a time.
//!
//! ### Why it matters
//! What a completion gets must not depend on what else happens to be in the batch, or the result
//! changes with the batch size, the number of devices and the order of the data.
//!
//! ### Does not hold for
//! Conventions that take statistics over the whole batch on purpose, and say so in an option:
//! `rows: batch` where no other says it.
//!
//! ### Bugs it has caught
//! AReaL #225: a stride applied twice leaves all groups but the first as they were. trl
//! 4db63af98: position `(i, t)` gets the advantage of row `t`.

use crate::broken;
use crate::contract::{Pitfall, RowInfluence, SharedOptions};
use crate::invariant::{Doc, Invariant, Outcome, Probe, Stop};
use crate::laws::{Rows, difference, outputs, take_rows, text_difference};
use crate::text::pair;

/// At most this many parts of a batch are called on their own.
const PARTS: usize = 4;

/// The law, for the contract `C`.
pub fn law<C: Rows>() -> Invariant<C> {
    Invariant {
        id: "row-split",
        doc: Doc(include_str!("row_split.rs")),
        pitfall: Pitfall::MaskingAlignment,
        catches: &[],
        needs_gradient: false,
        applies: |options, _| {
            C::independent(options) && options.rows() == RowInfluence::Independent
        },
        check: check::<C>,
    }
}

fn check<C: Rows>(probe: &mut Probe<'_, C>) -> Outcome {
    let parts = C::parts(probe.case);
    if parts.len() < 2 {
        return Err(Stop::Vacuous);
    }
    let whole = probe.finite_output()?;
    let mut checked = false;
    for index in probe.pick.shuffled(parts.len()).into_iter().take(PARTS) {
        let rows = &parts[index];
        let alone = match probe.call(&C::take(probe.case, rows)) {
            Err(Stop::Vacuous) => continue,
            other => other?,
        };
        checked = true;
        for ((name, whole), (_, alone)) in outputs(&whole.output).into_iter().zip(outputs(&alone)) {
            let allowed = 2.0 * probe.bounds(name);
            let [whole, allowed] = [whole, allowed].map(|a| take_rows::<C>(name, &a, rows));
            if let Some(found) = difference(&alone, &whole, &allowed) {
                let [left, right] = pair(found.left, found.right);
                broken!(
                    "rows {rows:?} alone give {name}{} = {}, in the batch {}; allowed difference \
                     {:.1e}",
                    found.index,
                    left,
                    right,
                    found.allowed,
                );
            }
        }
        if let Some((place, texts)) = text_difference::<C>(&whole.output, &alone, Some(rows)) {
            broken!("rows {rows:?} alone give {place} = {texts} as in the batch");
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
