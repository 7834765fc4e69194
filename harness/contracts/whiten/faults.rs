//! Known wrong behaviours of `whiten`: real bugs, and conventions mistaken for others.

use ndarray::{Array2, Axis};

use super::{
    EpsilonMode, Options, Whiten, WhitenCase, WhitenOutput, is_few, protected, reference, sets,
    statistics,
};
use crate::contract::options::RowInfluence;
use crate::numeric::conventions::EmptyMask;
use crate::value::place::Dtype;

type Fault = crate::contract::fault::Fault<Whiten>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new(
            "statistics-over-padding",
            "mean and deviation of the padded matrix: what is under the mask counts",
        )
        .seen("trlx, whiten of padded advantages")
        .gives(&[
            |case, options, _| over_padding(case, options, |value, _| value),
            |case, options, _| {
                over_padding(case, options, |value, kept| if kept { value } else { 0.0 })
            },
        ]),
        Fault::new(
            "pads-not-zeroed-again",
            "masked positions hold their shifted and divided value where 0 is promised",
        )
        .seen("verl #1527 (4e9586a3a)")
        .gives(&[
            |case, options, _| pads_shifted(case, options, |value| value),
            |case, options, _| pads_shifted(case, options, |_| 0.0),
        ]),
        Fault::new(
            "one-token-unbiased-deviation",
            "no token is guarded, one is not: a deviation with ddof 1 over one value is NaN",
        )
        .seen("ROLL #475, #476 (370cb24c)")
        .gives(&[|case, options, _| too_few(case, options, |_| f64::NAN)]),
        Fault::new("statistics-per-shard", "each half of the columns has statistics of its own")
            .seen("slime #2235 (dd7f0379c)")
            .gives(&[
                |case, options, dtype| sharded(case, options, dtype, Axis(1)),
                |case, options, dtype| sharded(case, options, dtype, Axis(0)),
            ]),
        Fault::new(
            "rows-by-themselves",
            "each row has statistics of its own where those of the batch are declared",
        )
        .seen("OpenRLHF masked_normalize where verl's masked_whiten is declared")
        .gives(&[|case, options, dtype| {
            with(case, options, dtype, |o| o.rows = RowInfluence::Independent)
        }]),
        Fault::new(
            "batch-for-row",
            "one mean and deviation for the batch where each row has its own",
        )
        .seen("verl masked_whiten where OpenRLHF's masked_normalize is declared")
        .under("{rows: independent}")
        .gives(&[|case, options, dtype| {
            with(case, options, dtype, |o| o.rows = RowInfluence::Batch)
        }]),
        Fault::new(
            "mean-of-row-means",
            "the mean of the rows' means is subtracted, so that short rows count more",
        )
        .seen("aggregation slip, compare trlx #509")
        .gives(&[|case, options, _| {
            let rows = sets(case, &Options { rows: RowInfluence::Independent, ..options.clone() });
            let mean_of = |set: &Vec<(usize, usize)>| {
                set.iter().map(|at| case.values[*at]).sum::<f64>() / set.len() as f64
            };
            let means: Vec<f64> = rows.iter().filter(|set| !set.is_empty()).map(mean_of).collect();
            let batch_mean = means.iter().sum::<f64>() / means.len() as f64;
            by_set(case, options, |values, options| {
                let (mean, variance) = statistics(values, options.ddof);
                let mean = if options.rows == RowInfluence::Batch { batch_mean } else { mean };
                affine(values, mean, protected(variance, options), options)
            })
        }]),
        Fault::new(
            "biased-for-unbiased-variance",
            "the variance divides by n where n - 1 is declared, or the reverse",
        )
        .seen("torch.var is unbiased, numpy.var is not")
        .under("{empty_mask: refuse}")
        .gives(&[|case, options, dtype| with(case, options, dtype, |o| o.ddof = 1 - o.ddof)]),
        Fault::new("epsilon-outside-the-root", "√var + ε where √(var + ε) is declared")
            .seen("group normalisation reused for whitening")
            .under("{epsilon: 1.0e-3}")
            .gives(&[|case, options, _| {
                by_set(case, options, |values, options| {
                    let (mean, variance) = statistics(values, options.ddof);
                    affine(values, mean, variance.sqrt() + options.epsilon, options)
                })
            }]),
        Fault::new(
            "epsilon-clamped-for-added",
            "√max(var, ε) where √(var + ε) is declared, or the reverse",
        )
        .seen("OpenRLHF clamps, verl and TRL add")
        .under("{epsilon: 1.0e-3}")
        .gives(&[|case, options, dtype| {
            with(case, options, dtype, |o| {
                o.epsilon_mode = match o.epsilon_mode {
                    EpsilonMode::Add => EpsilonMode::Clamp,
                    EpsilonMode::Clamp => EpsilonMode::Add,
                }
            })
        }]),
        Fault::new(
            "epsilon-swallows-the-variance",
            "ε is so large that the values are not whitened (1, 0.1, 0.01, 1e-3)",
        )
        .seen(
            "verl, TRL and slime add 1e-8 to the variance; a constant that is not small beside it",
        )
        .gives(&[
            |case, options, dtype| with(case, options, dtype, |o| o.epsilon = 1.0),
            |case, options, dtype| with(case, options, dtype, |o| o.epsilon = 0.1),
            |case, options, dtype| with(case, options, dtype, |o| o.epsilon = 0.01),
            |case, options, dtype| with(case, options, dtype, |o| o.epsilon = 1e-3),
        ]),
        Fault::new("epsilon-missing", "nothing protects the division: equal values give 0/0")
            .seen("`(v - mean) / std` as it is; verl, TRL and slime add 1e-8 to the variance")
            .gives(&[|case, options, _| {
                by_set(case, options, |values, options| {
                    let (mean, variance) = statistics(values, options.ddof);
                    affine(values, mean, variance.sqrt(), options)
                })
            }]),
        Fault::new(
            "variance-of-squares-unguarded",
            "E[v²] - E[v]² in f32: below 0 for large equal values, and its root is NaN",
        )
        .seen("one-pass statistics for distributed whitening, without a clamp at 0")
        .gives(&[|case, options, _| {
            by_set(case, options, |values, options| {
                let count = values.len() as f32;
                let narrow = || values.iter().map(|v| *v as f32);
                let mean = narrow().sum::<f32>() / count;
                let squares = narrow().map(|v| v * v).sum::<f32>() / count;
                let variance = (squares - mean * mean) * count / (count - f32::from(options.ddof));
                let divisor = match options.epsilon_mode {
                    EpsilonMode::Add => (variance + options.epsilon as f32).sqrt(),
                    EpsilonMode::Clamp => variance.max(options.epsilon as f32).sqrt(),
                };
                affine(values, f64::from(mean), f64::from(divisor), options)
            })
        }]),
        Fault::new(
            "mean-added-back",
            "the old mean is added after the division where 0 is declared",
        )
        .seen("torchtune's shift_mean=True read as verl's")
        .gives(&[|case, options, dtype| with(case, options, dtype, |o| o.shift_mean = false)]),
        Fault::new("mean-not-added-back", "the mean becomes 0 where the old one is declared")
            .seen("torchtune's shift_mean=False read as verl's")
            .under("{shift_mean: false}")
            .gives(&[|case, options, dtype| with(case, options, dtype, |o| o.shift_mean = true)]),
        Fault::new("mean-never-subtracted", "the values are divided and not shifted")
            .seen("scaling where whitening is declared")
            .gives(&[|case, options, _| {
                by_set(case, options, |values, options| {
                    let (_, variance) = statistics(values, options.ddof);
                    affine(values, 0.0, protected(variance, options), options)
                })
            }]),
        Fault::new("not-divided", "the values are shifted and not divided")
            .seen("centring where whitening is declared")
            .gives(&[|case, options, _| {
                by_set(case, options, |values, options| {
                    affine(values, statistics(values, options.ddof).0, 1.0, options)
                })
            }]),
        Fault::new("divided-by-the-variance", "the square root of the variance is missing")
            .seen("rsqrt read as a reciprocal")
            .gives(&[|case, options, _| {
                by_set(case, options, |values, options| {
                    let (mean, variance) = statistics(values, options.ddof);
                    affine(values, mean, protected(variance, options).powi(2), options)
                })
            }]),
        Fault::new("mean-over-std-precedence", "v - mean/σ for (v - mean)/σ")
            .seen("prime-rl #390 (748158fa6), there of groups")
            .gives(&[|case, options, _| {
                by_set(case, options, |values, options| {
                    let (mean, variance) = statistics(values, options.ddof);
                    affine(values, mean / protected(variance, options), 1.0, options)
                })
            }]),
        Fault::new("sign-flipped", "mean - v for v - mean")
            .seen("`mean - v` for `v - mean`: the operands swapped")
            .gives(&[|case, options, _| {
                by_set(case, options, |values, options| {
                    let (mean, variance) = statistics(values, options.ddof);
                    affine(values, mean, -protected(variance, options), options)
                })
            }]),
        Fault::new(
            "one-token-keeps-its-value",
            "too few tokens for a deviation keep their values where 0 is declared",
        )
        .seen("an early return of the input")
        .gives(&[|case, options, _| too_few(case, options, |value| value)]),
        Fault::new(
            "one-token-gives-zero",
            "too few tokens for a deviation give 0 where the values are kept",
        )
        .seen("OpenRLHF's convention where the mean is declared to stay")
        .under("{shift_mean: false}")
        .gives(&[|case, options, _| too_few(case, options, |_| 0.0)]),
        Fault::new(
            "masked-after-the-arithmetic",
            "masked by a product: NaN and infinities under the mask spoil mean and deviation",
        )
        .seen("trl #5594, there of a loss; verl masked_mean before it used where")
        .under("{masked_values: any}")
        .gives(&[|case, options, dtype| {
            let right = reference::whitened(case, options, dtype).whitened;
            let mut spoiled = right;
            for (row, values) in case.values.rows().into_iter().enumerate() {
                let spoils = match options.rows {
                    RowInfluence::Batch => case.values.iter().any(|value| !value.is_finite()),
                    RowInfluence::Independent => values.iter().any(|value| !value.is_finite()),
                };
                if spoils {
                    spoiled.row_mut(row).fill(f64::NAN);
                }
            }
            spoiled.into()
        }]),
        Fault::new("statistics-in-half-precision", "mean and deviation are taken in bf16 at f32")
            .seen("compare OpenRLHF #634, #620")
            .gives(&[|case, options, _| {
                by_set(case, options, |values, options| {
                    let half = |x: f64| Dtype::Bf16.round(x);
                    let values: Vec<f64> = values.iter().map(|v| half(*v)).collect();
                    let (mean, variance) = statistics(&values, options.ddof);
                    affine(&values, half(mean), half(protected(variance, options)), options)
                })
            }]),
    ]
}

