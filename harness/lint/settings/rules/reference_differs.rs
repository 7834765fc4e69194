//! The reference is another model than the policy starts from.
//!
//! ### Fires when
//! Both are named, and the names differ. In a script, only names with a `/` are taken for names of
//! models: all others may be variables.
//!
//! ### Not said
//! That distillation towards another model is a mistake.
//!
//! ### Causes
//! - the model was changed at one place
//!
//! ### Next
//! - name the same model for both
//! - watch the KL at the first step: shakedown check-run
//!
//! ### Source
//! The KL of a policy to where it starts is 0.

use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use crate::settings::Settings;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::quoted;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Loss,
    needs: &[],
    explains: &[],
    contracts: &[("policy-update", &[])],
    catches: &[],
    check,
};

/// Where a library names the policy and the reference.
const PAIRS: [(&str, &str); 4] = [
    ("model.model_name_or_path", "ref.model_name_or_path"),
    ("actor_rollout_ref.model.path", "actor_rollout_ref.ref.model.path"),
    ("model", "ref_model"),
    ("pretrain", "ref_pretrain"),
];

fn check(settings: &Settings) -> Judgement {
    let is_script = settings.format == "Python";
    let name = |field: &str| {
        let name = settings.fields.get(field)?.json.as_str()?;
        (!is_script || is_a_path(name)).then(|| name.to_owned())
    };
    let both = PAIRS
        .iter()
        .filter_map(|(policy, reference)| Some((*reference, name(policy)?, name(reference)?)));
    let mut both = both.peekable();
    if both.peek().is_none() {
        let is_named = |field: &str| {
            settings.fields.contains_key(field) || settings.unread.contains_key(field)
        };
        if settings.is_complete && !PAIRS.iter().any(|(_, reference)| is_named(reference)) {
            return Err(not_applicable("no reference of its own is named"));
        }
        return Err(insufficient("policy and reference are not both named"));
    }
    let differ = both.filter(|(_, policy, reference)| {
        policy.trim_end_matches('/') != reference.trim_end_matches('/')
    });
    let firings = differ.map(|(field, policy, reference)| {
        let found = format!(
            "the policy starts from {}, the reference is {}",
            quoted(&policy),
            quoted(&reference)
        );
        Firing::warning(found).at(settings.field_location(&[field]))
    });
    Ok(firings.collect())
}

/// Whether a text of a script is a path, or the name of a model with its owner's, and no variable.
fn is_a_path(text: &str) -> bool {
    text.contains('/') && !text.contains(|c: char| c.is_whitespace() || "()[]'\"".contains(c))
}
