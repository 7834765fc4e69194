//! There are more or fewer weights than reward functions.
//!
//! ### Fires when
//! The list of weights and that of reward functions have different lengths. Without weights all
//! functions count alike.
//!
//! ### Not said
//! Which of the functions has none.
//!
//! ### Causes
//! - a function was added or removed, and not its weight
//!
//! ### Next
//! - give each reward function its weight
//! - shakedown check --stage reward
//!
//! ### Source
//! TRL raises.

use serde_json::Value as Json;

use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::settings::{Library, Settings};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::count;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Reward,
    needs: &[],
    explains: &[],
    contracts: &[("reward-combination", &[]), ("reward-function", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    if settings.library != Some(Library::Trl) {
        return Err(not_applicable("only TRL has a list of weights"));
    }
    if settings.field("reward_weights").is_some_and(|value| value.json.is_null()) {
        return Ok(vec![]);
    }
    let length = |name: &str| match settings.field(name)?.json {
        Json::Array(items) => Some(items.len()),
        // One function needs no list.
        Json::String(_) => Some(1),
        _ => None,
    };
    let weights = length("reward_weights");
    let functions = length("reward_funcs").or_else(|| length("reward_func"));
    let (Some(weights), Some(functions)) = (weights, functions) else {
        return Err(insufficient("weights and reward functions are not both known"));
    };
    if weights == functions {
        return Ok(vec![]);
    }
    let found = format!(
        "{} for {}",
        count(weights as u64, "weight"),
        count(functions as u64, "reward function")
    );
    let firing = Firing::error(found).field(
        "reward_weights",
        "length",
        weights as f64,
        Some(functions as f64),
    );
    firing.at(settings.field_location(&["reward_weights", "reward_funcs"])).into()
}
