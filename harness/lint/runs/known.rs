//! What is known of how a run trains, from its settings, its library and its metrics. `None` is
//! always "that is not known".

use serde_json::Value as Json;

use crate::runs::Run;
use crate::settings::{Library, Settings, Value};

/// How many updates are made of one batch of rollouts.
pub fn updates_per_batch(run: &Run) -> Option<f64> {
    let settings = &run.settings;
    let batch = per_pass(run).or_else(|| trl_per_pass(settings))?;
    let once = matches!(library(run), Some(Library::NemoRl | Library::Slime))
        && algorithm(run).is_none_or(|algorithm| !is_actor_critic(&algorithm));
    let passes = settings.number("batch.passes").or(once.then_some(1.0))?;
    Some(batch * passes).filter(|updates| updates.is_finite() && *updates > 0.0)
}

/// Batches of updates in a batch of rollouts. verl counts both in prompts, the others count the
/// former in completions.
fn per_pass(run: &Run) -> Option<f64> {
    let number = |id: &str| run.settings.number(id).filter(|number| *number > 0.0);
    let (prompts, update) = (number("batch.prompts")?, number("batch.update")?);
    match library(run) {
        Some(Library::Verl) => Some(prompts / update),
        _ => Some(prompts * number("group")? / update),
    }
}

/// The same in TRL where the number of processes is not known: it counts steps, not rows.
fn trl_per_pass(settings: &Settings) -> Option<f64> {
    if settings.library != Some(Library::Trl) {
        return None;
    }
    let field = |name: &str| settings.fields.get(name).and_then(|value| value.json.as_f64());
    let is_set = |name: &str| settings.fields.get(name).is_some_and(|one| !one.json.is_null());
    let accumulated = match field("gradient_accumulation_steps") {
        None if settings.is_complete => Some(1.0),
        steps => steps,
    };
    match field("steps_per_generation") {
        Some(steps) => Some(steps / accumulated?),
        // By default, a batch of rollouts is what one update takes.
        None if settings.is_complete
            && !is_set("generation_batch_size")
            && !is_set("num_mini_batches") =>
        {
            Some(1.0)
        }
        None => None,
    }
}

/// The library that wrote the log, or for which the settings are.
pub fn library(run: &Run) -> Option<Library> {
    run.settings.library.or(run.library)
}

/// How many tokens the policy chooses from.
pub fn vocabulary(run: &Run) -> Option<f64> {
    run.settings.number("vocabulary").filter(|size| *size >= 2.0)
}

/// Whether the KL to the reference has a weight, in the loss or in the reward.
pub fn kl_is_on(run: &Run) -> Option<bool> {
    let in_loss = run.settings.number("kl.loss").or_else(|| off(run, "kl.loss"));
    let in_reward = run.settings.number("kl.reward").or_else(|| off(run, "kl.reward"));
    let logged = || Some(run.get("kl.coef")?.max() > 0.0);
    match (in_loss, in_reward) {
        (Some(weight), _) | (_, Some(weight)) if weight != 0.0 => Some(true),
        (Some(_), Some(_)) => Some(false),
        // These have one place for it.
        (Some(_), None) | (None, Some(_)) if library(run) == Some(Library::Trl) => Some(false),
        _ => logged(),
    }
}

/// 0 where a setting is switched off by its value: `null`, `false`.
fn off(run: &Run, id: &str) -> Option<f64> {
    run.settings.flag(id).filter(|on| !on).map(|_| 0.0)
}

/// Whether the policy's entropy is paid for.
pub fn entropy_is_paid(run: &Run) -> Option<bool> {
    let weight = run.settings.number("entropy.coef").or_else(|| off(run, "entropy.coef"));
    // NeMo-RL's losses have no such weight.
    let none = || (library(run) == Some(Library::NemoRl)).then_some(false);
    weight.map(|weight| weight != 0.0).or_else(none)
}

/// Whether the logged KL is of an estimator that is never negative: k2, k3, or an absolute value.
pub fn kl_is_never_negative(run: &Run) -> Option<bool> {
    let name = &run.series.get("kl.ref")?.name;
    if name.ends_with("objective/kl3_avg") {
        return Some(true);
    }
    // With both in use, verl logs one of each kind, and one setting cannot say of which.
    let is_both = |id: &str| run.settings.number(id).is_some_and(|weight| weight > 0.0);
    if is_both("kl.loss") && is_both("kl.reward") {
        return None;
    }
    let estimator = run.settings.text("kl.estimator")?;
    match estimator.trim_end_matches('+') {
        "k2" | "k3" | "mse" | "abs" | "low_var_kl" => Some(true),
        "k1" | "kl" => Some(false),
        _ => None,
    }
}

