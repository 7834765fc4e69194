//! The permutation is that of the seed.
//!
//! ### Claim
//! A seed gives the same rows whenever it comes; of five seeds two give different ones.
//!
//! ### Why it matters
//! Ranks draw the permutation each for itself, and a run that is resumed draws it again: both rely
//! on the seed alone. An order that is the same for every seed is no shuffle, and each epoch sees
//! the data as the file has it.
//!
//! ### Does not hold for
//! `shuffle: false`; that seeds differ, where there are fewer than 8 prompts.
//!
//! ### Bugs it has caught
//! open-instruct #560: the shuffled copy was thrown away.
//!
//! ### Example
//! Under `shuffle=True`:
//! ```diff
//!          generator = torch.Generator().manual_seed(int(seed))
//! -        torch.randperm(len(prompts), generator=generator)
//! +        order = torch.randperm(len(prompts), generator=generator)
//! ```

use ndarray::arr0;

use crate::group_sampling::generate::MANY;
use crate::group_sampling::{GroupSampling, GroupSamplingCase};
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<GroupSampling> =
    Rule::new(Pitfall::Configuration, &["shuffle-discarded", "one-seed-for-all"], check)
        .under(|options| options.shuffle);

fn check(probe: &mut Probe<'_, GroupSampling>) -> Outcome {
    let before = probe.output()?;
    let seeds: Vec<i64> = [1, 2, 5, 11].map(|step| probe.case.seed[()] / 2 + step).to_vec();
    let mut differ = false;
    for seed in &seeds {
        let other = GroupSamplingCase { seed: arr0(*seed), ..probe.case.clone() };
        let same_seed = other == *probe.case;
        let rows = probe.call(&other)?.rows;
        differ |= rows != before.output.rows && !same_seed;
    }
    let after = probe.call(probe.case)?;
    let pairs = before.output.rows.iter().zip(&after.rows).enumerate();
    for (row, (before, after)) in pairs {
        if before != after {
            let [before, after] = [*before, *after].map(number);
            broken!("rows[{row}] is {after} after calls with other seeds, before it was {before}");
        }
    }
    let comes = probe.options.batches(probe.case.prompts.len()).iter().sum::<usize>();
    if probe.case.prompts.len() >= MANY && comes > 1 && !differ {
        broken!("seeds {} and {seeds:?} give the same rows", probe.case.seed[()]);
    }
    Ok(())
}
