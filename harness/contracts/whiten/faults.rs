//! Known wrong behaviours of `whiten`: real bugs, and conventions mistaken for others.

use ndarray::{Array2, Axis};

use super::{
    EpsilonMode, Options, Whiten, WhitenCase, WhitenOutput, is_few, protected, reference, sets,
    statistics,
};
use shakedown_core::contract::fault;
use shakedown_core::contract::options::RowInfluence;
use shakedown_core::laws::faults::masking;
use shakedown_core::numeric::conventions::EmptyMask;
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<Whiten>;
type Variant = fault::Variant<Whiten>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [which_values(), variances(), maps(), few_tokens_and_formats()];
    let cut = [
        masking::last_token_left_out("trl #2332 (7f2ccbe3a), there of a policy loss"),
        masking::first_token_left_out("verl #3287 (2d6c6dbb3), there of a policy loss"),
    ];
    themes.into_iter().flatten().chain(cut).chain(masking::of_other_rows()).collect()
}

/// Statistics of other values than those that are declared.
fn which_values() -> Vec<Fault> {
    vec![
        Fault::new(
            "statistics-over-padding",
            "mean and deviation of the padded matrix: what is under the mask counts",
        )
        .seen("trlx, whiten of padded advantages")
        .made_of([
            over_padding(|value, _| value),
            over_padding(|value, kept| if kept { value } else { 0.0 }),
        ]),
        Fault::new(
            "pads-not-zeroed-again",
            "masked positions hold their shifted and divided value where 0 is promised",
        )
        .seen("verl #1527 (4e9586a3a)")
        .made_of([pads_shifted(|value| value), pads_shifted(|_| 0.0)]),
        Fault::new(
            "one-token-unbiased-deviation",
            "no token is guarded, one is not: a deviation with ddof 1 over one value is NaN",
        )
        .seen("ROLL #475, #476 (370cb24c)")
        .made_of([too_few(|_| f64::NAN)]),
        Fault::new("statistics-per-shard", "each half of the columns has statistics of its own")
            .seen("slime #2235 (dd7f0379c)")
            .made_of([sharded(Axis(1)), sharded(Axis(0))]),
        Fault::new(
            "rows-by-themselves",
            "each row has statistics of its own where those of the batch are declared",
        )
        .seen("OpenRLHF masked_normalize where verl's masked_whiten is declared")
        .as_if(&[|options| lenient(Options { rows: RowInfluence::Independent, ..options })]),
        Fault::new(
            "batch-for-row",
            "one mean and deviation for the batch where each row has its own",
        )
        .seen("verl masked_whiten where OpenRLHF's masked_normalize is declared")
        .under("{rows: independent}")
        .as_if(&[|options| lenient(Options { rows: RowInfluence::Batch, ..options })]),
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
    ]
}

/// Other variances, and other ε.
fn variances() -> Vec<Fault> {
    vec![
        Fault::new(
            "biased-for-unbiased-variance",
            "the variance divides by n where n - 1 is declared, or the reverse",
        )
        .seen("torch.var is unbiased, numpy.var is not")
        .under("{empty_mask: refuse}")
        .as_if(&[|options| lenient(Options { ddof: 1 - options.ddof, ..options })]),
        Fault::new("epsilon-outside-the-root", "√var + ε where √(var + ε) is declared")
            .seen("group normalisation reused for whitening")
            .under("{epsilon: 1.0e-3}")
            .made_of([moments(|mean, variance, o| [mean, variance.sqrt() + o.epsilon])]),
        Fault::new(
            "epsilon-clamped-for-added",
            "√max(var, ε) where √(var + ε) is declared, or the reverse",
        )
        .seen("OpenRLHF clamps, verl and TRL add")
        .under("{epsilon: 1.0e-3}")
        .as_if(&[|options| {
            let epsilon_mode = match options.epsilon_mode {
                EpsilonMode::Add => EpsilonMode::Clamp,
                EpsilonMode::Clamp => EpsilonMode::Add,
            };
            lenient(Options { epsilon_mode, ..options })
        }]),
        Fault::new(
            "epsilon-swallows-the-variance",
            "ε is so large that the values are not whitened (1, 0.1, 0.01, 1e-3)",
        )
        .seen(
            "verl, TRL and slime add 1e-8 to the variance; a constant that is not small beside it",
        )
        .as_if(&[
            |options| lenient(Options { epsilon: 1.0, ..options }),
            |options| lenient(Options { epsilon: 0.1, ..options }),
            |options| lenient(Options { epsilon: 0.01, ..options }),
            |options| lenient(Options { epsilon: 1e-3, ..options }),
        ]),
        Fault::new("epsilon-missing", "nothing protects the division: equal values give 0/0")
            .seen("`(v - mean) / std` as it is; verl, TRL and slime add 1e-8 to the variance")
            .made_of([moments(|mean, variance, _| [mean, variance.sqrt()])]),
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
    ]
}

