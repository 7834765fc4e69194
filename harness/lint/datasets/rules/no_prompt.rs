//! Rows have no prompt.
//!
//! ### Fires when
//! The column of the prompt is missing or null in a row. The column is what the configuration
//! names; else `prompt`, or the first of `question`, `problem`, `input`, `instruction`, `query`,
//! `messages` that is there. Where a library reads `prompt` itself and only one of the others is
//! there, it is an error for verl and a note for all else, whose scripts often make the prompt. A
//! pair may have its prompt in both sides.
//!
//! ### Not said
//! That a script does not make the prompt from other columns.
//!
//! ### Causes
//! - another name of the column
//! - rows of another data set
//! - a nested column that is named without its outer part
//!
//! ### Next
//! - name the column of the prompt in the configuration, or rename it `prompt`, then shakedown
//!   check-data FILE
//!
//! ### Source
//! verl, TRL, OpenRLHF and slime read the prompt from one column and stop, or drop the row,
//! without it.

use crate::datasets::Dataset;
use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement};
use crate::settings::Library;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> =
    Head { stage: Stage::Decoding, needs: &[], explains: &[], contracts: &[], catches: &[], check };

fn check(data: &Dataset) -> Judgement {
    let (seen, missing) = (&data.seen, &data.seen.prompts.missing);
    let prompt = data.prompt_column();
    // Sides of a pair hold the prompt where there is no column of it.
    let is_in_pairs = seen.pairs.count > 0 && seen.columns.prompt.is_none();
    if !missing.is_empty() && !is_in_pairs {
        let rows = data.rows_of(missing);
        let names: Vec<&str> = seen.names.iter().map(String::as_str).take(8).collect();
        let found = format!("no `{prompt}` in {rows}; the columns are `{}`", names.join("`, `"));
        return data.firing(Severity::Error, missing, prompt, found).into();
    }
    let is_usual = prompt == "prompt" || prompt == "messages" || seen.columns.is_prompt_given;
    if is_usual || is_in_pairs {
        return Ok(vec![]);
    }
    let severity = match data.library {
        Some(Library::Verl) => Severity::Error,
        _ => Severity::Note,
    };
    let found = format!("there is no `prompt`; `{prompt}` is read in its place");
    Firing::new(severity, found)
        .column(prompt, "rows", seen.rows as f64, None)
        .then(format!("rename `{prompt}` to `prompt`, or make `prompt` of it in the script"))
        .into()
}
