//! A flatter policy has a lower loss.
//!
//! ### Claim
//! Halving all logits, which moves those of a token towards each other, does not raise the loss.
//!
//! ### Why it matters
//! That is what the bonus is for. With the sign the other way round the policy is pressed into one
//! answer, faster and faster, and the curve of the loss looks fine.
//!
//! ### Does not hold for
//! `top_share`: other tokens may be chosen.
//!
//! ### Bugs it has caught
//! The entropy added to the loss.
//!
//! ### Example
//! ```diff
//! -    return {"loss": coefficient * entropy, "entropy": entropy}
//! +    return {"loss": -coefficient * entropy, "entropy": entropy}
//! ```

use super::{bound, given, pairs};
use crate::entropy_bonus::EntropyBonus;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<EntropyBonus> =
    Rule::new(Pitfall::LogSpaceSign, &["sign-flipped"], check)
        .under(|options| options.top_share.is_none());

fn check(probe: &mut Probe<'_, EntropyBonus>) -> Outcome {
    let before = probe.finite_output()?;
    let mut flatter = probe.case.clone();
    flatter.logits.mapv_inplace(|logit| logit / 2.0);
    let after = probe.call(&flatter)?;
    let expected = [probe.expected().to_vec(), probe.expected_of(&flatter)];
    let times: Vec<f64> = given(&before.output, probe.options).map(|(.., times)| times).collect();
    let both = pairs(&before.output, &after, probe.options);
    for ((name, before, after), times) in both.into_iter().zip(times) {
        let [own, other] = [&expected[0], &expected[1]].map(|one| bound(probe, one, name));
        if (after - before) * times.signum() < -(own + other) {
            let [after, before] = [after, before].map(rounded);
            let way = if times < 0.0 { "at most" } else { "at least" };
            broken!("with all logits halved, {name} is {after}, expected {way} {before} as before");
        }
    }
    Ok(())
}
