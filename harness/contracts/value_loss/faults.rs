//! Known wrong behaviours of `value-loss`: real bugs, and conventions mistaken for others.

use ndarray::{Array2, arr0};

use super::reference::{self, Token, aggregated, error, made_of};
use super::{Errors, Options, ValueLoss, ValueLossCase, ValueLossOutput, is_empty};
use crate::numeric::aggregate::Aggregate;
use crate::numeric::conventions::{EmptyMask, EmptyRows};
use crate::numeric::tape::Var;
use crate::value::place::Dtype;

type Fault = crate::contract::fault::Fault<ValueLoss>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    vec![
        Fault::new(
            "half-factor-lost",
            "the factor ½ is gone: loss and gradient are twice what they were",
        )
        .seen("verl #2016 (6e15bbe25)")
        .gives(&[|case, options, dtype| with(case, options, dtype, |o| o.factor = 1.0)]),
        Fault::new(
            "factor-applied-twice",
            "the factor multiplies the loss where it is made and where it is added",
        )
        .seen("TRL PPO multiplies a loss that holds the ½ already by `vf_coef`")
        .gives(&[|case, options, dtype| with(case, options, dtype, |o| o.factor *= o.factor)]),
        Fault::new(
            "smaller-error",
            "the smaller of the two errors counts: the critic may run away",
        )
        .seen("`min` carried over from the policy loss")
        .under("{clip: 0.5}")
        .gives(&[|case, options, dtype| {
            errors(case, options, dtype, |token| {
                token.squared(token.value).min(token.squared(token.held()))
            })
        }]),
        Fault::new("clip-without-effect", "the plain squared error, whatever the clip")
            .seen("an option that is read and never passed on")
            .under("{clip: 0.5}")
            .gives(&[|case, options, dtype| with(case, options, dtype, |o| o.clip = None)]),
        Fault::new("clipped-error-only", "the clipped error counts even where it is the smaller")
            .seen("clipping without the maximum")
            .under("{clip: 0.5}")
            .gives(&[|case, options, dtype| {
                errors(case, options, dtype, |token| token.squared(token.held()))
            }]),
        Fault::new(
            "clipped-from-above-only",
            "the value is held below old + c, and may fall as far as it likes",
        )
        .seen("one bound of two")
        .under("{clip: 0.5}")
        .gives(&[|case, options, dtype| {
            errors(case, options, dtype, |token| {
                let most = token.clip.map_or(f64::INFINITY, |clip| token.old + clip);
                let held = token.value.clamp(f64::NEG_INFINITY, most);
                token.squared(token.value).max(token.squared(held))
            })
        }]),
        Fault::new(
            "clip-around-the-return",
            "the value is held within reach of the return, not of the old value",
        )
        .seen("arguments of `clamp` mistaken")
        .under("{clip: 0.5}")
        .gives(&[|case, options, dtype| {
            errors(case, options, dtype, |token| {
                let around = Token { old: token.target, ..token };
                token.squared(token.value).max(token.squared(around.held()))
            })
        }]),
        Fault::new(
            "clip-relative-to-the-old-value",
            "the value is held within a share c of the old one, as a ratio would be",
        )
        .seen("clip bounds carried over from the policy loss")
        .under("{clip: 0.5}")
        .gives(&[|case, options, dtype| {
            errors(case, options, dtype, |token| {
                let clip = token.clip.map(|clip| clip * token.old.abs());
                let relative = Token { clip, ..token };
                token.squared(token.value).max(token.squared(relative.held()))
            })
        }]),
        Fault::new("clip-although-null", "clips at 0.2 (or 0.5) where no clip is declared")
            .seen("TRL's and verl's defaults where OpenRLHF's is declared")
            .gives(&[
                |case, options, dtype| with(case, options, dtype, |o| o.clip = Some(0.2)),
                |case, options, dtype| with(case, options, dtype, |o| o.clip = Some(0.5)),
            ]),
        Fault::new(
            "gradient-through-the-clip",
            "the held value passes the gradient on as if it were not held",
        )
        .seen("a straight-through clamp")
        .under("{clip: 0.5}")
        .gives(&[|case, options, dtype| {
            errors(case, options, dtype, |token| {
                let held = token.value + (token.held().value - token.value.value);
                token.squared(token.value).max(token.squared(held))
            })
        }]),
        Fault::new("values-detached", "the values are detached, so that the critic never learns")
            .seen("values taken under `no_grad`, compare unsloth #5230")
            .gives(&[|case, options, dtype| {
                errors(case, options, dtype, |token| {
                    error(Token { value: token.value.detach(), ..token })
                })
            }]),
        Fault::new("absolute-error", "the error is not squared (or only near 0: smooth L1)")
            .seen("DeepSpeed-Chat and SB3 forks with a Huber loss")
            .gives(&[
                |case, options, dtype| {
                    errors(case, options, dtype, |token| {
                        let error = |value: Var<'_>| (value.value - token.target).abs();
                        let larger = error(token.held()) > error(token.value);
                        ((if larger { token.held() } else { token.value }) - token.target).abs()
                    })
                },
                |case, options, dtype| {
                    errors(case, options, dtype, |token| {
                        let near = (token.value.value - token.target).abs() < 1.0;
                        let absolute = (token.value - token.target).abs();
                        if near { error(token) } else { absolute * 2.0 - 1.0 }
                    })
                },
            ]),
        Fault::new("sign-of-the-return-flipped", "value + return for value - return")
            .seen("`+` for `-` in the error")
            .gives(&[|case, options, dtype| {
                let returns = case.returns.mapv(|target| -target);
                reference::loss(&ValueLossCase { returns, ..case.clone() }, options, dtype)
            }]),
        Fault::new(
            "mean-over-padding",
            "the sum under the mask is divided by the number of all cells",
        )
        .seen("masked losses with `.mean()`, compare trlx")
        .gives(&[|case, options, dtype| {
            let right = reference::loss(case, options, dtype);
            let kept = case.mask.iter().filter(|kept| **kept).count() as f64;
            scaled(right, if is_empty(case) { 1.0 } else { kept / case.mask.len() as f64 })
        }]),
        Fault::new(
            "epsilon-in-the-denominator",
            "divided by the count + ε (1e-3, 1e-4, 1), which also makes 0 of no token at all",
        )
        .seen("verl's and torchtune's masked means with a larger ε than their 1e-8")
        .under("{empty_mask: refuse}")
        .gives(&[
            |case, options, dtype| wider(case, options, dtype, 1e-3),
            |case, options, dtype| wider(case, options, dtype, 1e-4),
            |case, options, dtype| wider(case, options, dtype, 1.0),
        ]),
        Fault::new(
            "returns-left-in-sorted-order",
            "the returns are in the order of the rows' lengths, the values in their own",
        )
        .seen("verl #1440 (f147ede20), there of values and masks")
        .gives(&[|case, options, dtype| {
            let length = |row: &usize| case.mask.row(*row).iter().filter(|m| **m).count();
            let mut order: Vec<usize> = (0..case.mask.nrows()).collect();
            order.sort_by_key(length);
            let returns = case.returns.select(ndarray::Axis(0), &order);
            reference::loss(&ValueLossCase { returns, ..case.clone() }, options, dtype)
        }]),
        Fault::new("padding-in-the-loss", "nothing is masked: pads have a loss and a gradient")
            .seen("`mse_loss` without the mask: every cell of the padded batch counts")
            .gives(&[|case, options, dtype| {
                let mask = Array2::from_elem(case.mask.dim(), true);
                reference::loss(&ValueLossCase { mask, ..case.clone() }, options, dtype)
            }]),
        Fault::new(
            "masked-after-the-arithmetic",
            "masked by a product: NaN and infinities under the mask spoil loss and gradient",
        )
        .seen("trl #5594")
        .under("{masked_values: any}")
        .gives(&[|case, options, dtype| {
            let fields = [&case.values, &case.old_values, &case.returns];
            let odd = fields.iter().any(|field| field.iter().any(|x| !x.is_finite()));
            let right = reference::loss(case, options, dtype);
            if odd { scaled(right, f64::NAN) } else { right }
        }]),
        Fault::new("sum-for-mean", "the sum over the tokens where their mean is declared")
            .seen("PyTorch's `reduction='sum'` where the mean is declared")
            .gives(&[|case, options, dtype| aggregate(case, options, dtype, Aggregate::TokenSum)]),
        Fault::new(
            "row-means-for-the-token-mean",
            "the mean of the rows' means where that of all tokens is declared",
        )
        .seen("slime's per-row mean where verl's is declared")
        .gives(&[|case, options, dtype| {
            aggregate(case, options, dtype, Aggregate::SeqMeanTokenMean)
        }]),
        Fault::new(
            "token-mean-for-row-means",
            "the mean of all tokens where that of the rows' means is declared",
        )
        .seen("verl's mean where slime's is declared")
        .under("{aggregate: seq-mean-token-mean}")
        .gives(&[|case, options, dtype| aggregate(case, options, dtype, Aggregate::TokenMean)]),
        Fault::new(
            "rows-without-tokens-counted",
            "rows without a token count where they are declared to be skipped",
        )
        .seen("TRL's and torchtune's convention where verl's is declared")
        .under("{aggregate: seq-mean-token-mean}")
        .gives(&[|case, options, dtype| {
            with(case, options, dtype, |o| o.empty_rows = EmptyRows::Count)
        }]),
        Fault::new(
            "rows-without-tokens-skipped",
            "rows without a token are skipped where they are declared to count",
        )
        .seen("verl's convention where TRL's is declared")
        .under("{aggregate: seq-mean-token-mean, empty_rows: count}")
        .gives(&[|case, options, dtype| {
            with(case, options, dtype, |o| o.empty_rows = EmptyRows::Skip)
        }]),
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
            .gives(&[|case, options, dtype| {
                let right = reference::loss(case, options, dtype);
                if is_empty(case) { scaled(right, f64::NAN) } else { right }
            }]),
        Fault::new(
            "moved-values-counted-as-clipped",
            "clip_fraction counts values outside the range, whichever error is the larger",
        )
        .seen("slime's count where verl's is declared")
        .under("{clip: 0.5}")
        .gives(&[|case, options, dtype| {
            fraction(case, options, dtype, |errors| errors.outside, |kept, _| kept)
        }]),
        Fault::new(
            "clip-fraction-over-padding",
            "clip_fraction is the share of all cells, masked ones too",
        )
        .seen("trlx, whose metrics are means of masked arrays")
        .under("{clip: 0.5}")
        .gives(&[|case, options, dtype| {
            fraction(case, options, dtype, Errors::clips, |_, cells| cells)
        }]),
    ]
}

