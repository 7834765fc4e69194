//! Clamps that are missing, elsewhere, or undeclared.

use super::{Fault, steps};
use crate::importance_weights::reference::{self, Row};
use crate::importance_weights::{Level, Options, Rejected};

/// Ratios whose exponent is clamped in another way.
macro_rules! exponents_of {
    ($ratio:expr) => {
        steps(|s| {
            s.ratios = |row, level, options| {
                let ratio: fn(&Row, f64, f64) -> f64 = $ratio;
                let c = row.round(options.log_ratio_clamp.unwrap_or(f64::INFINITY));
                let exponents = reference::exponents(row, level).into_iter();
                exponents.map(|x| ratio(row, x, c)).collect()
            };
        })
    };
}

/// The faults of this theme.
pub(super) fn all() -> Vec<Fault> {
    [of_weights(), of_exponents()].into_iter().flatten().collect()
}

/// The clamp of the ratio.
fn of_weights() -> Vec<Fault> {
    vec![
        Fault::new("lower-clamp-missing", "no weight is raised to `clamp_low`")
            .seen("mutation: `torch.clamp(max=…)` where two bounds are declared")
            .under("{clamp_low: 0.5}")
            .as_if(&[|options| Options { clamp_low: None, ..options }]),
        Fault::new("upper-clamp-missing", "no weight is held at `clamp_high`")
            .seen("mutation: an option without effect, as before verl had truncation")
            .as_if(&[|options| Options { clamp_high: None, ..options }]),
        Fault::new(
            "clamped-although-not-declared",
            "weights are truncated where no bound is declared",
        )
        .seen("mutation: a default cap (2, 5, 10, 3) that stays when the option is null")
        .under("{clamp_high: null}")
        .as_if(&[
            |options| Options { clamp_high: Some(2.0), ..options },
            |options| Options { clamp_high: Some(5.0), ..options },
            |options| Options { clamp_high: Some(10.0), ..options },
            |options| Options { clamp_high: Some(3.0), ..options },
        ]),
        Fault::new(
            "raised-although-not-declared",
            "weights are raised to a least one that is not declared",
        )
        .seen("mutation: OpenRLHF's lower bound of 0.5 where only the upper one is meant")
        .as_if(&[
            |options| Options { clamp_low: Some(0.5), ..options },
            |options| Options { clamp_low: Some(0.1), ..options },
            |options| Options { clamp_low: Some(0.8), ..options },
        ]),
        Fault::new("capped-at-one", "no weight is above 1")
            .seen("mutation: the c and ρ of V-trace, which are 1")
            .as_if(&[|options| Options { clamp_high: Some(1.0), ..options }]),
        Fault::new(
            "clamp-around-one",
            "the weight is held within 1 ± `clamp_high`, as PPO holds its ratio",
        )
        .seen("mutation: a clip range read for a bound")
        .as_if(&[|options| Options {
            clamp_high: options.clamp_high.map(|high| 1.0 + high),
            ..options
        }]),
        Fault::new("clamp-is-symmetric", "the lower bound is one over the upper one")
            .seen("mutation: a clamp of the logarithm to ± ln `clamp_high`")
            .under("{clamp_high: 4}")
            .as_if(&[|options| Options {
                clamp_low: options.clamp_high.map(|high| 1.0 / high),
                ..options
            }]),
        Fault::new("dropped-for-clamped", "what is above `clamp_high` weighs 0, as icepop has it")
            .seen("trl #5814: truncating and masking are both honest, and two options")
            .made_of([
                steps(|s| {
                    s.clamped = |row, ratio, options| {
                        let held = reference::clamped(row, ratio, options);
                        if ratio > held { 0.0 } else { held }
                    };
                }),
                steps(|s| {
                    s.clamped = |row, ratio, options| {
                        let held = reference::clamped(row, ratio, options);
                        if ratio == held { held } else { 0.0 }
                    };
                }),
            ]),
        Fault::new("clamped-to-one", "what is above `clamp_high` weighs 1")
            .seen("mutation: a weight that is out of bounds is switched off, not held")
            .made_of([steps(|s| {
                s.clamped = |row, ratio, options| {
                    let held = reference::clamped(row, ratio, options);
                    if ratio == held { held } else { 1.0 }
                };
            })]),
        Fault::new(
            "bounds-of-the-exponent",
            "the log-ratio, not the ratio, is held at `clamp_high`",
        )
        .seen("mutation: the clamp stands one line too early")
        .made_of([
            steps(|s| {
                s.ratios = |row, level, options| {
                    let high = row.round(options.clamp_high.unwrap_or(f64::INFINITY));
                    let c = row.round(options.log_ratio_clamp.unwrap_or(f64::INFINITY));
                    let exponents = reference::exponents(row, level).into_iter();
                    exponents.map(|x| row.exp(x.clamp(-c, c).min(high))).collect()
                };
                s.clamped = |row, ratio, options| {
                    let options = Options { clamp_high: None, ..options.clone() };
                    reference::clamped(row, ratio, &options)
                };
            }),
            steps(|s| {
                s.ratios = |row, level, options| {
                    let c = row.round(options.log_ratio_clamp.unwrap_or(f64::INFINITY));
                    let exponents = reference::exponents(row, level).into_iter();
                    let held = exponents.map(|x| reference::clamped(row, x.clamp(-c, c), options));
                    held.map(|x| row.exp(x)).collect()
                };
                s.clamped = |_, ratio, _| ratio;
            }),
        ]),
        Fault::new(
            "clamped-before-the-row",
            "the ratios of tokens are held at the bounds, then multiplied: the product is not",
        )
        .seen("mutation: the clamp of the token level is reused")
        .under("{level: sequence}")
        .made_of([steps(|s| {
            s.ratios = |row, level, options| {
                let held = |gap: &f64| reference::clamped(row, row.exp(*gap), options).ln();
                let gaps: Vec<f64> = row.gaps.iter().map(|gap| row.round(held(gap))).collect();
                reference::ratios(&row.with_gaps(gaps), level, options)
            };
            s.clamped = |_, ratio, _| ratio;
        })]),
        Fault::new(
            "dropped-raised-to-the-lower-clamp",
            "what is dropped weighs `clamp_low`, and not 0",
        )
        .seen("mutation: the clamp comes after the mask")
        .under("{clamp_low: 0.5, select: token, select_high: 2.5}")
        .made_of([steps(|s| {
            s.dropped = |weight, options| match options.rejected {
                Rejected::Zero => options.clamp_low.unwrap_or(0.0),
                Rejected::Unchanged => weight,
            };
        })]),
    ]
}

