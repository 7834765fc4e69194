//! Known wrong behaviours of `value-loss`: real bugs, and conventions mistaken for others.

use ndarray::arr0;

use super::reference::{self, Token, aggregated, error, made_of};
use super::{Errors, Options, ValueLoss, ValueLossCase, ValueLossOutput, is_empty};
use shakedown_core::contract::fault;
use shakedown_core::laws::faults::{masking, precision};
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::numeric::conventions::{EmptyMask, EmptyRows};
use shakedown_core::numeric::tape::Var;

type Fault = fault::Fault<ValueLoss>;
type Variant = fault::Variant<ValueLoss>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [clips(), other_errors(), masks(), sums(), fractions()];
    let shared = [
        masking::last_token_left_out("trl #2332 (7f2ccbe3a), there of a policy loss"),
        masking::first_token_left_out("verl #3287 (2d6c6dbb3), there of a policy loss"),
        precision::inputs_in_half_precision(
            "plausible: autocast left on around the whole computation",
        ),
    ];
    themes.into_iter().flatten().chain(shared).chain(masking::of_other_rows()).collect()
}

/// The factor, and the clip of the value.
fn clips() -> Vec<Fault> {
    vec![
        Fault::new(
            "half-factor-lost",
            "the factor ½ is gone: loss and gradient are twice what they were",
        )
        .seen("verl #2016 (6e15bbe25)")
        .as_if(&[|options| Options { factor: 1.0, ..options }]),
        Fault::new(
            "factor-applied-twice",
            "the factor multiplies the loss where it is made and where it is added",
        )
        .seen("TRL PPO multiplies a loss that holds the ½ already by `vf_coef`")
        .as_if(&[|options| Options { factor: options.factor * options.factor, ..options }]),
        Fault::new(
            "smaller-error",
            "the smaller of the two errors counts: the critic may run away",
        )
        .seen("`min` carried over from the policy loss")
        .under("{clip: 0.5}")
        .made_of([errors(|token| token.squared(token.value).min(token.squared(token.held())))]),
        Fault::new("clip-without-effect", "the plain squared error, whatever the clip")
            .seen("an option that is read and never passed on")
            .under("{clip: 0.5}")
            .as_if(&[|options| Options { clip: None, ..options }]),
        Fault::new("clipped-error-only", "the clipped error counts even where it is the smaller")
            .seen("clipping without the maximum")
            .under("{clip: 0.5}")
            .made_of([errors(|token| token.squared(token.held()))]),
        Fault::new(
            "clipped-from-above-only",
            "the value is held below old + c, and may fall as far as it likes",
        )
        .seen("one bound of two")
        .under("{clip: 0.5}")
        .made_of([errors(|token| {
            let most = token.clip.map_or(f64::INFINITY, |clip| token.old + clip);
            let held = token.value.clamp(f64::NEG_INFINITY, most);
            token.squared(token.value).max(token.squared(held))
        })]),
        Fault::new(
            "clip-around-the-return",
            "the value is held within reach of the return, not of the old value",
        )
        .seen("arguments of `clamp` mistaken")
        .under("{clip: 0.5}")
        .made_of([errors(|token| {
            let around = Token { old: token.target, ..token };
            token.squared(token.value).max(token.squared(around.held()))
        })]),
        Fault::new(
            "clip-relative-to-the-old-value",
            "the value is held within a share c of the old one, as a ratio would be",
        )
        .seen("clip bounds carried over from the policy loss")
        .under("{clip: 0.5}")
        .made_of([errors(|token| {
            let clip = token.clip.map(|clip| clip * token.old.abs());
            let relative = Token { clip, ..token };
            token.squared(token.value).max(token.squared(relative.held()))
        })]),
        Fault::new("clip-although-null", "clips at 0.2 (or 0.5) where no clip is declared")
            .seen("TRL's and verl's defaults where OpenRLHF's is declared")
            .as_if(&[
                |options| Options { clip: Some(0.2), ..options },
                |options| Options { clip: Some(0.5), ..options },
            ]),
        Fault::new(
            "gradient-through-the-clip",
            "the held value passes the gradient on as if it were not held",
        )
        .seen("a straight-through clamp")
        .under("{clip: 0.5}")
        .made_of([errors(|token| {
            let held = token.value + (token.held().value - token.value.value);
            token.squared(token.value).max(token.squared(held))
        })]),
    ]
}

