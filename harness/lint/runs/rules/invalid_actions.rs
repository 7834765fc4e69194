//! Half of the agent's actions cannot be used.
//!
//! ### Fires when
//! The share of actions that are invalid is a half or more at the end, in at least three rows; a
//! note while it falls.
//!
//! ### Not said
//! That the agent is at fault: a parser may refuse what the prompt asked for.
//!
//! ### Causes
//! - the form of an action is not taught: neither by the prompt nor by examples
//! - the parser expects another form than the prompt asks for
//! - completions are cut before the action is complete
//!
//! ### Next
//! - shakedown check --stage decoding
//! - print some actions that were refused, as the parser gets them
//!
//! ### Source
//! An action that is refused teaches only what not to write.

use crate::rules::{Firing, Head, Judgement};
use crate::runs::Run;
use crate::runs::statistics::{mean, short};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Decoding,
    needs: &["action.invalid"],
    explains: &[],
    contracts: &[
        ("answer-extractor", &["missing", "piece-of-the-text", "pick-honoured"]),
        ("completion-mask", &["prefix", "ends-at-the-first-eos"]),
    ],
    catches: &["actions-invalid"],
    check,
};

/// The share that is too much.
const LIMIT: f64 = 0.5;

fn check(run: &Run) -> Judgement {
    let invalid = run.figures("action.invalid", 3)?;
    let last = mean(invalid.tail());
    if last < LIMIT {
        return Ok(vec![]);
    }
    let found = format!("{} of the actions are invalid at the end", short(last));
    let firing = if invalid.falls() { Firing::note(found) } else { Firing::warning(found) };
    let steps = run.steps_where("action.invalid", |row| row.mean >= LIMIT).unwrap_or_default();
    firing.at_steps(steps).metric("action.invalid", "mean of the tail", last, Some(LIMIT)).into()
}

#[cfg(test)]
mod tests {
    use crate::runs::rules::trial2::{always, noise, run, said};

    const RULE: &str = "invalid-actions";

    #[test]
    fn many_invalid_actions_are_found() {
        always("warning", RULE, |seed| {
            run(40, &[("action.invalid", &|i| 0.8 + 0.03 * noise(seed, i))])
        });
        assert_eq!(said(&run(3, &[("action.invalid", &|_| 0.5)]), RULE), "warning");
    }

    #[test]
    fn an_agent_that_learns_the_form_is_a_note_or_nothing() {
        always("note", RULE, |seed| {
            run(40, &[("action.invalid", &|i| 0.95 - 0.008 * i as f64 + 0.01 * noise(seed, i))])
        });
        always("quiet", RULE, |seed| {
            run(40, &[("action.invalid", &|i| 0.9 - 0.02 * i as f64 + 0.01 * noise(seed, i))])
        });
        assert_eq!(said(&run(2, &[("action.invalid", &|_| 0.9)]), RULE), "insufficient");
    }
}
