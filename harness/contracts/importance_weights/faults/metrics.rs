//! Right weights, and metrics that hide what they should show.

use ndarray::arr0;

use super::{Fault, Variant, after, count, rows};
use crate::importance_weights::reference::{self, RIGHT, Row};
use crate::importance_weights::{ImportanceWeightsCase, Level, Options, Rejected, is_empty};
use shakedown_core::numeric::conventions::EmptyMask;
use shakedown_core::value::place::Dtype;

/// The faults of this theme.
pub(super) fn all() -> Vec<Fault> {
    [mismatch(), fraction(), without_a_token()].into_iter().flatten().collect()
}

/// The mismatch of sampler and policy.
fn mismatch() -> Vec<Fault> {
    vec![
        Fault::new(
            "statistics-after-the-clamp",
            "the mismatch is that of the weights, once they are clamped",
        )
        .seen("slime #1174 (57b9c3d2f), NeMo-RL #3900")
        .made_of([mismatch_of(|case, options, dtype| {
            let free = Options { rejected: Rejected::Unchanged, ..options.clone() };
            let weights = reference::weights(case, &free, dtype).weights;
            let kept = weights.iter().zip(&case.mask).filter(|(_, kept)| **kept);
            -kept.map(|(weight, _)| weight.max(1.2e-38).ln()).sum::<f64>() / count(case)
        })]),
        Fault::new("mismatch-reversed", "policy less sampler: a KL of the wrong sign")
            .seen("mutation: the operands swapped")
            .made_of([mismatch_of(|case, _, dtype| sum_of(case, dtype, |gap| gap) / count(case))]),
        Fault::new(
            "mismatch-over-padding",
            "the mismatch is divided by all cells, masked ones too",
        )
        .seen("mutation: `.mean()` of masked log-ratios")
        .made_of([mismatch_of(|case, _, dtype| {
            sum_of(case, dtype, |gap| -gap) / case.mask.len() as f64
        })]),
        Fault::new("mismatch-is-a-sum", "the mismatch is not divided")
            .seen("mutation: `sum` for `mean`")
            .made_of([mismatch_of(|case, _, dtype| sum_of(case, dtype, |gap| -gap))]),
        Fault::new("mismatch-of-row-means", "the mismatch is the mean of the rows' means")
            .seen("compare trlx #509: a mean of means counts short rows more")
            .made_of([mismatch_of(|case, _, dtype| {
                let filled = rows(case, dtype);
                let filled: Vec<&Row> = filled.iter().filter(|row| !row.gaps.is_empty()).collect();
                let means = filled.iter().map(|row| -row.mean(&row.gaps));
                means.sum::<f64>() / filled.len() as f64
            })]),
        Fault::new("mismatch-is-absolute", "the mean of |d|: gaps of both signs do not cancel")
            .seen("mutation: a distance for a KL; both are logged by verl and slime")
            .made_of([mismatch_of(|case, _, dtype| sum_of(case, dtype, f64::abs) / count(case))]),
        Fault::new("mismatch-is-k3", "the k3 estimate, or the k2 one, for the plain mean")
            .seen("verl and slime log both, as `kl` and `k3_kl`")
            .made_of([
                mismatch_of(|case, _, dtype| {
                    sum_of(case, dtype, |gap| gap.exp() - 1.0 - gap) / count(case)
                }),
                mismatch_of(|case, _, dtype| {
                    sum_of(case, dtype, |gap| 0.5 * gap * gap) / count(case)
                }),
            ]),
        Fault::new(
            "mismatch-of-the-clamped-exponent",
            "the mismatch is that of log-ratios clamped to ±c",
        )
        .seen("mutation: the clamped log-ratios are reused")
        .under("{log_ratio_clamp: 0.7}")
        .made_of([mismatch_of(|case, options, dtype| {
            let c = options.log_ratio_clamp.unwrap_or(f64::INFINITY);
            let rows = rows(case, dtype);
            let gaps = rows.iter().flat_map(|row| &row.gaps);
            let sum: f64 = gaps.map(|gap| -gap.clamp(-c, c)).sum();
            sum / count(case)
        })]),
        Fault::new("mismatch-of-the-kept", "what is dropped is left out of the mismatch")
            .seen("mutation: the mask of what is kept for the mask: the worst tokens do not show")
            .under("{select: token, select_low: 0.5, select_high: 2.5}")
            .made_of([mismatch_of(|case, options, dtype| {
                let keep = reference::weights(case, options, dtype).keep.unwrap_or_default();
                let mut kept = case.clone();
                kept.mask.zip_mut_with(&keep, |mask, keep| *mask = *mask && *keep > 0.0);
                sum_of(&kept, dtype, |gap| -gap) / count(&kept).max(1.0)
            })]),
        Fault::new("mismatch-of-a-copy", "the mismatch is that of policy and policy, 0 throughout")
            .seen("verl 2c6c65cb0: compared with what the trainer had written over the sampler's")
            .made_of([mismatch_of(|_, _, _| 0.0)]),
        Fault::new(
            "mismatch-of-the-first-row",
            "the mismatch is that of the first row with a token",
        )
        .seen("mutation: an index where a mean belongs")
        .made_of([mismatch_of(|case, _, dtype| {
            let rows = rows(case, dtype);
            let first = rows.iter().find(|row| !row.gaps.is_empty());
            first.map_or(0.0, |row| -row.mean(&row.gaps))
        })]),
        Fault::new(
            "mismatch-is-weighted",
            "the log-ratios are multiplied by their weights before the mean",
        )
        .seen("mutation: an expectation under the policy, where that under the sampler is declared")
        .made_of([mismatch_of(|case, options, dtype| {
            let weights = reference::weights(case, options, dtype).weights;
            let rows = rows(case, dtype).into_iter().enumerate();
            let of_row = |(index, row): (usize, Row)| {
                let each = row.columns.iter().zip(&row.gaps);
                each.map(|(column, gap)| -gap * weights[[index, *column]]).sum::<f64>()
            };
            rows.map(of_row).sum::<f64>() / count(case)
        })]),
        Fault::new(
            "mismatch-of-the-row-exponent",
            "the mismatch is that of the rows' exponents, not of the tokens' log-ratios",
        )
        .seen("mutation: the variable holds the sum of its row by then")
        .under("{level: sequence}")
        .made_of([mismatch_of(|case, options, dtype| {
            let rows = rows(case, dtype);
            let filled = rows.iter().filter(|row| !row.gaps.is_empty());
            let each = filled.flat_map(|row| reference::exponents(row, options.level));
            -each.sum::<f64>() / count(case)
        })]),
        Fault::new("mismatch-of-the-mean-ratio", "minus the logarithm of the mean ratio")
            .seen("mutation: the logarithm after the mean, which is 0 on average whatever the gap")
            .made_of([mismatch_of(|case, _, dtype| {
                -(sum_of(case, dtype, f64::exp) / count(case)).ln()
            })]),
    ]
}

