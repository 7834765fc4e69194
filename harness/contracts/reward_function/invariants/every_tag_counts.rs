//! A form with a tag missing is not the whole form.
//!
//! ### Claim
//! Leaving out one tag of the template, or renaming it, lowers the score. [`format`, `incremental-
//! format`]
//!
//! ### Why it matters
//! A tag that costs nothing to leave out will be left out, and what parses the completion later
//! does not find its part.
//!
//! ### Does not hold for
//! Other `judges`. Renamed tags are asked about with `format` only: counters that accept them are a
//! choice.
//!
//! ### Bugs it has caught
//! verifiers #116, #207: a missing or cross-closed tag scored full.
//!
//! ### Example
//! Under `judges="incremental-format"`:
//! ```diff
//! -TAGS = ["<reasoning>", "<answer>"]
//! +TAGS = ["<reasoning>", "</reasoning>", "<answer>", "</answer>"]
//! ```

use crate::reward_function::probes::Question;
use crate::reward_function::{Judges, RewardFunction};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &["cross-closed-tags-accepted", "opening-tags-are-enough"],
    check,
)
.under(|options| matches!(options.judges, Judges::Format | Judges::IncrementalFormat));

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let question = Question::of(probe)?;
    let form = probe.options.judges == Judges::Format;
    let hacks = question.without_a_tag(form);
    question.below_the_right_one(probe, &hacks)
}