/// Right statistics, and another map.
fn maps() -> Vec<Fault> {
    vec![
        Fault::new(
            "mean-added-back",
            "the old mean is added after the division where 0 is declared",
        )
        .seen("torchtune's shift_mean=True read as verl's")
        .as_if(&[|options| lenient(Options { shift_mean: false, ..options })]),
        Fault::new("mean-not-added-back", "the mean becomes 0 where the old one is declared")
            .seen("torchtune's shift_mean=False read as verl's")
            .under("{shift_mean: false}")
            .as_if(&[|options| lenient(Options { shift_mean: true, ..options })]),
        Fault::new("mean-never-subtracted", "the values are divided and not shifted")
            .seen("scaling where whitening is declared")
            .made_of([moments(|_, variance, options| [0.0, protected(variance, options)])]),
        Fault::new("not-divided", "the values are shifted and not divided")
            .seen("centring where whitening is declared")
            .made_of([moments(|mean, _, _| [mean, 1.0])]),
        Fault::new("divided-by-the-variance", "the square root of the variance is missing")
            .seen("rsqrt read as a reciprocal")
            .made_of([moments(|mean, variance, options| {
                [mean, protected(variance, options).powi(2)]
            })]),
        Fault::new("mean-over-std-precedence", "v - mean/σ for (v - mean)/σ")
            .seen("prime-rl #390 (748158fa6), there of groups")
            .made_of([moments(|mean, variance, options| {
                [mean / protected(variance, options), 1.0]
            })]),
        Fault::new("sign-flipped", "mean - v for v - mean")
            .seen("`mean - v` for `v - mean`: the operands swapped")
            .made_of([moments(|mean, variance, options| [mean, -protected(variance, options)])]),
    ]
}

/// Too few tokens, what is under the mask, and narrow formats.
fn few_tokens_and_formats() -> Vec<Fault> {
    vec![
        Fault::new(
            "one-token-keeps-its-value",
            "too few tokens for a deviation keep their values where 0 is declared",
        )
        .seen("an early return of the input")
        .made_of([too_few(|value| value)]),
        Fault::new(
            "one-token-gives-zero",
            "too few tokens for a deviation give 0 where the values are kept",
        )
        .seen("OpenRLHF's convention where the mean is declared to stay")
        .under("{shift_mean: false}")
        .made_of([too_few(|_| 0.0)]),
        Fault::new(
            "masked-after-the-arithmetic",
            "masked by a product: NaN and infinities under the mask spoil mean and deviation",
        )
        .seen("trl #5594, there of a loss; verl masked_mean before it used where")
        .under("{masked_values: any}")
        .gives(&[|case, options, dtype| {
            let mut whitened = reference::whitened(case, options, dtype).whitened;
            for (row, values) in case.values.rows().into_iter().enumerate() {
                let spoiled = match options.rows {
                    RowInfluence::Batch => case.values.iter().any(|value| !value.is_finite()),
                    RowInfluence::Independent => values.iter().any(|value| !value.is_finite()),
                };
                if spoiled {
                    whitened.row_mut(row).fill(f64::NAN);
                }
            }
            whitened.into()
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

/// Other options that refuse nothing.
fn lenient(options: Options) -> Options {
    let empty_mask = match options.empty_mask {
        EmptyMask::Refuse => EmptyMask::Nan,
        declared => declared,
    };
    Options { empty_mask, ..options }
}

/// The right map, with other numbers for mean and divisor, made of mean and variance.
fn moments(f: fn(f64, f64, &Options) -> [f64; 2]) -> Variant {
    Variant::gives(move |case: &WhitenCase, options: &Options, _| {
        by_set(case, options, |values, options| {
            let (mean, variance) = statistics(values, options.ddof);
            let [mean, divisor] = f(mean, variance, options);
            affine(values, mean, divisor, options)
        })
    })
}

/// Statistics of all cells of a set, masked ones too, as `cell` sees them.
fn over_padding(cell: fn(f64, bool) -> f64) -> Variant {
    Variant::gives(move |case: &WhitenCase, options: &Options, _| {
        let mut everything = case.clone();
        everything.mask.fill(true);
        everything.values.zip_mut_with(&case.mask, |value, kept| *value = cell(*value, *kept));
        let mut output = by_set(&everything, options, whitened).whitened;
        output.zip_mut_with(&case.mask, |value, kept| *value = if *kept { *value } else { 0.0 });
        output.into()
    })
}

/// The right values; under the mask what the same map makes of what is there.
fn pads_shifted(under: fn(f64) -> f64) -> Variant {
    Variant::gives(move |case: &WhitenCase, options: &Options, _| {
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
    })
}

/// Each half of the batch along an axis by itself.
fn sharded(axis: Axis) -> Variant {
    Variant::gives(move |case: &WhitenCase, options: &Options, dtype| {
        let length = case.values.len_of(axis);
        let half = length.div_ceil(2);
        let mut output = Array2::zeros(case.values.dim());
        for places in [0..half, half..length].into_iter().filter(|places| !places.is_empty()) {
            let places: Vec<usize> = places.collect();
            let shard = WhitenCase {
                values: case.values.select(axis, &places),
                mask: case.mask.select(axis, &places),
            };
            let part = reference::whitened(&shard, &lenient(options.clone()), dtype).whitened;
            for (from, place) in places.into_iter().enumerate() {
                output.index_axis_mut(axis, place).assign(&part.index_axis(axis, from));
            }
        }
        output.into()
    })
}

/// The right values; what is given for the tokens of sets that have too few.
fn too_few(given: fn(f64) -> f64) -> Variant {
    Variant::gives(move |case: &WhitenCase, options: &Options, _| {
        let mut output = by_set(case, options, whitened).whitened;
        for set in sets(case, options).into_iter().filter(|set| is_few(set.len(), options)) {
            for at in set {
                output[at] = given(case.values[at]);
            }
        }
        output.into()
    })
}
