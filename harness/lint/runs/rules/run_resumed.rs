//! The steps of the log go back.
//!
//! ### Fires when
//! A row has a step that is not above the one before. What is written again replaces what stood
//! there.
//!
//! ### Not said
//! That anything is wrong: a run that is started again from a checkpoint looks so. So does a log to
//! which two runs were written.
//!
//! ### Causes
//! - training was started again from a checkpoint
//! - two runs were written to one file
//! - a counter of steps that begins anew with each epoch
//!
//! ### Next
//! - compare the reward before and after: optimiser, learning rate and data order must be restored
//!   too
//!
//! ### Source
//! How logs of restarted runs are written.

use crate::rules::{Firing, Head, Judgement, insufficient};
use crate::runs::Run;
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::count;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Update,
    needs: &[],
    explains: &[],
    contracts: &[],
    catches: &["restarted"],
    check,
};

/// So many steps are named.
const NAMED: usize = 5;

fn check(run: &Run) -> Judgement {
    let Some([_, last]) = run.steps else { return Err(insufficient("the run has no rows")) };
    let (Some(first), Some(latest)) = (run.restarts.iter().min(), run.restarts.iter().max()) else {
        return Ok(vec![]);
    };
    let times = count(run.restarts.len() as u64, "time");
    let named: Vec<String> = run.restarts.iter().take(NAMED).map(i64::to_string).collect();
    let more = if run.restarts.len() > NAMED { ", .." } else { "" };
    let found = format!("the log goes back {times}, to step {}{more}", named.join(", "));
    Firing::note(found).at_steps([*first, last.max(*latest)]).into()
}

#[cfg(test)]
mod tests {
    use super::super::trial::{found, severities, stepped};
    use crate::report::Severity;

    fn of(steps: &[i64]) -> crate::runs::Run {
        stepped(steps.iter().map(|step| (*step, vec![("loss", 0.5)])))
    }

    #[test]
    fn a_log_that_goes_back_is_noted() {
        let run = of(&[1, 2, 3, 4, 3, 4, 5]);
        assert_eq!(severities(&run, "run-resumed"), [Severity::Note]);
        assert_eq!(found(&run, "run-resumed"), ["the log goes back 1 time, to step 3"]);
    }

    #[test]
    fn steps_that_are_left_out_are_not() {
        assert_eq!(severities(&of(&[10, 20, 20, 40, 400]), "run-resumed"), []);
    }
}
