//! The learning rate is not the configured one.
//!
//! ### Fires when
//! The largest logged rate is above the configured one by more than 1 %. Or it is below by more
//! than 1 % and held: three rows or more, and a tenth of them, have it. Or the declared schedule is
//! linear or a cosine, and the largest of 10 rows or more is below 0.8 of the configured rate. A
//! warm-up that is not over, and a log that does not begin at the start, are not judged from below.
//!
//! ### Not said
//! Anything of a default: libraries change those. Nor of higher rates before a restart.
//!
//! ### Causes
//! - the rate is multiplied by the number of processes, or divided by the accumulation
//! - another configuration was used: an override, a DeepSpeed file, a resumed optimiser
//! - the rate is that of another group of parameters
//!
//! ### Next
//! - print the learning rate of the optimiser after the first update
//! - shakedown check-config FILE
//!
//! ### Source
//! Warm-ups and schedules lead to the configured rate and down from it, never above.

use crate::rules::{Firing, Head, Judgement, Unjudged, insufficient};
use crate::runs::statistics::short;
use crate::runs::{Run, known};
use crate::settings::Origin;
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Update,
    needs: &["lr"],
    explains: &["reward-flat", "kl-explodes", "update-too-large", "gradient-explodes"],
    contracts: &[("policy-update", &["one-step", "tiny-learning-rate"])],
    catches: &["rate-overwritten"],
    check,
};

/// What rounding and warm-ups in whole steps may change.
const SLACK: f64 = 0.01;
/// What a warm-up and the interval of logging leave of the largest rate, in so many rows.
const SEEN: f64 = 0.8;
const ROWS: usize = 10;
/// A rate is held where so many rows, and a tenth of all, have it.
const HELD: usize = 3;

fn check(run: &Run) -> Judgement {
    let setting = run.settings.values.get("lr").filter(|value| value.origin != Origin::Default);
    setting.ok_or_else(|| insufficient("the configured learning rate is not known"))?;
    let configured = run.settings.number("lr").filter(|rate| *rate > 0.0);
    let configured = configured.ok_or_else(|| insufficient("it is not configured as a number"))?;
    let lr = run.need("lr", 1)?;
    if lr.name.contains('(') {
        return Err(insufficient("the learning rate is logged in a unit of its own"));
    }
    // The rates before a restart may be those of another configuration.
    let restart = run.restarts.last().copied().unwrap_or(i64::MIN);
    let since = lr.finite().filter(|row| row.steps[1] >= restart);
    let latest = since.map(|row| row.max).fold(f64::NEG_INFINITY, f64::max);
    let is_above = latest > configured * (1.0 + SLACK) + lr.resolution;
    let highest = if is_above { latest } else { lr.max() };
    let is_below = highest < configured * (1.0 - SLACK) - lr.resolution && highest > 0.0;
    let differs = is_above || is_below && is_reached(run, highest, configured)?;
    if !differs {
        return Ok(vec![]);
    }
    let times = short(highest / configured);
    let found = format!(
        "{} reaches {}; configured is {}, so it is {times} times as large",
        lr.name,
        short(highest),
        short(configured),
    );
    let [from, to] = run.steps_where("lr", |row| row.max >= highest).unwrap_or_default();
    Firing::warning(found)
        .at_steps([from, to])
        .metric("lr", "max", highest, Some(configured))
        .because(Some("lr"), format!("a configured learning rate of {}", short(configured)))
        .into()
}

/// Whether the largest rate of the log is the largest of the schedule.
fn is_reached(run: &Run, highest: f64, configured: f64) -> Result<bool, Unjudged> {
    if known::is_continued(run) {
        return Err(insufficient("the log begins after the start"));
    }
    let rates = run.need("lr", HELD)?.values();
    let held = rates.iter().filter(|rate| **rate >= (1.0 - SLACK) * highest).count();
    if held >= HELD.max(rates.len().div_ceil(10)) {
        return Ok(true);
    }
    if rates[rates.len() - 1] >= highest {
        return Err(insufficient("the warm-up is not over"));
    }
    let falls_evenly = known::schedule(run).is_some_and(|name| FALLING.contains(&&*name));
    Ok(falls_evenly && rates.len() >= ROWS && highest < SEEN * configured)
}

/// Schedules that begin to fall slowly after their warm-up.
const FALLING: [&str; 3] = ["linear", "cosine", "cosine_with_min_lr"];

