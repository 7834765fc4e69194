//! What a word is makes no difference.
//!
//! ### Claim
//! Other ids for the tokens that are neither an eos nor the pad change nothing.
//!
//! ### Why it matters
//! Whether a token was sampled is a matter of where it stands. Code that has the ids of one
//! tokenizer built in, or holds ids in a format that is too small for the vocabulary, takes words
//! for ends once the model is another one.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! Ids compared in bf16, in which neighbours of a large id are equal to it; 0 taken for the pad.
//!
//! ### Example
//! Under `pad=1`:
//! ```diff
//! -    padding = (tokens == 0).flip(1).cumprod(dim=1).flip(1).bool()
//! +    padding = (tokens == pad).flip(1).cumprod(dim=1).flip(1).bool()
//! ```

use super::expect_same;
use crate::completion_mask::CompletionMask;
use crate::completion_mask::generate::lookalikes;
use shakedown_core::contract::prelude::*;
use shakedown_core::value::text::one_line;

pub(super) const RULE: Rule<CompletionMask> = Rule::new(
    Pitfall::DecodingStringProcessing,
    &["ids-compared-in-bf16", "ids-in-sixteen-bits", "pad-id-hard-coded", "eos-id-hard-coded"],
    check,
);

fn check(probe: &mut Probe<'_, CompletionMask>) -> Outcome {
    let before = probe.finite_output()?;
    let mut words = lookalikes(probe.options);
    words.extend([0, 1, 2, 3, 7, 50_255, 199_999]);
    words.retain(|id| probe.options.is_word(*id));
    let mut renamed = probe.case.clone();
    for id in &mut renamed.tokens {
        if probe.options.is_word(*id) {
            *id = *probe.pick.one(&words);
        }
    }
    if renamed == *probe.case {
        return Err(Stop::Vacuous);
    }
    let after = probe.call(&renamed)?;
    expect_same(&before.output.mask, &after.mask, &format!("with {}", one_line(&renamed)))
}
