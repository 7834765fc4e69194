//! A text is made of pieces of its completion.
//!
//! ### Claim
//! The characters of a text stand in its completion, in the same order.
//!
//! ### Why it matters
//! What the reward function sees must be what the model wrote. A decoder that completes tags or
//! changes letters rewards what was never sampled.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! Closing tags added to truncated completions; letters made small.
//!
//! ### Example
//! ```diff
//! -        texts.append(text.strip() + "</answer>")
//! +        texts.append(text.strip())
//! ```

use crate::completion_decoder::CompletionDecoder;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<CompletionDecoder> =
    Rule::new(Pitfall::DecodingStringProcessing, &["lower-case"], check);

fn check(probe: &mut Probe<'_, CompletionDecoder>) -> Outcome {
    let returned = probe.output()?;
    for (row, completion) in probe.case.completions.iter().enumerate() {
        let text = &returned.output.texts[row];
        let mut rest = completion.chars();
        if let Some(invented) = text.chars().find(|c| !rest.any(|own| own == *c)) {
            broken!(
                "texts[{row}] is {}, but {} does not stand there in {}",
                quoted(text),
                quoted(&invented.to_string()),
                quoted(completion),
            );
        }
    }
    Ok(())
}