#[cfg(test)]
mod tests {
    use super::super::trial::{rounded, run, severities, status, stepped};
    use super::*;
    use crate::report::{RuleStatus, Severity};
    use crate::settings::Value;

    const RULE: &str = "learning-rate-differs";

    /// A run whose configured rate is 1e-6.
    fn rates(rows: usize, rate: impl Fn(usize) -> f64) -> Run {
        run(rows, |row| vec![("lr", rate(row))]).with(None, &[("lr", 1e-6.into())])
    }

    fn scheduled(mut run: Run, name: &str) -> Run {
        let value = Value { json: name.into(), origin: Origin::Flag };
        run.settings.fields.insert("lr_scheduler_type".to_owned(), value);
        run
    }

    /// Warm-up in so many rows, then a linear decay, to this peak.
    fn linear(warm_up: usize, rows: usize, peak: f64) -> impl Fn(usize) -> f64 {
        move |row| {
            let up = (row + 1) as f64 / warm_up.max(1) as f64;
            let down = (rows - row) as f64 / (rows - warm_up) as f64;
            peak * up.min(down).min(1.0)
        }
    }

    #[test]
    fn another_rate_is_found_from_above_and_from_below() {
        assert_eq!(severities(&rates(30, |_| 8e-6), RULE), [Severity::Warning]);
        assert_eq!(severities(&rates(30, |_| 1.25e-7), RULE), [Severity::Warning]);
        assert_eq!(severities(&rates(1, |_| 2e-6), RULE), [Severity::Warning]);
        assert_eq!(severities(&rates(100, linear(10, 100, 4e-6)), RULE), [Severity::Warning]);
        let low = rates(100, linear(10, 100, 2.5e-7));
        assert_eq!(severities(&scheduled(low, "linear"), RULE), [Severity::Warning]);
    }

    #[test]
    fn schedules_and_warm_ups_to_the_configured_rate_are_quiet() {
        for (rows, warm_up) in [(100, 0), (100, 10), (100, 50), (12, 2), (10, 5), (1000, 100)] {
            let run = scheduled(rates(rows, linear(warm_up, rows, 1e-6)), "linear");
            assert_eq!(status(&run, RULE), RuleStatus::Quiet, "{rows} {warm_up}");
        }
        let cosine = |row: usize| 5e-7 * (1.0 + (row as f64 / 64.0).cos());
        assert_eq!(status(&scheduled(rates(200, cosine), "cosine"), RULE), RuleStatus::Quiet);
        let root = |row: usize| 1e-6 / (row as f64 + 4.0).sqrt();
        assert_eq!(status(&rates(200, root), RULE), RuleStatus::Quiet);
    }

    #[test]
    fn a_warm_up_that_is_not_over_and_a_late_beginning_say_nothing() {
        let warm = rates(50, |row| 1e-8 * (row + 1) as f64);
        assert_eq!(status(&warm, RULE), RuleStatus::Insufficient);
        let late = stepped((0..30).map(|row| (500 + row, vec![("lr", 1e-7)])));
        let late = late.with(None, &[("lr", 1e-6.into())]);
        assert_eq!(status(&late, RULE), RuleStatus::Insufficient);
    }

    #[test]
    fn a_rate_before_a_restart_may_have_been_higher() {
        let steps = (1..=20).chain(15..=40);
        let rows = steps
            .enumerate()
            .map(|(at, step)| (step, vec![("lr", if at < 20 { 4e-6 } else { 1e-6 })]));
        let run = stepped(rows).with(None, &[("lr", 1e-6.into())]);
        assert_eq!((run.restarts.len(), status(&run, RULE)), (1, RuleStatus::Quiet));
    }

    #[test]
    fn rounded_rates_defaults_and_unknown_ones_say_nothing() {
        let rounded = rounded(4, 30, |_| vec![("lr", 1e-6)]).with(None, &[("lr", 1e-5.into())]);
        assert_eq!(status(&rounded, RULE), RuleStatus::Quiet);
        let mut run = run(30, |_| vec![("lr", 1e-6)]);
        assert_eq!(status(&run, RULE), RuleStatus::Insufficient);
        run.settings.set("lr", 5e-5, Origin::Default);
        assert_eq!(status(&run, RULE), RuleStatus::Insufficient);
    }
}
