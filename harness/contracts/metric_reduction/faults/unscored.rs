//! Values that are NaN.

use super::{Fault, Metrics, Step, always, changed};
use crate::metric_reduction::{Options, Unscored};

/// The faults of this theme.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new(
            "unscored-left-out",
            "what could not be scored vanishes where it counts as 0, and the mean rises",
        )
        .seen("prime-rl #3182 (ed05a1418); ms-swift b7f10dbc6")
        .under("{unscored: zero}")
        .as_if(&[|options| Options { unscored: Unscored::Skip, ..options }]),
        Fault::new("unscored-counted", "what could not be scored is 0 where it is left out")
            .seen("nan_to_num before TRL's nanmean")
            .under("{unscored: skip}")
            .as_if(&[|options| Options { unscored: Unscored::Zero, ..options }]),
        Fault::new(
            "unscored-in-the-count",
            "the sum leaves out what could not be scored; its tokens are counted",
        )
        .seen("nansum over mask.sum(), for TRL's nanmean")
        .under("{unscored: skip}")
        .made_of([changed(|step, metrics| {
            let counted = Options { unscored: Unscored::Zero, ..step.options.clone() };
            metrics.count = Step::new(step.case, &counted).all.len() as f64;
            metrics.mean = metrics.sum / metrics.count;
        })]),
        Fault::new("unscored-spoils-all", "one NaN makes NaN of the mean")
            .seen("mean, for TRL's nanmean over reward functions that do not apply")
            .under("{unscored: skip}")
            .made_of([
                changed(|step, metrics| {
                    if step.some_unscored() {
                        metrics.mean = f64::NAN;
                    }
                }),
                always(|step, metrics| {
                    if step.some_unscored() {
                        metrics.mean = f64::NAN;
                        metrics.sum = f64::NAN;
                    }
                }),
                always(|step, metrics| {
                    if step.some_unscored() {
                        let Metrics { count, .. } = *metrics;
                        *metrics = Metrics { count, ..Metrics::NAN };
                    }
                }),
                always(|step, metrics| {
                    if step.some_unscored() {
                        let counted = Options { unscored: Unscored::Zero, ..step.options.clone() };
                        let count = Step::new(step.case, &counted).all.len() as f64;
                        *metrics = Metrics { count, ..Metrics::NAN };
                    }
                }),
            ]),
        Fault::new(
            "row-dropped-for-one-nan",
            "a row of which one token could not be scored is left out, scored tokens and all",
        )
        .seen("nanmean over rows of means that are not nanmeans themselves")
        .under("{unscored: skip, unit: row-mean}")
        .gives(&[|case, options, _| {
            let mut fewer = case.clone();
            for part in &mut fewer.shards {
                for (mut mask, values) in part.mask.rows_mut().into_iter().zip(part.values.rows()) {
                    if mask.iter().zip(values).any(|(kept, x)| *kept && x.is_nan()) {
                        mask.fill(false);
                    }
                }
            }
            Step::new(&fewer, options).metrics().into()
        }]),
    ]
}
