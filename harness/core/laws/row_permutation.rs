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
//!
//! ### Example
//! In `token-rewards`:
//! ```diff
//! -    by_length = mask.sum(dim=1).argsort()
//! -    kl = torch.where(mask, log_probs - ref_log_probs[by_length], 0.0)
//! +    kl = torch.where(mask, log_probs - ref_log_probs, 0.0)
//! ```

use crate::contract::invariant::{Invariant, Rule};
use crate::contract::outcome::{Outcome, Stop};
use crate::contract::probe::Probe;
use crate::contract::rows::Rows;
use crate::contract::stage::Pitfall;
use crate::laws::compare::{Told, rows_difference};

/// The law, for the contract `C`.
pub fn law<C: Rows>() -> Invariant<C> {
    let rule = Rule::new(Pitfall::MaskingAlignment, &[], check::<C>);
    Invariant::own("row-permutation", include_str!("row_permutation.rs"), rule)
}

fn check<C: Rows>(probe: &mut Probe<'_, C>) -> Outcome {
    if C::rows(probe.case) < 2 {
        return Err(Stop::Vacuous);
    }
    let whole = probe.any.finite_output()?;
    let order = C::permutation(probe.case, probe.options, &mut probe.pick);
    let permuted = probe.any.call(&C::take(probe.case, &order))?;
    let told = Told {
        number: &|at, found, expected, allowed| {
            format!(
                "with the rows in the order {order:?}, {at} is {found}, but it was {expected} \
                 before{allowed}"
            )
        },
        text: &|at, texts| {
            format!("with the rows in the order {order:?}, {at} is {texts} as before")
        },
    };
    rows_difference(&mut probe.any, C::AXES, &whole, &permuted, &order, &told)
}
