//! There are fewer prompts than one batch takes.
//!
//! ### Fires when
//! The data set has fewer rows than one generation batch of the configuration has prompts, in a
//! library that drops the last, incomplete batch: then no step is left.
//!
//! ### Not said
//! That a small data set is an error: one batch is enough to train on, epoch by epoch. Nothing is
//! said of OpenRLHF and slime, which fill a batch with the next epoch, nor of pairs, whose last
//! batch may be smaller.
//!
//! ### Causes
//! - a batch size for a larger data set
//! - a filter that left few rows
//!
//! ### Next
//! - make the batch smaller, then shakedown check-config FILE
//!
//! ### Source
//! Loaders that drop the last incomplete batch give none from such a data set.

use crate::datasets::Dataset;
use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::settings::Library;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Update,
    needs: &["prompt"],
    explains: &[],
    contracts: &[],
    catches: &[],
    check,
};

/// Libraries that fill a batch of prompts across epochs.
const FILLED: [Library; 2] = [Library::OpenRlhf, Library::Slime];

fn check(data: &Dataset) -> Judgement {
    if data.library.is_some_and(|library| FILLED.contains(&library)) {
        return Err(not_applicable("this library fills a batch with the next epoch"));
    }
    if data.settings.as_ref().is_some_and(|settings| settings.learns_from_pairs()) {
        return Err(not_applicable("the last batch of pairs may be smaller"));
    }
    let batch = data.settings.as_ref().and_then(|settings| settings.number("batch.prompts"));
    let batch = batch.ok_or_else(|| insufficient("the batch is not known (no --config)"))?;
    let rows = data.seen.rows as f64;
    if rows >= batch {
        return Ok(vec![]);
    }
    let origin = data.settings.as_ref().and_then(|settings| settings.location("batch.prompts"));
    Firing::warning(format!("{rows} rows, and a batch takes {batch} prompts"))
        .at(origin)
        .column(data.prompt_column(), "rows", rows, Some(batch))
        .because(Some("batch.prompts"), format!("a batch of {batch} prompts"))
        .into()
}
