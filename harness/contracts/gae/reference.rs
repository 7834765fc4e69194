//! The reference implementation of `gae`, as a trainer would write it: one pass from the end, then
//! whitening in two passes.

use ndarray::Array2;

use super::oracle::EPSILON;
use super::{GaeCase, GaeOutput, Options};
use shakedown_core::numeric::conventions::{EmptyMask, MaskedTokens};
use shakedown_core::value::place::Dtype;

/// Advantages and returns, computed in the arithmetic of the dtype.
pub(super) fn gae(case: &GaeCase, options: &Options, dtype: Dtype) -> GaeOutput {
    let f = |x: f64| dtype.arithmetic().round(x);
    let gamma = f(options.gamma);
    let decay = f(gamma * f(options.lam));
    let mut advantages = Array2::zeros(case.rewards.dim());
    let mut returns = advantages.clone();
    for row in 0..advantages.nrows() {
        let (mut ahead, mut next) = (0.0, 0.0);
        for token in (0..advantages.ncols()).rev() {
            let at = [row, token];
            if case.mask[at] {
                let error = f(f(case.rewards[at] + f(gamma * next)) - case.values[at]);
                ahead = f(error + f(decay * ahead));
                next = case.values[at];
                advantages[at] = ahead;
                returns[at] = f(ahead + next);
            } else if options.masked == MaskedTokens::Zero {
                ahead = f(f(gamma * next) + f(decay * ahead));
                next = 0.0;
            }
        }
    }
    if options.whiten {
        whiten(&mut advantages, case, options, f);
    }
    (advantages, returns).into()
}

/// Whitens the advantages of the unmasked tokens.
fn whiten(
    advantages: &mut Array2<f64>,
    case: &GaeCase,
    options: &Options,
    f: impl Fn(f64) -> f64 + Copy,
) {
    let mut kept: Vec<&mut f64> =
        advantages.iter_mut().zip(&case.mask).filter(|(_, kept)| **kept).map(|(a, _)| a).collect();
    let count = kept.len() as f64;
    if kept.len() < 2 {
        let empty = match options.empty_mask {
            EmptyMask::Nan => f64::NAN,
            EmptyMask::Refuse => panic!("whitening takes two tokens or more, found {count}"),
            EmptyMask::Zero | EmptyMask::Avoid => 0.0,
        };
        kept.iter_mut().for_each(|advantage| **advantage = empty);
        return;
    }
    let mean = f(kept.iter().fold(0.0, |sum, x| f(sum + **x)) / count);
    let square = |x: f64| f(f(x - mean) * f(x - mean));
    let variance = f(kept.iter().fold(0.0, |sum, x| f(sum + square(**x))) / (count - 1.0));
    let deviation = f(f(variance + f(EPSILON)).sqrt());
    for advantage in kept {
        *advantage = f(f(*advantage - mean) / deviation);
    }
}
