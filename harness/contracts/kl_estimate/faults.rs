//! Known wrong behaviours of `kl-estimate`: real bugs, and conventions mistaken for others.
//!
//! Each is the pipeline of [`Token`](super::on_tape::Token) with one step replaced: log-ratio, its
//! clamp, the estimator, the clamp of the result, the declared gradient.

use ndarray::{Array2, Axis};

use super::on_tape::{tokens, with_gradient_of};
use super::{Estimator, KlEstimate, KlEstimateCase, KlEstimateOutput, Options, reference};
use shakedown_core::numeric::tape::Var;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::round;

type Fault = shakedown_core::contract::fault::Fault<KlEstimate>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [estimator(), gradient(), formula(), clamps(), values()];
    themes.into_iter().flatten().collect()
}

/// The direction of the estimate, its exponent and its precision.
fn estimator() -> Vec<Fault> {
    vec![
        Fault::new(
            "k3-direction-reversed",
            "k3 of ref - policy: e^d - 1 - d on samples of the policy",
        )
        .seen("trlx, seen in the code: ratio - 1 - log-ratio")
        .gives(&[|case, options, dtype| reversed(case, options, dtype, Estimator::K3)]),
        Fault::new(
            "k1-direction-reversed",
            "k1 of ref - policy: the sign of the estimate is wrong",
        )
        .seen(
            "Schulman 2020: k1 = -log r with r = ref/policy; reversed in trl #168, for old and new",
        )
        .under("{estimator: k1}")
        .gives(&[|case, options, dtype| reversed(case, options, dtype, Estimator::K1)]),
        Fault::new(
            "k3-overflows",
            "the result is clamped, not the exponent: beyond exp the gradient is 0 times infinity",
        )
        .seen("verl #1779 (2c85b4329)")
        .under("{extreme_ratios: finite, clamp: [-10, 10]}")
        .gives(&[|case, options, dtype| {
            tokens(case, options, dtype, |t| {
                let [lo, hi] = t.options.clamp.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
                t.finished(t.usual().clamp(lo, hi))
            })
        }]),
        Fault::new(
            "kl-in-half-precision",
            "the log-probabilities are rounded to bf16 before they are subtracted",
        )
        .seen("OpenRLHF #620 (f34ef60a)")
        .gives(&[|case, options, dtype| {
            let mut rounded = case.clone();
            round(&mut rounded, Dtype::Bf16);
            tokens(&rounded, options, dtype, |t| {
                t.finished(t.estimate(t.options.estimator, t.clamped(in_bf16(t.log_ratio()))))
            })
        }]),
        Fault::new(
            "kl-tensor-reused-in-place",
            "the penalty is made in the tensor that is returned: -β·kl, and a reward at the end",
        )
        .seen("slime #2114 (045310b2b)")
        .gives(&[|case, options, dtype| {
            let mut output = reference::kl(case, options, dtype);
            output.kl.mapv_inplace(|x| -0.1 * x);
            let last = output.kl.ncols() - 1;
            output.kl.column_mut(last).mapv_inplace(|x| x + 1.0);
            output.grad_log_probs = output.grad_log_probs.map(|gradient| -0.1 * gradient);
            output
        }]),
    ]
}

