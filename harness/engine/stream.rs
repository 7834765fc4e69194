//! The stream of cases of one run: first those that are handed in (what was in flight when a run
//! was killed, regressions), then the corners, the seeds, and chance.

use arbitrary::Unstructured;
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

use crate::contract::Contract;
use crate::value::record::round;
use crate::value::place::Dtype;

/// How many random bytes one case may use.
const BYTES_PER_CASE: usize = 1024;

/// The case that some bytes stand for: the same under proptest, libFuzzer and replay. Bytes that
/// run out, or are all equal, give a case too.
pub fn from_bytes<C: Contract>(bytes: &[u8], options: &C::Options, dtype: Dtype) -> C::Case {
    from_unstructured::<C>(&mut Unstructured::new(bytes), options, dtype)
}

/// The same, from what is left of some bytes.
pub fn from_unstructured<C: Contract>(
    u: &mut Unstructured<'_>,
    options: &C::Options,
    dtype: Dtype,
) -> C::Case {
    let mut case =
        C::draw(u, options, dtype).unwrap_or_else(|_| C::corners(options, dtype).swap_remove(0));
    round(&mut case, dtype);
    case
}

/// A case drawn with a random number generator.
pub fn draw<C: Contract>(rng: &mut impl Rng, options: &C::Options, dtype: Dtype) -> C::Case {
    let mut bytes = [0; BYTES_PER_CASE];
    rng.fill_bytes(&mut bytes);
    from_bytes::<C>(&bytes, options, dtype)
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
pub fn cases<'a, C: Contract>(
    first: Vec<C::Case>,
    seed: u64,
    options: &'a C::Options,
    dtype: Dtype,
) -> impl Iterator<Item = (bool, C::Case)> + 'a {
    let mut rng = rng(seed, C::ID);
    let mut fixed = first;
    fixed.extend(C::corners(options, dtype));
    let fixed = fixed.into_iter().map(move |mut case| {
        round(&mut case, dtype);
        (false, case)
    });
    let random = std::iter::repeat_with(move || (true, draw::<C>(&mut rng, options, dtype)));
    fixed.filter(move |(_, case)| C::valid(case, options, dtype).is_ok()).chain(random)
}
