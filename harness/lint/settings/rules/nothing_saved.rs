//! No checkpoints are written.
//!
//! ### Fires when
//! The number of updates between checkpoints is 0 or less, or saving is off.
//!
//! ### Not said
//! That the last state is lost: some libraries write it.
//!
//! ### Causes
//! - the default of verl and OpenRLHF
//!
//! ### Next
//! - set how often a checkpoint is written
//!
//! ### Source
//! A run that collapses can be taken up again only from a checkpoint.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::settings::Settings;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Update,
    needs: &["save.every"],
    explains: &[],
    contracts: &[],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    let value = settings.values.get("save.every");
    let value = value.ok_or_else(|| insufficient("save.every is not known"))?;
    let every = settings.number("save.every").unwrap_or(0.0);
    if every > 0.0 || !(value.json.is_number() || value.json.is_null()) {
        return Ok(vec![]);
    }
    Firing::note("no checkpoint is written").at(settings.location("save.every")).into()
}
