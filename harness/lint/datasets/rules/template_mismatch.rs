//! The reward asks for another format than the prompts.
//!
//! ### Fires when
//! The prompts name a format, tags or `\boxed{…}`, in at least half of the rows, and a tag of the
//! reward function's template is not among them. `<think>` may be missing: chat templates of
//! reasoning models open it.
//!
//! ### Not said
//! Anything where prompts name no format: a model may have been taught one.
//!
//! ### Causes
//! - the system prompt and the reward function are of two recipes
//! - a tag of another spelling
//!
//! ### Next
//! - make the system prompt ask for what the reward's template has, then shakedown check-data
//!   FILE
//! - shakedown check --only reward-function
//!
//! ### Source
//! A format that no prompt asks for is found by chance, and the reward stays 0 until then.

use crate::datasets::Dataset;
use crate::datasets::prompts::BOX;
use crate::rules::{Firing, Head, Judgement, insufficient};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Reward,
    needs: &["prompt"],
    explains: &[],
    contracts: &[("reward-function", &["well-formed-is-the-maximum", "every-tag-counts"])],
    catches: &[],
    check,
};

/// Names in `<…>` that are places for images and calls, no format of an answer.
const NO_FORMAT: [&str; 10] =
    ["image", "video", "audio", "tool_call", "tool_response", "tools", "tool", "s", "br", "name"];

/// Tags that chat templates of reasoning models open by themselves.
const OPENED: [&str; 3] = ["think", "thinking", "reasoning"];

fn check(data: &Dataset) -> Judgement {
    let tags = data.tags.as_ref().ok_or_else(|| insufficient("no --manifest"))?;
    let seen = &data.seen.prompts;
    let prompts = seen.texts.count + seen.messages.count;
    let is_asked =
        |(tag, rows): &(&String, &u64)| 2 * **rows >= prompts && !NO_FORMAT.contains(&tag.as_str());
    let mut asked: Vec<&str> =
        seen.tags.iter().filter(is_asked).map(|(tag, _)| tag.as_str()).collect();
    asked.sort_unstable();
    if asked.is_empty() {
        return Err(insufficient("the prompts name no format"));
    }
    let wanted = tags.iter().filter_map(|tag| name(tag));
    let missing: Vec<String> = wanted
        .filter(|tag| !asked.contains(&tag.as_str()) && !OPENED.contains(&tag.as_str()))
        .collect();
    if missing.is_empty() {
        return Ok(vec![]);
    }
    let found = format!(
        "the reward's template has `{}`, the prompts ask for `{}`",
        missing.join("`, `"),
        asked.join("`, `"),
    );
    let count = missing.len() as f64;
    Firing::error(found).column(data.prompt_column(), "tags missing", count, Some(0.0)).into()
}

/// The name of a tag, `answer` of `</answer>`; `None` for words, which prompts may put otherwise.
fn name(tag: &str) -> Option<String> {
    let tag = tag.trim();
    if tag.starts_with(BOX) {
        return Some(BOX.to_owned());
    }
    let inner = tag.strip_prefix('<')?.strip_suffix('>')?;
    Some(inner.trim_start_matches('/').trim().to_lowercase())
}
