//! All parts have as many rows.
//!
//! ### Claim
//! With `equal_size` each part has N / `parts` rows.
//!
//! ### Why it matters
//! Workers that take a fixed number of rows, and gathers that stack what comes from all of them,
//! need it. The smaller part is padded, cut, or waited for.
//!
//! ### Does not hold for
//! `equal_size: false`, and parts that are made by `capacity`.
//!
//! ### Bugs it has caught
//! Options without effect: parts of as many tokens, not of as many rows.
//!
//! ### Example
//! Under `equal_size=True`:
//! ```diff
//! -        min(bins, key=lambda rows: lengths[rows].sum()).append(row)
//! +        min(bins, key=lambda rows: (len(rows), lengths[rows].sum())).append(row)
//! ```

use super::parts;
use crate::batch_partition::{BatchPartition, Options};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<BatchPartition> =
    Rule::new(Pitfall::Configuration, &["equal-size-ignored", "one-row-moved"], check)
        .under(Options::is_equal);

fn check(probe: &mut Probe<'_, BatchPartition>) -> Outcome {
    let (numbers, contents) = parts(probe)?;
    let expected = numbers.len() / probe.options.parts as usize;
    for (part, content) in &contents {
        let found = content.rows.len();
        if found != expected {
            broken!("part {part} has {found} rows, expected {expected}");
        }
    }
    Ok(())
}
