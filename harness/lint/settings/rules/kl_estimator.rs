//! The KL in the loss has an estimator without a gradient.
//!
//! ### Fires when
//! The KL is in the loss with the estimator k1, the log-ratio itself.
//!
//! ### Not said
//! That the penalty is needed.
//!
//! ### Causes
//! - the estimator of a KL in the reward, where k1 is right, was kept
//!
//! ### Next
//! - take k2 or k3 in the loss
//! - shakedown check --stage log-probability
//!
//! ### Source
//! The expected gradient of log π is 0; OpenRLHF warns of it.

use crate::rules::{Firing, Head, Judgement};
use crate::settings::Settings;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Loss,
    needs: &["kl.loss", "kl.estimator"],
    explains: &[],
    contracts: &[("kl-estimate", &[]), ("policy-loss", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    let weight = settings.need_number("kl.loss")?;
    if weight <= 0.0 || settings.learns_from_pairs() {
        return Ok(vec![]);
    }
    if settings.need_text("kl.estimator")? != "k1" {
        return Ok(vec![]);
    }
    let found = "the KL in the loss is estimated by k1, whose gradient is 0 on average";
    let firing = Firing::warning(found).field("kl.loss", "value", weight, Some(0.0));
    firing.at(settings.location_of(&["kl.estimator", "kl.loss"])).into()
}
