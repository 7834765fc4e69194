//! The KL penalty is in the reward and in the loss.
//!
//! ### Fires when
//! Both weights are above 0.
//!
//! ### Not said
//! That this is wrong: some mean it.
//!
//! ### Causes
//! - one was switched on, and the other was not switched off
//!
//! ### Next
//! - keep the one that the method asks for: GRPO has it in the loss, PPO in the reward
//! - shakedown check --stage loss
//!
//! ### Source
//! verl prints a notice.

use crate::rules::{Firing, Head, Judgement, not_applicable};
use crate::settings::{Library, Settings};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Loss,
    needs: &["kl.loss", "kl.reward"],
    explains: &[],
    contracts: &[("token-rewards", &[]), ("policy-loss", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    if settings.library == Some(Library::Trl) {
        return Err(not_applicable("each trainer of TRL has one of the two"));
    }
    let (loss, reward) = (settings.need_number("kl.loss")?, settings.need_number("kl.reward")?);
    if loss <= 0.0 || reward <= 0.0 || settings.learns_from_pairs() {
        return Ok(vec![]);
    }
    let found =
        format!("the KL is in the loss ({}) and in the reward ({})", number(loss), number(reward));
    let firing = Firing::warning(found).field("kl.loss", "value", loss, Some(0.0));
    firing.field("kl.reward", "value", reward, Some(0.0)).at(settings.location("kl.reward")).into()
}