/// Other errors, and their gradients.
fn other_errors() -> Vec<Fault> {
    vec![
        Fault::new("values-detached", "the values are detached, so that the critic never learns")
            .seen("values taken under `no_grad`, compare unsloth #5230")
            .made_of([errors(|token| error(Token { value: token.value.detach(), ..token }))]),
        Fault::new("absolute-error", "the error is not squared (or only near 0: smooth L1)")
            .seen("DeepSpeed-Chat and SB3 forks with a Huber loss")
            .made_of([
                errors(|token| {
                    let error = |value: Var<'_>| (value.value - token.target).abs();
                    let larger = error(token.held()) > error(token.value);
                    ((if larger { token.held() } else { token.value }) - token.target).abs()
                }),
                errors(|token| {
                    let near = (token.value.value - token.target).abs() < 1.0;
                    let absolute = (token.value - token.target).abs();
                    if near { error(token) } else { absolute * 2.0 - 1.0 }
                }),
            ]),
        Fault::new("sign-of-the-return-flipped", "value + return for value - return")
            .seen("`+` for `-` in the error")
            .on(&[|case, _| case.returns.mapv_inplace(|target| -target)]),
    ]
}

/// What is under the mask, in the denominator or in the wrong order.
fn masks() -> Vec<Fault> {
    vec![
        Fault::new(
            "mean-over-padding",
            "the sum under the mask is divided by the number of all cells",
        )
        .seen("masked losses with `.mean()`, compare trlx")
        .made_of([scaled(|case| {
            if is_empty(case) { 1.0 } else { tokens(case) / case.mask.len() as f64 }
        })]),
        Fault::new(
            "epsilon-in-the-denominator",
            "divided by the count + ε (1e-3, 1e-4, 1), which also makes 0 of no token at all",
        )
        .seen("verl's and torchtune's masked means with a larger ε than their 1e-8")
        .under("{empty_mask: refuse}")
        .made_of([1e-3, 1e-4, 1.0].map(wider)),
        Fault::new(
            "returns-left-in-sorted-order",
            "the returns are in the order of the rows' lengths, the values in their own",
        )
        .seen("verl #1440 (f147ede20), there of values and masks")
        .on(&[|case, _| {
            let length = |row: &usize| case.mask.row(*row).iter().filter(|m| **m).count();
            let mut order: Vec<usize> = (0..case.mask.nrows()).collect();
            order.sort_by_key(length);
            case.returns = case.returns.select(ndarray::Axis(0), &order);
        }]),
        Fault::new("padding-in-the-loss", "nothing is masked: pads have a loss and a gradient")
            .seen("`mse_loss` without the mask: every cell of the padded batch counts")
            .on(&[|case, _| case.mask.fill(true)]),
        Fault::new(
            "masked-after-the-arithmetic",
            "masked by a product: NaN and infinities under the mask spoil loss and gradient",
        )
        .seen("trl #5594")
        .under("{masked_values: any}")
        .made_of([scaled(|case| {
            let fields = [&case.values, &case.old_values, &case.returns];
            let odd = fields.iter().any(|field| field.iter().any(|x| !x.is_finite()));
            if odd { f64::NAN } else { 1.0 }
        })]),
    ]
}

