//! A critic that is right is not trained.
//!
//! ### Claim
//! Where scores, divergences, returns and all values of tokens are 0, so is the gradient. What
//! stands behind an end stays.
//!
//! ### Why it matters
//! All that is wrong about the end of a completion shows here: the value behind the last token is
//! 0, whatever the critic says of it. A return that counts on it teaches the critic its own error.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! Planted: a bootstrap past the end.
//!
//! ### Example
//! ```diff
//! -        following = old[:, t]
//! +        following = torch.where(mask[:, t], old[:, t], 0.0)
//! ```

use crate::critic_step::CriticStep;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<CriticStep> =
    Rule::new(Pitfall::MaskingAlignment, &["bootstrap-past-the-end"], check);

fn check(probe: &mut Probe<'_, CriticStep>) -> Outcome {
    let mut content = probe.case.clone();
    content.scores.iter_mut().for_each(|scores| scores.fill(0.0));
    content.kls.iter_mut().for_each(|kls| kls.fill(0.0));
    content.returns.iter_mut().for_each(|returns| returns.fill(0.0));
    for mut table in content.values.outer_iter_mut() {
        for ((row, at), _) in probe.case.mask.indexed_iter().filter(|(_, kept)| **kept) {
            table[[row, at]] = 0.0;
        }
    }
    if content.values.iter().all(|value| *value == 0.0) {
        return Err(Stop::Vacuous);
    }
    let found = probe.call(&content)?.gradient;
    let allowed = probe.bounds_in(&probe.expected_of(&content), "gradient");
    for (at, x) in found.indexed_iter() {
        if apart(*x, 0.0, allowed[&at]) {
            broken!(
                "gradient{} is {}, and all values and rewards of tokens are 0",
                index(&at),
                number(*x)
            );
        }
    }
    Ok(())
}
