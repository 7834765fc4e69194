//! A row cannot be read.
//!
//! ### Fires when
//! A line is no JSON, no object, or longer than 64 MiB, or the answer, the data source or a side
//! of a pair is of another type than in the rows before. `NaN` and `Infinity`, which Python
//! writes, are read as null.
//!
//! ### Not said
//! That training stops there: some libraries pass over such rows, and train on fewer.
//!
//! ### Causes
//! - a file that was cut while it was written or copied
//! - two data sets of different columns in one file
//! - a number in some rows that is a text in others
//!
//! ### Next
//! - repair or remove the rows that are named, then shakedown check-data FILE
//!
//! ### Source
//! A column has one type in Arrow and parquet; JSON lines are objects, one a line.

use crate::datasets::Dataset;
use crate::report::Severity;
use crate::rules::{Head, Judgement};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> =
    Head { stage: Stage::Reward, needs: &[], explains: &[], contracts: &[], catches: &[], check };

fn check(data: &Dataset) -> Judgement {
    let seen = &data.seen;
    let mut fired = Vec::new();
    if !seen.unreadable.is_empty() {
        let why = seen.first_reason.as_deref().unwrap_or("no JSON");
        let found = format!("cannot read {}: {why}", data.rows_of(&seen.unreadable));
        fired.push(data.firing(Severity::Error, &seen.unreadable, "row", found));
    }
    if !seen.no_object.is_empty() {
        let found = format!("no object, but other JSON, in {}", data.rows_of(&seen.no_object));
        fired.push(data.firing(Severity::Error, &seen.no_object, "row", found));
    }
    for (column, hits) in &seen.other_type {
        let rows = data.rows_of(hits);
        let found = format!("`{column}` is of another type in {rows} than in the first");
        fired.push(data.firing(Severity::Error, hits, column, found));
    }
    Ok(fired)
}
