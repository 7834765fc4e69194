//! The weight of the KL penalty is out of the usual range.
//!
//! ### Fires when
//! It is negative, or 1 or more (an error), or 0.2 or more (a warning). For preferences, where it
//! is β of the loss: 0 or less is an error, more than 1 a warning, but for losses that take means
//! of log-probabilities over tokens, whose β is larger.
//!
//! ### Not said
//! That a penalty is needed at all.
//!
//! ### Causes
//! - a weight for the sum over a completion was used for a mean over tokens
//! - the β of DPO was taken for one of GRPO
//!
//! ### Next
//! - begin with 0 to 0.05
//! - shakedown check --stage loss
//!
//! ### Source
//! A penalty as large as the rewards pins the policy to its reference; a negative one drives it
//! away.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::settings::Settings;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Loss,
    needs: &[],
    explains: &[],
    contracts: &[("policy-loss", &[]), ("kl-estimate", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    if settings.learns_from_pairs() {
        return of_pairs(settings);
    }
    let ids = ["kl.loss", "kl.reward"];
    let weights: Vec<(&str, f64)> =
        ids.into_iter().filter_map(|id| Some((id, settings.number(id)?))).collect();
    if weights.is_empty() {
        return Err(insufficient("no weight of a KL penalty is known"));
    }
    let firings = weights.into_iter().filter_map(|(id, weight)| {
        let (severity, limit) = match weight {
            _ if weight < 0.0 => (Severity::Error, 0.0),
            _ if weight >= 1.0 => (Severity::Error, 1.0),
            _ if weight >= 0.2 => (Severity::Warning, 0.2),
            _ => return None,
        };
        Some(told(settings, severity, (id, weight), limit))
    });
    Ok(firings.collect())
}

/// β of a loss on pairs.
fn of_pairs(settings: &Settings) -> Judgement {
    let beta = settings.need_number("kl.loss")?;
    if beta <= 0.0 {
        return told(settings, Severity::Error, ("kl.loss", beta), 0.0).into();
    }
    if beta <= 1.0 || averages_tokens(settings) {
        return Ok(vec![]);
    }
    told(settings, Severity::Warning, ("kl.loss", beta), 1.0).into()
}

/// Whether the loss on pairs compares log-probabilities per token, where β is 2 to 10.
fn averages_tokens(settings: &Settings) -> bool {
    let kind = settings.fields.get("loss_type").map(|value| value.json.to_string());
    settings.truth("dpo.preference_average_log_probs") == Some(true)
        || kind.is_some_and(|kind| ["sigmoid_norm", "simpo"].iter().any(|one| kind.contains(one)))
}

fn told(settings: &Settings, severity: Severity, (id, weight): (&str, f64), limit: f64) -> Firing {
    let found = format!("the weight of the KL penalty is {}", number(weight));
    let firing = Firing::new(severity, found).field(id, "value", weight, Some(limit));
    firing.at(settings.location(id))
}
