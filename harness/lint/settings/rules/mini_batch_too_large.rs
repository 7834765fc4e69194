//! An update takes more than there is in a batch.
//!
//! ### Fires when
//! The mini-batch is larger than the batch of rollouts that it is cut from (an error). With
//! micro-batches of varying size verl makes one update of the batch (a warning). Not for TRL, where
//! one update may take several batches of rollouts.
//!
//! ### Not said
//! That the sizes are otherwise right.
//!
//! ### Causes
//! - the batch was made smaller to try something out
//! - one is counted in prompts, the other in completions
//!
//! ### Next
//! - make the mini-batch at most as large as the batch
//!
//! ### Source
//! verl#538.

use crate::rules::{Firing, Head, Judgement, not_applicable};
use crate::settings::{Library, Settings};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Update,
    needs: &["batch.prompts", "batch.update"],
    explains: &["batch-not-divisible"],
    contracts: &[("accumulated-loss", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    if settings.library == Some(Library::Trl) {
        return Err(not_applicable("an update of TRL may take several batches of rollouts"));
    }
    let (batch, mini) = settings.batches()?;
    if batch <= 0.0 || mini <= batch {
        return Ok(vec![]);
    }
    let found = format!("an update takes {} rows of a batch of {}", number(mini), number(batch));
    // Without this switch verl stops.
    let is_dynamic = settings.library == Some(Library::Verl)
        && settings.truth("actor_rollout_ref.actor.use_dynamic_bsz") == Some(true);
    let firing = match is_dynamic {
        true => Firing::warning(format!("{found}: each batch is one update")),
        false => Firing::error(found),
    };
    let firing = firing.field("batch.update", "value", mini, Some(batch));
    firing.at(settings.location_of(&["batch.update", "batch.prompts"])).into()
}
