//! Each completion is trained as often as declared.
//!
//! ### Claim
//! A pass over a generation trains each of its completions once, in micro-batches of equal size.
//!
//! ### Why it matters
//! A buffer that is indexed wrongly trains some completions again and leaves others out. The loss
//! looks as it should: it is one of real completions.
//!
//! ### Does not hold for
//! Trainers that do not say which rows they train: without `micro_batches` nothing is judged.
//!
//! ### Bugs it has caught
//! Planted: the same slice again, and a buffer that is never renewed.
//!
//! ### Example
//! Under `mini_batches=2`:
//! ```diff
//! -        rows = torch.arange(size)
//! +        rows = torch.arange(size) + update % mini_batches * size
//! ```

use crate::grpo_step::{GrpoStep, shape};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GrpoStep> =
    Rule::new(Pitfall::Sampling, &["same-slice-again", "generation-never-renewed"], check);

fn check(probe: &mut Probe<'_, GrpoStep>) -> Outcome {
    let returned = probe.output()?;
    if returned.output.micro_batches.is_none() {
        return Err(Stop::Vacuous);
    }
    match shape::partition(probe.case, probe.options, &returned.output) {
        Ok(()) => Ok(()),
        Err(why) => broken!("{why}"),
    }
}
