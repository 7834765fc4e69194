//! `length-penalty` on tensors: what a completion pays for its length.

use std::f64::consts::PI;

use shakedown::author::Component;
use shakedown::contracts::length_penalty::{LengthPenalty, Options, Shape};
use shakedown_tch::tch;
use tch::{Kind, Tensor};

/// The function below as a component.
pub fn component(options: Options) -> impl Component<LengthPenalty> {
    tch::<LengthPenalty>(move |case| length_penalty(&case.lengths, &options))
}

/// The penalty, or the reward, of each completion for its length.
///
/// # Shapes
/// `N` completions: lengths `[N]`, integers; the result `[N]`.
///
/// # Units
/// Lengths in tokens; the result in rewards, as f64, since integers have no format to keep.
///
/// # Errors
/// None.
///
/// # Source
/// Yu et al. 2025, DAPO (`linear-overlong`; verl and NeMo-RL leave out the floor:
/// `linear-unbounded`); Yeo et al. 2025 (`cosine`), both as in TRL.
pub fn length_penalty(lengths: &Tensor, options: &Options) -> Tensor {
    let limit = options.max_length as f64;
    let buffer = options.buffer as f64;
    let lengths = lengths.to_kind(Kind::Double);
    let beyond = -lengths.gt(limit).to_kind(Kind::Double);
    let line = ((limit - buffer - &lengths) / buffer).clamp_max(0.0);
    let rewards = match options.shape {
        Shape::Step => beyond,
        Shape::LinearOverlong | Shape::LinearUnbounded if options.buffer == 0 => beyond,
        Shape::LinearOverlong => line.clamp_min(-1.0),
        Shape::LinearUnbounded => line,
        Shape::Cosine => {
            let share = (lengths / limit).clamp_max(1.0);
            ((share * PI).cos() + 1.0) * (0.5 * (options.max - options.min)) + options.min
        }
    };
    rewards * options.factor
}
