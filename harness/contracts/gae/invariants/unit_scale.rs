//! Whitened advantages have one scale.
//!
//! ### Claim
//! Whitened advantages have mean 0 and variance 1, with ddof 1, over the tokens of the batch.
//!
//! ### Why it matters
//! The step size of the policy is tuned to this scale. Statistics that take in pads, or one row
//! alone, change it with the lengths in the batch.
//!
//! ### Does not hold for
//! `whiten: false`; advantages that vary so little that ε or rounding is part of their deviation.
//!
//! ### Bugs it has caught
//! trlx: mean and deviation of the padded matrix. NeMo-RL and OpenRLHF divide by the biased
//! deviation, which must be declared as what it is.
//!
//! ### Example
//! Under `whiten=True`:
//! ```diff
//! -    scaled = (advantages - advantages.mean()) / (advantages.var() + 1e-8).sqrt()
//! +    scaled = (advantages - kept.mean()) / (kept.var() + 1e-8).sqrt()
//! ```

use crate::gae::Gae;
use shakedown_core::contract::prelude::*;

pub(super) const RULE: Rule<Gae> = Rule::new(
    Pitfall::AdvantageNormalisation,
    &[
        "whitened-over-padding",
        "whitened-with-ddof-0",
        "whitened-row-by-row",
        "whitened-without-centring",
        "not-whitened",
    ],
    check,
)
.under(|options| options.whiten);

/// Where the definition's own variance is further from 1 than this, ε is a part of it.
const NEGLIGIBLE: f64 = 1e-6;

/// Where a number may be off by more than this, rounding is a part of the deviation.
const ROUNDED: f64 = 0.1;

/// Mean and variance, with ddof 1.
fn moments(numbers: &[f64]) -> (f64, f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    (mean, numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0))
}

fn check(probe: &mut Probe<'_, Gae>) -> Outcome {
    if probe.options.too_few(probe.case) {
        return Err(Stop::Vacuous);
    }
    let mask = &probe.case.mask;
    let returned = probe.finite_output()?;
    let expected = probe.expected();
    let exact: Vec<f64> = expected[0]
        .numbers
        .iter()
        .zip(mask)
        .filter(|(_, kept)| **kept)
        .map(|(number, _)| number.value)
        .collect();
    let bounds = probe.bounds("advantages");
    let bounds: Vec<f64> =
        bounds.iter().zip(mask).filter(|(_, kept)| **kept).map(|(bound, _)| *bound).collect();
    let most = bounds.iter().fold(0.0, |most: f64, bound| most.max(*bound));
    if (moments(&exact).1 - 1.0).abs() > NEGLIGIBLE || most > ROUNDED {
        return Err(Stop::Vacuous);
    }
    let found: Vec<f64> = returned
        .output
        .advantages
        .iter()
        .zip(mask)
        .filter(|(_, kept)| **kept)
        .map(|(advantage, _)| *advantage)
        .collect();
    let (mean, variance) = moments(&found);
    let count = found.len() as f64;
    let of_mean = bounds.iter().sum::<f64>() / count;
    // Cauchy-Schwarz: the deviation moves by no more than the root of the mean square of what the
    // numbers move by, and the variance by about twice that.
    let squares = bounds.iter().map(|bound| bound * bound).sum::<f64>() / (count - 1.0);
    let of_variance = 2.1 * squares.sqrt() + squares + NEGLIGIBLE;
    near("the mean of the advantages", mean, 0.0, of_mean)?;
    near("the variance of the advantages", variance, 1.0, of_variance)
}
