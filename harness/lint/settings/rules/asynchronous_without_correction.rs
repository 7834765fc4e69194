//! Rollouts come from older weights and are not corrected for.
//!
//! ### Fires when
//! Rollouts are asynchronous and importance weights between engine and trainer are off; an error
//! for NeMo-RL, which stops.
//!
//! ### Not said
//! How old the weights are.
//!
//! ### Causes
//! - only one of the two settings was changed
//!
//! ### Next
//! - switch the correction on
//! - shakedown check --stage loss
//!
//! ### Source
//! Truncated importance sampling corrects for a sampler that is not the policy.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement};
use crate::settings::{Library, Settings};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Loss,
    needs: &["asynchronous", "correction"],
    explains: &["rollout-uncorrected"],
    contracts: &[("importance-weights", &[]), ("policy-loss", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    if !settings.need_flag("asynchronous")? {
        return Ok(vec![]);
    }
    if settings.is_corrected()? {
        return Ok(vec![]);
    }
    let stops = settings.library == Some(Library::NemoRl);
    let severity = if stops { Severity::Error } else { Severity::Warning };
    let found = "rollouts come from older weights, and their probabilities are taken for those of \
                 the trainer";
    Firing::new(severity, found).at(settings.location_of(&["correction", "asynchronous"])).into()
}
