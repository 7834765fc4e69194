//! Prompts and completions are longer than what they must fit into.
//!
//! ### Fires when
//! Prompt and completion together are longer than the context or than the tokens of a GPU, or a
//! completion than both together may be (an error). Where the library gives a row that is too long
//! for the tokens of a GPU a micro-batch of its own, that is a note.
//!
//! ### Not said
//! That prompts are so long.
//!
//! ### Causes
//! - one of the limits was raised alone
//!
//! ### Next
//! - raise the other, or lower this one
//!
//! ### Source
//! verl and vLLM stop at some of these; others cut without a word.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::settings::{Library, Settings};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Decoding,
    needs: &["length.completion"],
    explains: &[],
    contracts: &[("completion-mask", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    let completion = settings.need_number("length.completion")?;
    let prompt = settings.number("length.prompt");
    let both = prompt.map_or(completion, |prompt| prompt + completion);
    let what = if prompt.is_some() { "prompt and completion have" } else { "a completion has" };
    let limits = [
        ("length.context", both, what, "the context"),
        ("length.total", completion, "a completion has", "prompt and completion together"),
        ("length.per_gpu", both, what, "the tokens of a GPU"),
    ];
    if !limits.iter().any(|(id, ..)| settings.values.contains_key(*id)) {
        return Err(insufficient("nothing is known that prompts and completions must fit into"));
    }
    for (id, length, what, of) in limits {
        let Some(limit) = settings.number(id).filter(|limit| *limit > 0.0) else { continue };
        if length > limit {
            let found = format!("{what} up to {} tokens, {of} {}", number(length), number(limit));
            let firing = Firing::new(severity(settings, id), found);
            let firing = firing.field("length.completion", "tokens", length, Some(limit));
            return firing.at(settings.location_of(&["length.completion", id])).into();
        }
    }
    Ok(vec![])
}

/// A row that is longer than the tokens of a GPU stops verl; the others give it a micro-batch of
/// its own, which may still fit.
fn severity(settings: &Settings, id: &str) -> Severity {
    match id == "length.per_gpu" && settings.library != Some(Library::Verl) {
        true => Severity::Note,
        false => Severity::Error,
    }
}
