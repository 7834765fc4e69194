//! Prompts of the evaluation set are in training.
//!
//! ### Fires when
//! A prompt of the evaluation set stands in training as well: a warning, from 1 % of them on an
//! error.
//!
//! ### Not said
//! That prompts which say the same in other words are not shared.
//!
//! ### Causes
//! - both were drawn from one data set without a split
//! - the training set was joined with one that holds the evaluation set
//!
//! ### Next
//! - remove the shared prompts from training, then shakedown check-data FILE
//!
//! ### Source
//! A score on prompts that were trained on says nothing about others.

use crate::datasets::Dataset;
use crate::datasets::data::{listed, percent};
use crate::rules::{Firing, Head, Judgement, insufficient, not_applicable};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::location::Location;
use shakedown_core::value::text::count;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Reward,
    needs: &["prompt"],
    explains: &[],
    contracts: &[],
    catches: &[],
    check,
};

/// From this share on the score means little.
const ERROR_SHARE: f64 = 0.01;

fn check(data: &Dataset) -> Judgement {
    let eval = data.eval.as_ref().ok_or_else(|| insufficient("no --eval"))?;
    match (data.seen.identity.count, data.seen.identity.distinct()) {
        (0, _) => return Err(insufficient("no prompts")),
        (3.., 1) => {
            return Err(not_applicable("all rows have one prompt: those of an environment"));
        }
        _ => {}
    }
    if eval.shared.is_empty() {
        return Ok(vec![]);
    }
    let share = eval.shared.count as f64 / eval.rows as f64;
    let places: Vec<String> = eval.shared.first.iter().map(|at| at.line.to_string()).collect();
    let line = if eval.has_lines { "line" } else { "row" };
    let found = format!(
        "{} of the evaluation set ({}), {}, {} prompts that are in training",
        count(eval.shared.count, "row"),
        listed(&places, eval.shared.count, line),
        percent(share),
        if eval.shared.count == 1 { "has one of the" } else { "have" },
    );
    let first = eval.shared.first.first().filter(|_| eval.has_lines);
    let location = first.map(|place| Location::new(&eval.file, place.line as usize));
    let firing = if share >= ERROR_SHARE { Firing::error(found) } else { Firing::warning(found) };
    firing.at(location).column(data.prompt_column(), "share", share, Some(ERROR_SHARE)).into()
}
