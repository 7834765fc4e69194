//! Long completions weigh less for each token.
//!
//! ### Fires when
//! Token losses are averaged over each completion first, and completions may have more than 4,096
//! tokens.
//!
//! ### Not said
//! That this hurts with short completions.
//!
//! ### Causes
//! - the mean over each row is the default of GRPO
//!
//! ### Next
//! - take a mean over all tokens of the batch, as DAPO does
//! - shakedown check --stage loss
//!
//! ### Source
//! Dr. GRPO (arXiv 2503.20783), DAPO (arXiv 2503.14476).

use crate::rules::{Firing, Head, Judgement};
use crate::settings::Settings;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::number;

pub(super) const HEAD: Head<Settings> = Head {
    stage: Stage::Loss,
    needs: &["loss.aggregate", "length.completion"],
    explains: &[],
    contracts: &[("policy-loss", &[])],
    catches: &[],
    check,
};

fn check(settings: &Settings) -> Judgement {
    let aggregate = settings.need_text("loss.aggregate")?;
    let length = settings.need_number("length.completion")?;
    if aggregate != "seq-mean-token-mean" || length <= 4096.0 {
        return Ok(vec![]);
    }
    let found = format!(
        "token losses are averaged over each completion, of up to {} tokens: one of a long and \
         wrong completion hardly counts",
        number(length)
    );
    let firing = Firing::note(found).field("length.completion", "value", length, Some(4096.0));
    firing.at(settings.location_of(&["loss.aggregate", "length.completion"])).into()
}
