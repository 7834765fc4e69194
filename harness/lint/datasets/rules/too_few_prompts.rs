//! There are fewer prompts than one batch takes.
//!
//! ### Fires when
//! The data set has fewer rows than one generation batch of the configuration has prompts.
//!
//! ### Not said
//! That training stops: some libraries draw the same prompts again, others drop the last,
//! incomplete batch and have no step at all.
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
use crate::rules::{Firing, Head, Judgement, insufficient};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Update,
    needs: &["prompt"],
    explains: &[],
    contracts: &[],
    catches: &[],
    check,
};

fn check(data: &Dataset) -> Judgement {
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
