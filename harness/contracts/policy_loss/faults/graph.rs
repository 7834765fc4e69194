//! Faults in the step that makes a token's loss.

use super::super::on_tape::{OfToken, made_of};
use super::super::{Options, PolicyLossCase};
use super::{Variant, right, with_loss};

/// Loss and gradient where each token's loss is made by `token`; the KL term, the sum and the
/// metrics are right.
pub(super) fn on_tape(token: OfToken) -> Variant {
    Variant::gives(move |case: &PolicyLossCase, options: &Options, dtype| {
        let wrong = made_of(case, options, dtype, token);
        with_loss(right(case, options, dtype), wrong.loss, wrong.grad_log_probs)
    })
}
