//! Faults of the advantages: those of other rows, changed ones, and where they are broadcast.

use ndarray::{Array2, Axis};

use super::super::{Advantages, Options, PolicyLoss, PolicyLossCase, PolicyLossOutput};
use super::{Fault, Variant, gradient, right, tokens, with_loss};
use shakedown_core::contract::rows;
use shakedown_core::value::place::Dtype;

pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new(
            "advantages-cross-rows-when-square",
            "with N = T every row is weighted by the advantages of all rows",
        )
        .seen("prime-rl 8d77a2cd9")
        .gives(&[across_rows]),
        Fault::new(
            "advantages-passed-as-mask",
            "the advantages stand where the mask should when the tokens are added up",
        )
        .seen("verl #2506, #2513 (fbec86d7f)")
        .gives(&[as_mask]),
        Fault::new(
            "row-advantage-along-columns",
            "with N = T position (i, t) gets the advantage of row t",
        )
        .seen("trl 4db63af98, #6095")
        .under("{advantage_shape: row}")
        .on(&[|case, _| {
            let (rows, width) = case.mask.dim();
            if case.advantages.ndim() == 1 && rows == width {
                let along = case.advantages.broadcast((rows, width)).expect("N = T").to_owned();
                case.advantages = along.into_dyn();
            }
        }]),
        Fault::new(
            "advantages-of-another-row",
            "each row is weighted by the advantages of the row before it",
        )
        .seen("LLaMA-Factory #7576: slices of other rows")
        .on(&[|case, _| {
            let rows = case.mask.nrows();
            let before: Vec<usize> = (0..rows).map(|row| (row + rows - 1) % rows).collect();
            let moved = case.advantages.select(Axis(0), &before);
            case.advantages = moved.as_standard_layout().into_owned();
        }]),
        Fault::new(
            "advantages-normalised-again",
            "the advantages of the batch are centred, or centred and scaled, inside the loss",
        )
        .seen("whitening left on in the loss; TRL's `whiten` of PPO where GRPO's is declared")
        .made_of([false, true].map(normalised)),
        Fault::new(
            "advantages-clipped",
            "advantages are clipped to ±1, ±5 or ±0.5 inside the loss",
        )
        .seen("reward clipping left on by default")
        .made_of([
            changed(|a| a.clamp(-1.0, 1.0)),
            changed(|a| a.clamp(-5.0, 5.0)),
            changed(|a| a.clamp(-0.5, 0.5)),
        ]),
        Fault::new("negative-advantages-dropped", "tokens with A < 0 have no part in the loss")
            .seen("filters for positive samples left on")
            .made_of([changed(|a| a.max(0.0))]),
        Fault::new(
            "advantages-without-their-sign",
            "every token is made more likely, whatever its advantage",
        )
        .seen("a magnitude (`abs`) where a signed weight is declared")
        .made_of([changed(f64::abs)]),
    ]
}

/// What is right for other advantages, and the right metrics.
fn changed(change: fn(f64) -> f64) -> Variant {
    Variant::gives(move |case: &_, options: &_, dtype| of_advantages(case, options, dtype, change))
}

fn of_advantages(
    case: &PolicyLossCase,
    options: &Options,
    dtype: Dtype,
    change: impl Fn(f64) -> f64,
) -> PolicyLossOutput {
    let advantages = case.advantages.mapv(change);
    let wrong = right(&PolicyLossCase { advantages, ..case.clone() }, options, dtype);
    with_loss(right(case, options, dtype), wrong.loss, wrong.grad_log_probs)
}

fn normalised(scaled: bool) -> Variant {
    Variant::gives(move |case: &PolicyLossCase, options: &Options, dtype| {
        let advantages = Advantages::of(case);
        let count = tokens(&case.mask).max(1) as f64;
        let sum = |f: &dyn Fn(f64) -> f64| -> f64 {
            let kept = case.mask.indexed_iter().filter(|(_, kept)| **kept);
            kept.map(|(at, _)| f(advantages.at(at.0, at.1))).sum()
        };
        let mean = sum(&|a| a) / count;
        let deviation = (sum(&|a| (a - mean) * (a - mean)) / count).sqrt();
        let scale = if scaled { deviation + 1e-8 } else { 1.0 };
        of_advantages(case, options, dtype, |a| (a - mean) / scale)
    })
}

/// The mean over all pairs of a row of tokens and a row of advantages.
fn across_rows(case: &PolicyLossCase, options: &Options, dtype: Dtype) -> PolicyLossOutput {
    let (rows, width) = case.mask.dim();
    let right_output = right(case, options, dtype);
    if rows != width || tokens(&case.mask) == 0 {
        return right_output;
    }
    let (mut loss, mut slopes) = (0.0, Array2::zeros((rows, width)));
    for of in 0..rows {
        // What an advantage under the mask is does not matter to what is added up there.
        let finite = case.advantages.mapv(|a| if a.is_finite() { a } else { 0.0 });
        let advantages = finite.select(Axis(0), &vec![of; rows]).as_standard_layout().into_owned();
        let output = right(&PolicyLossCase { advantages, ..case.clone() }, options, dtype);
        loss += output.loss[()] / rows as f64;
        slopes += &(gradient(&output) / rows as f64);
    }
    with_loss(right_output, ndarray::arr0(loss), Some(slopes))
}

/// The tokens are weighted by their advantages, and divided by the sum of those.
fn as_mask(case: &PolicyLossCase, options: &Options, dtype: Dtype) -> PolicyLossOutput {
    let advantages = Advantages::of(case);
    let places: Vec<(usize, usize)> =
        case.mask.indexed_iter().filter(|(_, kept)| **kept).map(|(at, _)| at).collect();
    let right_output = right(case, options, dtype);
    let sum: f64 = places.iter().map(|at| advantages.at(at.0, at.1)).sum();
    let (mut loss, mut slopes) = (0.0, Array2::zeros(case.mask.dim()));
    for (row, token) in &places {
        let one: PolicyLossCase = rows::select::<PolicyLoss, _>(case, 'N', &[*row]);
        let one: PolicyLossCase = rows::select::<PolicyLoss, _>(&one, 'T', &[*token]);
        let output = right(&one, options, dtype);
        let weight = advantages.at(*row, *token) / (sum + 1e-8);
        loss += weight * output.loss[()];
        slopes[[*row, *token]] = weight * gradient(&output)[[0, 0]];
    }
    with_loss(right_output, ndarray::arr0(loss), Some(slopes))
}
