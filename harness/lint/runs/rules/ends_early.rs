//! The log has fewer steps than were configured.
//!
//! ### Fires when
//! The last logged step is more than one interval of logging before the configured number of steps.
//! A note; a warning where the log says that training has ended.
//!
//! ### Not said
//! That anything went wrong where the end is not logged: the run may still go on. Anything where
//! rows have no step, or W&B's own counter only.
//!
//! ### Causes
//! - the run goes on, or was stopped
//! - the epochs, or the data, end before the steps
//! - the schedule of the learning rate is made for another number of steps
//!
//! ### Next
//! - look at the last lines of the console
//! - shakedown check-config FILE
//!
//! ### Source
//! What was configured; a schedule that is cut off does not reach its end.

use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::{Run, known};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Update,
    needs: &[],
    explains: &[],
    contracts: &[],
    catches: &["stopped-early"],
    check,
};

fn check(run: &Run) -> Judgement {
    let (field, total) = known::steps(run)
        .ok_or_else(|| insufficient("how many steps were configured is not known"))?;
    if !run.counts_steps {
        return Err(insufficient("the rows have no step of training"));
    }
    let [_, last] = run.steps.ok_or_else(|| insufficient("the run has no rows"))?;
    // Some count from 0.
    let missing = total - 1.0 - last as f64;
    if missing < known::stride(run) as f64 {
        return Ok(vec![]);
    }
    let severity = if run.has_ended { Severity::Warning } else { Severity::Note };
    let how = if run.has_ended { "training ended" } else { "the log ends" };
    let fired = Firing::new(severity, format!("{how} at step {last}; configured are {total}"));
    let location = field.and_then(|field| run.settings.field_location(&[field]));
    fired
        .at(location)
        .at_steps([last, last])
        .field(field.unwrap_or("total_steps"), "last step", last as f64, Some(total))
        .into()
}

#[cfg(test)]
mod tests {
    use super::super::trial::{run, severities, status, stepped};
    use super::*;
    use crate::report::RuleStatus;
    use crate::settings::{Origin, Value};

    const RULE: &str = "ends-early";

    fn of(mut run: Run, total: i64) -> Run {
        let value = Value { json: total.into(), origin: Origin::Flag };
        run.settings.fields.insert("max_steps".to_owned(), value);
        run
    }

    fn every(stride: i64, last: i64) -> Run {
        stepped((1..=last / stride).map(|row| (row * stride, vec![("loss", 0.5)])))
    }

    #[test]
    fn a_log_that_ends_early_is_noted() {
        assert_eq!(severities(&of(every(1, 96), 160), RULE), [Severity::Note]);
        assert_eq!(severities(&of(every(10, 140), 160), RULE), [Severity::Note]);
        let ended = Run { has_ended: true, ..of(every(1, 96), 160) };
        assert_eq!(severities(&ended, RULE), [Severity::Warning]);
    }

    #[test]
    fn the_last_interval_may_be_cut_and_steps_may_begin_at_nought() {
        assert_eq!(status(&of(every(1, 160), 160), RULE), RuleStatus::Quiet);
        assert_eq!(status(&of(every(10, 150), 159), RULE), RuleStatus::Quiet);
        let zero = stepped((0..160).map(|step| (step, vec![("loss", 0.5)])));
        assert_eq!(status(&of(zero, 160), RULE), RuleStatus::Quiet);
        assert_eq!(status(&of(every(10, 1000), 160), RULE), RuleStatus::Quiet);
    }

    #[test]
    fn nothing_is_said_without_a_number_or_without_steps() {
        assert_eq!(status(&every(1, 96), RULE), RuleStatus::Insufficient);
        assert_eq!(status(&of(every(1, 96), -1), RULE), RuleStatus::Insufficient);
        let rows = Run { counts_steps: false, ..of(run(9, |_| vec![("loss", 0.5)]), 160) };
        assert_eq!(status(&rows, RULE), RuleStatus::Insufficient);
    }
}