/// How advantages are made, with underscores: `reinforce_plus_plus`.
pub fn algorithm(run: &Run) -> Option<String> {
    let text = run.settings.text("algorithm")?;
    Some(text.replace("++", "_plus_plus").replace(['-', ' '], "_"))
}

fn is_actor_critic(algorithm: &str) -> bool {
    matches!(algorithm, "gae" | "ppo" | "vc_ppo" | "vapo")
}

/// Whether completions are compared with those of the same prompt only, so that a group of equal
/// rewards teaches nothing.
pub fn has_group_baseline(run: &Run) -> Option<bool> {
    let Some(algorithm) = algorithm(run) else {
        // TRL counts flat groups only where groups are what it compares.
        let trl = library(run) == Some(Library::Trl) && run.get("groups.flat").is_some();
        return trl.then_some(true);
    };
    let by_group = ["grpo", "rloo", "gspo", "gpg", "gdpo", "cispo"];
    let is_by_group = by_group.iter().any(|name| algorithm.contains(name))
        || algorithm == "opo"
        || algorithm.ends_with("_baseline");
    let is_other = is_actor_critic(&algorithm)
        || algorithm.starts_with("reinforce")
        || ["remax", "raft"].contains(&&*algorithm);
    match (is_by_group, is_other) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

/// Whether advantages are meant to have both signs: all estimators but those without a baseline,
/// and those that only reward the best of a group.
pub fn has_both_signs(run: &Run) -> Option<bool> {
    let algorithm = algorithm(run)?;
    let one_sided = ["reinforce", "raft", "grpo_passk", "positive_only"];
    Some(!one_sided.contains(&&*algorithm))
}

/// Whether the old log-probabilities are, by design, not those of the weights that are updated: the
/// engine's own, or of weights that are some updates old.
pub fn old_is_another_policy(run: &Run) -> bool {
    let engine = [
        "algorithm.rollout_correction.bypass_mode",
        "actor_rollout_ref.actor.use_rollout_log_probs",
        "use-rollout-logprobs",
    ];
    let is_on = |value: &Value| value.json != Json::Bool(false) && !value.json.is_null();
    run.settings.flag("asynchronous") == Some(true)
        || engine.iter().any(|field| run.settings.fields.get(*field).is_some_and(is_on))
}

/// Whether the clipped share is one of tokens by their own ratios. Where nothing is known, it is.
pub fn clips_token_ratios(run: &Run) -> bool {
    let kind = run.settings.text("loss.kind").unwrap_or_default();
    let other = ["gspo", "cov", "geo", "sapo", "vespo", "dppo", "gpg"];
    run.settings.text("ratio.level").is_none_or(|level| level == "token")
        && !other.iter().any(|name| kind.contains(name))
}

/// Whether the policy learns from a teacher: a reference that is meant to be another model.
pub fn is_distilled(run: &Run) -> bool {
    let names = || run.unknown.iter().chain(run.series.values().map(|one| &one.name));
    let is_taught = |name: &String| {
        let name = name.to_ascii_lowercase();
        let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| word.contains("distill") || word == "teacher" || word == "opd")
    };
    let is_on = |(name, value): (&String, &Value)| {
        let off = value.json == Json::Bool(false) || value.json.is_null() || value.json == 0;
        is_taught(name) && !off
    };
    let switch = run.settings.fields.get("distillation.enabled");
    match switch.map(|value| &value.json) {
        Some(Json::Bool(enabled)) => *enabled,
        _ => names().any(is_taught) || run.settings.fields.iter().any(is_on),
    }
}

/// Whether the log begins where a checkpoint ended: more than ten of its own steps away from 0.
pub fn is_continued(run: &Run) -> bool {
    first_steps(run).first().is_some_and(|first| *first > 10 * stride(run))
}

/// The steps of the first rows, in order.
fn first_steps(run: &Run) -> Vec<i64> {
    let rows =
        run.series.values().flat_map(|one| one.buckets.iter().take_while(|row| row.index < 3));
    let mut first: Vec<i64> = rows.map(|row| row.steps[0]).collect();
    first.sort_unstable();
    first.dedup();
    first
}

/// How many steps lie between the first rows.
pub fn stride(run: &Run) -> i64 {
    let first = first_steps(run);
    first.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(1)
}

/// How many steps were configured, and the field that says so; none where the log does.
pub fn steps(run: &Run) -> Option<(Option<&'static str>, f64)> {
    let configured = run.settings.steps().map(|(field, steps)| (Some(field), steps));
    configured.or_else(|| Some((None, run.declared_steps?)))
}

/// The schedule of the learning rate, as it is named; `None` where none is named.
pub fn schedule(run: &Run) -> Option<String> {
    let fields = [
        "lr_scheduler_type",
        "actor_rollout_ref.actor.optim.lr_scheduler_type",
        "actor_rollout_ref.actor.optim.warmup_style",
        "lr-decay-style",
    ];
    let named = fields.iter().find_map(|field| run.settings.fields.get(*field)?.json.as_str());
    named.map(str::to_lowercase)
}

