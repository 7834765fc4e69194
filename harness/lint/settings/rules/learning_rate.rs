//! The learning rate is out of the usual range.
//!
//! ### Fires when
//! It is 0 or negative (an error). All parameters are trained with more than 1e-5 (a warning) or
//! 1e-4 (an error); adapters with more than 5e-4 or 2e-3, which also holds where it is not known
//! what is trained. Where it is not known that it learns from rewards or preferences, only 0 and
//! less.
//!
//! ### Not said
//! That the rate is best anywhere inside the range.
//!
//! ### Causes
//! - the rate of supervised training was copied
//! - the rate of adapters was kept for all parameters
//!
//! ### Next
//! - begin with 1e-6 for all parameters, with 1e-5 to 1e-4 for adapters
//! - shakedown check-run on the log of the run
//!
//! ### Source
//! Policy gradients take steps ten to a hundred times smaller than supervised training does;
//! open-r1#436.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::settings::Settings;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Update,
    needs: &["lr"],
    explains: &[],
    contracts: &[("policy-update", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    let lr = settings.need_number("lr")?;
    let adapters = settings.flag("lora");
    let (warning, error) = if adapters == Some(false) { (1e-5, 1e-4) } else { (5e-4, 2e-3) };
    let whom = match adapters {
        Some(true) => "adapters",
        Some(false) => "all parameters",
        None => "whatever is trained",
    };
    if lr > 0.0 && !settings.is_rl() {
        return Err(insufficient("algorithm is not known"));
    }
    let (severity, limit) = match lr {
        _ if lr <= 0.0 => (Severity::Error, 0.0),
        _ if lr > error => (Severity::Error, error),
        _ if lr > warning => (Severity::Warning, warning),
        _ => return Ok(vec![]),
    };
    let found = match lr <= 0.0 {
        true => format!("the learning rate is {}: nothing is learned", number(lr)),
        false => format!("the learning rate of {whom} is {}, above {}", number(lr), number(limit)),
    };
    let firing = Firing::new(severity, found).field("lr", "value", lr, Some(limit));
    firing.at(settings.location("lr")).into()
}
