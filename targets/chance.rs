//! Chance of its own: libtorch's generator is one for the process, and threads share it.

use tch::{Kind, Tensor};

/// A stream of random numbers that its seed alone decides.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The stream of a seed.
    pub fn new(seed: i64) -> Chance {
        Chance(seed.cast_unsigned())
    }

    /// Indices drawn with replacement.
    ///
    /// # Shapes
    /// Probabilities `[A]`; the result `[count]`.
    pub fn draw(&mut self, probs: &Tensor, count: i64) -> Tensor {
        let numbers: Vec<f64> = (0..count).map(|_| self.uniform()).collect();
        let sums = probs.to_kind(Kind::Double).cumsum(0, None);
        let whole = sums.narrow(0, probs.numel() as i64 - 1, 1);
        let numbers = Tensor::from_slice(&numbers).to_device(probs.device()) * whole;
        // The first sum beyond the number; a sum that rounding left short has none.
        let beyond = sums.unsqueeze(0).gt_tensor(&numbers.unsqueeze(1));
        beyond.to_kind(Kind::Int8).argmax(1, false)
    }

    /// A number from 0 to below 1: splitmix64 (Steele et al. 2014).
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