/// Other sums of the right errors.
fn sums() -> Vec<Fault> {
    vec![
        Fault::new("sum-for-mean", "the sum over the tokens where their mean is declared")
            .seen("PyTorch's `reduction='sum'` where the mean is declared")
            .as_if(&[|options| Options { aggregate: Aggregate::TokenSum, ..options }]),
        Fault::new(
            "row-means-for-the-token-mean",
            "the mean of the rows' means where that of all tokens is declared",
        )
        .seen("slime's per-row mean where verl's is declared")
        .as_if(&[|options| Options { aggregate: Aggregate::SeqMeanTokenMean, ..options }]),
        Fault::new(
            "token-mean-for-row-means",
            "the mean of all tokens where that of the rows' means is declared",
        )
        .seen("verl's mean where slime's is declared")
        .under("{aggregate: seq-mean-token-mean}")
        .as_if(&[|options| Options { aggregate: Aggregate::TokenMean, ..options }]),
        Fault::new(
            "rows-without-tokens-counted",
            "rows without a token count where they are declared to be skipped",
        )
        .seen("TRL's and torchtune's convention where verl's is declared")
        .under("{aggregate: seq-mean-token-mean}")
        .as_if(&[|options| Options { empty_rows: EmptyRows::Count, ..options }]),
        Fault::new(
            "rows-without-tokens-skipped",
            "rows without a token are skipped where they are declared to count",
        )
        .seen("verl's convention where TRL's is declared")
        .under("{aggregate: seq-mean-token-mean, empty_rows: count}")
        .as_if(&[|options| Options { empty_rows: EmptyRows::Skip, ..options }]),
        Fault::new(
            "normalised-by-the-width",
            "divided by the width of the batch for the constant that is declared",
        )
        .seen("verl #3741; understand-r1-zero 14046dc")
        .under("{aggregate: seq-mean-token-sum-norm, norm_length: 8}")
        .gives(&[|case, options, dtype| {
            made_of(case, options, dtype, error, |tape, rows, width, options| {
                let sum = Options { aggregate: Aggregate::SeqMeanTokenSum, ..options.clone() };
                let sum = aggregated(tape, rows, width, &sum);
                match options.aggregate {
                    Aggregate::SeqMeanTokenSumNorm => sum / width as f64,
                    _ => aggregated(tape, rows, width, options),
                }
            })
        }]),
        Fault::new("no-token-gives-nan", "a batch without a token gives 0/0 where 0 is declared")
            .seen("verl's and OpenRLHF's convention where TRL's is declared")
            .made_of([scaled(|case| if is_empty(case) { f64::NAN } else { 1.0 })]),
    ]
}

/// The share of clipped values.
fn fractions() -> Vec<Fault> {
    vec![
        Fault::new(
            "moved-values-counted-as-clipped",
            "clip_fraction counts values outside the range, whichever error is the larger",
        )
        .seen("slime's count where verl's is declared")
        .under("{clip: 0.5}")
        .made_of([fraction(|errors| errors.outside, |kept, _| kept)]),
        Fault::new(
            "clip-fraction-over-padding",
            "clip_fraction is the share of all cells, masked ones too",
        )
        .seen("trlx, whose metrics are means of masked arrays")
        .under("{clip: 0.5}")
        .made_of([fraction(Errors::clips, |_, cells| cells)]),
    ]
}

/// The right sum of another error.
fn errors(error: for<'t> fn(Token<'t>) -> Var<'t>) -> Variant {
    Variant::gives(move |case: &ValueLossCase, options: &Options, dtype| {
        made_of(case, options, dtype, error, aggregated)
    })
}

/// Means whose denominators are larger by ε.
fn wider(epsilon: f64) -> Variant {
    Variant::gives(move |case: &ValueLossCase, options: &Options, dtype| {
        if is_empty(case) {
            let zero = Options { empty_mask: EmptyMask::Zero, ..options.clone() };
            return reference::loss(case, &zero, dtype);
        }
        let right = reference::loss(case, options, dtype);
        let count = match options.aggregate {
            Aggregate::TokenMean => tokens(case),
            Aggregate::TokenSum => return right,
            _ => case.mask.nrows() as f64,
        };
        times(right, count / (count + epsilon))
    })
}

/// The right loss and gradient times a factor.
fn scaled(factor: fn(&ValueLossCase) -> f64) -> Variant {
    Variant::gives(move |case: &ValueLossCase, options: &Options, dtype| {
        times(reference::loss(case, options, dtype), factor(case))
    })
}

fn times(output: ValueLossOutput, factor: f64) -> ValueLossOutput {
    ValueLossOutput {
        loss: output.loss * factor,
        grad_values: output.grad_values.map(|gradient| gradient * factor),
        ..output
    }
}

/// The number of tokens.
fn tokens(case: &ValueLossCase) -> f64 {
    case.mask.iter().filter(|kept| **kept).count() as f64
}

/// The right loss with another share of clipped tokens: those that count, among so many tokens or
/// cells.
fn fraction(counts: fn(Errors) -> bool, among: fn(f64, f64) -> f64) -> Variant {
    Variant::gives(move |case: &ValueLossCase, options: &Options, dtype| {
        let right = reference::loss(case, options, dtype);
        if is_empty(case) {
            return right;
        }
        let kept = case.mask.indexed_iter().filter(|(_, kept)| **kept);
        let counted = kept.filter(|(at, _)| counts(Errors::of(case, options, *at))).count();
        let share = counted as f64 / among(tokens(case), case.mask.len() as f64);
        ValueLossOutput { clip_fraction: Some(arr0(share)), ..right }
    })
}
