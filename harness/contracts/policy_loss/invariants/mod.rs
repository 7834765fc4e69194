//! What must hold of `policy-loss`: the laws that apply, and one file for each of its own.

use ndarray::Array2;

use crate::policy_loss::{Options, PolicyLoss, PolicyLossCase, PolicyLossOutput};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<PolicyLoss>> {
    let mut all = laws::universal_and(&[(
        "finite",
        &[
            "empty-row-divides-by-zero",
            "empty-mask-returns-a-constant",
            "masked-after-the-arithmetic",
        ],
    )]);
    all.extend([
        laws::oracle::law().catching(&[
            "objective-sign-flipped",
            "old-log-probs-are-current",
            "clip-bounds-swapped",
            "one-range-for-both-bounds",
            "clipped-in-log-space",
            "log-ratio-clamp-ignored",
            "log-ratio-clamped-undeclared",
            "dual-clip-ignored",
            "dual-clip-undeclared",
            "absolute-bounds-for-relative",
            "relative-bounds-for-absolute",
            "token-ratio-for-sequence",
            "sequence-ratio-of-the-sum",
            "aggregate-option-ignored",
            "kl-estimator-mistaken",
            "kl-clamp-ignored",
            "kl-log-ratio-clamp-ignored",
            "kl-direction-reversed",
            "beta-applied-twice",
        ]),
        laws::gradient::law().catching(&[
            "ratio-detached",
            "gradient-without-the-ratio",
            "weight-keeps-its-gradient",
            "sequence-gradient-spread",
            "sequence-ratio-keeps-its-gradient",
            "clipped-tokens-keep-their-gradient",
            "log-ratio-clamp-keeps-its-gradient",
            "exponential-overflows",
            "fused-path-zero-gradient",
            "gradient-of-the-sum",
            "gradient-doubled",
            "kl-detached",
            "kl-gradient-of-k2",
            "kl-clamp-keeps-its-gradient",
        ]),
        laws::row_permutation::law().catching(&[
            "row-advantage-along-columns",
            "advantages-of-another-row",
            "mask-transposed",
            "mask-of-the-first-row",
        ]),
        laws::padding::law().catching(&["norm-by-padded-width", "mean-over-padding"]),
        laws::masked_poison::law().catching(&["mask-ignored", "mask-one-position-early"]),
        laws::refuses::law::<PolicyLoss>(|options| options.empty_mask == EmptyMask::Refuse)
            .catching(&["epsilon-in-the-denominator"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    PolicyLoss;
    on_policy_loss,
    on_policy_gradient,
    good_tokens_lower_the_loss,
    gradient_against_the_advantage,
    zero_advantage,
    clipped_tokens,
    at_least_unclipped,
    linear_in_advantages,
    log_prob_shift,
    kl_raises_the_loss,
    pulls_towards_the_reference,
    kl_unscaled,
    empty_row,
    empty_batch,
    rows_doubled,
    clip_fraction,
    metrics_on_policy,
}

/// The case where all three policies are one.
fn on_policy(case: &PolicyLossCase) -> PolicyLossCase {
    PolicyLossCase { old_log_probs: case.log_probs.clone(), ..at_the_reference(case) }
}

/// The case where the reference is the policy.
fn at_the_reference(case: &PolicyLossCase) -> PolicyLossCase {
    let ref_log_probs = case.ref_log_probs.as_ref().map(|_| case.log_probs.clone());
    PolicyLossCase { ref_log_probs, ..case.clone() }
}

/// The weight of each token in the loss; a batch without any has none.
fn weights(case: &PolicyLossCase, options: &Options) -> Result<Array2<f64>, Stop> {
    let weights = options.aggregate.weights(&case.mask, options.empty_rows, options.norm_length);
    weights.ok_or(Stop::Vacuous)
}

/// The gradient, where the component gives one of the right shape: the law `gradient` says so
/// where it is of another.
fn gradient<'a>(
    output: &'a PolicyLossOutput,
    case: &PolicyLossCase,
) -> Result<&'a Array2<f64>, Stop> {
    let gradient = output.grad_log_probs.as_ref();
    gradient.filter(|gradient| gradient.dim() == case.mask.dim()).ok_or(Stop::Vacuous)
}

/// How far the loss may be off in what [`Probe::expected_of`] gave.
fn loss_bound(probe: &Probe<'_, PolicyLoss>, expected: &[Expected]) -> f64 {
    probe.bounds_in(expected, "loss")[[]]
}
