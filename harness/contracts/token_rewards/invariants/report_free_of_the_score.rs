//! What is reported is the divergence and nothing else.
//!
//! ### Claim
//! Other scores change no reported divergence.
//!
//! ### Why it matters
//! The reported divergence steers β in adaptive schemes, and is what people look at when a run
//! goes wrong. It is a number of the policies; a score in it hides how far they are apart.
//!
//! ### Does not hold for
//! Components that report none; batches without a token.
//!
//! ### Bugs it has caught
//! slime #2114: the tensor that is reported was multiplied by -β and given the score in place.
//!
//! ### Example
//! ```diff
//! -    rewards = kl.mul_(-beta)
//! -    rewards += ends * scores[:, None]
//! +    rewards = ends * scores[:, None] - beta * kl
//! ```

use crate::token_rewards::{TokenRewards, TokenRewardsCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenRewards> =
    Rule::new(Pitfall::Aggregation, &["kl-reused-in-place"], check);

fn check(probe: &mut Probe<'_, TokenRewards>) -> Outcome {
    let tokens = probe.case.mask.iter().filter(|kept| **kept).count();
    let returned = probe.finite_output()?;
    let (true, Some(before)) = (tokens > 0, &returned.output.kl) else {
        return Err(Stop::Vacuous);
    };
    let mut changed: TokenRewardsCase = probe.case.clone();
    for score in &mut changed.scores {
        *score = *probe.pick.one(&[0.0, 1.0, -3.0, 8.0]);
    }
    let Some(after) = probe.call(&changed)?.kl else { return Err(Stop::Vacuous) };
    let allowed = 2.0 * probe.related("kl");
    unchanged("with other scores, kl", &after, before, &allowed)
}
