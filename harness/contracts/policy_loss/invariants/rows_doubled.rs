//! A batch that is there twice.
//!
//! ### Claim
//! With every row twice, a mean stays as it is and a sum doubles.
//!
//! ### Why it matters
//! It tells a mean from a sum, and what is divided by a constant from what is divided by the
//! batch: a learning rate must not depend on how many rows fit into one step.
//!
//! ### Does not hold for
//! Nothing: it holds for every implementation.
//!
//! ### Bugs it has caught
//! understand-r1-zero 14046dc and verl #3741: a norm that is not divided by the rows. NeMo-RL #86:
//! sums where means are promised.
//!
//! ### Example
//! Under `aggregate="seq-mean-token-sum-norm", norm_length=8`:
//! ```diff
//! -    return per_row.sum()
//! +    return per_row.sum() / (lengths > 0).sum().clamp(min=1)
//! ```

use super::loss_bound;
use crate::policy_loss::PolicyLoss;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<PolicyLoss> =
    Rule::new(Pitfall::Aggregation, &["tokens-and-rows-summed", "norm-not-by-rows"], check);

fn check(probe: &mut Probe<'_, PolicyLoss>) -> Outcome {
    if !probe.case.mask.iter().any(|kept| *kept) {
        return Err(Stop::Vacuous);
    }
    let rows = PolicyLoss::rows(probe.case);
    let twice: Vec<usize> = (0..rows).chain(0..rows).collect();
    let twice = PolicyLoss::take(probe.case, &twice);
    let before = probe.output()?;
    let after = probe.call(&twice)?;
    let factor = if probe.options.aggregate == Aggregate::TokenSum { 2.0 } else { 1.0 };
    let [expected, expected_after] = [probe.expected().to_vec(), probe.expected_of(&twice)];
    let allowed = factor * loss_bound(probe, &expected) + loss_bound(probe, &expected_after);
    let (found, expected) = (after.loss[()], factor * before.output.loss[()]);
    near("with every row twice, loss", found, expected, allowed)
}
