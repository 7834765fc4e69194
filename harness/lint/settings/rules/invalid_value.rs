//! A setting has a value that cannot be.
//!
//! ### Fires when
//! Nothing stands where a number is needed, or a word that is none of the choices.
//!
//! ### Not said
//! That what is left is right.
//!
//! ### Causes
//! - a misspelt word
//! - the word of another version or library
//!
//! ### Next
//! - take one of the choices
//!
//! ### Source
//! The libraries raise, some of them after the model is loaded.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::settings::{Library, Settings};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::error::unknown;

pub(super) const HEAD: Head<Settings> =
    Head { stage: Stage::Update, needs: &[], explains: &[], contracts: &[], catches: &[], check };

/// Numbers that may not be null.
const NUMBERS: [&str; 5] = [
    "max_steps",
    "num_train_epochs",
    "num_generations",
    "per_device_train_batch_size",
    "logging_steps",
];

/// The values that a setting of a library may have.
const CHOICES: [(Library, &str, &[&str]); 14] = [
    (Library::Trl, "importance_sampling_level", &["token", "sequence"]),
    (Library::Trl, "scale_rewards", &["group", "batch", "none"]),
    (Library::Trl, "vllm_mode", &["colocate", "server"]),
    (Library::Trl, "multi_objective_aggregation", &["sum_then_normalize", "normalize_then_sum"]),
    (
        Library::Verl,
        "actor_rollout_ref.actor.loss_agg_mode",
        &[
            "token-mean",
            "token-sum",
            "seq-mean-token-sum",
            "seq-mean-token-mean",
            "seq-mean-token-sum-norm",
        ],
    ),
    (
        Library::Verl,
        "actor_rollout_ref.actor.kl_loss_type",
        &["kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3", "full"],
    ),
    (
        Library::Verl,
        "algorithm.kl_penalty",
        &["kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3", "full"],
    ),
    (
        Library::OpenRlhf,
        "algo.advantage.estimator",
        &["gae", "reinforce", "rloo", "reinforce_baseline", "group_norm", "dr_grpo"],
    ),
    (Library::OpenRlhf, "algo.kl.estimator", &["k1", "k2", "k3"]),
    (Library::OpenRlhf, "actor.policy_loss_type", &["ppo", "gspo"]),
    (Library::OpenRlhf, "algo.advantage.is_correction_type", &["tis", "icepop", "seq-mask-tis"]),
    (Library::NemoRl, "loss_fn.reference_policy_kl_type", &["k1", "k2", "k3"]),
    (Library::Slime, "kl-loss-type", &["k1", "k2", "k3", "low_var_kl"]),
    (
        Library::Slime,
        "advantage-estimator",
        &["grpo", "gspo", "cispo", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "ppo"],
    ),
];

/// The losses of each class of TRL.
const LOSSES: [(&str, &[&str]); 1] =
    [("GRPOConfig", &["grpo", "dapo", "bnpo", "dr_grpo", "cispo", "sapo", "vespo", "luspo"])];

fn check(settings: &Settings) -> Judgement {
    if settings.fields.is_empty() && !settings.is_complete {
        return Err(insufficient("no field is known"));
    }
    let is_trl = settings.library == Some(Library::Trl);
    let null = NUMBERS.iter().filter(|name| {
        is_trl && settings.fields.get(**name).is_some_and(|value| value.json.is_null())
    });
    let null = null.map(|name| {
        Firing::error(format!("`{name}` is null, expected a number"))
            .at(settings.field_location(&[name]))
    });
    let call = settings.call.as_deref();
    let losses = LOSSES.iter().filter(|(of, _)| call == Some(of) && settings.other.is_none());
    let losses = losses.map(|(_, words)| ("loss_type", *words));
    // A fork may take more of them.
    let library = settings.library.filter(|_| settings.other.is_none());
    let choices = CHOICES.into_iter().filter(|(of, ..)| library == Some(*of));
    let choices = choices.map(|(_, name, words)| (name, words));
    let words = choices.chain(losses).filter_map(|(name, words)| {
        let value = settings.fields.get(name)?.json.as_str()?.to_lowercase();
        // verl's `k3+` is k3 with the gradient of another one.
        let is_known = words.contains(&value.trim_end_matches('+'));
        (!is_known).then(|| {
            Firing::error(format!("`{name}`: {}", unknown("value", &value, words)))
                .at(settings.field_location(&[name]))
        })
    });
    Ok(null.chain(words).collect())
}