/// The share of what is clamped or dropped.
fn fraction() -> Vec<Fault> {
    vec![
        Fault::new("clip-fraction-over-padding", "the share is one of all cells, masked ones too")
            .seen("compare trlx: means of masked arrays")
            .made_of([share_of(|case, options, dtype| {
                share(case, options, dtype, |_| true) * count(case) / case.mask.len() as f64
            })]),
        Fault::new("clip-fraction-of-the-clamped", "what is dropped does not count in the share")
            .seen("mutation: the metric of truncation where icepop runs")
            .under("{select: token, select_low: 0.5, select_high: 5, clamp_high: null}")
            .made_of([
                share_of(|case, options, dtype| {
                    share(case, options, dtype, |token| !token.dropped)
                }),
                share_of(|case, options, dtype| {
                    share(case, options, dtype, |token| token.is_clamped)
                }),
            ]),
        Fault::new("clip-fraction-of-the-dropped", "what is clamped does not count in the share")
            .seen("mutation: one minus the mean of `keep`")
            .made_of([share_of(|case, options, dtype| {
                share(case, options, dtype, |token| token.dropped)
            })]),
        Fault::new(
            "clip-fraction-above-only",
            "what is raised to `clamp_low` does not count in the share",
        )
        .seen("mutation: one of two sides forgotten")
        .under("{clamp_low: 0.5}")
        .made_of([share_of(|case, options, dtype| {
            share(case, options, dtype, |token| token.dropped || token.is_above)
        })]),
        Fault::new(
            "clip-fraction-below-only",
            "what is held at `clamp_high` does not count in the share",
        )
        .seen("mutation: one of two sides forgotten")
        .under("{clamp_low: 0.5}")
        .made_of([share_of(|case, options, dtype| {
            share(case, options, dtype, |token| token.dropped || !token.is_above)
        })]),
        Fault::new("clip-fraction-of-the-kept", "the share of what is neither clamped nor dropped")
            .seen("mutation: the condition inverted")
            .made_of([share_of(|case, options, dtype| {
                1.0 - share(case, options, dtype, |_| true)
            })]),
        Fault::new("clip-fraction-is-a-count", "the number of tokens, not their share")
            .seen("mutation: `sum` for `mean`")
            .made_of([share_of(|case, options, dtype| {
                share(case, options, dtype, |_| true) * count(case)
            })]),
        Fault::new(
            "clip-fraction-of-rows",
            "the share of rows in which a token is clamped or dropped",
        )
        .seen("mutation: `any` along the row before the mean")
        .made_of([
            share_of(|case, options, dtype| {
                let shares = shares_of_rows(case, options, dtype);
                shares.iter().filter(|share| **share > 0.0).count() as f64 / shares.len() as f64
            }),
            share_of(|case, options, dtype| {
                let shares = shares_of_rows(case, options, dtype);
                let any = shares.iter().filter(|share| **share > 0.0).count();
                any as f64 / case.mask.nrows() as f64
            }),
        ]),
        Fault::new("clip-fraction-of-row-shares", "the mean of the shares that the rows have")
            .seen("compare trlx #509: a mean of means counts short rows more")
            .made_of([share_of(|case, options, dtype| {
                let shares = shares_of_rows(case, options, dtype);
                shares.iter().sum::<f64>() / shares.len() as f64
            })]),
        Fault::new("masked-counts-as-dropped", "masked cells count as dropped in the share")
            .seen("mutation: one minus the mean of `keep`, over all cells")
            .made_of([
                share_of(|case, options, dtype| {
                    let cells = case.mask.len() as f64;
                    let masked = cells - count(case);
                    (share(case, options, dtype, |_| true) * count(case) + masked) / cells
                }),
                share_of(|case, options, dtype| {
                    let cells = case.mask.len() as f64;
                    let masked = cells - count(case);
                    (share(case, options, dtype, |token| token.dropped) * count(case) + masked)
                        / cells
                }),
            ]),
        Fault::new(
            "clip-fraction-of-token-ratios",
            "the share looks at token ratios, whatever the level",
        )
        .seen("mutation: the metric of the token level is reused")
        .under("{level: sequence}")
        .made_of([share_of(|case, options, dtype| {
            let tokens = Options { level: Level::Token, ..options.clone() };
            share(case, &tokens, dtype, |_| true)
        })]),
    ]
}

