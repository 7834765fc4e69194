//! A nucleus has the mass that is asked for, and no token too many.
//!
//! ### Claim
//! With top-p alone, what is left has a mass of top_p, and not without its least likely tokens.
//!
//! ### Why it matters
//! One token too few cuts the distribution below what was declared, one too many lets in the tail.
//! With a top-p of 0 one token is left, and not none.
//!
//! ### Does not hold for
//! Other filters beside it; masses within rounding of top-p; what `min_keep` keeps.
//!
//! ### Bugs it has caught
//! transformers #18976, #18983, #18984: three tokens for two where the mass of two is top-p
//! exactly. transformers #19839: none for a top-p of 0.
//!
//! ### Example
//! Under `top_p=0.75`:
//! ```diff
//! -        mass = probs.cumsum(dim=-1)
//! +        mass = probs.cumsum(dim=-1) - probs  # of the likelier tokens
//! ```

use super::{rows, seen};
use crate::sampling_filter::SamplingFilter;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<SamplingFilter> = Rule::new(
    Pitfall::Sampling,
    &[
        "nucleus-keeps-one-extra",
        "crossing-token-dropped",
        "top-p-without-effect",
        "least-likely-kept",
        "nucleus-in-vocabulary-order",
    ],
    check,
)
.under(|options| options.top_p.is_some() && options.top_k.is_none() && options.min_p.is_none());

fn check(probe: &mut Probe<'_, SamplingFilter>) -> Outcome {
    let Some(p) = probe.options.top_p else { return Err(Stop::Vacuous) };
    let returned = probe.finite_output()?;
    let dtype = probe.place.dtype;
    for (row, sorted, found) in rows(probe.case, &returned.output.probs, probe.options, dtype) {
        let weights: Vec<f64> = sorted.z.iter().map(|z| (z - sorted.z[0]).exp()).collect();
        let total: f64 = weights.iter().sum();
        let seen = seen(&sorted, dtype);
        let kept: Vec<usize> =
            (0..seen).filter(|place| found[sorted.order[*place]] > 0.0).collect();
        let rounding = sorted.rounding_of_masses(sorted.size());
        let mass = |places: &[usize]| places.iter().map(|at| weights[*at]).sum::<f64>() / total;
        let all = mass(&kept);
        if kept.len() < seen && all < p - rounding {
            broken!(
                "the {} tokens kept of row {row} have a mass of {}, expected at least {p}",
                kept.len(),
                rounded(all)
            );
        }
        let Some(last) = kept.last() else { continue };
        // Of a tie all may be kept if one is needed; where the mass is exact, that one or all.
        let exact = sorted.is_exact(sorted.size(), p);
        if exact && kept.len() == sorted.size() {
            continue;
        }
        let (start, _) = sorted.level(*last);
        let needed = match exact {
            true => &kept[..kept.len() - 1],
            false => &kept[..kept.partition_point(|place| *place < start)],
        };
        let enough = mass(needed);
        let over = if exact { 0.0 } else { rounding };
        if needed.len() >= probe.options.min_keep as usize && enough >= p + over {
            broken!(
                "{} tokens are kept of row {row}, but the {} likeliest have a mass of {}, \
                 expected less than {p}",
                kept.len(),
                needed.len(),
                rounded(enough)
            );
        }
    }
    Ok(())
}
