//! Rollouts leave tokens out that the trainer counts.
//!
//! ### Fires when
//! Training rollouts are sampled with top-p below 1, top-k, min-p or a penalty on repetition, and
//! the library computes log-probabilities over all tokens.
//!
//! ### Not said
//! That learning fails: a filter that seldom acts changes little.
//!
//! ### Causes
//! - the settings of an evaluation, or of the generation configuration of the model, were copied
//!
//! ### Next
//! - sample rollouts from the whole distribution
//! - shakedown check --stage decoding
//!
//! ### Source
//! Importance ratios compare two probabilities of one token: those of the filter and of the
//! trainer differ.

use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::settings::{Library, Settings};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Decoding,
    needs: &["sampling.top_p"],
    explains: &[],
    contracts: &[("sampling-filter", &[]), ("token-log-probs", &[])],
    catches: &[],
    check,
};

const FILTERS: [&str; 4] =
    ["sampling.top_p", "sampling.top_k", "sampling.min_p", "sampling.repetition_penalty"];

/// Whether a filter leaves tokens out, or makes them less likely.
fn is_on(id: &str, value: f64) -> bool {
    match id {
        "sampling.top_p" => value < 1.0,
        "sampling.repetition_penalty" => value != 1.0,
        _ => value > 0.0,
    }
}

fn check(settings: &Settings) -> Judgement {
    if settings.library == Some(Library::NemoRl) {
        return Err(not_applicable("NeMo-RL filters in training too"));
    }
    let known = FILTERS.iter().filter_map(|id| Some((*id, settings.number(id)?)));
    let firings = known.filter(|(id, value)| is_on(id, *value)).map(|(id, value)| {
        let name = id.trim_start_matches("sampling.");
        let found = format!("rollouts are sampled with {name} = {}", number(value));
        Firing::warning(found).field(id, "value", value, None).at(settings.location(id))
    });
    let firings: Vec<Firing> = firings.collect();
    // Every library has top-p; some have no other filter.
    if firings.is_empty() && !settings.values.contains_key("sampling.top_p") {
        return Err(insufficient("sampling.top_p is not known"));
    }
    Ok(firings)
}
