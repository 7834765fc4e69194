//! A KL weight is set that has no effect.
//!
//! ### Fires when
//! A weight is set while the penalty is off, or the penalty is on with a weight of 0.
//!
//! ### Not said
//! Which of the two was meant.
//!
//! ### Causes
//! - the switch and the weight are two settings, of which one was forgotten
//!
//! ### Next
//! - set both, or neither
//!
//! ### Source
//! A setting that does nothing is seldom meant.

use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::settings::{Library, Settings};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> =
    Head { stage: Stage::Loss, needs: &[], explains: &[], contracts: &[], catches: &[], check };

/// The switch of a penalty and its weight.
const PAIRS: [(&str, &str); 4] = [
    ("actor_rollout_ref.actor.use_kl_loss", "actor_rollout_ref.actor.kl_loss_coef"),
    ("algorithm.use_kl_in_reward", "algorithm.kl_ctrl.kl_coef"),
    ("critic.use_kl_loss", "critic.kl_loss_coef"),
    ("use-kl-loss", "kl-loss-coef"),
];

/// The switch of a penalty and a weight that has an effect where it is off, too.
const SHARED: [(&str, &str); 2] = [
    ("algo.kl.use_loss", "algo.kl.init_coef"),
    ("loss_fn.use_kl_in_reward", "loss_fn.reference_policy_kl_penalty"),
];

fn check(settings: &Settings) -> Judgement {
    if settings.library == Some(Library::Trl) {
        return Err(not_applicable("TRL has no switch besides the weight"));
    }
    let own = PAIRS.map(|(switch, weight)| (switch, weight, true));
    let shared = SHARED.map(|(switch, weight)| (switch, weight, false));
    let known = own.into_iter().chain(shared).filter_map(|(switch, weight, is_own)| {
        Some((switch, settings.truth(switch)?, weight, settings.value(weight)?, is_own))
    });
    let known: Vec<_> = known.collect();
    if known.is_empty() {
        return Err(insufficient("no switch of a KL penalty is known together with its weight"));
    }
    let firings = known.into_iter().filter_map(|(switch, on, weight, coefficient, is_own)| {
        let is_set = |field: &str| settings.fields.contains_key(field);
        let found = match on {
            true if coefficient == 0.0 && (is_set(switch) || is_set(weight)) => {
                format!("`{switch}` is on, and `{weight}` is 0")
            }
            false if is_own && is_set(weight) && coefficient != 0.0 => {
                format!("`{weight}` is {}, and `{switch}` is off", number(coefficient))
            }
            _ => return None,
        };
        let firing = Firing::note(found).field(weight, "value", coefficient, None);
        Some(firing.at(settings.field_location(&[weight, switch])))
    });
    Ok(firings.collect())
}
