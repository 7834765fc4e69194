//! A row stays or goes.
//!
//! ### Claim
//! Each flag is 0 or 1.
//!
//! ### Why it matters
//! Flags are multiplied into losses and used as indices. One that is a share, a count or -1 does
//! something else in each of these places.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! None yet; `gives-nan` stands for them.
//!
//! ### Example
//! ```diff
//! -            keep[rows] = own.max() - own.min()
//! +            keep[rows] = 1
//! ```

use crate::group_filter::GroupFilter;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupFilter> =
    Rule::new(Pitfall::PurityShapeDtype, &["gives-nan"], check);

fn check(probe: &mut Probe<'_, GroupFilter>) -> Outcome {
    let returned = probe.output()?;
    let keep = returned.output.keep.iter().enumerate();
    if let Some((row, flag)) = keep.into_iter().find(|(_, flag)| ![0.0, 1.0].contains(*flag)) {
        broken!("keep[{row}] is {}, expected 0 or 1", number(*flag));
    }
    Ok(())
}
