//! Columns that reward functions need are taken out.
//!
//! ### Fires when
//! `remove_unused_columns` is on, and rewards are computed by functions.
//!
//! ### Not said
//! That the functions need them.
//!
//! ### Causes
//! - it is the default of transformers, and of older configurations
//!
//! ### Next
//! - switch it off
//! - shakedown check-data FILE
//!
//! ### Source
//! TRL passes to reward functions the columns that are left.

use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::settings::{Library, Settings};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Reward,
    needs: &[],
    explains: &[],
    contracts: &[("reward-function", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    if settings.library != Some(Library::Trl) {
        return Err(not_applicable("only TRL takes columns out before reward functions see them"));
    }
    match settings.call.as_deref() {
        Some("GRPOConfig" | "RLOOConfig") => {}
        Some(_) => return Err(not_applicable("this trainer has no reward functions")),
        None => return Err(insufficient("the trainer is not known")),
    }
    let name = "remove_unused_columns";
    let on = settings.truth(name).ok_or_else(|| insufficient(format!("{name} is not known")))?;
    if !on {
        return Ok(vec![]);
    }
    let found = format!("`{name}` is on: reward functions do not get the columns of the data set");
    Firing::warning(found).at(settings.field_location(&[name])).into()
}
