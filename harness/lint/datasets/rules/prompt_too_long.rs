//! Prompts are longer than the limit.
//!
//! ### Fires when
//! A prompt has more tokens than the configuration allows: its limit for prompts, else the
//! context less the completion. Without the model's tokenizer lengths are guessed, and only those
//! above 1.5 times the limit count. It is a note where the library is told to leave such prompts
//! out.
//!
//! ### Not said
//! That shorter prompts fit: the chat template adds tokens that are not counted.
//!
//! ### Causes
//! - a limit for another model or another data set
//! - documents or images in the prompt
//!
//! ### Next
//! - raise the limit, or leave these rows out, then shakedown check-data FILE
//!
//! ### Source
//! Libraries cut such prompts, most of them at the end that holds the question, or stop.

use crate::datasets::Dataset;
use crate::report::Severity;
use crate::rules::{Head, Judgement, insufficient};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Decoding,
    needs: &["prompt"],
    explains: &[],
    contracts: &[("batch-collation", &["cut-beforehand"])],
    catches: &[],
    check,
};

fn check(data: &Dataset) -> Judgement {
    let limit = data.limit.ok_or_else(|| insufficient("no limit is known (no --config)"))?;
    let seen = &data.seen.prompts;
    if seen.texts.count + seen.messages.count == 0 {
        return Err(insufficient("no prompts"));
    }
    if seen.too_long.is_empty() {
        return Ok(vec![]);
    }
    let about = if data.has_tokenizer { "" } else { "about " };
    let severity = if is_filtered(data) { Severity::Note } else { Severity::Error };
    let found = format!(
        "the prompt of {} is longer than {limit} tokens; the longest has {about}{}",
        data.rows_of(&seen.too_long),
        seen.longest,
    );
    let column = data.prompt_column();
    let firing = data.firing(severity, &seen.too_long, column, found);
    firing.column(column, "longest", seen.longest as f64, Some(limit as f64)).into()
}

/// Whether verl is told to leave long prompts out.
fn is_filtered(data: &Dataset) -> bool {
    let fields = data.settings.iter().flat_map(|settings| &settings.fields);
    let mut filters = fields.filter(|(field, _)| field.ends_with("filter_overlong_prompts"));
    filters.any(|(_, value)| {
        value.json.as_bool().unwrap_or_else(|| {
            value.json.as_str().is_some_and(|text| text.eq_ignore_ascii_case("true"))
        })
    })
}
