//! The stream of cases of one run: first those that are handed in (what was in flight when a run
//! was killed, regressions), then the corners, the seeds, and chance.

use std::sync::Arc;

use arbitrary::Unstructured;
use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng as _};

use crate::contract::erased::AnyContract;
use crate::contract::options::AnyOptions;
use crate::value::place::Dtype;
use crate::value::record::Shared;

/// How many random bytes one case may use.
const BYTES_PER_CASE: usize = 1024;

/// The case that some bytes stand for: the same under proptest, libFuzzer and replay. Bytes that
/// run out, or are all equal, give a case too.
pub fn from_bytes(
    contract: &dyn AnyContract,
    bytes: &[u8],
    options: &dyn AnyOptions,
    dtype: Dtype,
) -> Shared {
    from_unstructured(contract, &mut Unstructured::new(bytes), options, dtype)
}

/// The same, from what is left of some bytes.
pub fn from_unstructured(
    contract: &dyn AnyContract,
    u: &mut Unstructured<'_>,
    options: &dyn AnyOptions,
    dtype: Dtype,
) -> Shared {
    let drawn = contract.draw(u, options, dtype);
    drawn.unwrap_or_else(|_| contract.corners(options, dtype).swap_remove(0))
}

/// A case drawn with a random number generator.
pub fn draw(
    contract: &dyn AnyContract,
    rng: &mut impl Rng,
    options: &dyn AnyOptions,
    dtype: Dtype,
) -> Shared {
    let mut bytes = [0; BYTES_PER_CASE];
    rng.fill_bytes(&mut bytes);
    from_bytes(contract, &bytes, options, dtype)
}

/// The generator of one run of one contract.
pub fn rng(seed: u64, contract: &str) -> ChaCha20Rng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    for (index, byte) in contract.bytes().enumerate() {
        bytes[8 + index % 24] ^= byte;
    }
    ChaCha20Rng::from_seed(bytes)
}

/// An endless stream: `first`, the corners, then chance. Each comes with whether it is random.
pub struct Stream {
    contract: &'static dyn AnyContract,
    options: Arc<dyn AnyOptions>,
    dtype: Dtype,
    kept: usize,
    fixed: std::vec::IntoIter<Shared>,
    rng: ChaCha20Rng,
}

/// The stream of a contract's cases. What of `first` is outside the contract is not in it.
pub fn cases(
    contract: &'static dyn AnyContract,
    first: Vec<Shared>,
    seed: u64,
    options: &Arc<dyn AnyOptions>,
    dtype: Dtype,
) -> Stream {
    let valid = |case: &Shared| contract.valid(&**case, &**options, dtype).is_ok();
    let first = first.into_iter().map(|case| case.rounded(dtype));
    let mut fixed: Vec<Shared> = first.filter(valid).collect();
    let kept = fixed.len();
    let corners = contract.corners(&**options, dtype).into_iter().filter(valid).collect();
    fixed.extend(telling_first(contract, corners, &**options));
    let (options, rng) = (Arc::clone(options), rng(seed, contract.id()));
    Stream { contract, options, dtype, kept, fixed: fixed.into_iter(), rng }
}

/// The smallest of some corners, then those that belong to most classes that none before them
/// belongs to, then the others: what shows in a batch of several rows, in groups of different
/// sizes or behind a hole is met among the first, however large it is.
fn telling_first(
    contract: &dyn AnyContract,
    mut corners: Vec<Shared>,
    options: &dyn AnyOptions,
) -> Vec<Shared> {
    let classes = |case: &Shared| -> Vec<bool> {
        contract.classes().iter().map(|class| class.contains(&**case, options)).collect()
    };
    let mut left: Vec<Vec<bool>> = corners.iter().map(classes).collect();
    let mut met = vec![false; contract.classes().len()];
    let mut ordered = Vec::with_capacity(corners.len());
    for place in 0..corners.len() {
        let new = |of: &Vec<bool>| of.iter().zip(&met).filter(|(is, met)| **is && !**met).count();
        let most = left.iter().map(new).max().unwrap_or(0);
        if most == 0 {
            break;
        }
        let first = left.iter().position(|of| new(of) == most).unwrap_or(0);
        let at = if place < SMALLEST { 0 } else { first };
        let of = left.remove(at);
        met.iter_mut().zip(of).for_each(|(met, is)| *met |= is);
        ordered.push(corners.remove(at));
    }
    ordered.extend(corners);
    ordered
}

/// How many of the smallest corners come first in any case.
const SMALLEST: usize = 4;

impl Stream {
    /// How many of `first` are in it.
    pub fn kept(&self) -> u64 {
        self.kept as u64
    }

    /// How many cases are left before chance begins.
    pub fn fixed(&self) -> u64 {
        self.fixed.len() as u64
    }
}

impl Iterator for Stream {
    type Item = (bool, Shared);

    fn next(&mut self) -> Option<(bool, Shared)> {
        let Stream { contract, options, dtype, fixed, rng, .. } = self;
        let fixed = fixed.next().map(|case| (false, case));
        fixed.or_else(|| Some((true, draw(*contract, rng, &**options, *dtype))))
    }
}
