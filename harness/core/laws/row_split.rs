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
//!
//! ### Example
//! In `token-rewards`:
//! ```diff
//! -    rewards = ends * (scores - scores.mean())[:, None] - beta * kl
//! +    rewards = ends * scores[:, None] - beta * kl
//! ```

use crate::contract::invariant::{Invariant, Rule};
use crate::contract::options::{AnyOptions as _, RowInfluence};
use crate::contract::outcome::{Outcome, Stop};
use crate::contract::probe::Probe;
use crate::contract::rows::Rows;
use crate::contract::stage::Pitfall;
use crate::laws::compare::{Told, rows_difference};

/// At most this many parts of a batch are called on their own.
const PARTS: usize = 4;

/// The law, for the contract `C`.
pub fn law<C: Rows>() -> Invariant<C> {
    let rule = Rule::new(Pitfall::MaskingAlignment, &[], check::<C>)
        .under(|options| C::independent(options) && options.rows() == RowInfluence::Independent);
    Invariant::own("row-split", include_str!("row_split.rs"), rule)
}

fn check<C: Rows>(probe: &mut Probe<'_, C>) -> Outcome {
    let parts = C::parts(probe.case);
    if parts.len() < 2 {
        return Err(Stop::Vacuous);
    }
    let whole = probe.any.finite_output()?;
    let mut checked = false;
    for index in probe.pick.shuffled(parts.len()).into_iter().take(PARTS) {
        let rows = &parts[index];
        let alone = match probe.any.call(&C::take(probe.case, rows)) {
            Err(Stop::Vacuous) => continue,
            other => other?,
        };
        checked = true;
        let told = Told {
            number: &|at, found, expected, allowed| {
                format!("rows {rows:?} alone give {at} = {found}, in the batch {expected}{allowed}")
            },
            text: &|at, texts| format!("rows {rows:?} alone give {at} = {texts} as in the batch"),
        };
        rows_difference(&mut probe.any, C::AXES, &whole, &alone, rows, &told)?;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
