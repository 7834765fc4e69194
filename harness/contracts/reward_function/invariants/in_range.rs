//! Scores stay inside the declared bounds.
//!
//! ### Claim
//! Every score is inside `range`.
//!
//! ### Why it matters
//! Rewards are added up with weights that were chosen for these bounds; one that leaves them drowns
//! the others.
//!
//! ### Does not hold for
//! Rounding of the bounds themselves.
//!
//! ### Bugs it has caught
//! GRPO tutorial: the tag count falls without end with what follows the last tag.
//!
//! ### Example
//! ```diff
//! -    return 2.0 if given and given == answer.strip() else 0.0
//! +    return 1.0 if given and given == answer.strip() else 0.0
//! ```

use crate::reward_function::RewardFunction;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RewardFunction> =
    Rule::new(Pitfall::Configuration, &["score-doubled"], check);

fn check(probe: &mut Probe<'_, RewardFunction>) -> Outcome {
    let [lo, hi] = probe.options.range;
    let slack = probe.tolerance.bound(Number::new(lo.abs().max(hi.abs()), 1.0), 1);
    let output = probe.output()?;
    for (row, score) in output.output.rewards.iter().enumerate() {
        if *score < lo - slack || *score > hi + slack {
            broken!(
                "rewards[{row}] is {}, expected a score of [{lo}, {hi}]; the completion is {}",
                rounded(*score),
                quoted(&probe.case.completions[row])
            );
        }
    }
    Ok(())
}
