//! A constant added to all logits of a position changes nothing.
//!
//! ### Claim
//! Adding one constant to all logits of a position changes no log-probability.
//!
//! ### Why it matters
//! The level of the logits is not determined by training and drifts to hundreds. What depends on
//! it overflows, rounds differently from one batch to the next, or is no log-probability.
//!
//! ### Does not hold for
//! Constants that rounding would change.
//!
//! ### Bugs it has caught
//! Normalisers over the tokens of a row or the rows of a batch, logits clamped or soft-capped,
//! exp without the maximum taken off.
//!
//! ### Example
//! ```diff
//! -    log_probs = scaled - torch.log(torch.exp(scaled).sum(dim=-1, keepdim=True))
//! +    log_probs = torch.log_softmax(scaled, dim=-1)
//! ```

use ndarray::{Array2, Axis};

use crate::token_log_probs::{TokenLogProbs, position};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<TokenLogProbs> = Rule::new(
    Pitfall::StabilityConstant,
    &[
        "logit-not-normalised",
        "softmax-over-another-axis",
        "normaliser-of-another-position",
        "logits-clamped",
    ],
    check,
);

fn check(probe: &mut Probe<'_, TokenLogProbs>) -> Outcome {
    let before = probe.finite_output()?;
    let amounts = [1.0, -1.0, 4.0, -8.0, 64.0, 128.0, -1024.0, 8192.0, 0.5];
    let mut shifted = probe.case.clone();
    let (rows, columns, _) = shifted.logits.dim();
    let mut constants = Array2::zeros((rows, columns));
    for ((row, column), constant) in constants.indexed_iter_mut() {
        for _ in 0..4 {
            let amount = *probe.pick.one(&amounts);
            let dtype = probe.place.dtype;
            let logits = position(&shifted, row, column);
            let exact = logits.iter().all(|logit| {
                let moved = logit + amount;
                logit.is_infinite()
                    || (dtype.round(moved) == moved
                        && moved - amount == *logit
                        && moved - *logit == amount)
            });
            if exact {
                *constant = amount;
                let mut row = shifted.logits.index_axis_mut(Axis(0), row);
                row.index_axis_mut(Axis(0), column).mapv_inplace(|x| x + amount);
                break;
            }
        }
    }
    if constants.iter().all(|constant| *constant == 0.0) {
        return Err(Stop::Vacuous);
    }
    let after = probe.call(&shifted)?;
    let moved = probe.expected_of(&shifted);
    let allowed = probe.related("log_probs") + probe.bounds_in(&moved, "log_probs");
    let constants = constants.to_string().replace('\n', "");
    let what = format_args!("with {constants} added to the logits of the positions, log_probs");
    close(what, &after.log_probs, &before.output.log_probs, &allowed)
}
