//! What training on preferences logs of its pairs, whichever library logs it.

use std::collections::BTreeMap;

use crate::rules::{Unjudged, insufficient, not_applicable};
use crate::runs::Run;
use crate::runs::statistics::Statistics;

/// How far the chosen side is ahead of the rejected one: logged as it is, or as its two sides.
///
/// # Errors
/// The run is not about preferences, or has fewer than `n` margins.
pub fn margin(run: &Run, n: usize) -> Result<Statistics, Unjudged> {
    if run.get("pref.margin").is_some() {
        return run.figures("pref.margin", n);
    }
    let (Some(chosen), Some(rejected)) = (run.get("pref.chosen"), run.get("pref.rejected")) else {
        return Err(match run.get("pref.accuracy") {
            // An accuracy alone may be one of a task.
            Some(_) => insufficient("neither margins nor both sides of the pairs are logged"),
            None => not_applicable("the run is not about preferences"),
        });
    };
    let rejected: BTreeMap<u64, f64> = rejected.finite().map(|row| (row.index, row.mean)).collect();
    let both = chosen.finite().filter_map(|row| Some(row.mean - rejected.get(&row.index)?));
    let margins: Vec<f64> = both.collect();
    match Statistics::of_values(margins) {
        Some(margins) if margins.n() >= n => Ok(margins),
        _ => Err(insufficient(format!("fewer than {n} rows have both sides of the pairs"))),
    }
}

/// The metric that a finding about margins points at.
pub fn margin_id(run: &Run) -> &'static str {
    if run.get("pref.margin").is_some() { "pref.margin" } else { "pref.chosen" }
}
