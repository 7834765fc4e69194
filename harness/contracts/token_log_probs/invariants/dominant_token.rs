//! Near one-hot, the dominant token is nearly sure and the others are a margin below it.
//!
//! ### Claim
//! Near one-hot, a token's log-probability is the distance of its logit to the largest, over the
//! temperature. The dominant token is at about 0.
//!
//! ### Why it matters
//! A trained policy is near one-hot at most tokens. There an ε inside a logarithm, a clamp and an
//! underflow put a floor under the log-probabilities of unlikely tokens: their gradient is gone,
//! or their ratio is infinite.
//!
//! ### Does not hold for
//! Positions whose largest logit leads by less than 5 temperatures.
//!
//! ### Bugs it has caught
//! `log(softmax(x))`, which underflows to -inf; `log(p + 1e-8)`, which ends at -18.4; NeMo-RL
//! #3297, where the most likely token was scored for the sampled one. TRL #3640: temperatures
//! near 0.
//!
//! ### Example
//! ```diff
//! -    log_probs = torch.log(torch.softmax(scaled, dim=-1) + 1e-8)
//! +    log_probs = torch.log_softmax(scaled, dim=-1)
//! ```

use crate::token_log_probs::generate::{DOMINANT, lead};
use crate::token_log_probs::{TokenLogProbs, position, scored, vocabulary};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenLogProbs> = Rule::new(
    Pitfall::StabilityConstant,
    &[
        "most-likely-token-scored",
        "least-likely-token-scored",
        "logarithm-of-the-softmax",
        "epsilon-inside-the-logarithm",
        "probability-clamped",
        "log-probability-clamped",
        "logits-clamped",
    ],
    check,
);

fn check(probe: &mut Probe<'_, TokenLogProbs>) -> Outcome {
    let returned = probe.output()?;
    let bounds = probe.bounds("log_probs");
    let (case, options) = (probe.case, probe.options);
    let mut checked = false;
    for (row, column, token) in scored(case, options) {
        let (margin, best) = lead(case, options, (row, column));
        if margin < DOMINANT {
            continue;
        }
        checked = true;
        let logits = position(case, row, column);
        let most = (logits[token] - logits[best]) / options.temperature;
        let least = most - ((vocabulary(case) - 1) as f64 * (-margin).exp()).ln_1p();
        let (found, allowed) = (returned.output.log_probs[[row, column]], bounds[[row, column]]);
        if !(found >= least - allowed && found <= most + allowed) {
            broken!(
                "logits[{row}, {column}] lead by {} at token {best}; the log-probability of token \
                 {token} is {}, expected {} ± {allowed:.1e}",
                rounded(margin),
                rounded(found),
                rounded(most),
            );
        }
    }
    if checked { Ok(()) } else { Err(Stop::Vacuous) }
}
