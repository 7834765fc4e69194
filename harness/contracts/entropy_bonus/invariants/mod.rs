//! What must hold of `entropy-bonus`: the laws that apply, and one file for each of its own.

use crate::entropy_bonus::{EntropyBonus, EntropyBonusOutput, Options};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<EntropyBonus>> {
    let mut all = laws::universal_and(&[(
        "finite",
        &[
            "maximum-starts-at-zero",
            "maximum-not-subtracted",
            "minus-infinity-gives-nan",
            "empty-row-divides-by-zero",
            "empty-mask-gives-nan",
            "masked-after-the-arithmetic",
        ],
    )]);
    all.extend([
        laws::oracle::law().catching(&[
            "changed-in-place",
            "untempered",
            "temperature-multiplied",
            "temperature-applied-twice",
            "outside-the-chosen",
            "chosen-over-all-tokens",
            "share-taken-for-the-quantile",
            "surest-chosen",
            "quantile-over-padding",
            "chosen-row-by-row",
            "another-normaliser",
            "aggregate-option-ignored",
            "sequence-mean-called-token-mean",
            "coefficient-ignored",
            "coefficient-applied-twice",
            "coefficient-in-the-metric",
            "epsilon-in-the-denominator",
            "epsilon-in-the-logarithm",
            "logits-in-half-precision",
            "prompt-positions",
            "last-token-left-out",
        ]),
        laws::gradient::law().catching(&[
            "gradient-zero",
            "normaliser-detached",
            "gradient-without-temperature",
            "gradient-not-scaled",
            "gradient-of-the-sum",
        ]),
        laws::row_permutation::law().catching(&["mask-transposed", "mask-of-the-first-row"]),
        laws::padding::law().catching(&[
            "norm-by-padded-width",
            "mean-over-padding",
            "pad-sentinel",
        ]),
        laws::masked_poison::law().catching(&["mask-ignored", "prompt-positions"]),
        laws::refuses::law::<EntropyBonus>(|options| options.empty_mask == EmptyMask::Refuse)
            .catching(&["epsilon-in-the-denominator"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    EntropyBonus;
    bounded,
    uniform,
    flatter_logits,
    coefficient,
    shift_invariant,
    minus_infinity_removes_a_token,
    less_sure_tokens,
    empty_row,
    empty_batch,
    rows_doubled,
    gradient_sums_to_zero,
    masked_gradient,
}

/// The numbers that a component returned, each with its name and with what the entropy is times
/// to give it.
fn given(
    output: &EntropyBonusOutput,
    options: &Options,
) -> impl Iterator<Item = (&'static str, f64, f64)> {
    let loss = output.loss.iter().map(|loss| ("loss", loss[()], -options.coefficient));
    let entropy = output.entropy.iter().map(|entropy| ("entropy", entropy[()], 1.0));
    loss.chain(entropy).collect::<Vec<_>>().into_iter()
}

/// Both values of each number that two outputs of a component have.
fn pairs(
    before: &EntropyBonusOutput,
    after: &EntropyBonusOutput,
    options: &Options,
) -> Vec<(&'static str, f64, f64)> {
    let after: Vec<_> = given(after, options).collect();
    let both = given(before, options).filter_map(|(name, before, _)| {
        let (_, after, _) = after.iter().find(|(known, ..)| *known == name)?;
        Some((name, before, *after))
    });
    both.collect()
}

/// How far a number may be off in what [`Probe::expected_of`] gave.
fn bound(probe: &Probe<'_, EntropyBonus>, expected: &[Expected], name: &str) -> f64 {
    probe.bounds_in(expected, name)[[]]
}