/// What a batch without a token gives.
fn without_a_token() -> Vec<Fault> {
    vec![
        Fault::new("no-token-gives-nan", "without a token the metrics are 0/0")
            .seen("mutation: a mean of nothing; ROLL #475 has one of a deviation")
            .made_of([after(|output, case, _, _| {
                if is_empty(case) {
                    output.clip_fraction = Some(arr0(f64::NAN));
                    output.mismatch_kl = Some(arr0(f64::NAN));
                }
            })]),
        Fault::new("no-token-gives-one", "without a token everything counts as clamped")
            .seen("mutation: one minus the share of nothing")
            .made_of([after(|output, case, _, _| {
                if is_empty(case) {
                    output.clip_fraction = Some(arr0(1.0));
                }
            })]),
        Fault::new(
            "epsilon-in-the-denominator",
            "the metrics are divided by n + ε: a batch without a token gives 0, and never raises",
        )
        .seen("mutation: verl raises without a token, and divides by the number of tokens")
        .under("{empty_mask: refuse}")
        .gives(&[|case, options, dtype| {
            let lenient = Options { empty_mask: EmptyMask::Zero, ..options.clone() };
            let mut output = reference::weights(case, &lenient, dtype);
            let share = count(case) / (count(case) + 0.01);
            for metric in [&mut output.clip_fraction, &mut output.mismatch_kl] {
                metric.iter_mut().for_each(|metric| metric[()] *= share);
            }
            output
        }]),
    ]
}

