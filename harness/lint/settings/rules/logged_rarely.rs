//! Too few rows are logged to say anything.
//!
//! ### Fires when
//! The whole run logs fewer than 20 rows.
//!
//! ### Not said
//! That the run is too short.
//!
//! ### Causes
//! - the interval is that of a longer run
//!
//! ### Next
//! - log every step
//!
//! ### Source
//! Trends take 20 rows.

use crate::rules::{Firing, Head, Judgement, Unjudged, insufficient};
use crate::settings::Settings;
use crate::settings::ask::TRL_STEPS;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::count;

pub(super) const HEAD: Head<Settings> =
    Head { stage: Stage::Update, needs: &[], explains: &[], contracts: &[], catches: &[], check };

fn check(settings: &Settings) -> Judgement {
    let (field, steps) = settings.steps().ok_or_else(|| insufficient("steps are not known"))?;
    let (field, rows) = match field {
        TRL_STEPS => ("logging_steps", rows_of_trl(settings, steps)?),
        field => (field, steps),
    };
    if rows >= 20.0 {
        return Ok(vec![]);
    }
    let found = format!("{} log {}", count(steps as u64, "step"), count(rows as u64, "row"));
    let firing = Firing::note(found).field(field, "rows", rows, Some(20.0));
    firing.at(settings.field_location(&[field, TRL_STEPS])).into()
}

/// How many rows TRL logs in so many steps.
fn rows_of_trl(settings: &Settings, steps: f64) -> Result<f64, Unjudged> {
    let by_steps =
        settings.field("logging_strategy").is_some_and(|strategy| strategy.json == "steps");
    let every = settings.value("logging_steps").filter(|every| by_steps && *every > 0.0);
    let every = every.ok_or_else(|| insufficient("how often steps are logged is not known"))?;
    // Below 1 it is a share of the steps.
    let every = if every < 1.0 { (every * steps).ceil() } else { every };
    Ok((steps / every).floor())
}
