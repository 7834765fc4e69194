//! Prompts hold their answers.
//!
//! ### Fires when
//! In at least 1 % of the rows (fewer: a note) the prompt ends with a message of the assistant
//! that holds the answer, or holds `answer is` and the answer, or the solution of 30 characters
//! or more (of one that ends in a marked answer, its end). A phrase that stands in most prompts
//! is part of a template; `if the answer is …` is a question.
//!
//! ### Not said
//! That an answer of one word in the prompt is a leak: choices and passages hold theirs.
//!
//! ### Causes
//! - a whole conversation was taken as the prompt
//! - the solution was appended to the question
//! - examples in the prompt that are rows of the data set
//!
//! ### Next
//! - remove the answer from these prompts, then shakedown check-data FILE
//! - shakedown check --only reward-function/gold-in-the-prompt
//!
//! ### Source
//! What can be copied is not learnt.

use crate::datasets::Dataset;
use crate::datasets::data::percent;
use crate::datasets::hits::Hits;
use crate::report::Severity;
use crate::rules::{Head, Judgement, insufficient};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Reward,
    needs: &["prompt", "answer"],
    explains: &["roles"],
    contracts: &[("reward-function", &["gold-in-the-prompt"])],
    catches: &[],
    check,
};

/// Fewer rows than this share may be so by accident.
const ACCIDENTS: f64 = 0.01;

/// What stands in so large a share of the prompts is part of their template.
const TEMPLATE: f64 = 0.6;

fn check(data: &Dataset) -> Judgement {
    let seen = &data.seen.answers;
    if seen.count == 0 {
        return Err(insufficient("no answers"));
    }
    let told = phrases(data);
    let spoken = match data.seen.prompts.are_opened() {
        true => &Hits::default(),
        false => &seen.told_by_the_assistant,
    };
    let what: [(&Hits, &str); 3] = [
        (spoken, "ends with a message of the assistant that holds the answer"),
        (&told, "says `answer is` and the answer"),
        (&seen.solution_told, "holds the solution"),
    ];
    let fired = what.into_iter().filter(|(hits, _)| !hits.is_empty()).map(|(hits, what)| {
        let share = data.share(hits.count);
        let severity = if share >= ACCIDENTS { Severity::Error } else { Severity::Note };
        let found = format!("the prompt of {}, {}, {what}", data.rows_of(hits), percent(share));
        let column = data.prompt_column();
        data.firing(severity, hits, column, found).column(column, "share", share, Some(ACCIDENTS))
    });
    Ok(fired.collect())
}

/// The rows that say the answer in words that most others do not.
fn phrases(data: &Dataset) -> Hits {
    let seen = &data.seen.answers;
    let is_own = |follows| {
        let rows = seen.phrases.get(follows).copied().unwrap_or(0);
        data.seen.rows == 1 || data.share(rows) <= TEMPLATE
    };
    let own = seen.phrase_told.iter().filter(|(follows, _)| is_own(*follows));
    Hits::all(own.map(|(_, hits)| hits))
}
