//! Prompts are cut at their limit.
//!
//! ### Fires when
//! The mean of `prompt.clipped` over 3 rows or more is 0.02 or more.
//!
//! ### Not said
//! At which end they are cut: either the question or the instructions are gone.
//!
//! ### Causes
//! - prompts are longer than the limit that is set for them
//! - examples or documents in the prompt were not counted
//!
//! ### Next
//! - shakedown check-data FILE --config FILE --tokenizer tokenizer.json
//! - raise the limit for prompts, or leave out those that are longer
//!
//! ### Source
//! A model cannot answer a question that it does not see; its reward then is noise.

use crate::rules::{Firing, Head, Judgement};
use crate::runs::Run;
use crate::runs::statistics::{mean, proportion};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Run> = Head {
    stage: Stage::Decoding,
    needs: &["prompt.clipped"],
    explains: &[],
    contracts: &[("batch-collation", &["cut-beforehand"])],
    catches: &["prompts-too-long"],
    check,
};

const FEWEST: usize = 3;
const LIMIT: f64 = 0.02;

fn check(run: &Run) -> Judgement {
    let cut = run.figures("prompt.clipped", FEWEST)?;
    let share = mean(&cut.values);
    if share < LIMIT {
        return Ok(vec![]);
    }
    let steps = run.steps_where("prompt.clipped", |one| one.max > 0.0);
    Firing::warning(format!("{} of the prompts are cut", proportion(share)))
        .at_steps(steps.unwrap_or_default())
        .metric("prompt.clipped", "mean", share, Some(LIMIT))
        .into()
}

#[cfg(test)]
mod tests {
    use crate::report::Severity;
    use crate::runs::rules::trial1::{findings, run};

    #[test]
    fn one_prompt_in_fifty_is_too_many() {
        let of = |rows: usize, share: f64| {
            findings(&run(rows, &[("prompt.clipped", &move |_| share)]), "prompts-cut")
        };
        assert_eq!(of(3, 0.021), [(Severity::Warning, [1, 3])]);
        assert_eq!(of(2, 0.5), []);
        assert_eq!(of(40, 0.019), []);
    }
}
