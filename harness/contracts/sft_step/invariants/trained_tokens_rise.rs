//! What is trained becomes likelier.
//!
//! ### Claim
//! The gradient falls along the logit of every trained token, where all sequences that begin alike
//! go on with it.
//!
//! ### Why it matters
//! A sign, or labels of another row, leave a loss that looks like one: the model unlearns what it
//! is shown, or learns what somebody else was shown.
//!
//! ### Does not hold for
//! Prefixes behind which sequences go on differently: one may rise and the other fall.
//!
//! ### Bugs it has caught
//! Planted: a loss without its minus; labels of the row behind.
//!
//! ### Example
//! ```diff
//! -        loss = log_probs[rows][mask[rows]].mean()
//! +        loss = -log_probs[rows][mask[rows]].mean()
//! ```

use std::collections::BTreeMap;

use crate::sft_step::SftStep;
use shakedown_core::contract::prelude::*;
use shakedown_core::contract::step::Stepped as _;

pub(super) const RULE: Rule<SftStep> =
    Rule::new(Pitfall::LogSpaceSign, &["sign-flipped", "labels-of-another-row"], check);

fn check(probe: &mut Probe<'_, SftStep>) -> Outcome {
    let (case, options) = (probe.case, probe.options);
    let returned = probe.finite_output()?;
    let bounds = probe.related("gradient");
    let shape = SftStep::shape(case, options);
    // The token behind each prefix; none where sequences differ.
    let mut next: BTreeMap<[usize; 2], Option<i64>> = BTreeMap::new();
    for ((row, at), _) in case.mask.indexed_iter().filter(|(_, trained)| **trained) {
        let token = case.tokens[[row, at]];
        let known = next.entry(shape.home(row, at)).or_insert(Some(token));
        *known = known.filter(|other| *other == token);
    }
    let mut judged = false;
    for ([row, at], token) in next {
        let Some(token) = token else { continue };
        judged = true;
        for (update, table) in returned.output.gradient.outer_iter().enumerate() {
            let place = [update, row, at, token as usize];
            let (slope, allowed) = (table[&place[1..]], bounds[&place[..]]);
            if slope > allowed {
                broken!(
                    "update {update} lowers the logit of token {at} of sequence {row}, which is \
                     trained: its gradient is {}",
                    number(slope)
                );
            }
        }
    }
    if judged { Ok(()) } else { Err(Stop::Vacuous) }
}
