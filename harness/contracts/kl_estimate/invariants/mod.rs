//! What must hold of `kl-estimate`: the laws that apply, and one file for each of its own.

use ndarray::Array2;

use crate::kl_estimate::{KlEstimate, KlEstimateCase};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<KlEstimate>> {
    let mut all = laws::universal();
    all.extend([
        laws::oracle::law().catching(&[
            "k3-direction-reversed",
            "kl-in-half-precision",
            "k2-not-halved",
            "estimators-counted-from-zero",
            "negative-estimates-dropped",
            "log-ratio-clamp-ignored",
            "log-ratio-clamped-although-not-declared",
            "result-clamped-although-not-declared",
        ]),
        laws::gradient::law().catching(&[
            "k1-as-a-loss",
            "k3-gradient-of-the-reversed-kl",
            "gradient-clamped-with-the-value",
            "gradient-through-the-clamp",
            "kl-detached",
        ]),
        laws::row_permutation::law().catching(&["reference-of-another-row"]),
        laws::row_split::law().catching(&["reference-of-another-row"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    KlEstimate;
    zero_when_equal,
    non_negative,
    direction,
    small_gaps,
    shift_invariant,
    position_local,
    expectation,
    within_the_clamp,
    beyond_the_log_ratio_clamp,
    gradient_finite,
    expected_gradient,
}

/// The largest vocabulary that is enumerated.
const VOCABULARY: usize = 8;

/// A row of the case as two distributions over a vocabulary of its length: both are normalised
/// and rounded to the dtype, and every token is there once.
fn enumerated(probe: &mut Probe<'_, KlEstimate>) -> Result<KlEstimateCase, Stop> {
    let row = probe.pick.below(probe.case.log_probs.nrows());
    let mut vocabulary = KlEstimate::take(probe.case, &[row]);
    if !(2..=VOCABULARY).contains(&vocabulary.log_probs.ncols()) {
        return Err(Stop::Vacuous);
    }
    let dtype = probe.place.dtype;
    normalise(&mut vocabulary.log_probs, dtype);
    normalise(&mut vocabulary.ref_log_probs, dtype);
    Ok(vocabulary)
}

fn normalise(log_probs: &mut Array2<f64>, dtype: Dtype) {
    let largest = log_probs.fold(f64::NEG_INFINITY, |a, b| a.max(*b));
    let sum: f64 = log_probs.iter().map(|x| (x - largest).exp()).sum();
    log_probs.mapv_inplace(|x| dtype.round(x - largest - sum.ln()));
}
