//! A batch that is there twice.
//!
//! ### Claim
//! With every row twice, a mean stays as it is and a sum doubles.
//!
//! ### Why it matters
//! It tells a mean from a sum, and what is divided by a constant from what is divided by the batch:
//! a coefficient must not mean something else for each number of rows.
//!
//! ### Does not hold for
//! `top_share`, whose quantile moves.
//!
//! ### Bugs it has caught
//! NeMo-RL #86: sums where means are promised.
//!
//! ### Example
//! ```diff
//! -        entropy = entropies.sum()
//! +        entropy = entropies.sum() / lengths.sum().clamp(min=1)
//! ```

use super::{bound, pairs};
use crate::entropy_bonus::EntropyBonus;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<EntropyBonus> =
    Rule::new(Pitfall::Aggregation, &["summed-over-tokens", "epsilon-in-the-denominator"], check)
        .under(|options| options.top_share.is_none());

fn check(probe: &mut Probe<'_, EntropyBonus>) -> Outcome {
    if !probe.case.mask.iter().any(|kept| *kept) {
        return Err(Stop::Vacuous);
    }
    let rows = EntropyBonus::rows(probe.case);
    let twice: Vec<usize> = (0..rows).chain(0..rows).collect();
    let twice = EntropyBonus::take(probe.case, &twice);
    let before = probe.output()?;
    let after = probe.call(&twice)?;
    let factor = if probe.options.aggregate == Aggregate::TokenSum { 2.0 } else { 1.0 };
    let expected = [probe.expected().to_vec(), probe.expected_of(&twice)];
    for (name, before, after) in pairs(&before.output, &after, probe.options) {
        let [own, other] = [&expected[0], &expected[1]].map(|one| bound(probe, one, name));
        let what = format_args!("with every row twice, {name}");
        near(what, after, factor * before, factor * own + other)?;
    }
    Ok(())
}
