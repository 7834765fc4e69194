//! An answer is the text of a missing value.
//!
//! ### Fires when
//! An answer is `nan`, `n/a`, `<na>`, or, in a data set whose answers are numbers, `none` or
//! `null`. Where answers are words these two are a note. Data sets whose answers are values of
//! Python, one in five with quotes or brackets, are left alone.
//!
//! ### Not said
//! That the words are wrong where they may be answers.
//!
//! ### Causes
//! - a missing value that was turned into a text: `str(None)`, `astype(str)`
//!
//! ### Next
//! - remove the rows that are named, then shakedown check-data FILE
//!
//! ### Source
//! pandas and Python write missing values as `nan` and `None`, which then are answers that a
//! completion can match.

use crate::datasets::Dataset;
use crate::datasets::hits::Hits;
use crate::report::Severity;
use crate::rules::{Head, Judgement, insufficient, not_applicable};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Reward,
    needs: &["answer"],
    explains: &[],
    contracts: &[("reward-function", &["blank-gold"])],
    catches: &[],
    check,
};

fn check(data: &Dataset) -> Judgement {
    let seen = &data.seen.answers;
    if seen.count == 0 {
        return Err(insufficient("no answers"));
    }
    if 5 * seen.literals >= seen.count {
        return Err(not_applicable("the answers are values of a programming language"));
    }
    let is_numeric = 2 * seen.numbers >= seen.count;
    let of_doubtful = if is_numeric { Severity::Error } else { Severity::Note };
    let kinds: [(&Hits, Severity, &str); 2] = [
        (&seen.placeholders, Severity::Error, "`nan` or `n/a`"),
        (&seen.doubtful, of_doubtful, "`none` or `null`"),
    ];
    let fired = kinds.into_iter().filter(|(hits, ..)| !hits.is_empty());
    let fired = fired.map(|(hits, severity, what)| {
        let found = format!("the answer of {} is {what}", data.rows_of(hits));
        data.firing(severity, hits, data.answer_column(), found)
    });
    Ok(fired.collect())
}
