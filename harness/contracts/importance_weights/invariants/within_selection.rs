//! What is kept is within the bounds that select.
//!
//! ### Claim
//! The ratio on the selecting level is within its bounds wherever a token is kept.
//!
//! ### Why it matters
//! A token far outside is one that the sampler made another way: wrong kernels, a wrong template,
//! a router that chose otherwise. That is what dropping it is for.
//!
//! ### Does not hold for
//! `select: none`; components that do not return `keep`; ratios next to a bound.
//!
//! ### Bugs it has caught
//! Bounds of sampler over policy, as verl's k1 has them, read as those of policy over sampler.
//!
//! ### Example
//! Under `select="token", select_high=2.0`:
//! ```diff
//! -        selecting = ratio_of(-log_ratio, mask, select, limit)
//! +        selecting = ratio_of(log_ratio, mask, select, limit)
//!          keep &= selecting <= select_high
//! ```

use crate::importance_weights::oracle::{Verdict, judged};
use crate::importance_weights::{ImportanceWeights, ImportanceWeightsCase, Options, Select};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ImportanceWeights> = Rule::new(
    Pitfall::ProbabilityRatio,
    &[
        "select-ignored",
        "select-low-ignored",
        "select-high-ignored",
        "selected-by-the-clamped-weight",
        "mean-decides-for-the-product",
        "rows-dropped-for-tokens",
        "bounds-of-the-reversed-ratio",
        "bounds-of-the-log-ratio",
        "keep-is-the-mask",
        "kept-and-dropped-exchanged",
    ],
    check,
)
.under(|options| options.select != Select::None);

fn check(probe: &mut Probe<'_, ImportanceWeights>) -> Outcome {
    let returned = probe.output()?;
    let Some(keep) = &returned.output.keep else { return Err(Stop::Vacuous) };
    let alone = Options { veto: None, drift: None, ..probe.options.clone() };
    let case = ImportanceWeightsCase { advantages: None, ..probe.case.clone() };
    let mut checked = false;
    for token in judged(&case, &alone, probe.place.dtype).concat() {
        let (row, column) = token.at;
        if token.dropped == Verdict::Yes && keep[token.at] != 0.0 {
            broken!(
                "keep[{row}, {column}] is true, expected false: its ratio is outside the bounds"
            );
        }
        checked |= token.dropped == Verdict::Yes;
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
