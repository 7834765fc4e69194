//! A field is none of the library's.
//!
//! ### Fires when
//! It is not among those that its class or command takes; a warning where an older version had it.
//! Fields that hydra adds by `+` are the user's own. Where a script may have fields of its own,
//! only what is a letter or two from a known one. Not for libraries and forks that are not read.
//!
//! ### Not said
//! That its value is wrong.
//!
//! ### Causes
//! - a misspelt name
//! - the name of another version or library
//!
//! ### Next
//! - take the nearest name, or the version that had it
//!
//! ### Source
//! A field that nobody reads does nothing, or stops the run once the model is loaded.

use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::settings::Settings;
use crate::settings::derive::PROCESSES;
use crate::settings::{Library, fields};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::error::nearest;

pub(super) const HEAD: Head<Settings> =
    Head { stage: Stage::Update, needs: &[], explains: &[], contracts: &[], catches: &[], check };

fn check(settings: &Settings) -> Judgement {
    let library = settings.library.ok_or_else(|| insufficient("the library is not known"))?;
    if let Some(other) = &settings.other {
        return Err(insufficient(format!("the fields of {other} are not known")));
    }
    if settings.is_resolved {
        return Err(not_applicable("the library has written the fields itself"));
    }
    let call = settings.call.as_deref();
    let (known, removed) = (all(library, call, fields::known), all(library, call, fields::removed));
    if known.is_empty() {
        return Err(insufficient("the fields of this library are not known"));
    }
    // A script may take fields of its own: there only what is nearly a known one is told.
    let is_own = |name: &str| settings.is_open && !is_nearly_known(name, &known);
    let names = settings.fields.keys().chain(settings.unread.keys());
    let strange = names.filter(|name| !settings.added.contains(*name) && !is_known(name, &known));
    let strange = strange.filter(|name| !is_own(name));
    Ok(strange.map(|name| told(settings, name, &known, &removed)).collect())
}

/// The configurations of TRL. Where it is not known which of them a file is for, a field may be of
/// any.
const OF_TRL: [&str; 5] = ["GRPOConfig", "RLOOConfig", "PPOConfig", "DPOConfig", "KTOConfig"];

/// The fields that `of` has for a call.
fn all(
    library: Library,
    call: Option<&str>,
    of: fn(Library, Option<&str>) -> &'static [&'static str],
) -> Vec<&'static str> {
    match (library, call) {
        (Library::Trl, None) => {
            OF_TRL.iter().flat_map(|call| of(library, Some(call))).copied().collect()
        }
        _ => of(library, call).to_vec(),
    }
}

/// Whether a name is a known one of the same part, but for a letter or two: long names of one part
/// are alike without that, as `tokenizer.chat_template` and `tokenizer.chat_template_kwargs`.
fn is_nearly_known(name: &str, known: &[&str]) -> bool {
    let (part, last) = split(name);
    known.iter().map(|one| split(one)).any(|(of, one)| {
        let misspelt = strsim::damerau_levenshtein(last, one);
        of == part && (1..=2).contains(&misspelt) && 4 * misspelt < last.chars().count()
    })
}

/// The part of the configuration that a field is in, and its own name.
fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('.').unwrap_or(("", name))
}

/// Whether a field is known, or is inside of one, or has known ones inside.
fn is_known(name: &str, known: &[&str]) -> bool {
    let inside = |whole: &str, part: &str| {
        part.strip_prefix(whole).is_some_and(|rest| rest.starts_with('.'))
    };
    name == PROCESSES
        || known.iter().any(|one| *one == name || inside(one, name) || inside(name, one))
}

fn told(settings: &Settings, name: &str, known: &[&str], removed: &[&str]) -> Firing {
    let firing = match removed.contains(&name) {
        true => Firing::warning(format!("`{name}` was removed: this version does not know it")),
        false => {
            let near = nearest(name, known.iter().copied());
            Firing::error(format!("`{name}` is no field of {}{near}", called(settings)))
        }
    };
    firing.at(settings.field_location(&[name]))
}

fn called(settings: &Settings) -> String {
    let library = settings.library.map_or("", Library::name);
    settings.call.clone().unwrap_or_else(|| library.to_owned())
}