/// The clamp of the exponent.
fn of_exponents() -> Vec<Fault> {
    vec![
        Fault::new("log-ratio-clamp-ignored", "the exponent is not clamped")
            .seen("mutation: an option without effect; verl and slime clamp at 20")
            .under("{log_ratio_clamp: 0.7, clamp_high: null}")
            .as_if(&[|options| Options { log_ratio_clamp: None, ..options }]),
        Fault::new(
            "log-ratio-clamped-although-not-declared",
            "the exponent is clamped to ±20, ±10, ±5 or ±1 where no clamp is declared",
        )
        .seen("verl and slime (20), open-instruct (10) where NeMo-RL's is declared")
        .under("{clamp_high: null}")
        .as_if(&[
            |options| Options { log_ratio_clamp: Some(20.0), ..options },
            |options| Options { log_ratio_clamp: Some(10.0), ..options },
            |options| Options { log_ratio_clamp: Some(5.0), ..options },
            |options| Options { log_ratio_clamp: Some(1.0), ..options },
        ]),
        Fault::new(
            "log-ratio-clamped-on-one-side",
            "the exponent is clamped above only, or below only",
        )
        .seen("mutation: `clamp(max=20)` keeps exp from overflowing, and was thought enough")
        .under("{log_ratio_clamp: 0.7, clamp_high: null}")
        .made_of([
            exponents_of!(|row, x, c| row.exp(x.min(c))),
            exponents_of!(|row, x, c| row.exp(x.max(-c))),
        ]),
        Fault::new("ratio-clamped-at-c", "the ratio is held at c where its exponent is to be")
            .seen("mutation: the clamp stands one line too late")
            .under("{log_ratio_clamp: 0.7, clamp_high: null}")
            .made_of([exponents_of!(|row, x, c| row.exp(x).min(c))]),
        Fault::new(
            "log-ratio-clamped-token-by-token",
            "the log-ratios of a row are clamped before they are added up",
        )
        .seen("mutation: the clamp of the token level is reused; verl clamps the sum")
        .under("{level: sequence, log_ratio_clamp: 0.7, clamp_high: null}")
        .made_of([steps(|s| {
            s.ratios = |row, level, options| {
                let c = row.round(options.log_ratio_clamp.unwrap_or(f64::INFINITY));
                let gaps: Vec<f64> = row.gaps.iter().map(|gap| gap.clamp(-c, c)).collect();
                let sum = row.sum(gaps.iter().copied());
                match level {
                    Level::Token => gaps.iter().map(|gap| row.exp(*gap)).collect(),
                    Level::Sequence => vec![row.exp(sum); gaps.len()],
                    Level::Geometric => vec![row.exp(row.mean(&gaps)); gaps.len()],
                }
            };
        })]),
        Fault::new(
            "log-ratio-clamp-left-out-of-the-bounds",
            "what is selected is decided by the exponent before its clamp",
        )
        .seen("mutation: the ratio is made a second time, without the clamp")
        .under("{select: token, select_high: 5, log_ratio_clamp: 1, rejected: unchanged}")
        .made_of([steps(|s| {
            s.outside = |row, options| {
                let free = Options { log_ratio_clamp: None, ..options.clone() };
                reference::outside(row, &free)
            };
        })]),
        Fault::new(
            "veto-of-the-clamped-ratio",
            "the veto looks at the ratio once its exponent is clamped",
        )
        .seen("slime MIS vetoes by the log-ratio as it was")
        .under("{veto: 0.1, log_ratio_clamp: 1}")
        .made_of([steps(|s| {
            s.vetoed = |row, options| {
                let ratios = reference::ratios(row, Level::Token, options);
                let below = |v: f64| ratios.iter().any(|ratio| *ratio < v);
                vec![options.veto.is_some_and(below); row.gaps.len()]
            };
        })]),
        Fault::new("beyond-the-clamp-dropped", "an exponent that is clamped gives the weight 0")
            .seen("mutation: a clamp read for a filter")
            .under("{log_ratio_clamp: 0.7, clamp_high: null}")
            .made_of([exponents_of!(|row, x, c| if x.abs() > c { 0.0 } else { row.exp(x) })]),
    ]
}
