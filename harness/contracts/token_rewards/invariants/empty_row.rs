//! A row without a token has no part in anything.
//!
//! ### Claim
//! A row without a token gets 0 everywhere, and counts in the report only where that is declared.
//!
//! ### Why it matters
//! Overlong completions are dropped by masking all of their tokens. An index of -1, or the argmax
//! of nothing, still puts their score somewhere, and the mean of nothing is NaN.
//!
//! ### Does not hold for
//! Batches without any token, of which `empty_mask` speaks; what stands in the row where
//! `masked_output: any`.
//!
//! ### Bugs it has caught
//! Scores at index -1; means of rows that divide by the rows that were dropped.
//!
//! ### Example
//! ```diff
//!      last = (steps * mask).argmax(dim=1, keepdim=True)
//! -    ends = steps == last
//! +    ends = mask & (steps == last)
//! ```

use super::rounding;
use crate::token_rewards::{Report, TokenRewards, places};
use shakedown_core::contract::prelude::*;
use shakedown_core::numeric::conventions::EmptyRows;

pub(super) const RULE: Rule<TokenRewards> = Rule::new(
    Pitfall::Aggregation,
    &["empty-row-gets-its-score", "empty-rows-counted", "empty-rows-skipped", "mean-over-padding"],
    check,
);

fn check(probe: &mut Probe<'_, TokenRewards>) -> Outcome {
    let (case, options) = (probe.case, probe.options);
    let places = places(case, options);
    let rows = 0..places.len();
    let (empty, others): (Vec<usize>, Vec<usize>) = rows.partition(|row| places[*row].is_none());
    if empty.is_empty() {
        return Err(Stop::Vacuous);
    }
    let returned = probe.output()?;
    let bounds = rounding(probe);
    for row in &empty {
        for token in 0..case.mask.ncols() {
            let found = returned.output.rewards[[*row, token]];
            if apart(found, 0.0, bounds[[*row, token]]) {
                broken!(
                    "row {row} has no token, but rewards[{row}, {token}] is {}",
                    rounded(found)
                );
            }
        }
    }
    let Some(kl) = &returned.output.kl else { return Ok(()) };
    if others.is_empty() {
        return Ok(());
    }
    let alone = probe.call(&TokenRewards::take(case, &others))?;
    let Some(kl_alone) = alone.kl else { return Ok(()) };
    let counted = options.empty_rows == EmptyRows::Count && options.report != Report::TokenMean;
    let share = if counted { others.len() as f64 / places.len() as f64 } else { 1.0 };
    let allowed = 2.0 * probe.bounds("kl")[[]];
    let (found, expected) = (kl[()], share * kl_alone[()]);
    if apart(found, expected, allowed) {
        let [found, expected] = pair(found, expected);
        let what = if counted { "counted" } else { "left out" };
        broken!(
            "kl is {found} beside rows without a token, expected {expected} ± {allowed:.1e}: \
             they are {what}"
        );
    }
    Ok(())
}