/// Another number for a metric, of a batch with a token.
type Metric = fn(&ImportanceWeightsCase, &Options, Dtype) -> f64;

fn mismatch_of(metric: Metric) -> Variant {
    Variant::gives(move |case, options, dtype| {
        let mut output = reference::weights(case, options, dtype);
        if !is_empty(case) {
            output.mismatch_kl = Some(arr0(metric(case, options, dtype)));
        }
        output
    })
}

fn share_of(metric: Metric) -> Variant {
    Variant::gives(move |case, options, dtype| {
        let mut output = reference::weights(case, options, dtype);
        if !is_empty(case) {
            output.clip_fraction = Some(arr0(metric(case, options, dtype)));
        }
        output
    })
}

/// A function of each log-ratio, summed.
fn sum_of(case: &ImportanceWeightsCase, dtype: Dtype, of: fn(f64) -> f64) -> f64 {
    rows(case, dtype).iter().flat_map(|row| &row.gaps).map(|gap| of(*gap)).sum()
}

/// A token that is clamped or dropped.
struct Clipped {
    dropped: bool,
    is_clamped: bool,
    is_above: bool,
}

/// The share of each row that has a token.
fn shares_of_rows(case: &ImportanceWeightsCase, options: &Options, dtype: Dtype) -> Vec<f64> {
    let filled = (0..case.mask.nrows()).filter(|row| case.mask.row(*row).iter().any(|kept| *kept));
    let alone = |row| {
        let mut alone = case.clone();
        for (other, mut mask) in alone.mask.rows_mut().into_iter().enumerate() {
            if other != row {
                mask.fill(false);
            }
        }
        share(&alone, options, dtype, |_| true)
    };
    filled.map(alone).collect()
}

/// The share of the clamped and dropped tokens that count for a metric.
fn share(
    case: &ImportanceWeightsCase,
    options: &Options,
    dtype: Dtype,
    counts: fn(Clipped) -> bool,
) -> f64 {
    let mut clipped = 0.0;
    for row in RIGHT.rows(case, dtype).iter().filter(|row| !row.gaps.is_empty()) {
        let drops = [
            reference::outside(row, options),
            reference::vetoed(row, options),
            reference::drifted(row, options),
        ];
        for (token, ratio) in reference::ratios(row, options.level, options).into_iter().enumerate()
        {
            let weight = reference::clamped(row, ratio, options);
            let dropped = drops.iter().any(|drops| drops[token]);
            if dropped || weight != ratio {
                let (is_clamped, is_above) = (weight != ratio, ratio > weight);
                clipped += f64::from(counts(Clipped { dropped, is_clamped, is_above }));
            }
        }
    }
    clipped / count(case)
}
