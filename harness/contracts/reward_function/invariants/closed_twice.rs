//! Each tag stands where it belongs, once.
//!
//! ### Claim
//! A repeated closing tag never gets the maximum. [`format`]
//!
//! ### Why it matters
//! A lazy pattern takes in whatever stands between the first tag and the last one, other tags too.
//!
//! ### Does not hold for
//! Other `judges`. Templates that do not end in a closing tag.
//!
//! ### Bugs it has caught
//! open-r1 #359, #616: a lazy match lets a repeated closing tag through.
//!
//! ### Example
//! Under `judges="format"`:
//! ```diff
//! -    return 1.0 if FORM.fullmatch(completion.strip()) else 0.0
//! +    once = all(completion.count(tag) == 1 for tag in TAGS)
//! +    return 1.0 if once and FORM.fullmatch(completion.strip()) else 0.0
//! ```

use crate::reward_function::probes::Question;
use crate::reward_function::template::Template;
use crate::reward_function::{Judges, Options, RewardFunction};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> =
    Rule::new(Pitfall::DecodingStringProcessing, &["duplicate-tags-accepted"], check)
        .under(|options| options.judges == Judges::Format && closes_with_a_tag(options));

/// Whether the template ends with a tag such as `</answer>`.
fn closes_with_a_tag(options: &Options) -> bool {
    Template::of(options).closing().is_some_and(|mark| mark.starts_with("</"))
}

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let question = Question::of(probe)?;
    let right = question.right();
    let closing = question.template.closing().unwrap_or_default().to_owned();
    let hacks = ["", "\n"].map(|between| [right.trim_end(), between, &closing].concat());
    question.below_the_right_one(probe, &hacks)
}
