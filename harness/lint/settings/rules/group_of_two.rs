//! A group of two or three gives a coarse baseline.
//!
//! ### Fires when
//! The advantages are centred within a group of two (a warning where they are also divided by its
//! deviation, so that all that is left of the rewards is which is larger), or of three (a note).
//!
//! ### Not said
//! That such a group cannot learn: leave-one-out with two is unbiased.
//!
//! ### Causes
//! - memory: a smaller group was all that fitted
//! - a default: RLOO of TRL has 2
//!
//! ### Next
//! - take 8 or 16 completions of a prompt, and fewer prompts
//! - shakedown check --stage advantage
//!
//! ### Source
//! The variance of a mean of k - 1 rewards; divided by its deviation a group of two has advantages
//! of one size whatever the rewards.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement};
use crate::settings::Settings;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Advantage,
    needs: &["group", "algorithm"],
    explains: &[],
    contracts: &[("group-advantage", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    settings.with_a_baseline()?;
    let group = settings.need_number("group")?;
    let scaled = settings.text("advantage.scale").is_none_or(|scale| scale != "none");
    let severity = match group {
        2.0 if scaled => Severity::Warning,
        2.0 | 3.0 => Severity::Note,
        _ => return Ok(vec![]),
    };
    let found = format!("the baseline of a completion comes from {} others", number(group - 1.0));
    let firing = Firing::new(severity, found).field("group", "value", group, Some(4.0));
    firing.at(settings.location("group")).into()
}