/// The right loss under other options.
fn with(
    case: &ValueLossCase,
    options: &Options,
    dtype: Dtype,
    change: impl Fn(&mut Options),
) -> ValueLossOutput {
    let mut changed = options.clone();
    change(&mut changed);
    reference::loss(case, &changed, dtype)
}

/// The right sum of another error.
fn errors(
    case: &ValueLossCase,
    options: &Options,
    dtype: Dtype,
    error: impl for<'t> Fn(Token<'t>) -> Var<'t>,
) -> ValueLossOutput {
    made_of(case, options, dtype, error, aggregated)
}

/// Another sum of the right errors.
fn aggregate(
    case: &ValueLossCase,
    options: &Options,
    dtype: Dtype,
    aggregate: Aggregate,
) -> ValueLossOutput {
    with(case, options, dtype, |o| o.aggregate = aggregate)
}

/// Means whose denominators are larger by ε.
fn wider(case: &ValueLossCase, options: &Options, dtype: Dtype, epsilon: f64) -> ValueLossOutput {
    if is_empty(case) {
        let zero = Options { empty_mask: EmptyMask::Zero, ..options.clone() };
        return reference::loss(case, &zero, dtype);
    }
    let count = match options.aggregate {
        Aggregate::TokenMean => case.mask.iter().filter(|kept| **kept).count(),
        Aggregate::TokenSum => return reference::loss(case, options, dtype),
        _ => case.mask.nrows(),
    } as f64;
    scaled(reference::loss(case, options, dtype), count / (count + epsilon))
}

/// Loss and gradient times a factor.
fn scaled(output: ValueLossOutput, factor: f64) -> ValueLossOutput {
    ValueLossOutput {
        loss: output.loss * factor,
        grad_values: output.grad_values.map(|gradient| gradient * factor),
        ..output
    }
}

/// The right loss with another share of clipped tokens, of so many.
fn fraction(
    case: &ValueLossCase,
    options: &Options,
    dtype: Dtype,
    counts: impl Fn(Errors) -> bool,
    among: impl Fn(f64, f64) -> f64,
) -> ValueLossOutput {
    let right = reference::loss(case, options, dtype);
    let kept: Vec<(usize, usize)> =
        case.mask.indexed_iter().filter(|(_, kept)| **kept).map(|(at, _)| at).collect();
    if kept.is_empty() {
        return right;
    }
    let counted = kept.iter().filter(|at| counts(Errors::of(case, options, **at))).count();
    let share = counted as f64 / among(kept.len() as f64, case.mask.len() as f64);
    ValueLossOutput { clip_fraction: Some(arr0(share)), ..right }
}
