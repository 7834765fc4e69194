//! The reference implementation of `entropy-bonus`, as a trainer would write it: the entropies of
//! all tokens, a choice of them, and a masked mean.

use ndarray::{Array0, Array2, Array3, Axis};

use super::{EntropyBonusCase, EntropyBonusOutput, Options, tokens};
use crate::token_entropy::{self, TokenEntropy, TokenEntropyCase};
use shakedown_core::contract::Contract as _;
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::numeric::conventions::{EmptyMask, EmptyRows};
use shakedown_core::value::place::Dtype;

/// Loss, entropy and the gradient of the loss, computed in the arithmetic of the dtype.
///
/// # Panics
/// Without a token, where `empty_mask: refuse` is declared.
pub(super) fn bonus(
    case: &EntropyBonusCase,
    options: &Options,
    dtype: Dtype,
) -> EntropyBonusOutput {
    let f = |x: f64| dtype.arithmetic().round(x);
    let kept = tokens(&case.mask);
    if kept == 0 {
        return without_a_token(case, options);
    }
    let (entropies, mut slopes) = entropies(case, options, dtype);
    let chosen = chosen(&entropies, &case.mask, options, dtype);
    let lengths: Vec<f64> = chosen.rows().into_iter().map(|row| count(row.iter())).collect();
    let rows = match options.empty_rows {
        EmptyRows::Skip => lengths.iter().filter(|length| **length > 0.0).count(),
        EmptyRows::Count => lengths.len(),
    } as f64;
    let divisor = |row: usize| match options.aggregate {
        Aggregate::TokenMean => lengths.iter().sum(),
        Aggregate::TokenSum => 1.0,
        Aggregate::SeqMeanTokenMean => lengths[row] * rows,
        Aggregate::SeqMeanTokenSum => rows,
        Aggregate::SeqMeanTokenSumNorm => rows * options.norm_length.map_or(1.0, f64::from),
    };
    let mut entropy = 0.0;
    for row in (0..lengths.len()).filter(|row| lengths[*row] > 0.0) {
        let counted = entropies.row(row).into_iter().zip(chosen.row(row));
        let counted = counted.filter(|(_, chosen)| **chosen).map(|(entropy, _)| *entropy);
        let sum = counted.fold(0.0, |sum, entropy| f(sum + entropy));
        entropy = f(entropy + f(sum / divisor(row)));
    }
    let coefficient = f(options.coefficient);
    for ((row, token), chosen) in chosen.indexed_iter() {
        let mut slopes = slopes.index_axis_mut(Axis(0), row).index_axis_move(Axis(0), token);
        match chosen {
            true => slopes.mapv_inplace(|slope| 0.0 - f(coefficient * f(slope / divisor(row)))),
            false => slopes.fill(0.0),
        }
    }
    EntropyBonusOutput {
        loss: Some(Array0::from_elem((), 0.0 - f(coefficient * entropy))),
        entropy: Some(Array0::from_elem((), entropy)),
        grad_logits: Some(slopes),
    }
}

/// The entropy of every place, and its slopes; masked ones have some too.
fn entropies(
    case: &EntropyBonusCase,
    options: &Options,
    dtype: Dtype,
) -> (Array2<f64>, Array3<f64>) {
    let of_tokens = token_entropy::Options {
        neg_inf: token_entropy::NegInf::Zero,
        gradient: true,
        ..options.of_tokens()
    };
    let logits = TokenEntropyCase { logits: case.logits.clone() };
    let output = (TokenEntropy::PARTS.reference)(&logits, &of_tokens, dtype);
    (output.entropy, output.grad_logits.expect("it was asked for"))
}

/// The tokens under the mask, or the less sure ones of them.
pub(super) fn chosen(
    entropies: &Array2<f64>,
    mask: &Array2<bool>,
    options: &Options,
    dtype: Dtype,
) -> Array2<bool> {
    let Some(share) = options.top_share else { return mask.clone() };
    let f = |x: f64| dtype.arithmetic().round(x);
    let kept = entropies.iter().zip(mask).filter(|(_, kept)| **kept);
    let mut sorted: Vec<f64> = kept.map(|(entropy, _)| *entropy).collect();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        return mask.clone();
    }
    let place = f(f(1.0 - f(share)) * (sorted.len() - 1) as f64);
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    let least = f(below + f(f(above - below) * f(place - place.floor())));
    let places = entropies.iter().zip(mask).map(|(entropy, kept)| *kept && *entropy >= least);
    Array2::from_shape_vec(mask.dim(), places.collect()).expect("as many as places")
}

/// How many are true.
fn count<'a>(flags: impl Iterator<Item = &'a bool>) -> f64 {
    flags.map(|flag| f64::from(*flag)).sum()
}

/// What a batch without a token gives.
pub(super) fn without_a_token(case: &EntropyBonusCase, options: &Options) -> EntropyBonusOutput {
    let nothing = match options.empty_mask {
        EmptyMask::Zero | EmptyMask::Avoid => 0.0,
        EmptyMask::Nan => f64::NAN,
        EmptyMask::Refuse => panic!("the mask of entropy-bonus has no token"),
    };
    let number = || Some(Array0::from_elem((), nothing));
    let grad_logits = Some(Array3::zeros(case.logits.dim()));
    EntropyBonusOutput { loss: number(), entropy: number(), grad_logits }
}
