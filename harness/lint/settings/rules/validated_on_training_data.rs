//! Training and evaluation read the same data.
//!
//! ### Fires when
//! Both settings name the same files.
//!
//! ### Not said
//! That the rows are the same, where files have other names.
//!
//! ### Causes
//! - the line was copied
//!
//! ### Next
//! - keep rows apart for evaluation
//! - shakedown check-data TRAIN --eval TEST
//!
//! ### Source
//! A score on what was trained on does not show what was learned.

use serde_json::Value as Json;

use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::settings::{Library, Settings};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Reward,
    needs: &["data.train", "data.eval"],
    explains: &[],
    contracts: &[],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    if settings.library == Some(Library::Trl) {
        return Err(not_applicable("one data set of TRL has a part for each"));
    }
    let known = |id: &str| {
        let value = settings.values.get(id).map(|value| &value.json);
        value
            .filter(|json| !json.is_null())
            .ok_or_else(|| insufficient(format!("{id} is not known")))
    };
    let (train, eval) = (known("data.train")?, known("data.eval")?);
    let names = |json: &Json| -> Vec<String> {
        let text = |json: &Json| json.as_str().map_or(json.to_string(), str::to_owned);
        match json {
            Json::Array(items) => items.iter().map(text).collect(),
            json => vec![text(json)],
        }
    };
    let trained = names(train);
    let evaluated = names(eval);
    let same = !evaluated.is_empty() && evaluated.iter().all(|name| trained.contains(name));
    if !same || !is_file(&evaluated) {
        return Ok(vec![]);
    }
    let found = "evaluation reads the files of training";
    Firing::warning(found).at(settings.location("data.eval")).into()
}

fn is_file(names: &[String]) -> bool {
    let endings = [".parquet", ".jsonl", ".json", ".csv", ".arrow"];
    names
        .iter()
        .all(|name| endings.iter().any(|ending| name.trim_end_matches(']').ends_with(ending)))
}
