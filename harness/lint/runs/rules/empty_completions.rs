//! Completions without a single token.
//!
//! ### Fires when
//! In the last fifth of 5 rows or more at least 0.05 of the completions are empty.
//!
//! ### Not said
//! Whether the policy wants it: rollouts that were aborted are counted with them.
//!
//! ### Causes
//! - the end-of-sequence token comes first: the prompt ends with it, or a mask hides the first
//!   token
//! - rollouts were aborted, by the engine or by the sandbox of a tool
//! - decoding blanks the text
//!
//! ### Next
//! - read the last 20 tokens of the prompts whose completions are empty
//! - shakedown check --stage decoding
//! - search the log of the engine for aborted requests
//!
//! ### Source
//! An empty completion has no token to learn from, and its score is that of no answer.

use crate::rules::{Firing, Head, Judgement};
use crate::runs::Run;
use crate::runs::statistics::{mean, proportion};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Decoding,
    needs: &["length.empty"],
    explains: &[],
    contracts: &[("completion-decoder", &["non-empty"]), ("completion-mask", &["a-word-in-front"])],
    catches: &["completions-blanked"],
    check,
};

const FEWEST: usize = 5;
const LIMIT: f64 = 0.05;

fn check(run: &Run) -> Judgement {
    let empty = run.figures("length.empty", FEWEST)?;
    let share = mean(empty.tail());
    if share < LIMIT {
        return Ok(vec![]);
    }
    let rows = empty.window;
    let found =
        format!("{} of the completions of the last {rows} rows are empty", proportion(share));
    let since = empty.since(|mean| mean >= 0.8 * LIMIT);
    Firing::warning(found)
        .at_steps(run.steps_from("length.empty", since))
        .metric("length.empty", "mean of the last fifth", share, Some(LIMIT))
        .into()
}

#[cfg(test)]
mod tests {
    use crate::report::Severity;
    use crate::runs::rules::trial1::{findings, run};

    fn fires(rows: usize, share: &dyn Fn(usize) -> f64) -> bool {
        let found = findings(&run(rows, &[("length.empty", share)]), "empty-completions");
        assert!(found.iter().all(|(severity, _)| *severity == Severity::Warning));
        !found.is_empty()
    }

    #[test]
    fn one_in_twenty_at_the_end_is_too_many() {
        assert!(fires(5, &|_| 0.05) && !fires(4, &|_| 0.05) && !fires(40, &|_| 0.04));
    }

    #[test]
    fn what_was_mended_and_single_rows_are_none() {
        assert!(!fires(50, &|i| if i < 30 { 0.5 } else { 0.0 }));
        assert!(!fires(50, &|i| if i == 45 { 0.3 } else { 0.0 }));
    }
}
