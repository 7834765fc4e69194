//! Permuting the rows permutes the flags.
//!
//! ### Claim
//! Permuting the rows permutes the flags, and what is carried along with them.
//!
//! ### Why it matters
//! Batches are sorted by length, sharded and gathered before they are filtered. A filter that finds
//! groups by where their rows stand keeps other rows after that.
//!
//! ### Does not hold for
//! `layout: contiguous`; a `limit`, which goes by the order of the groups.
//!
//! ### Bugs it has caught
//! verl #1943, #1440: outputs left in another order. `view(-1, n)` on rows that were shuffled.
//!
//! ### Example
//! ```diff
//! -    size = groups.tolist().count(groups[0])
//! -    for rows in torch.arange(len(groups)).split(size):
//! +    for group in dict.fromkeys(groups.tolist()):  # in order of appearance
//! +        rows = groups == group
//!          own = metric[rows]
//! ```

use crate::group_filter::{GroupFilter, Layout};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupFilter> = Rule::new(
    Pitfall::MaskingAlignment,
    &[
        "groups-assumed-contiguous",
        "neighbours-are-a-group",
        "keep-in-the-order-of-groups",
        "first-two-decide",
        "last-group-left-out",
    ],
    check,
)
.under(|options| options.layout == Layout::Any && options.limit.is_none());

fn check(probe: &mut Probe<'_, GroupFilter>) -> Outcome {
    let count = probe.case.metric.len();
    if count < 2 {
        return Err(Stop::Vacuous);
    }
    let before = probe.finite_output()?;
    let order = probe.pick.shuffled(count);
    let after = probe.call(&GroupFilter::take(probe.case, &order))?;
    for (place, row) in order.iter().enumerate() {
        let [found, expected] = [after.keep[place], before.output.keep[*row]];
        if found != expected {
            let [found, expected] = [found, expected].map(number);
            broken!(
                "with the rows in the order {order:?}, keep[{place}] is {found}, but it was \
                 {expected} before"
            );
        }
    }
    Ok(())
}
