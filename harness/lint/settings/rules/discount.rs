//! Rewards are discounted at every token.
//!
//! ### Fires when
//! γ is below 0.99, and advantages are made from returns over tokens.
//!
//! ### Not said
//! That each token is an action there.
//!
//! ### Causes
//! - the discount of games was copied, where a step is an action
//!
//! ### Next
//! - take γ = 1
//! - shakedown check --stage advantage
//!
//! ### Source
//! The reward comes with the last token of hundreds.

use crate::rules::{Firing, Head, Judgement, not_applicable};
use crate::settings::Settings;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::{number, rounded};

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Advantage,
    needs: &["discount"],
    explains: &[],
    contracts: &[("gae", &[]), ("returns", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    if settings.has_a_baseline() == Some(true) || settings.learns_from_pairs() {
        return Err(not_applicable("advantages of this algorithm have no discount"));
    }
    let gamma = settings.need_number("discount")?;
    if gamma >= 0.99 {
        return Ok(vec![]);
    }
    let found = format!(
        "γ is {}: a reward counts {} of itself 500 tokens before",
        number(gamma),
        rounded(gamma.max(0.0).powi(500))
    );
    let firing = Firing::warning(found).field("discount", "value", gamma, Some(0.99));
    firing.at(settings.location("discount")).into()
}