/// Right values with a wrong gradient.
fn gradient() -> Vec<Fault> {
    vec![
        Fault::new(
            "k1-as-a-loss",
            "the gradient is that of k1, 1 everywhere, whose expectation is 0",
        )
        .seen("trl #2277 (ea7a1be92)")
        .under("{estimator: k1, gradient: k2}")
        .gives(&[|case, options, dtype| {
            tokens(case, options, dtype, |t| with_gradient_of(t.right(), t.log_ratio()))
        }]),
        Fault::new(
            "k3-gradient-of-the-reversed-kl",
            "the gradient is that of k3's value, whose expectation is the gradient of KL(ref‖π)",
        )
        .seen("NeMo-RL #2506, #2958; verl #2953; slime #1004; OpenRLHF #1101")
        .under("{gradient: k2}")
        .gives(&[
            |case, options, dtype| {
                tokens(case, options, dtype, |t| {
                    let k3 = t.estimate(Estimator::K3, t.log_ratio());
                    with_gradient_of(t.right(), k3)
                })
            },
            |case, options, dtype| {
                tokens(case, options, dtype, |t| {
                    t.limited(t.estimate(t.options.estimator, t.clamped(t.log_ratio())))
                })
            },
        ]),
        Fault::new(
            "gradient-clamped-with-the-value",
            "the straight-through gradient stops where the value is clamped",
        )
        .seen("verl's k3+ with the clamp in its backward score too")
        .under("{gradient: k2, clamp: [-10, 10], log_ratio_clamp: 5}")
        .gives(&[
            |case, options, dtype| {
                tokens(case, options, dtype, |t| {
                    let k2 = t.limited(t.estimate(Estimator::K2, t.log_ratio()));
                    with_gradient_of(t.right(), k2)
                })
            },
            |case, options, dtype| {
                tokens(case, options, dtype, |t| {
                    let k2 = t.estimate(Estimator::K2, t.clamped(t.log_ratio()));
                    with_gradient_of(t.right(), k2)
                })
            },
        ]),
        Fault::new("kl-detached", "the estimate has no gradient")
            .seen("unsloth #5230: right loss, gradient exactly 0")
            .gives(&[|case, options, dtype| tokens(case, options, dtype, |t| t.right().detach())]),
        Fault::new(
            "gradient-through-the-clamp",
            "the gradient does not stop where the value is clamped",
        )
        .seen("clamp_(kl.data): the clamp is hidden from autograd")
        .under("{clamp: [-10, 10]}")
        .gives(&[|case, options, dtype| {
            tokens(case, options, dtype, |t| {
                let free = t.estimate(t.options.estimator, t.log_ratio());
                with_gradient_of(t.right(), free)
            })
        }]),
    ]
}

/// Another estimator than the one that is declared.
fn formula() -> Vec<Fault> {
    vec![
        Fault::new("k2-not-halved", "k2 is d², not d²/2")
            .seen("verl's `mse` is half a square; F.mse_loss is not")
            .under("{estimator: k2}")
            .gives(&[|case, options, dtype| {
                tokens(case, options, dtype, |t| {
                    let factor = if t.options.estimator == Estimator::K2 { 2.0 } else { 1.0 };
                    t.finished(t.usual() * factor)
                })
            }]),
        Fault::new("estimators-counted-from-zero", "k2 where k3 is declared, k1 where k2 is")
            .seen("open-instruct: kl1 is k2, kl2 is k3")
            .gives(&[|case, options, dtype| {
                tokens(case, options, dtype, |t| {
                    let lower = match t.options.estimator {
                        Estimator::K3 => Estimator::K2,
                        Estimator::K2 => Estimator::K1,
                        own => own,
                    };
                    t.finished(t.estimate(lower, t.clamped(t.log_ratio())))
                })
            }]),
        Fault::new("minus-one-missing", "k3 is e^{-d} + d: 1 where policy and reference agree")
            .seen("Schulman 2020: k3 = (r - 1) - log r with r = ref/policy; here r - log r")
            .gives(&[|case, options, dtype| {
                tokens(case, options, dtype, |t| {
                    let extra = f64::from(u8::from(t.options.estimator == Estimator::K3));
                    t.finished(t.usual() + extra)
                })
            }]),
        Fault::new("negative-estimates-dropped", "estimates of k1 below 0 become 0, or positive")
            .seen(
                "\"a KL cannot be negative\": kl.clamp(min=0), or the wrong estimator of \
                 verl's list",
            )
            .under("{estimator: k1}")
            .gives(&[
                |case, options, dtype| {
                    tokens(case, options, dtype, |t| t.finished(t.usual().clamp(0.0, f64::MAX)))
                },
                |case, options, dtype| {
                    tokens(case, options, dtype, |t| t.finished(t.usual().abs()))
                },
            ]),
    ]
}

