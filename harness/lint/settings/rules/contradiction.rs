//! Two settings contradict each other.
//!
//! ### Fires when
//! Both sizes of a generation batch are set, both half formats are on, a micro-batch is set twice,
//! groups are filtered by no metric, the ratio is forced to 1 for several updates, or the smallest
//! importance weight is not below the largest.
//!
//! ### Not said
//! Which of the two is meant.
//!
//! ### Causes
//! - settings of two configurations were put together
//!
//! ### Next
//! - take one of the two out
//!
//! ### Source
//! TRL, verl and NeMo-RL raise.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::settings::Settings;
use crate::settings::fields::Known;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> =
    Head { stage: Stage::Update, needs: &[], explains: &[], contracts: &[], catches: &[], check };

fn check(settings: &Settings) -> Judgement {
    if settings.fields.is_empty() && !settings.is_complete {
        return Err(insufficient("no field is known"));
    }
    // Where the library is not known, the other names may mean something else.
    if settings.library.is_none() {
        return Ok(half_formats(settings).into_iter().collect());
    }
    let firings = [
        generation_batch(settings),
        half_formats(settings),
        filter_without_metric(settings),
        forced_ratio(settings),
    ];
    let firings = firings.into_iter().flatten();
    Ok(firings.chain(micro_batches(settings)).chain(importance_weights(settings)).collect())
}

fn is_set(settings: &Settings, name: &str) -> bool {
    settings.fields.get(name).is_some_and(|value| !value.json.is_null())
}

fn told(settings: &Settings, found: String, at: &[&str]) -> Firing {
    Firing::error(found).at(settings.field_location(at))
}

fn generation_batch(settings: &Settings) -> Option<Firing> {
    let both = ["generation_batch_size", "steps_per_generation"];
    // What the library has written itself has all sizes filled in.
    let twice = both.iter().all(|name| is_set(settings, name)) && !settings.is_resolved;
    twice.then(|| told(settings, format!("`{}` and `{}` are both set", both[0], both[1]), &both))
}

fn half_formats(settings: &Settings) -> Option<Firing> {
    let both = ["fp16", "bf16"];
    let twice = both.iter().all(|name| settings.truth(name) == Some(true));
    twice.then(|| told(settings, "`fp16` and `bf16` are both on".to_owned(), &both))
}

/// Parts of verl's configuration that have a micro-batch, each with the switch without which it
/// counts.
const WITH_MICRO_BATCHES: [(&str, &str); 4] = [
    ("actor_rollout_ref.actor.ppo", "actor_rollout_ref.actor.use_dynamic_bsz"),
    ("actor_rollout_ref.rollout.log_prob", "actor_rollout_ref.rollout.log_prob_use_dynamic_bsz"),
    ("actor_rollout_ref.ref.log_prob", "actor_rollout_ref.ref.log_prob_use_dynamic_bsz"),
    ("critic.ppo", "critic.use_dynamic_bsz"),
];

fn micro_batches(settings: &Settings) -> impl Iterator<Item = Firing> {
    let counts = |switch: &str| settings.truth(switch) != Some(true);
    let parts = WITH_MICRO_BATCHES.into_iter().filter(move |(_, switch)| counts(switch));
    parts.filter_map(|(part, _)| {
        let [whole, each] =
            ["micro_batch_size", "micro_batch_size_per_gpu"].map(|name| format!("{part}_{name}"));
        let twice = is_set(settings, &whole) && is_set(settings, &each);
        let found = format!("`{whole}` and `{each}` are both set");
        twice.then(|| told(settings, found, &[&each, &whole]))
    })
}

fn filter_without_metric(settings: &Settings) -> Option<Firing> {
    let [switch, metric] = ["algorithm.filter_groups.enable", "algorithm.filter_groups.metric"];
    let is_none = match settings.look_up(metric) {
        Known::Is(value) => value.json.is_null(),
        Known::Unset => true,
        Known::Unknown => false,
    };
    let on = settings.truth(switch) == Some(true);
    let found = "groups are filtered, and by no metric".to_owned();
    (on && is_none).then(|| told(settings, found, &[switch, metric]))
}

fn forced_ratio(settings: &Settings) -> Option<Firing> {
    let switch = "loss_fn.force_on_policy_ratio";
    let updates = settings.updates().filter(|updates| *updates > 1.0)?;
    let on = settings.truth(switch) == Some(true);
    let found = format!("the ratio is forced to 1, and a batch has {} updates", number(updates));
    on.then(|| told(settings, found, &[switch]))
}

/// The smallest and the largest importance weight.
const BOUNDS: [[&str; 2]; 3] = [
    ["vllm_importance_sampling_clip_min", "vllm_importance_sampling_clip_max"],
    [
        "loss_fn.truncated_importance_sampling_ratio_min",
        "loss_fn.truncated_importance_sampling_ratio",
    ],
    ["tis-clip-low", "tis-clip"],
];

fn importance_weights(settings: &Settings) -> impl Iterator<Item = Firing> {
    BOUNDS.iter().filter_map(|bounds| {
        let [low, high] = bounds.map(|name| settings.value(name));
        let (low, high) = low.zip(high).filter(|(low, high)| low >= high)?;
        let [low, high] = [number(low), number(high)];
        let found =
            format!("the smallest importance weight {low} is not below the largest, {high}");
        Some(told(settings, found, bounds))
    })
}
