//! A batch does not divide into what it is dealt to.
//!
//! ### Fires when
//! The completions of a generation batch are not a multiple of the group (TRL), the prompts not
//! one of the mini-batch (verl), the completions not one of the update batch (others) or of what
//! all devices take at once (verl with micro-batches of one size). An error where the library
//! stops, else a warning. Where the number of processes is not known, what is said names the factor
//! that it takes: a warning for a script, which starts as one process, else a note.
//!
//! ### Not said
//! How many processes are started, where the file does not say.
//!
//! ### Causes
//! - one of the sizes was changed alone
//! - more or fewer processes than the configuration was written for
//!
//! ### Next
//! - make one a multiple of the other
//! - shakedown check-config FILE --processes N
//!
//! ### Source
//! TRL, slime and verl stop where groups, updates or devices would get unequal shares.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::settings::fields::Known;
use crate::settings::{Library, Settings};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Update,
    needs: &["group"],
    explains: &[],
    contracts: &[("accumulated-loss", &[]), ("batch-partition", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    if settings.learns_from_pairs() {
        return Err(not_applicable("pairs have no groups"));
    }
    let group = settings.need_number("group")?;
    if settings.library == Some(Library::Trl) && settings.number("batch.prompts").is_none() {
        return of_a_process(settings, group);
    }
    let prompts = settings.need_number("batch.prompts")?;
    let completions = ("batch of completions", prompts * group);
    match settings.library {
        Some(Library::Trl) => {
            let batch = ("generation batch", prompts * group);
            Ok(told(settings, Severity::Error, batch, ("group", "group", group))
                .into_iter()
                .collect())
        }
        Some(Library::Verl) => {
            let update = ("mini-batch", "batch.update", settings.need_number("batch.update")?);
            let stops =
                devices(settings).and_then(|by| told(settings, Severity::Error, completions, by));
            let prompts = ("batch of prompts", prompts);
            let firing = stops.or_else(|| told(settings, Severity::Warning, prompts, update));
            Ok(firing.into_iter().collect())
        }
        library => {
            let update = ("update batch", "batch.update", settings.need_number("batch.update")?);
            let stops = library == Some(Library::Slime);
            let severity = if stops { Severity::Error } else { Severity::Warning };
            Ok(told(settings, severity, completions, update).into_iter().collect())
        }
    }
}

/// What verl asks a batch of completions to be a multiple of, where its micro-batches have one
/// size: the GPUs; with Megatron, the rows of all its copies of the model.
fn devices(settings: &Settings) -> Option<(&'static str, &'static str, f64)> {
    let actor = |field: &str| format!("actor_rollout_ref.actor.{field}");
    let gpus = settings.number("gpus")?;
    if settings.truth(&actor("use_dynamic_bsz"))? {
        return None;
    }
    let megatron = actor("megatron.");
    let is_megatron = settings.call.as_deref().is_some_and(|call| call.contains("megatron"))
        || settings.field(&actor("strategy")).is_some_and(|value| value.json == "megatron")
        || settings.fields.keys().any(|name| name.starts_with(&megatron));
    if !is_megatron {
        return Some(("GPUs", "gpus", gpus));
    }
    let sizes = ["tensor_model", "pipeline_model", "context"];
    let mut copies = gpus;
    for size in sizes {
        match settings.look_up(&format!("{megatron}{size}_parallel_size")) {
            Known::Is(size) => copies /= size.json.as_f64()?,
            Known::Unset => {}
            Known::Unknown => return None,
        }
    }
    let rows = copies * settings.number("batch.micro")?;
    Some(("rows of all copies of the model", "gpus", rows))
}

fn divides(part: f64, whole: f64) -> bool {
    (whole / part).fract().abs() < 1e-9
}

fn told(
    settings: &Settings,
    severity: Severity,
    (whole, of): (&str, f64),
    (part, id, by): (&str, &str, f64),
) -> Option<Firing> {
    // A batch of no size is one that is not used.
    if of <= 0.0 || by <= 0.0 || divides(by, of) {
        return None;
    }
    let found =
        format!("the {whole} of {} is no multiple of the {part}: {}", number(of), number(by));
    let firing = Firing::new(severity, found).field("batch.prompts", whole, of, Some(by));
    Some(firing.at(settings.location_of(&[id, "batch.prompts", "group"])))
}

/// With so many processes that the configuration does not say.
fn of_a_process(settings: &Settings, group: f64) -> Judgement {
    let known = |name: &str| {
        settings.field(name).ok_or_else(|| insufficient(format!("{name} is not known")))
    };
    let steps = known("steps_per_generation")?.json.as_f64();
    let steps = match steps {
        Some(steps) => Some(steps),
        None => known("gradient_accumulation_steps")?.json.as_f64(),
    };
    let steps = steps.ok_or_else(|| insufficient("the accumulation steps are no number"))?;
    let own = settings.need_number("batch.micro")? * steps;
    if own <= 0.0 || group <= 0.0 || divides(group, own) {
        return Ok(vec![]);
    }
    let factor = group / gcd(own as u64, group as u64) as f64;
    let found = format!(
        "a process has {} completions for groups of {}: the number of processes must be a \
         multiple of {}",
        number(own),
        number(group),
        number(factor)
    );
    // A script is started as one process unless its launcher says otherwise; a configuration is
    // written for a launcher.
    let severity = if settings.format == "Python" { Severity::Warning } else { Severity::Note };
    let firing = Firing::new(severity, found);
    let firing = firing.field("batch.micro", "completions of a process", own, None);
    firing.at(settings.location_of(&["batch.micro", "group"])).into()
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
