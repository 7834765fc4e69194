//! What raises one score of a pair lowers the other as much.
//!
//! ### Claim
//! At each update the gradients by all scores of a pair add up to 0.
//!
//! ### Why it matters
//! The loss is of the difference of two scores, and does not change when both move alike. A sum
//! that is left over comes from a side that is detached, squashed or compared elsewhere: the
//! scores drift, and the accuracy looks as usual.
//!
//! ### Does not hold for
//! A centre, which pulls the sum of both scores to 0.
//!
//! ### Bugs it has caught
//! Planted: a rejected completion without its gradient; scores through a sigmoid.
//!
//! ### Example
//! ```diff
//! -        difference = chosen - rejected.detach()
//! +        difference = chosen - rejected
//! ```

use ndarray::Axis;

use crate::reward_model_step::{Options, RewardModelStep};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardModelStep> =
    Rule::new(Pitfall::GradientFlow, &["rejected-side-detached", "scores-squashed"], check)
        .under(|options: &Options| options.center == 0.0);

fn check(probe: &mut Probe<'_, RewardModelStep>) -> Outcome {
    let returned = probe.finite_output()?;
    let sum = |table: &ndarray::ArrayD<f64>| table.sum_axis(Axis(3)).sum_axis(Axis(2));
    let allowed = sum(&probe.bounds("gradient"));
    let sums = sum(&returned.output.gradient);
    for ((at, sum), allowed) in sums.indexed_iter().zip(&allowed) {
        if apart(*sum, 0.0, *allowed) {
            broken!(
                "the gradients by the scores of pair {} sum to {} at update {}, expected 0",
                at[1],
                number(*sum),
                at[0]
            );
        }
    }
    Ok(())
}
