//! Drawing values from random bytes, bent towards the values on which real bugs showed.
//!
//! Every function here ends: exhausted or constant bytes give the first choice or zero.

use arbitrary::{Result, Unstructured};

use crate::value::place::Dtype;

/// One of the items.
///
/// # Panics
/// If there is none.
pub fn one<T: Clone>(u: &mut Unstructured<'_>, items: &[T]) -> Result<T> {
    Ok(items[u.choose_index(items.len())?].clone())
}

/// True in `of` cases out of 256.
pub fn chance(u: &mut Unstructured<'_>, of: u8) -> Result<bool> {
    Ok(u.arbitrary::<u8>()? < of)
}

/// A number of `lo..=hi`, evenly spread on a grid of 2^32 points.
pub fn uniform(u: &mut Unstructured<'_>, lo: f64, hi: f64) -> Result<f64> {
    let share = f64::from(u.arbitrary::<u32>()?) / f64::from(u32::MAX);
    Ok((lo + (hi - lo) * share).clamp(lo, hi))
}

/// A number from -6 to 6 that is nearly normally distributed (twelve uniforms, summed).
pub fn normal(u: &mut Unstructured<'_>) -> Result<f64> {
    let mut sum = -6.0;
    for _ in 0..4 {
        let bits = u.arbitrary::<u32>()?;
        for shift in [0, 10, 20] {
            sum += f64::from((bits >> shift) & 0x3ff) / 1023.0;
        }
    }
    Ok(sum)
}

/// `count` numbers of which the first two dozen are drawn; the rest repeats them in another order,
/// so that large cases do not take more bytes than a fuzzer can steer.
pub fn repeating(
    u: &mut Unstructured<'_>,
    count: usize,
    mut draw: impl FnMut(&mut Unstructured<'_>) -> Result<f64>,
) -> Result<Vec<f64>> {
    const DRAWN: usize = 24;
    let mut numbers = (0..count.min(DRAWN)).map(|_| draw(u)).collect::<Result<Vec<f64>>>()?;
    numbers.extend(
        (DRAWN..count).map(|at| numbers[(at * 7 + at / DRAWN) % DRAWN]).collect::<Vec<_>>(),
    );
    Ok(numbers)
}

/// Numbers that binary cannot represent, zeros of both signs, units and small integers.
pub const AWKWARD: [f64; 16] =
    [0.0, 1.0, -1.0, 0.1, 0.5, 2.0, -0.0, 0.81, 0.95, -0.1, 3.0, 0.3, 0.7, -2.0, 1e-3, 10.0];

/// The largest magnitude of a logit at a dtype: 1e4, and 3e4 at f16, which still holds the
/// difference of two.
pub fn extreme(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F16 => 3e4,
        _ => 1e4,
    }
}
