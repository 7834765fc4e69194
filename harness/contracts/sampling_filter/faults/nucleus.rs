//! Faults of top-p: another nucleus.

use super::{STEPS, Steps, stepwise};
use crate::sampling_filter::reference::Row;
use crate::sampling_filter::{Options, SamplingFilter, SamplingFilterCase, SamplingFilterOutput};
use shakedown_core::value::place::Dtype;

type Fault = shakedown_core::contract::fault::Fault<SamplingFilter>;

/// A nucleus that ends elsewhere.
pub(super) fn edges() -> Vec<Fault> {
    vec![
        Fault::new(
            "nucleus-keeps-one-extra",
            "a token is kept if the mass before it is at most top_p: one too many if equal",
        )
        .seen("transformers #18976, #18983, #18984: descending, shifted, dropped where cumsum > p")
        .under("{top_p: 0.5}")
        .gives(&[|case, options, dtype| nucleus(case, options, dtype, |before, _, p| before <= p)]),
        Fault::new(
            "top-p-zero-empties-the-support",
            "no token is exempt: a top_p that rounds to nothing takes all, and gives NaN",
        )
        .seen("transformers #19839")
        .under("{top_p: 0.0}")
        .gives(&[|case, options, dtype| {
            let top_p = |row: &mut Row<'_>| {
                let Some(p) = row.options.top_p else { return };
                let rest = row.f(1.0 - p);
                let masses = row.masses(&row.ascending());
                let gone = masses.into_iter().filter(|(_, _, mass)| *mass <= rest);
                let gone: Vec<usize> = gone.map(|(token, ..)| token).collect();
                row.take_away(&gone);
            };
            stepwise(case, options, dtype, &Steps { top_p: &top_p, ..STEPS })
        }]),
    ]
}

/// A nucleus of other tokens.
pub(super) fn mass() -> Vec<Fault> {
    vec![
        Fault::new(
            "crossing-token-dropped",
            "the token whose probability reaches top_p is taken away, the first one excepted",
        )
        .seen("plausible: dropped where cumsum > p, without the shift")
        .under("{top_p: 0.75}")
        .gives(&[|case, options, dtype| {
            nucleus(case, options, dtype, |before, mass, p| before == 0.0 || mass <= p)
        }]),
        Fault::new("least-likely-kept", "the nucleus is made of the least likely tokens")
            .seen("plausible: ascending order, where the sum was meant to run from the other end")
            .under("{top_p: 0.5}")
            .gives(&[|case, options, dtype| {
                let top_p = |row: &mut Row<'_>| {
                    let order = row.ascending();
                    keep_mass(row, &order, &|before, _, p| before < p);
                };
                stepwise(case, options, dtype, &Steps { top_p: &top_p, ..STEPS })
            }]),
        Fault::new(
            "filter-mask-in-sorted-order",
            "what is decided of sorted tokens is applied to the unsorted ones",
        )
        .seen("plausible: the scatter back to the vocabulary is missing")
        .under("{top_p: 0.5}")
        .gives(&[|case, options, dtype| {
            let top_p = |row: &mut Row<'_>| {
                let whole = row.z.clone();
                row.top_p();
                let kept = row.z.iter().filter(|z| **z > f64::NEG_INFINITY).count();
                row.z = whole;
                let gone: Vec<usize> = (kept..row.z.len()).collect();
                if row.options.top_p.is_some() {
                    row.take_away(&gone);
                }
            };
            stepwise(case, options, dtype, &Steps { top_p: &top_p, ..STEPS })
        }]),
        Fault::new(
            "nucleus-in-vocabulary-order",
            "the mass is summed in the order of the vocabulary, not of the probabilities",
        )
        .seen("plausible: cumsum without a sort")
        .under("{top_p: 0.5}")
        .gives(&[|case, options, dtype| {
            let top_p = |row: &mut Row<'_>| {
                let order: Vec<usize> = (0..row.z.len()).collect();
                keep_mass(row, &order, &|before, _, p| before < p);
            };
            stepwise(case, options, dtype, &Steps { top_p: &top_p, ..STEPS })
        }]),
        Fault::new(
            "top-p-of-the-full-distribution",
            "top-p takes its mass from the distribution before top-k",
        )
        .seen("plausible: one softmax for both filters")
        .under("{top_k: 2, top_p: 0.7}")
        .gives(&[|case, options, dtype| {
            let none = |_: &mut Row<'_>| ();
            let both = |row: &mut Row<'_>| {
                row.top_p();
                row.top_k();
            };
            stepwise(case, options, dtype, &Steps { top_k: &none, top_p: &both, ..STEPS })
        }]),
    ]
}

/// Whether a token is kept, by the mass in front of it, the mass with it, and `top_p`.
type Keeps<'a> = &'a dyn Fn(f64, f64, f64) -> bool;

/// A nucleus that runs from the most likely token down.
fn nucleus(
    case: &SamplingFilterCase,
    options: &Options,
    dtype: Dtype,
    keeps: impl Fn(f64, f64, f64) -> bool,
) -> SamplingFilterOutput {
    let top_p = |row: &mut Row<'_>| {
        let mut order = row.ascending();
        order.reverse();
        keep_mass(row, &order, &keeps);
    };
    stepwise(case, options, dtype, &Steps { top_p: &top_p, ..STEPS })
}

/// Keeps tokens in this order, by their mass; as many as must survive in any case.
fn keep_mass(row: &mut Row<'_>, order: &[usize], keeps: Keeps<'_>) {
    let Some(p) = row.options.top_p else { return };
    let p = row.f(p);
    let masses = row.masses(order).into_iter().skip(row.keep());
    let gone = masses.filter(|(_, before, mass)| !keeps(*before, *mass, p));
    let gone: Vec<usize> = gone.map(|(token, ..)| token).collect();
    row.take_away(&gone);
}