/// Whether the reference is updated on purpose.
pub fn reference_moves(run: &Run) -> bool {
    let switches = ["sync_ref_model", "ref-update-interval", "ref_update_interval"];
    let is_on = |value: &Value| match &value.json {
        Json::Bool(on) => *on,
        other => other.as_f64().is_some_and(|number| number != 0.0),
    };
    switches.iter().any(|field| run.settings.fields.get(*field).is_some_and(is_on))
}

/// The dropout of the policy, where it is configured and above 0, and the field that says so.
pub fn dropout(run: &Run) -> Option<(&str, f64)> {
    // That of an adapter acts on nothing at first: its second matrix is 0.
    let is_dropout = |name: &str| {
        name.rsplit(['.', '_', '-']).next() == Some("dropout") && !name.contains("lora")
    };
    let set = run.settings.fields.iter().filter(|(name, _)| is_dropout(name));
    let numbers = set.filter_map(|(name, value)| Some((name.as_str(), value.json.as_f64()?)));
    let configured = || Some(("dropout", run.settings.number("dropout")?));
    let mut all = numbers.chain(configured());
    all.find(|(_, dropout)| *dropout > 0.0)
}

/// Whether the log shows that the balance of experts is part of the loss.
pub fn balances_experts(run: &Run) -> bool {
    let is_balance = |name: &String| {
        ["aux_loss", "balanc", "router", "moe"].iter().any(|word| name.contains(word))
    };
    run.unknown.iter().any(is_balance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Origin;

    fn with(library: Library, settings: &[(&str, f64)]) -> Run {
        let mut run = Run::default();
        run.settings.library = Some(library);
        for (id, value) in settings {
            run.settings.set(id, *value, Origin::Flag);
        }
        run
    }

    #[test]
    fn updates_are_counted_in_the_units_of_the_library() {
        let of = |library, passes: &[(&str, f64)]| {
            let sizes = [("batch.prompts", 64.0), ("group", 8.0), ("batch.update", 32.0)];
            updates_per_batch(&with(library, &[&sizes, passes].concat()))
        };
        assert_eq!(of(Library::Verl, &[("batch.passes", 2.0)]), Some(4.0));
        assert_eq!(of(Library::OpenRlhf, &[("batch.passes", 2.0)]), Some(32.0));
        assert_eq!(of(Library::Slime, &[]), Some(16.0));
        assert_eq!(of(Library::OpenRlhf, &[]), None, "how many passes is not known");
    }

    #[test]
    fn trl_counts_steps_where_the_number_of_processes_is_not_known() {
        let mut run = with(Library::Trl, &[("batch.passes", 2.0)]);
        assert_eq!(updates_per_batch(&run), None);
        run.settings.is_complete = true;
        assert_eq!(updates_per_batch(&run), Some(2.0));
        let field =
            |value: f64| crate::settings::Value { json: value.into(), origin: Origin::Flag };
        run.settings.fields.insert("steps_per_generation".to_owned(), field(8.0));
        run.settings.fields.insert("gradient_accumulation_steps".to_owned(), field(4.0));
        assert_eq!(updates_per_batch(&run), Some(4.0));
    }

    #[test]
    fn a_weight_that_is_not_known_may_be_any() {
        let of = |settings: &[(&str, f64)]| kl_is_on(&with(Library::Verl, settings));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("kl.loss", 0.0)]), None);
        assert_eq!(of(&[("kl.loss", 0.0), ("kl.reward", 0.0)]), Some(false));
        assert_eq!(of(&[("kl.loss", 0.0), ("kl.reward", 0.1)]), Some(true));
        assert_eq!(kl_is_on(&with(Library::Trl, &[("kl.loss", 0.0)])), Some(false));
    }

    #[test]
    fn estimators_are_told_by_what_they_compare_with() {
        let of = |name: &str| {
            let mut run = Run::default();
            run.settings.set("algorithm", name, Origin::Flag);
            (has_group_baseline(&run), has_both_signs(&run))
        };
        assert_eq!(of("dr_grpo"), (Some(true), Some(true)));
        assert_eq!(of("reinforce_plus_plus_baseline"), (Some(true), Some(true)));
        assert_eq!(of("REINFORCE++"), (Some(false), Some(true)));
        assert_eq!(of("gae"), (Some(false), Some(true)));
        assert_eq!(of("reinforce"), (Some(false), Some(false)));
        assert_eq!(of("my_own"), (None, Some(true)));
        assert_eq!(has_group_baseline(&Run::default()), None);
    }
}
