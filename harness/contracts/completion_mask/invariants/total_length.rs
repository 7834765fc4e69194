//! The mask counts the sampled tokens.
//!
//! ### Claim
//! The mask adds up to the number of tokens that were sampled, ends included or not as declared.
//!
//! ### Why it matters
//! Losses that are means over tokens divide by this number, and throughput, length penalties and
//! schedules are made of it. One token too few in each row is a bias that grows as completions
//! become short.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! trlx #401 and trl #2793: each completion one token short.
//!
//! ### Example
//! ```diff
//! -    mask = is_eos.cumsum(dim=1) == 0
//! +    mask = is_eos.cumsum(dim=1) - is_eos.long() == 0
//! ```

use super::rows;
use crate::completion_mask::CompletionMask;
use crate::completion_mask::oracle::length;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<CompletionMask> = Rule::new(
    Pitfall::Aggregation,
    &["eos-left-out", "final-eos-dropped-when-pad-is-eos", "one-length-for-the-batch"],
    check,
);

fn check(probe: &mut Probe<'_, CompletionMask>) -> Outcome {
    let found = probe.finite_output()?.output.mask.sum();
    let lengths = rows(probe.case, probe.options).map(|(_, row, _)| length(&row, probe.options));
    let expected: usize = lengths.sum();
    if found != expected as f64 {
        broken!("the mask adds up to {}, expected {expected}", number(found));
    }
    Ok(())
}
