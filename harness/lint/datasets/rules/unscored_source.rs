//! verl has no score for a data source.
//!
//! ### Fires when
//! The data set is verl's, a `data_source` is none of those that verl scores by itself, and the
//! configuration, which was read whole, sets no reward function and no reward model.
//!
//! ### Not said
//! That the score of a known source is the one that is meant.
//!
//! ### Causes
//! - a data set of one's own without `custom_reward_function.path`
//! - another spelling of a known source
//!
//! ### Next
//! - set `custom_reward_function.path`, then shakedown check-config FILE
//! - shakedown check --stage reward
//!
//! ### Source
//! verl, `default_compute_score`: it raises NotImplementedError at the first such row.

use crate::datasets::Dataset;
use crate::datasets::scores;
use crate::report::Severity;
use crate::rules::{Head, Judgement, insufficient, not_applicable};
use crate::settings::{Library, Settings};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Reward,
    needs: &["data_source"],
    explains: &[],
    contracts: &[],
    catches: &[],
    check,
};

fn check(data: &Dataset) -> Judgement {
    if data.library != Some(Library::Verl) {
        return Err(not_applicable("only verl chooses the score by a column"));
    }
    if data.seen.sources == 0 {
        return Err(insufficient("no column of data sources"));
    }
    let settings = data.settings.as_ref();
    let settings = settings.ok_or_else(|| insufficient("no --config, which may set a reward"))?;
    if has_reward(settings) {
        return Err(not_applicable("a reward function is set"));
    }
    if !settings.is_complete {
        return Err(insufficient("the configuration was not read whole, and may set a reward"));
    }
    let fired = data.seen.unscored.iter().map(|(source, hits)| {
        let near = scores::nearest(source);
        let found = format!("verl has no score for `{source}`: {}{near}", data.rows_of(hits));
        data.firing(Severity::Error, hits, "data_source", found)
    });
    Ok(fired.collect())
}

/// Whether a reward function of one's own, a reward model or another manager is set.
fn has_reward(settings: &Settings) -> bool {
    const NAMES: [&str; 6] = [
        "custom_reward_function.path",
        "reward_model.enable",
        "reward.reward_model.enable",
        "reward_manager",
        "reward_manager.name",
        "reward_manager.module.path",
    ];
    /// Managers that use verl's own scores.
    const OWN: [&str; 8] = ["", "null", "none", "false", "naive", "dapo", "prime", "batch"];
    settings.fields.iter().any(|(field, value)| {
        let is_named = NAMES.iter().any(|name| field.trim_start_matches('+').ends_with(name));
        let value = match &value.json {
            serde_json::Value::String(text) => text.to_lowercase(),
            other => other.to_string(),
        };
        is_named && !OWN.contains(&value.as_str())
    })
}
