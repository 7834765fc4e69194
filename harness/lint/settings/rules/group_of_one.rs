//! A group of one has no baseline.
//!
//! ### Fires when
//! The advantages are centred within a group, and a group has fewer than two completions.
//!
//! ### Not said
//! That another number is best.
//!
//! ### Causes
//! - the number of completions of a prompt was left at its default, which is 1 in verl
//! - a setting of another algorithm was copied
//!
//! ### Next
//! - set 8 or 16 completions of a prompt
//! - shakedown check --stage advantage
//!
//! ### Source
//! A baseline is taken over siblings; OpenRLHF and TRL refuse this, verl does not.

use crate::rules::{Firing, Head, Judgement, not_applicable};
use crate::settings::Settings;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Advantage,
    needs: &["group", "algorithm"],
    explains: &[],
    contracts: &[("group-advantage", &["singleton"])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    if settings.truth("trainer.val_only") == Some(true) {
        return Err(not_applicable("nothing is trained"));
    }
    settings.with_a_baseline()?;
    let group = settings.need_number("group")?;
    if group >= 2.0 {
        return Ok(vec![]);
    }
    let found = format!(
        "{} centres the rewards of a group, and a group has {}: the advantage is 0 or the \
         raw reward",
        settings.text("algorithm").map_or("TRL".to_owned(), |name| format!("`{name}`")),
        number(group)
    );
    let firing = Firing::error(found).field("group", "value", group, Some(2.0));
    firing.at(settings.location_of(&["group", "algorithm"])).into()
}
