//! An offset of the values is explained.
//!
//! ### Claim
//! Values + c leave the explained variance as it is.
//!
//! ### Why it matters
//! It says how much of the ups and downs of the returns a critic foresees. One that is off by a
//! constant foresees all of them; who takes squares for variances reports a critic that learned
//! nothing.
//!
//! ### Does not hold for
//! `unit: row-sum`, in which rows of different length move by different numbers; values that count
//! as 0 because they are NaN.
//!
//! ### Bugs it has caught
//! None yet in public: R² for explained variance is the bug to expect.
//!
//! ### Example
//! ```diff
//! -        left = (targets - values).square().mean()
//! +        left = variance(targets - values, ddof)
//! ```

use super::shift::{SHIFTS, shifted};
use super::{related, with_scores};
use crate::metric_reduction::{MetricReduction, Unit};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<MetricReduction> =
    Rule::new(Pitfall::Configuration, &["squares-for-variance"], check)
        .under(|options| options.unit != Unit::RowSum);

fn check(probe: &mut Probe<'_, MetricReduction>) -> Outcome {
    with_scores(probe)?;
    let by = *probe.pick.one(&SHIFTS[..3]);
    let other = shifted(probe.case, probe.options, by);
    let what = format!("with values larger by {by}");
    related(probe, &other, &what, |name, x| (name == "explained_variance").then_some(x))
}
