//! The temperature of the rollouts is out of the usual range.
//!
//! ### Fires when
//! It is 0 while rewards are compared within groups, or negative (an error), or below 0.3 or above
//! 1.5 (a warning).
//!
//! ### Not said
//! That 1.0 is best.
//!
//! ### Causes
//! - the temperature of an evaluation was copied
//!
//! ### Next
//! - sample rollouts at 1.0, or with what the log-probabilities are computed
//! - shakedown check --stage log-probability
//!
//! ### Source
//! Completions of one prompt differ by chance alone.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement};
use crate::settings::Settings;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::LogProbability,
    needs: &["temperature"],
    explains: &[],
    contracts: &[("token-log-probs", &["oracle"])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    let temperature = settings.need_number("temperature")?;
    let greedy = temperature == 0.0 && settings.has_a_baseline() == Some(true);
    let (severity, limit) = match temperature {
        _ if greedy || temperature < 0.0 => (Severity::Error, 0.0),
        _ if temperature < 0.3 => (Severity::Warning, 0.3),
        _ if temperature > 1.5 => (Severity::Warning, 1.5),
        _ => return Ok(vec![]),
    };
    let found = match greedy {
        true => "the temperature is 0: all completions of a prompt are the same".to_owned(),
        false => format!("rollouts are sampled at a temperature of {}", number(temperature)),
    };
    let firing =
        Firing::new(severity, found).field("temperature", "value", temperature, Some(limit));
    firing.at(settings.location("temperature")).into()
}