/// (v - mean) / divisor, and the mean again where it is kept.
fn affine(values: &[f64], mean: f64, divisor: f64, options: &Options) -> Vec<f64> {
    let kept = if options.shift_mean { 0.0 } else { mean };
    values.iter().map(|v| (v - mean) / divisor + kept).collect()
}

/// The right values of a set.
fn whitened(values: &[f64], options: &Options) -> Vec<f64> {
    let (mean, variance) = statistics(values, options.ddof);
    affine(values, mean, protected(variance, options), options)
}

/// Maps the values of each set; 0 under the mask.
fn by_set(
    case: &WhitenCase,
    options: &Options,
    f: impl Fn(&[f64], &Options) -> Vec<f64>,
) -> WhitenOutput {
    let mut output = Array2::zeros(case.values.dim());
    for set in sets(case, options) {
        let values: Vec<f64> = set.iter().map(|at| case.values[*at]).collect();
        let mapped = if is_few(set.len(), options) {
            values.iter().map(|value| declared(*value, options)).collect()
        } else {
            f(&values, options)
        };
        for (at, value) in set.into_iter().zip(mapped) {
            output[at] = value;
        }
    }
    output.into()
}

/// What is declared for a token of a set that has too few.
fn declared(value: f64, options: &Options) -> f64 {
    match options.empty_mask {
        EmptyMask::Zero if options.shift_mean => 0.0,
        EmptyMask::Zero => value,
        _ => f64::NAN,
    }
}

