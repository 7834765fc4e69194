//! The correction for the engine's own probabilities is switched off.
//!
//! ### Fires when
//! The importance weights between engine and trainer are set to off.
//!
//! ### Not said
//! That the two differ much.
//!
//! ### Causes
//! - it was switched off to compare
//!
//! ### Next
//! - watch the mismatch of rollouts: shakedown check-run
//! - shakedown check --stage log-probability
//!
//! ### Source
//! Engines compute in other formats and kernels than trainers.

use crate::rules::{Firing, Head, Judgement};
use crate::settings::{Origin, Settings};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::LogProbability,
    needs: &["correction"],
    explains: &[],
    contracts: &[("importance-weights", &[]), ("token-log-probs", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    let corrected = settings.is_corrected()?;
    let set = settings.values.get("correction").is_some_and(|one| one.origin != Origin::Default);
    if corrected || !set || settings.truth("use_vllm") == Some(false) {
        return Ok(vec![]);
    }
    let found = "importance weights between the engine and the trainer are switched off";
    Firing::note(found).at(settings.location("correction")).into()
}
