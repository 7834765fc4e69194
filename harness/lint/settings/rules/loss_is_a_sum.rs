//! The loss is a sum over the tokens of a batch.
//!
//! ### Fires when
//! Token losses are added up and not divided.
//!
//! ### Not said
//! That the learning rate does not allow for it.
//!
//! ### Causes
//! - a name was taken for a mean
//!
//! ### Next
//! - take a mean over tokens
//! - shakedown check --stage loss
//!
//! ### Source
//! A sum over twice the tokens has twice the gradient.

use crate::rules::{Firing, Head, Judgement};
use crate::settings::Settings;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Loss,
    needs: &["loss.aggregate"],
    explains: &[],
    contracts: &[("policy-loss", &[]), ("accumulated-loss", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    if settings.need_text("loss.aggregate")? != "token-sum" {
        return Ok(vec![]);
    }
    let found = "token losses are summed: the step grows with the batch and with its completions";
    Firing::warning(found).at(settings.location("loss.aggregate")).into()
}
