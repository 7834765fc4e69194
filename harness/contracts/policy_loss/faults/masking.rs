//! Faults of the mask: shifted, too late, forgotten, and batches with few tokens or none.

use ndarray::Array2;

use super::super::{AdvantageShape, Options, PolicyLossCase};
use super::{Fault, Variant, gradient, right, tokens, with_loss};
use shakedown_core::numeric::conventions::EmptyMask;

pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new(
            "mask-one-position-early",
            "the mask is shifted by one token against the log-probabilities",
        )
        .seen("verl #3287 (2d6c6dbb3); trlx #108 (8edcd9d), #509 (fbc9e04); trl #469, #6800")
        .made_of([shifted(|token| token.checked_sub(1)), shifted(|token| Some(token + 1))]),
        Fault::new(
            "masked-after-the-arithmetic",
            "what stands under the mask is computed with, and masked afterwards",
        )
        .seen("trl #5594 (43e09b8fb)")
        .under("{masked_values: any}")
        .made_of([false, true].map(too_late)),
        Fault::new("mask-ignored", "every place counts")
            .seen("trlx: losses over the padded batch")
            .made_of([with_mask(|_, _| true)]),
        Fault::new("last-token-left-out", "the last token of each row does not count")
            .seen("trl #2332 (7f2ccbe3a); trlx #401 (a369dad)")
            .made_of([with_mask(|mask, at| {
                mask[at] && mask.row(at.0).iter().rposition(|kept| *kept) != Some(at.1)
            })]),
        Fault::new("first-token-left-out", "the first token of each row does not count")
            .seen("verl #3287 (2d6c6dbb3)")
            .made_of([with_mask(|mask, at| {
                mask[at] && mask.row(at.0).iter().position(|kept| *kept) != Some(at.1)
            })]),
        Fault::new("empty-mask-returns-a-constant", "a batch without a token gives 0/0")
            .seen(
                "ROLL 3a7b01f9; OpenRLHF 0fdee11b, bb463427; NeMo-RL #166 (5ff10f613); \
                 verl e9bcd2ba0",
            )
            .gives(&[|case, options, dtype| {
                let right = right(case, options, dtype);
                if tokens(&case.mask) > 0 {
                    return right;
                }
                let nan = gradient(&right).mapv(|_| f64::NAN);
                with_loss(right, ndarray::arr0(f64::NAN), Some(nan))
            }]),
        Fault::new(
            "fused-path-zero-gradient",
            "the gradient is 0 where fewer than 15% of the places count",
        )
        .seen("unsloth #5230, #7012")
        .gives(&[|case, options, dtype| {
            let right = right(case, options, dtype);
            let few = (tokens(&case.mask) as f64) < 0.15 * case.mask.len() as f64;
            let (loss, slopes) = (right.loss.clone(), gradient(&right));
            with_loss(right, loss, Some(if few { slopes * 0.0 } else { slopes }))
        }]),
    ]
}

/// What is right for another mask, made of the mask and a place in it.
fn with_mask(
    kept: impl Fn(&Array2<bool>, (usize, usize)) -> bool + Send + Sync + 'static,
) -> Variant {
    Variant::gives(move |case: &PolicyLossCase, options: &Options, dtype| {
        let mask = Array2::from_shape_fn(case.mask.dim(), |at| kept(&case.mask, at));
        // Nobody refuses a batch that has tokens.
        let empty_mask = match options.empty_mask {
            EmptyMask::Refuse if tokens(&case.mask) > 0 => EmptyMask::Zero,
            declared => declared,
        };
        let options = Options { empty_mask, ..options.clone() };
        right(&PolicyLossCase { mask, ..case.clone() }, &options, dtype)
    })
}

/// The mask of the place that `from` gives, false where there is none.
fn shifted(from: fn(usize) -> Option<usize>) -> Variant {
    with_mask(move |mask, (row, token)| {
        let from = from(token).and_then(|token| mask.get([row, token]));
        from.copied().unwrap_or(false)
    })
}

/// NaN in the gradient wherever a number under the mask is not finite, and in the loss too where
/// it is only multiplied by 0.
fn too_late(multiplied: bool) -> Variant {
    Variant::gives(move |case: &PolicyLossCase, options: &Options, dtype| {
        let right = right(case, options, dtype);
        let mut slopes = gradient(&right);
        let mut loss = right.loss.clone();
        for (at, kept) in case.mask.indexed_iter() {
            let mut numbers = vec![case.log_probs[at], case.old_log_probs[at]];
            numbers.extend(case.ref_log_probs.as_ref().map(|reference| reference[at]));
            if options.advantage_shape == AdvantageShape::Token {
                numbers.push(case.advantages[[at.0, at.1]]);
            }
            if !kept && numbers.iter().any(|x| !x.is_finite()) {
                slopes[at] = f64::NAN;
                loss[()] = if multiplied { f64::NAN } else { loss[()] };
            }
        }
        with_loss(right, loss, Some(slopes))
    })
}
