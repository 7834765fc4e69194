//! Many updates are taken from one batch.
//!
//! ### Fires when
//! A batch of rollouts is used for more than 16 updates (a note), or more than 64 (a warning): its
//! batch over the mini-batch, times the passes.
//!
//! ### Not said
//! That so many updates diverge: clipping bounds each.
//!
//! ### Causes
//! - a small mini-batch for memory: accumulate gradients instead
//! - several passes over many mini-batches
//!
//! ### Next
//! - make the mini-batch larger
//! - watch clip fraction and KL to the old policy: shakedown check-run
//!
//! ### Source
//! Importance ratios are trusted near 1 only.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement};
use crate::settings::Settings;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Update,
    needs: &["batch.prompts", "batch.update", "batch.passes"],
    explains: &[],
    contracts: &[("policy-loss", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    let (batch, mini) = settings.batches()?;
    if batch <= 0.0 || mini <= 0.0 {
        return Ok(vec![]);
    }
    let updates = (batch / mini).ceil() * settings.need_number("batch.passes")?;
    let (severity, limit) = match updates {
        _ if updates > 64.0 => (Severity::Warning, 64.0),
        _ if updates > 16.0 => (Severity::Note, 16.0),
        _ => return Ok(vec![]),
    };
    let found = format!("a batch of rollouts is used for {} updates", number(updates));
    let firing =
        Firing::new(severity, found).field("batch.update", "updates", updates, Some(limit));
    firing.at(settings.location_of(&["batch.update", "batch.passes"])).into()
}
