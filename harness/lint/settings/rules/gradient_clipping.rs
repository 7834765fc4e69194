//! Gradients are not clipped, or always are.
//!
//! ### Fires when
//! The limit on the norm of the gradient is off or above 10 (a warning), or below 0.01 (a note).
//!
//! ### Not said
//! That a run without a limit diverges.
//!
//! ### Causes
//! - 0 was taken for none, or none for the default
//!
//! ### Next
//! - begin with 1.0
//!
//! ### Source
//! One outlier among the importance ratios moves all parameters; verifiers#82.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::settings::Settings;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Update,
    needs: &["gradient.clip"],
    explains: &[],
    contracts: &[],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    let value = settings.values.get("gradient.clip");
    let value = value.ok_or_else(|| insufficient("gradient.clip is not known"))?;
    let off = value.json.is_null() || settings.number("gradient.clip").is_some_and(|it| it <= 0.0);
    let limit = if off { f64::INFINITY } else { settings.need_number("gradient.clip")? };
    let (severity, bound) = match limit {
        _ if limit > 10.0 => (Severity::Warning, 10.0),
        _ if limit < 0.01 => (Severity::Note, 0.01),
        _ => return Ok(vec![]),
    };
    let found = match off {
        true => "gradients are not clipped".to_owned(),
        false => format!("gradients are clipped at {}", number(limit)),
    };
    let firing = Firing::new(severity, found).field("gradient.clip", "value", limit, Some(bound));
    firing.at(settings.location("gradient.clip")).into()
}
