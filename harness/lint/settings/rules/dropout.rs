//! Dropout makes the policy differ from itself.
//!
//! ### Fires when
//! The larger of the two dropouts is not 0.
//!
//! ### Not said
//! That it hurts in supervised training.
//!
//! ### Causes
//! - Megatron has 0.1 where nothing is set
//!
//! ### Next
//! - set both to 0
//! - shakedown check --stage log-probability
//!
//! ### Source
//! Ratios of one policy to itself must be 1; slime sets both to 0 in its examples.

use crate::rules::{Firing, Head, Judgement, not_applicable};
use crate::settings::{Library, Settings};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::LogProbability,
    needs: &["dropout"],
    explains: &[],
    contracts: &[("token-log-probs", &["deterministic"])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    if settings.library != Some(Library::Slime) {
        return Err(not_applicable("only slime takes the dropout of Megatron as it is"));
    }
    let dropout = settings.need_number("dropout")?;
    if dropout == 0.0 {
        return Ok(vec![]);
    }
    let found = format!(
        "dropout is {}: log-probabilities of one token differ from call to call",
        number(dropout)
    );
    let firing = Firing::error(found).field("dropout", "value", dropout, Some(0.0));
    firing.at(settings.location("dropout")).into()
}
