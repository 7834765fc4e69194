//! The gold answer scores less than nothing.
//!
//! ### Fires when
//! The reward function, called as a check calls it, gives the gold answer of a row in its
//! template less than a completion of no characters.
//!
//! ### Not said
//! That gold answers which score more score enough.
//!
//! ### Causes
//! - answers in a form that the reward function does not read
//! - a template that is not the one of the reward function
//! - the sign of the reward
//!
//! ### Next
//! - shakedown check --stage reward
//! - shakedown check --only reward-function/well-formed-is-the-maximum
//!
//! ### Source
//! Where the right answer pays less than silence, silence is learnt.

use crate::datasets::Dataset;
use crate::datasets::data::{Scored, listed};
use crate::rules::{Firing, Head, Judgement, insufficient};
use shakedown_core::contract::stage::Stage;
use shakedown_core::value::text::{count, number};

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Reward,
    needs: &["answer"],
    explains: &[],
    contracts: &[
        ("reward-function", &["well-formed-is-the-maximum", "empty-completion"]),
        ("answer-extractor", &["recovered"]),
    ],
    catches: &[],
    check,
};

/// So many rows are named.
const NAMED: usize = 5;

fn check(data: &Dataset) -> Judgement {
    let scored = data.scored.as_ref().ok_or_else(|| insufficient("no --manifest"))?;
    if scored.is_empty() {
        return Err(insufficient("no row was scored"));
    }
    let less: Vec<&Scored> = scored.iter().filter(|one| one.gold < one.empty).collect();
    let Some(first) = less.first() else { return Ok(vec![]) };
    let places: Vec<String> = less.iter().take(NAMED).map(|one| one.row.to_string()).collect();
    let rows = less.len() as u64;
    let found = format!(
        "the gold answer of {} of {} ({}) scores less than an empty text: {} and {} in row {}",
        count(rows, "row"),
        scored.len(),
        listed(&places, rows, "row"),
        number(first.gold),
        number(first.empty),
        first.row,
    );
    Firing::error(found).column(data.answer_column(), "score", first.gold, Some(first.empty)).into()
}