/// Clamps without effect, or with one that nobody declared.
fn clamps() -> Vec<Fault> {
    vec![
        Fault::new("log-ratio-clamp-ignored", "the log-ratio is not clamped")
            .seen("verl #1779, before the fix")
            .under("{log_ratio_clamp: 5}")
            .as_if(&[|options| Options { log_ratio_clamp: None, ..options }]),
        Fault::new("result-clamp-ignored", "the result is not clamped")
            .seen("slime: ±10 for low_var_kl only, where it is declared for all")
            .under("{clamp: [-10, 10]}")
            .as_if(&[|options| Options { clamp: None, ..options }]),
        Fault::new("result-clamped-above-only", "the lower bound of the clamp is missing")
            .seen("kl.clamp(max=10) for estimators that may be negative")
            .under("{estimator: k1, clamp: [-10, 10]}")
            .as_if(&[|options| {
                let clamp = options.clamp.map(|[_, hi]| [-1e30, hi]);
                Options { clamp, ..options }
            }]),
        Fault::new(
            "log-ratio-clamped-although-not-declared",
            "the log-ratio is clamped to ±20, or ±40",
        )
        .seen("verl's and NeMo-RL's 20, open-instruct's 40, where null is declared")
        .as_if(&[
            |options| with_ratio_clamp(options, 20.0),
            |options| with_ratio_clamp(options, 40.0),
        ]),
        Fault::new("result-clamped-although-not-declared", "the result is clamped to ±10")
            .seen("verl's and OpenRLHF's 10, where null is declared")
            .as_if(&[|options| {
                let clamp = Some(options.clamp.unwrap_or([-10.0, 10.0]));
                Options { clamp, ..options }
            }]),
    ]
}

/// Ratios and weights of the wrong kind; estimates of other tokens.
fn values() -> Vec<Fault> {
    vec![
        Fault::new(
            "ratio-of-probabilities",
            "k3 of exp(ref) / exp(policy): 0/0 for tokens less likely than e^-104",
        )
        .seen("rl-post-training seed: ratios of probabilities, not differences of logarithms")
        .gives(&[|case, options, dtype| {
            tokens(case, options, dtype, |t| {
                if t.options.estimator != Estimator::K3 {
                    return t.right();
                }
                let ratio = t.reference.exp() / t.log_prob.exp();
                t.finished(ratio - 1.0 + t.log_ratio())
            })
        }]),
        Fault::new(
            "weighted-by-the-probability",
            "each estimate is multiplied by the token's probability, which sampling did already",
        )
        .seen("rl-post-training seed: Σ p·log p over samples")
        .gives(&[|case, options, dtype| {
            tokens(case, options, dtype, |t| t.finished(t.usual() * t.log_prob.exp().detach()))
        }]),
        Fault::new("mean-of-the-row", "every token gets the mean of its row")
            .seen("kl.mean(-1, keepdim=True), broadcast")
            .gives(&[|case, options, dtype| {
                let output = reference::kl(case, options, dtype);
                let mean = output.kl.mean_axis(Axis(1)).expect("T ≥ 1").insert_axis(Axis(1));
                let kl = mean.broadcast(output.kl.dim()).expect("[N, 1]").to_owned();
                KlEstimateOutput { kl, ..output }
            }]),
        Fault::new(
            "reference-off-by-one",
            "the reference's log-probabilities are those of the next token, or the one before",
        )
        .seen("trl #2058 (a5b98fcf9): shifted in one of two forward passes")
        .on(&[|case, _| move_reference(case, 1), |case, _| move_reference(case, -1)]),
        Fault::new("reference-of-another-row", "the reference's rows are in another order")
            .seen("verl #1943: results left in the order by length")
            .on(&[|case, _| case.ref_log_probs.invert_axis(Axis(0))]),
    ]
}

/// One estimator with policy and reference the wrong way round; the others are right.
fn reversed(
    case: &KlEstimateCase,
    options: &Options,
    dtype: Dtype,
    estimator: Estimator,
) -> KlEstimateOutput {
    tokens(case, options, dtype, |t| {
        let d = t.log_ratio();
        let d = if options.estimator == estimator { -d } else { d };
        t.finished(t.estimate(options.estimator, t.clamped(d)))
    })
}

/// The same number, rounded to bf16.
fn in_bf16(x: Var<'_>) -> Var<'_> {
    x + (Dtype::Bf16.round(x.value) - x.value)
}

/// A clamp on the log-ratio where none is declared.
fn with_ratio_clamp(options: Options, c: f64) -> Options {
    let log_ratio_clamp = Some(options.log_ratio_clamp.unwrap_or(c));
    Options { log_ratio_clamp, ..options }
}

/// The tokens of the reference policy moved along the row.
fn move_reference(case: &mut KlEstimateCase, by: isize) {
    let from = &case.ref_log_probs;
    let length = from.ncols() as isize;
    case.ref_log_probs = Array2::from_shape_fn(from.dim(), |(row, token)| {
        from[[row, (token as isize + by).rem_euclid(length) as usize]]
    });
}
