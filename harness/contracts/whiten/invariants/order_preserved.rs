//! A larger value is never the smaller one once whitened.
//!
//! ### Claim
//! Within a set a larger value never has the smaller whitened value.
//!
//! ### Why it matters
//! Whitening must not turn a better token into a worse one: a flipped sign teaches the opposite of
//! what the reward says.
//!
//! ### Does not hold for
//! Sets of fewer than two tokens.
//!
//! ### Bugs it has caught
//! Sign errors, `mean - v` for `v - mean`.
//!
//! ### Example
//! ```diff
//! -    whitened = (mean - values) * torch.rsqrt(variance + epsilon)
//! +    whitened = (values - mean) * torch.rsqrt(variance + epsilon)
//! ```

use super::whole_sets;
use crate::whiten::Whiten;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Whiten> = Rule::new(Pitfall::LogSpaceSign, &["sign-flipped"], check);

fn check(probe: &mut Probe<'_, Whiten>) -> Outcome {
    let returned = probe.output()?;
    let whitened = &returned.output.whitened;
    let bounds = probe.bounds("whitened");
    for (set, values) in whole_sets(probe.case, probe.options)? {
        let mut order: Vec<usize> = (0..set.len()).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        for pair in order.windows(2) {
            let [worse, better] = [pair[0], pair[1]].map(|place| set[place]);
            let allowed = bounds[[worse.0, worse.1]] + bounds[[better.0, better.1]];
            let rises = values[pair[1]] > values[pair[0]];
            if rises && whitened[better] < whitened[worse] - allowed {
                broken!(
                    "{} at {better:?} is whitened to {}, but {} at {worse:?} to {}",
                    rounded(values[pair[1]]),
                    rounded(whitened[better]),
                    rounded(values[pair[0]]),
                    rounded(whitened[worse]),
                );
            }
        }
    }
    Ok(())
}
