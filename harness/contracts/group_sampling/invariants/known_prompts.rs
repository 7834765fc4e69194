//! Every row is a prompt of the data.
//!
//! ### Claim
//! Each row holds the id of one of the prompts.
//!
//! ### Why it matters
//! A sampler deals in indices, a buffer in ids, and both are small integers. Where one is taken for
//! the other, rewards are looked up for another prompt, and only a subset of the data, or one that
//! was filtered, shows it.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! Positions in a filtered data set returned for its ids; ids that went through a float of 16 bits.
//!
//! ### Example
//! ```diff
//! -    return torch.cat(rows)
//! +    return prompts[torch.cat(rows)]
//! ```

use crate::group_sampling::GroupSampling;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupSampling> = Rule::new(
    Pitfall::MaskingAlignment,
    &["indices-for-ids", "ids-in-half-precision", "ids-cut-to-16-bits", "an-id-for-each-copy"],
    check,
);

fn check(probe: &mut Probe<'_, GroupSampling>) -> Outcome {
    let returned = probe.output()?;
    for (row, id) in returned.output.rows.iter().enumerate() {
        if !probe.case.prompts.iter().any(|prompt| *prompt as f64 == *id) {
            broken!("rows[{row}] is {}, which is no prompt", number(*id));
        }
    }
    Ok(())
}
