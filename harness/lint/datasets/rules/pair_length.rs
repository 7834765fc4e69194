//! The longer side of a pair is nearly always the chosen one, or nearly never.
//!
//! ### Fires when
//! In 50 pairs or more one side is longer in 90 % of them (warning) or in 75 % (note), by two
//! standard errors, and has 5 % more characters in all. What both sides begin with does not
//! count.
//!
//! ### Not said
//! That length is not what is meant: of refusals and of summaries it may be.
//!
//! ### Causes
//! - the chosen sides come from another model or another prompt than the rejected ones
//! - whoever ranked the sides prefers long answers
//! - the rejected sides are cut at a limit
//!
//! ### Next
//! - add pairs whose chosen side is the shorter one, or pairs of equal length
//! - log the length of completions during training: it shows what was learnt
//!
//! ### Source
//! Length alone then tells the sides apart, and is easier to learn than quality: Singhal et al.
//! (2023), A Long Way to Go.

use crate::datasets::Dataset;
use crate::datasets::data::percent;
use crate::report::Severity;
use crate::rules::{Firing, Head, Judgement, insufficient};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Loss,
    needs: &["chosen", "rejected"],
    explains: &[],
    contracts: &[],
    catches: &[],
    check,
};

const FEWEST: u64 = 50;
/// Shares of the pairs for a warning and for a note.
const LIMITS: [f64; 2] = [0.9, 0.75];
/// How many times as many characters one side has in all.
const LONGER: f64 = 1.05;

fn check(data: &Dataset) -> Judgement {
    let pairs = &data.seen.pairs;
    if pairs.count < FEWEST {
        return Err(insufficient(format!("{} pairs, {FEWEST} are needed", pairs.count)));
    }
    let side = usize::from(pairs.longer[1] > pairs.longer[0]);
    let name = ["chosen", "rejected"][side];
    let [here, there] = [pairs.characters[side], pairs.characters[1 - side]].map(|n| n as f64);
    let all = pairs.count as f64;
    let share = pairs.longer[side] as f64 / all;
    let surely = share - 2.0 * (share * (1.0 - share) / all).sqrt();
    let severity = match surely {
        _ if here < LONGER * there => return Ok(vec![]),
        share if share >= LIMITS[0] => Severity::Warning,
        share if share >= LIMITS[1] => Severity::Note,
        _ => return Ok(vec![]),
    };
    let found = format!(
        "the {name} side is the longer one in {} of {} pairs: {} characters on average, the other \
         has {}",
        percent(share),
        pairs.count,
        (here / all).round(),
        (there / all).round(),
    );
    let limit = LIMITS[usize::from(severity == Severity::Note)];
    Firing::new(severity, found).column(name, "share of the longer", share, Some(limit)).into()
}
