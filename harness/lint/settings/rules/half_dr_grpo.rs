//! The constant length of Dr. GRPO is used with rewards that are scaled.
//!
//! ### Fires when
//! Token losses are summed and divided by one constant, and advantages are divided by the
//! deviation of the group.
//!
//! ### Not said
//! That either is wrong by itself.
//!
//! ### Causes
//! - only one of the two changes that Dr. GRPO makes was set
//!
//! ### Next
//! - switch the scaling of the rewards off as well
//! - shakedown check --stage advantage
//!
//! ### Source
//! Dr. GRPO (arXiv 2503.20783) changes both.

use crate::rules::{Firing, Head, Judgement};
use crate::settings::Settings;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Advantage,
    needs: &["loss.aggregate", "advantage.scale"],
    explains: &[],
    contracts: &[("group-advantage", &["declared-scale"]), ("policy-loss", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    let aggregate = settings.need_text("loss.aggregate")?;
    let scale = settings.need_text("advantage.scale")?;
    if aggregate != "seq-mean-token-sum-norm" || scale != "group" {
        return Ok(vec![]);
    }
    let found = "token losses are divided by a constant length, as in Dr. GRPO, and advantages \
                 still by the deviation of the group";
    Firing::warning(found).at(settings.location_of(&["advantage.scale", "loss.aggregate"])).into()
}
