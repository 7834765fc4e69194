//! The stream of cases of one run: first those that are handed in (what was in flight when a run
//! was killed, regressions), then the corners, the seeds, and chance.

use std::sync::Arc;

use arbitrary::Unstructured;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

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
pub fn rng(seed: u64, contract: &str) -> TestRng {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    for (index, byte) in contract.bytes().enumerate() {
        bytes[8 + index % 24] ^= byte;
    }
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}

/// An endless stream: `first`, the corners, then chance. Each comes with whether it is random.
pub fn cases(
    contract: &'static dyn AnyContract,
    first: Vec<Shared>,
    seed: u64,
    options: &Arc<dyn AnyOptions>,
    dtype: Dtype,
) -> impl Iterator<Item = (bool, Shared)> + use<> {
    let options = Arc::clone(options);
    let mut rng = rng(seed, contract.id());
    let first = first.into_iter().map(move |case| case.rounded(dtype));
    let mut fixed: Vec<Shared> = first.collect();
    fixed.extend(contract.corners(&*options, dtype));
    fixed.retain(|case| contract.valid(&**case, &*options, dtype).is_ok());
    let random = std::iter::repeat_with(move || draw(contract, &mut rng, &*options, dtype));
    fixed.into_iter().map(|case| (false, case)).chain(random.map(|case| (true, case)))
}
