//! A few rows have another system prompt than most.
//!
//! ### Fires when
//! Within one part of the data set (one `data_source`, `task` or the like) most rows share a
//! system prompt, or have none, and fewer have another, or none. Where there are more than eight
//! of them, rows have system prompts of their own, and nothing is said.
//!
//! ### Not said
//! That it is wrong: parts that are meant to differ can be told apart by a column `data_source`.
//!
//! ### Causes
//! - rows that were made by an older script
//! - two data sets in one file
//! - a system prompt that was added to some rows only
//!
//! ### Next
//! - give all rows of one part the same system prompt, then shakedown check-data FILE
//!
//! ### Source
//! The reward's template asks for one format: rows whose prompt does not ask for it are scored as
//! if it did.

use crate::datasets::Dataset;
use crate::datasets::data::percent;
use crate::datasets::hits::Hits;
use crate::report::Severity;
use crate::rules::{Head, Judgement, insufficient};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Decoding,
    needs: &["prompt"],
    explains: &[],
    contracts: &[("reward-function", &["well-formed-is-the-maximum"])],
    catches: &[],
    check,
};

/// With more system prompts than this, rows have their own.
const MOST_KINDS: usize = 8;

fn check(data: &Dataset) -> Judgement {
    let seen = &data.seen.prompts;
    if seen.messages.is_empty() {
        return Err(insufficient("no prompt is a list of messages"));
    }
    let parts = seen.systems_by_part();
    let (mut rarer, mut kinds) = (Vec::new(), 0);
    for of_part in parts.iter().filter(|part| part.len() <= MOST_KINDS) {
        let all: u64 = of_part.values().map(|hits| hits.count).sum();
        let most = of_part.values().map(|hits| hits.count).max().unwrap_or(0);
        if 2 * most > all && most < all {
            kinds = kinds.max(of_part.len());
            rarer.extend(of_part.values().filter(|hits| hits.count < most));
        }
    }
    let rarer = Hits::all(rarer);
    if rarer.is_empty() {
        return Ok(vec![]);
    }
    let share = rarer.count as f64 / seen.messages.count as f64;
    let found = format!(
        "another system prompt than most, or none, in {}, {}; there are {kinds} kinds",
        data.rows_of(&rarer),
        percent(share),
    );
    data.firing(Severity::Warning, &rarer, data.prompt_column(), found).into()
}