/// The right values under other options.
fn with(
    case: &WhitenCase,
    options: &Options,
    dtype: Dtype,
    change: impl Fn(&mut Options),
) -> WhitenOutput {
    let mut changed = options.clone();
    change(&mut changed);
    if changed.empty_mask == EmptyMask::Refuse {
        changed.empty_mask = EmptyMask::Nan;
    }
    reference::whitened(case, &changed, dtype)
}

/// Statistics of all cells of a set, masked ones too, as `cell` sees them.
fn over_padding(
    case: &WhitenCase,
    options: &Options,
    cell: impl Fn(f64, bool) -> f64,
) -> WhitenOutput {
    let everything = WhitenCase { mask: Array2::from_elem(case.mask.dim(), true), ..case.clone() };
    let rows = sets(&everything, options);
    let mut output = Array2::zeros(case.values.dim());
    for set in rows {
        let values: Vec<f64> =
            set.iter().map(|at| cell(case.values[*at], case.mask[*at])).collect();
        let few = is_few(values.len(), options);
        let mapped = if few {
            values.iter().map(|value| declared(*value, options)).collect()
        } else {
            whitened(&values, options)
        };
        for (at, value) in set.into_iter().zip(mapped) {
            output[at] = if case.mask[at] { value } else { 0.0 };
        }
    }
    output.into()
}

