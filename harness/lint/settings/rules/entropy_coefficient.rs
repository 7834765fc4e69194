//! The weight of the entropy is out of the usual range.
//!
//! ### Fires when
//! It is negative or above 0.1 (an error), or above 0.01 (a warning).
//!
//! ### Not said
//! That a bonus is needed.
//!
//! ### Causes
//! - its sign: libraries subtract it from the loss
//! - a weight for few actions was used for a whole vocabulary
//!
//! ### Next
//! - begin with 0, or with 0.001
//! - shakedown check --stage loss
//!
//! ### Source
//! The entropy of a vocabulary is up to 12 nats a token; rewards are about 1 a completion.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement, not_applicable};
use crate::settings::{Library, Settings};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Loss,
    needs: &["entropy.coef"],
    explains: &[],
    contracts: &[("entropy-bonus", &[]), ("token-entropy", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    if settings.library == Some(Library::NemoRl) {
        return Err(not_applicable("NeMo-RL has no such weight"));
    }
    if settings.values.get("entropy.coef").is_some_and(|value| value.json.is_null()) {
        return Ok(vec![]);
    }
    let weight = settings.need_number("entropy.coef")?;
    let (severity, limit) = match weight {
        _ if weight < 0.0 => (Severity::Error, 0.0),
        _ if weight > 0.1 => (Severity::Error, 0.1),
        _ if weight > 0.01 => (Severity::Warning, 0.01),
        _ => return Ok(vec![]),
    };
    let found = format!("the weight of the entropy is {}", number(weight));
    let firing = Firing::new(severity, found).field("entropy.coef", "value", weight, Some(limit));
    firing.at(settings.location("entropy.coef")).into()
}
