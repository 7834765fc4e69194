//! Renaming the tokens of the vocabulary renames the results.
//!
//! ### Claim
//! Permuting the vocabulary permutes the probabilities.
//!
//! ### Why it matters
//! Filters sort. What is decided in sorted order must be carried back to the order of the
//! vocabulary, and a test on sorted logits does not see that it was not.
//!
//! ### Does not hold for
//! Tokens tied at the boundary of a filter: which of them are kept may depend on their order.
//!
//! ### Bugs it has caught
//! Masks of sorted tokens applied to unsorted ones; sums that run in the order of the vocabulary.
//!
//! ### Example
//! Under `top_p=0.75`:
//! ```diff
//! -        filtered = filtered.masked_fill(beyond, -torch.inf)
//! +        filtered = filtered.masked_fill(beyond.scatter(-1, tokens, beyond), -torch.inf)
//! ```

use ndarray::Axis;

use crate::sampling_filter::{SamplingFilter, SamplingFilterCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SamplingFilter> = Rule::new(
    Pitfall::MaskingAlignment,
    &["filter-mask-in-sorted-order", "nucleus-in-vocabulary-order"],
    check,
);

fn check(probe: &mut Probe<'_, SamplingFilter>) -> Outcome {
    let before = probe.finite_output()?;
    let size = probe.case.logits.ncols();
    let allowed = 2.0 * probe.related("probs");
    // The reversal is the same for every case, so a case that it breaks can be made small.
    for order in [(0..size).rev().collect(), probe.pick.shuffled(size)] {
        let logits = probe.case.logits.select(Axis(1), &order).as_standard_layout().into_owned();
        let after = probe.call(&SamplingFilterCase { logits })?;
        let mut places = vec![0; size];
        order.iter().enumerate().for_each(|(place, token): (usize, &usize)| places[*token] = place);
        for ((row, token), from) in before.output.probs.indexed_iter() {
            let at = [row, places[token]];
            let what = format_args!("with the vocabulary in the order {order:?}, probs{at:?}");
            near(what, after.probs[at], *from, allowed[[row, token]])?;
        }
    }
    Ok(())
}
