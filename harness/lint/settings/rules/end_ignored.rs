//! Rollouts ignore the end of a completion.
//!
//! ### Fires when
//! `ignore_eos` is on.
//!
//! ### Not said
//! That completions are too long otherwise.
//!
//! ### Causes
//! - a benchmark of the engine was copied
//!
//! ### Next
//! - switch it off
//! - shakedown check --stage decoding
//!
//! ### Source
//! A policy that cannot stop is never taught to.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::settings::Settings;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Decoding,
    needs: &[],
    explains: &[],
    contracts: &[("completion-mask", &["ends-at-the-first-eos"])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    let is_end = |name: &str| {
        let last = name.rsplit(['.', '/']).next().unwrap_or(name).replace('-', "_");
        last == "ignore_eos" || last == "rollout_ignore_eos"
    };
    let mut ends = settings.fields.keys().filter(|name| is_end(name)).peekable();
    if ends.peek().is_none() && !settings.is_complete {
        return Err(insufficient("whether the end is ignored is not known"));
    }
    let firings = ends.filter(|name| settings.truth(name) == Some(true)).map(|name| {
        let found = format!("`{name}` is on: every completion runs to its limit");
        Firing::error(found).at(settings.field_location(&[name]))
    });
    Ok(firings.collect())
}