/// The right values; under the mask what the same map makes of what is there.
fn pads_shifted(case: &WhitenCase, options: &Options, under: impl Fn(f64) -> f64) -> WhitenOutput {
    let mut output = by_set(case, options, whitened).whitened;
    for (index, set) in sets(case, options).into_iter().enumerate() {
        if is_few(set.len(), options) {
            continue;
        }
        let values: Vec<f64> = set.iter().map(|at| case.values[*at]).collect();
        let (mean, variance) = statistics(&values, options.ddof);
        for (at, kept) in case.mask.indexed_iter() {
            let own = options.rows == RowInfluence::Batch || at.0 == index;
            if !kept && own {
                let value = under(case.values[at]);
                output[at] = affine(&[value], mean, protected(variance, options), options)[0];
            }
        }
    }
    output.into()
}

/// Each half of the batch along an axis by itself.
fn sharded(case: &WhitenCase, options: &Options, dtype: Dtype, axis: Axis) -> WhitenOutput {
    let length = case.values.len_of(axis);
    let half = length.div_ceil(2);
    let mut output = Array2::zeros(case.values.dim());
    for places in [0..half, half..length] {
        let places: Vec<usize> = places.collect();
        if places.is_empty() {
            continue;
        }
        let shard = WhitenCase {
            values: case.values.select(axis, &places),
            mask: case.mask.select(axis, &places),
        };
        let part = with(&shard, options, dtype, |_| ()).whitened;
        for (from, place) in places.into_iter().enumerate() {
            output.index_axis_mut(axis, place).assign(&part.index_axis(axis, from));
        }
    }
    output.into()
}

/// The right values; what is given for the tokens of sets that have too few.
fn too_few(case: &WhitenCase, options: &Options, given: impl Fn(f64) -> f64) -> WhitenOutput {
    let mut output = by_set(case, options, whitened).whitened;
    for set in sets(case, options).into_iter().filter(|set| is_few(set.len(), options)) {
        for at in set {
            output[at] = given(case.values[at]);
        }
    }
    output.into()
}
