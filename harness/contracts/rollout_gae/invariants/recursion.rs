//! Each return is made of what the next step has.
//!
//! ### Claim
//! A step's return is its reward, plus γ times a mix of the next value and return if it goes on.
//!
//! ### Why it matters
//! λ mixes them: `R = r + γ·c·((1 − λ)·V' + λ·R')`, and the factor c, which is 0 at the end of an
//! episode, stands before the whole bracket. One look shows at which step a rollout went wrong.
//!
//! ### Does not hold for
//! The last step of a window that cuts an episode, where no return follows: it is
//! `r + γ·last_value`.
//!
//! ### Bugs it has caught
//! CleanRL #494: c stood before one of the two terms only.
//!
//! ### Example
//! ```diff
//! -        carried = delta + gamma * lam * carried
//! +        carried = delta + gamma * lam * carried * goes_on
//! ```

use crate::rollout_gae::{Options, RolloutGae};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<RolloutGae> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &[
        "lambda-term-crosses-episodes",
        "carry-crosses-episodes",
        "value-crosses-episodes",
        "returns-without-lambda",
        "carry-decays-without-gamma",
        "last-reward-dropped",
        "last-step-left-out",
    ],
    check,
);

fn check(probe: &mut Probe<'_, RolloutGae>) -> Outcome {
    let returned = probe.output()?;
    let returns = &returned.output.returns;
    let bounds = probe.bounds("returns");
    let ends = probe.case.ends(probe.options);
    let Options { gamma, lam, .. } = *probe.options;
    let steps = returns.nrows();
    for ((step, env), found) in returns.indexed_iter() {
        let next = [step + 1, env];
        let ([value, ahead], more) = match step + 1 {
            _ if ends[[step, env]] => ([0.0, 0.0], 0.0),
            after if after == steps => ([probe.case.last_values[env], 0.0], 0.0),
            _ => {
                let value = (1.0 - lam) * probe.case.values[next];
                ([value, lam * returns[next]], bounds[next])
            }
        };
        let terms = [probe.case.rewards[[step, env]], gamma * value, gamma * ahead];
        let expected = terms.iter().sum();
        // The outputs of a wrong component may be larger than the oracle knows.
        let own = Number::new(expected, terms.iter().map(|term| term.abs()).sum());
        let allowed = bounds[[step, env]] + more + probe.tolerance.bound(own, 1);
        if apart(*found, expected, allowed) {
            let [found, expected] = pair(*found, expected);
            broken!(
                "returns[{step}, {env}] is {found}, but its reward and what follows make \
                 {expected} ± {allowed:.1e}"
            );
        }
    }
    Ok(())
}
