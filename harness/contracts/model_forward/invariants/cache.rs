//! A cache changes nothing.
//!
//! ### Claim
//! `cached_logits`, where the component gives them, are the logits of the pass without a cache.
//!
//! ### Why it matters
//! Samplers keep keys and values of earlier tokens, and trainers compute all at once. Where the
//! two differ, old log-probabilities are those of another policy.
//!
//! ### Does not hold for
//! Components that do not give `cached_logits`.
//!
//! ### Bugs it has caught
//! unsloth #3699: with a cache, rows of different length had the same positions.
//!
//! ### Example
//! ```diff
//! -    steps = [(hidden[:, [t]], hidden[:, : t + 1], columns[: t + 1] >= 0) for t in columns]
//! +    steps = [(hidden[:, [t]], hidden[:, : t + 1], seen[:, [t], : t + 1]) for t in columns]
//! ```

use super::{same, tokens};
use crate::model_forward::ModelForward;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<ModelForward> = Rule::new(
    Pitfall::Sampling,
    &["cache-positions-from-zero", "cache-forgets-the-first-token", "cache-without-the-mask"],
    check,
);

fn check(probe: &mut Probe<'_, ModelForward>) -> Outcome {
    let given = probe.output()?;
    let Some(cached) = &given.output.cached_logits else { return Err(Stop::Vacuous) };
    let at: Vec<_> = tokens(probe).into_iter().map(|at| [at, at]).collect();
    same(probe, "with a cache,", "cached_logits", cached, &given.output.logits, &at)
}
