//! Nobody explains more than everything.
//!
//! ### Claim
//! The explained variance is at most 1, and is 1 where the targets are the values.
//!
//! ### Why it matters
//! A variance is never below 0. Above 1 stands a quotient of something else, or one whose parts
//! come from different ranks; and a perfect critic is the one that can be checked by eye.
//!
//! ### Does not hold for
//! Equal targets, and no more than `ddof` numbers, for which it is NaN.
//!
//! ### Bugs it has caught
//! None yet in public: values and targets in different orders are the bug to expect after a sort.
//!
//! ### Example
//! ```diff
//! -    values = torch.cat(ranks).sort().values
//! +    values = torch.cat(ranks)
//! ```

use super::{told, with_scores};
use crate::metric_reduction::{MetricReduction, counted};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<MetricReduction> =
    Rule::new(Pitfall::Configuration, &["unexplained-variance", "targets-in-another-order"], check);

fn check(probe: &mut Probe<'_, MetricReduction>) -> Outcome {
    with_scores(probe)?;
    let returned = probe.output()?;
    let Some(explained) = &returned.output.explained_variance else { return Err(Stop::Vacuous) };
    let expected = probe.expected();
    let allowed = super::allowed(probe, &expected, "explained_variance");
    if explained[()] > 1.0 + allowed {
        broken!("`explained_variance` is {}, more than 1", number(explained[()]));
    }
    let mut perfect = probe.case.clone();
    for part in &mut perfect.shards {
        let counted = counted(part, probe.options);
        for ((target, value), counted) in part.targets.iter_mut().zip(&part.values).zip(&counted) {
            *target = if *counted { *value } else { *target };
        }
    }
    let of_perfect = probe.expected_of(&perfect);
    let defined = |one: &Expected| {
        let finite = one.numbers.iter().all(|x| x.value.is_finite() && x.scale.is_finite());
        one.field == "explained_variance" && finite
    };
    if !of_perfect.iter().any(defined) {
        return if allowed.is_finite() { Ok(()) } else { Err(Stop::Vacuous) };
    }
    told(probe, &perfect, "with the values as targets", |name| {
        (name == "explained_variance").then_some(1.0)
    })
}
