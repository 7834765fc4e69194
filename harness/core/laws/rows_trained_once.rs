//! Each row is trained as often as declared.
//!
//! ### Claim
//! A pass trains each of its rows once, in micro-batches of equal size.
//!
//! ### Why it matters
//! A buffer that is indexed wrongly trains some rows again and leaves others out. The loss looks as
//! it should: it is one of real rows.
//!
//! ### Does not hold for
//! Trainers that do not say which rows they train: without `micro_batches` nothing is judged.
//!
//! ### Bugs it has caught
//! Planted: the same slice again, and a buffer that is never renewed.
//!
//! ### Example
//! In `grpo-step`, under `mini_batches=2`:
//! ```diff
//! -        rows = torch.arange(size)
//! +        rows = torch.arange(size) + update % mini_batches * size
//! ```

use ndarray::Ix3;

use crate::contract::invariant::{Invariant, Rule};
use crate::contract::outcome::{Outcome, Stop, broken};
use crate::contract::probe::Probe;
use crate::contract::stage::Pitfall;
use crate::contract::step::Stepped;
use crate::value::record::float;

/// The law, for the contract `C`.
pub fn law<C: Stepped>() -> Invariant<C> {
    let rule = Rule::new(Pitfall::Sampling, &[], check::<C>);
    Invariant::own("rows-trained-once", include_str!("rows_trained_once.rs"), rule)
}

fn check<C: Stepped>(probe: &mut Probe<'_, C>) -> Outcome {
    let returned = probe.any.output()?;
    let Some(chosen) = float(&*returned.output, "micro_batches") else {
        return Err(Stop::Vacuous);
    };
    let chosen = chosen.into_dimensionality::<Ix3>().expect("the axes say so");
    let cut = C::shape(probe.case, probe.options).check_cut(chosen);
    match C::partition(probe.case, probe.options, chosen).and(cut) {
        Ok(()) => Ok(()),
        Err(why) => broken!("{why}"),
    }
}
