//! Known wrong behaviours of `entropy-bonus`: real bugs, and conventions mistaken for others.
//!
//! What is wrong with the entropy of a token, or with how much it weighs, is written on a tape: the
//! gradient follows.

use ndarray::{Array0, Array2, Array3, Axis, s};

use super::{
    EntropyBonus, EntropyBonusCase, EntropyBonusOutput, Options, reference, tokens as count,
};
use shakedown_core::contract::fault;
use shakedown_core::laws::faults::entropy::{self, At, OfLogits, at_each};
use shakedown_core::laws::faults::masking;
use shakedown_core::laws::faults::temperature;
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::numeric::conventions::{EmptyMask, EmptyRows};
use shakedown_core::numeric::tape::{Tape, Var};
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<EntropyBonus>;
type Variant = fault::Variant<EntropyBonus>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes =
        [scales(), sums(), choices(), masks(), empties(), terms(), numerics(), gradients()];
    themes.into_iter().flatten().chain(masking::of_other_rows()).collect()
}

/// Signs, coefficients and temperatures.
fn scales() -> Vec<Fault> {
    let [_, multiplied, twice] = temperature::faults("", "");
    vec![
        Fault::new("sign-flipped", "the loss is the entropy times the coefficient: a penalty")
            .seen("plausible: `loss += coefficient * entropy` for `loss -= …`")
            .made_of([changed(|output, _| {
                output.loss = output.loss.take().map(|loss| -loss);
                output.grad_logits = output.grad_logits.take().map(|slopes| -slopes);
            })]),
        Fault::new("coefficient-ignored", "the bonus is the entropy itself")
            .seen("an option without effect")
            .as_if(&[|options| Options { coefficient: 1.0, ..options }]),
        Fault::new("coefficient-applied-twice", "the bonus is scaled where it is made and added")
            .seen("plausible: scaled in the function, and again by its caller")
            .as_if(&[|options| {
                let coefficient = options.coefficient * options.coefficient;
                Options { coefficient, ..options }
            }]),
        Fault::new(
            "coefficient-in-the-metric",
            "the entropy that is reported is scaled too, or is the loss",
        )
        .seen("plausible: the term of the loss is logged under the name of the entropy")
        .made_of([1.0, -1.0].map(|sign| {
            changed(move |output, options| {
                let by = sign * options.coefficient;
                output.entropy = output.entropy.take().map(|entropy| entropy * by);
            })
        })),
        Fault::new("untempered", "the bonus is that of softmax(z), the policy softmax(z / τ)")
            .seen("OpenRLHF e25dd356: logits are divided after the entropy was taken")
            .under("{temperature: 0.6}")
            .as_if(&[|options| Options { temperature: 1.0, ..options }]),
        multiplied,
        twice,
    ]
}

/// What the entropies are divided by.
fn sums() -> Vec<Fault> {
    vec![
        Fault::new(
            "another-normaliser",
            "a mean over tokens, where the loss is divided by a constant length",
        )
        .seen("trl 607d911d9: the coefficient means something else in each step")
        .under("{aggregate: seq-mean-token-sum-norm, norm_length: 6}")
        .as_if(&[|options| Options { aggregate: Aggregate::TokenMean, ..options }]),
        Fault::new("aggregate-option-ignored", "the mean over all tokens, whatever is declared")
            .seen("verl #945 (3e3d9372a): entropy aggregated otherwise than the loss")
            .under("{aggregate: seq-mean-token-mean}")
            .as_if(&[|options| Options { aggregate: Aggregate::TokenMean, ..options }]),
        Fault::new(
            "sequence-mean-called-token-mean",
            "the mean of the rows' means, where the mean over all tokens is declared",
        )
        .seen("trl #2881 (293b62095)")
        .as_if(&[|options| match options.aggregate {
            Aggregate::TokenMean => Options { aggregate: Aggregate::SeqMeanTokenMean, ..options },
            _ => options,
        }]),
        Fault::new("summed-over-tokens", "the sum over all tokens, not divided by anything")
            .seen("NeMo-RL #86 (d1f0609a2): sums where means are promised")
            .as_if(&[|options| Options { aggregate: Aggregate::TokenSum, ..options }]),
        Fault::new(
            "norm-by-padded-width",
            "divided by the width of the batch, not by the constant",
        )
        .seen("verl #3741, #4510; understand-r1-zero 14046dc")
        .under("{aggregate: seq-mean-token-sum-norm, norm_length: 6}")
        .made_of([reweighted(|batch| {
            let width = batch.mask.ncols() as f64;
            let by = batch.options.norm_length.map_or(1.0, |norm| f64::from(norm) / width);
            Some(batch.right()? * by)
        })]),
        Fault::new("mean-over-padding", "divided by the number of all places, masked ones too")
            .seen("plausible: `.mean()` after the multiplication by the mask")
            .made_of([reweighted(|batch| {
                let all = batch.mask.len() as f64;
                match batch.options.aggregate {
                    Aggregate::TokenMean | Aggregate::SeqMeanTokenMean => {
                        Some(batch.chosen.mapv(|m| f64::from(m) / all))
                    }
                    _ => batch.right(),
                }
            })]),
        Fault::new(
            "epsilon-in-the-denominator",
            "divided by the count + ε (1e-3 or 1), which also makes 0 of no token at all",
        )
        .seen("verl's masked mean with a larger ε than its 1e-8")
        .under("{empty_mask: refuse}")
        .made_of([1e-3, 1.0].map(wider)),
    ]
}

/// Other tokens than the less sure ones.
fn choices() -> Vec<Fault> {
    vec![
        Fault::new(
            "outside-the-chosen",
            "the loss is restricted to tokens of high entropy, the bonus is not",
        )
        .seen("trl 2f34d156c")
        .under("{top_share: 0.5}")
        .as_if(&[|options| Options { top_share: None, ..options }]),
        Fault::new(
            "chosen-over-all-tokens",
            "tokens that are not chosen leave the sum and stay in the count",
        )
        .seen("plausible: entropies times the choice, then the masked mean of before")
        .under("{top_share: 0.5}")
        .made_of([reweighted(|batch| {
            let Options { aggregate, empty_rows, norm_length, .. } = *batch.options;
            let all = aggregate.weights(batch.mask, empty_rows, norm_length)?;
            Some(all * batch.chosen.mapv(f64::from))
        })]),
        Fault::new("share-taken-for-the-quantile", "the quantile is that of the share itself")
            .seen("TRL has `top_entropy_quantile`, and passes 1 less it")
            .under("{top_share: 0.2}")
            .as_if(&[|options| {
                let top_share = options.top_share.map(|share| 1.0 - share);
                Options { top_share, ..options }
            }]),
        Fault::new("surest-chosen", "the tokens of the lowest entropies count")
            .seen("plausible: <= for >=")
            .under("{top_share: 0.35}")
            .made_of([rechosen(|entropies, mask, options, dtype| {
                reference::chosen(&-entropies, mask, options, dtype)
            })]),
        Fault::new(
            "quantile-over-padding",
            "pads count in the quantile: with an entropy of 0, or with their own",
        )
        .seen("plausible: the quantile of the padded matrix")
        .under("{top_share: 0.35}")
        .made_of([true, false].map(|zero| {
            rechosen(move |entropies, mask, options, dtype| {
                let mut entropies = entropies.clone();
                if zero {
                    entropies.zip_mut_with(mask, |x, kept| *x = if *kept { *x } else { 0.0 });
                }
                let all = Array2::from_elem(mask.dim(), true);
                let mut chosen = reference::chosen(&entropies, &all, options, dtype);
                chosen.zip_mut_with(mask, |chosen, kept| *chosen &= *kept);
                chosen
            })
        })),
        Fault::new("quantile-of-a-token", "the quantile is the nearest entropy below, or above")
            .seen("plausible: torch.quantile(interpolation=\"lower\"), kthvalue, topk")
            .under("{top_share: 0.35}")
            .made_of([f64::floor, f64::ceil, f64::round_ties_even].map(|whole| {
                rechosen(move |entropies, mask, options, _| {
                    let kept = entropies.iter().zip(mask).filter(|(_, kept)| **kept);
                    let mut sorted: Vec<f64> = kept.map(|(entropy, _)| *entropy).collect();
                    sorted.sort_by(f64::total_cmp);
                    let share = 1.0 - options.top_share.unwrap_or(1.0);
                    let place = whole(share * sorted.len().saturating_sub(1) as f64) as usize;
                    let least = sorted.get(place).copied().unwrap_or(f64::NEG_INFINITY);
                    of_tokens(entropies, mask, |entropy| entropy >= least)
                })
            })),
        Fault::new("chosen-only-above", "tokens whose entropy is the quantile itself do not count")
            .seen("plausible: > for >=")
            .under("{top_share: 0.35}")
            .made_of([rechosen(|entropies, mask, options, dtype| {
                let chosen = reference::chosen(entropies, mask, options, dtype);
                let counted = entropies.iter().zip(&chosen).filter(|(_, chosen)| **chosen);
                let least = counted.map(|(entropy, _)| *entropy).fold(f64::INFINITY, f64::min);
                // Between two tokens the quantile is nobody's.
                let kept = mask.iter().filter(|kept| **kept).count().saturating_sub(1) as f64;
                let place = kept * (1.0 - options.top_share.unwrap_or(1.0));
                let is_a_token = (place - place.round()).abs() < 1e-9;
                of_tokens(entropies, mask, |entropy| {
                    entropy > least || (entropy == least && !is_a_token)
                })
            })]),
        Fault::new("chosen-row-by-row", "each row has a quantile of its own")
            .seen("plausible: quantile(dim=-1)")
            .under("{top_share: 0.35}")
            .made_of([rechosen(|entropies, mask, options, dtype| {
                let mut chosen = mask.clone();
                for row in 0..mask.nrows() {
                    let of_row = s![row..=row, ..];
                    let (entropies, mask) = (entropies.slice(of_row), mask.slice(of_row));
                    let own =
                        reference::chosen(&entropies.to_owned(), &mask.to_owned(), options, dtype);
                    chosen.slice_mut(of_row).assign(&own);
                }
                chosen
            })]),
    ]
}

/// Tokens that do not count, or not as they should.
fn masks() -> Vec<Fault> {
    vec![
        Fault::new("pad-sentinel", "each pad adds the sentinel that stands there for an entropy")
            .seen("trl #2022, #2281, #2496; open-instruct #756: INVALID_LOGPROB = 1.0, summed")
            .gives(&[|case, options, dtype| {
                let right = reference::bonus(case, options, dtype);
                let kept = count(&case.mask);
                let share = (case.mask.len() - kept) as f64 / kept.max(1) as f64;
                with(right, |loss| loss + options.coefficient * share, |entropy| entropy - share)
            }]),
        Fault::new("prompt-positions", "a token has the entropy of the one before, or behind")
            .seen("trl #5620 (c693ca123): mask and logits are off by one")
            .on(&[
                |case, _| shifted(case, |token, _| token.checked_sub(1)),
                |case, _| shifted(case, |token, width| Some(token + 1).filter(|at| *at < width)),
            ]),
        masking::mask_ignored("plausible: `entropy.mean()` over the padded batch"),
        masking::last_token_left_out(
            "trl #2332 (7f2ccbe3a): one token lost where labels are shifted",
        ),
        masking::first_token_left_out(
            "plausible: mask[:, 1:], where the logits are shifted already",
        ),
        Fault::new(
            "masked-after-the-arithmetic",
            "what stands under the mask is computed with, and masked afterwards",
        )
        .seen("trl #5594 (43e09b8fb): NaN times 0")
        .under("{masked_values: any}")
        .made_of([false, true].map(too_late)),
    ]
}

/// Batches and rows without a token.
fn empties() -> Vec<Fault> {
    vec![
        Fault::new("empty-mask-gives-nan", "a batch without a token gives 0/0")
            .seen("NeMo-RL #166 (5ff10f613); verl e9bcd2ba0")
            .gives(&[|case, options, dtype| {
                let right = reference::bonus(case, options, dtype);
                if count(&case.mask) > 0 {
                    return right;
                }
                let nan = right.grad_logits.as_ref().map(|slopes| slopes.mapv(|_| f64::NAN));
                let right = EntropyBonusOutput { grad_logits: nan, ..right };
                with(right, |_| f64::NAN, |_| f64::NAN)
            }]),
        Fault::new("empty-row-divides-by-zero", "a row without a token makes the loss NaN")
            .seen("open-instruct #1685 (94a17b99a); trl #6320")
            .under("{aggregate: seq-mean-token-mean}")
            .gives(&[|case, options, dtype| {
                let right = reference::bonus(case, options, dtype);
                let empty = |mask: ndarray::ArrayView1<'_, bool>| !mask.iter().any(|kept| *kept);
                let any_empty = case.mask.rows().into_iter().any(empty);
                let by_row = options.aggregate == Aggregate::SeqMeanTokenMean;
                match any_empty && by_row && count(&case.mask) > 0 {
                    true => with(right, |_| f64::NAN, |_| f64::NAN),
                    false => right,
                }
            }]),
        Fault::new(
            "empty-rows-counted",
            "rows without a token count in the number of rows, although declared not to",
        )
        .seen("TRL's convention where verl's is declared")
        .under("{aggregate: seq-mean-token-mean}")
        .as_if(&[|options| Options { empty_rows: EmptyRows::Count, ..options }]),
        Fault::new(
            "empty-rows-skipped",
            "rows without a token do not count in the number of rows, although declared to",
        )
        .seen("verl's convention where TRL's is declared")
        .under("{aggregate: seq-mean-token-mean, empty_rows: count}")
        .as_if(&[|options| Options { empty_rows: EmptyRows::Skip, ..options }]),
    ]
}

/// Another quantity than the entropy.
fn terms() -> Vec<Fault> {
    vec![
        entropy::logarithm_in_another_base(),
        entropy::divided_by_its_maximum(),
        entropy::mean_over_the_vocabulary(),
        entropy::surprise_of_the_likeliest(),
        Fault::new(
            "changed-in-place",
            "the logits are probabilities by the time the entropy is taken, or not yet divided",
        )
        .seen("verl #1672 (45323080e): a vocabulary-parallel log-softmax works in place")
        .made_of([
            at_each(|at| at.with(at.log_probs().into_iter().map(Var::exp)).entropy()),
            at_each(|at| {
                let largest = at.z.iter().fold(f64::NEG_INFINITY, |a, z| a.max(z.value));
                at.with(at.z.iter().map(|z| (*z - largest).exp())).entropy()
            }),
        ]),
        Fault::new(
            "another-entropy",
            "Rényi's entropy of order 2, -ln Σp², or Gini's index, 1 - Σp²",
        )
        .seen("plausible: a measure of confidence taken for the entropy")
        .made_of([true, false].map(|logarithm| {
            at_each(move |at| {
                let squares = at.log_probs().into_iter().map(|x| (x + x).exp());
                let sum = at.sum(squares);
                if logarithm { -sum.ln() } else { -(sum - 1.0) }
            })
        })),
        Fault::new("softmax-over-tokens", "the softmax is over the tokens of a row, not over V")
            .seen("plausible: softmax(dim=1) of what is [N, T, V]")
            .gives(&[|case, options, dtype| {
                let tape = Tape::new(dtype);
                let leaf = tape.leaf(&case.logits);
                let log_sums = leaf.map_axis(Axis(1), |lane| {
                    let z: Vec<Var<'_>> = lane.iter().map(|z| *z / options.temperature).collect();
                    let largest = z.iter().fold(f64::NEG_INFINITY, |a, z| a.max(z.value));
                    tape.sum(z.into_iter().map(|z| (z - largest).exp())).ln() + largest
                });
                let entropies = Array2::from_shape_fn(case.mask.dim(), |(row, token)| {
                    let z = leaf.slice(s![row, token, ..]);
                    let log_probs = z.iter().zip(log_sums.row(row));
                    let log_probs =
                        log_probs.map(|(z, log_sum)| *z / options.temperature - *log_sum);
                    -tape.sum(log_probs.map(|x| x.exp() * x))
                });
                let right = |batch: &Batch<'_>| batch.right();
                aggregated(
                    case,
                    options,
                    dtype,
                    (&tape, &leaf),
                    &entropies,
                    right,
                    reference::chosen,
                )
            }]),
        Fault::new(
            "surprise-over-the-vocabulary",
            "-mean(log p): the cross-entropy with a uniform distribution",
        )
        .seen("plausible: `-log_probs.mean(-1)`, the probabilities forgotten")
        .made_of([at_each(|at| -(at.sum(at.log_probs()) / at.z.len() as f64))]),
        Fault::new("normaliser-left-out", "-Σ p·(z - max z): the logarithm of the sum is missing")
            .seen("plausible: shifted logits for log-probabilities")
            .made_of([at_each(|at| {
                let largest = at.z.iter().fold(f64::NEG_INFINITY, |a, z| a.max(z.value));
                let parts = at.log_probs().into_iter().zip(&at.z);
                at.sum(parts.map(|(x, z)| -(x.exp() * (*z - largest))))
            })]),
        Fault::new("last-part-left-out", "the last token of the vocabulary is in no sum")
            .seen("plausible: a slice over V that ends one early, after the softmax")
            .made_of([at_each(|at| {
                let parts = at.log_probs().into_iter().take(at.z.len() - 1);
                at.sum(parts.map(|x| -(x.exp() * x)))
            })]),
        Fault::new(
            "first-or-last-entry-left-out",
            "the distribution is over all tokens but the last, or the first",
        )
        .seen("vocabularies padded to a multiple, trimmed by one too many")
        .made_of([
            at_each(|at| at.with(at.z.iter().copied().take(at.z.len().max(2) - 1)).entropy()),
            at_each(|at| at.with(at.z.iter().copied().skip(at.z.len().min(2) - 1)).entropy()),
        ]),
    ]
}

/// Numbers that leave their format.
fn numerics() -> Vec<Fault> {
    vec![
        Fault::new(
            "maximum-starts-at-zero",
            "the running maximum begins at 0: logits far below it have no exponential",
        )
        .seen("verl ced0c903d: a fused kernel whose maximum is initialised with 0")
        .made_of([at_each(|at| {
            let largest = at.z.iter().fold(0.0_f64, |a, z| a.max(z.value));
            let sum = at.sum(at.z.iter().map(|z| (*z - largest).exp()));
            let log_sum = sum.ln() + largest;
            let parts = at.z.iter().map(|z| {
                let log_prob = *z - log_sum;
                -(log_prob.exp() * log_prob)
            });
            parts.reduce(|a, b| a + b).expect("V ≥ 2")
        })]),
        entropy::maximum_not_subtracted(),
        entropy::logits_in_half_precision(),
        entropy::epsilon_in_the_logarithm(),
        Fault::new("minus-infinity-gives-nan", "0·log 0 is NaN where it is declared to be 0")
            .seen("TRL, verl and OpenRLHF: 0·∞ beside a masked token of the vocabulary")
            .under("{neg_inf: zero}")
            .gives(&[|case, options, dtype| {
                made(case, options, dtype, true, |at| at.entropy(), |batch| batch.right())
            }]),
    ]
}

/// Right values with a wrong gradient.
fn gradients() -> Vec<Fault> {
    vec![
        entropy::gradient_zero(),
        entropy::normaliser_detached(),
        Fault::new(
            "gradient-without-temperature",
            "the gradient is not divided by the temperature",
        )
        .seen("logits.div_(temperature) under no_grad")
        .under("{temperature: 0.6}")
        .made_of([changed(|output, options| {
            let slopes = output.grad_logits.take();
            output.grad_logits = slopes.map(|slopes| slopes * options.temperature);
        })]),
        Fault::new("gradient-not-scaled", "the gradient is that of the entropy, not of the loss")
            .seen("plausible: a backward written by hand for the entropy, and reused")
            .made_of([changed(|output, options| {
                let slopes = output.grad_logits.take();
                output.grad_logits = slopes.map(|slopes| slopes / -options.coefficient);
            })]),
        Fault::new("gradient-of-the-sum", "the loss is divided after its gradient was taken")
            .seen("verl #3332 (e160d3b2e)")
            .gives(&[|case, options, dtype| {
                let sum = Options { aggregate: Aggregate::TokenSum, ..options.clone() };
                let grad_logits = reference::bonus(case, &sum, dtype).grad_logits;
                EntropyBonusOutput { grad_logits, ..reference::bonus(case, options, dtype) }
            }]),
        Fault::new("gradient-at-masked-tokens", "masked tokens have the gradient of the others")
            .seen("plausible: a backward written by hand that forgets the mask")
            .gives(&[|case, options, dtype| {
                let right = reference::bonus(case, options, dtype);
                if count(&case.mask) == 0 {
                    return right;
                }
                let all = Array2::from_elem(case.mask.dim(), true);
                let unmasked = EntropyBonusCase { mask: all, ..case.clone() };
                let grad_logits = reference::bonus(&unmasked, options, dtype).grad_logits;
                EntropyBonusOutput { grad_logits, ..right }
            }]),
    ]
}

/// What weights are made of.
struct Batch<'a> {
    options: &'a Options,
    mask: &'a Array2<bool>,
    chosen: Array2<bool>,
}

impl Batch<'_> {
    /// The right weights.
    fn right(&self) -> Option<Array2<f64>> {
        let Options { aggregate, empty_rows, norm_length, .. } = *self.options;
        aggregate.weights(&self.chosen, empty_rows, norm_length)
    }
}

/// The tokens of which something is so.
fn of_tokens(
    entropies: &Array2<f64>,
    mask: &Array2<bool>,
    is_so: impl Fn(f64) -> bool,
) -> Array2<bool> {
    Array2::from_shape_fn(mask.dim(), |at| mask[at] && is_so(entropies[at]))
}

impl OfLogits for EntropyBonus {
    fn mapped(
        case: &EntropyBonusCase,
        options: &Options,
        dtype: Dtype,
        entropy: impl for<'t> Fn(&At<'t>) -> Var<'t>,
    ) -> EntropyBonusOutput {
        made(case, options, dtype, false, entropy, |batch| batch.right())
    }
}

/// The outputs of other entropies, or of other weights.
fn made(
    case: &EntropyBonusCase,
    options: &Options,
    dtype: Dtype,
    strict: bool,
    entropy: impl for<'t> Fn(&At<'t>) -> Var<'t>,
    weigh: impl Fn(&Batch<'_>) -> Option<Array2<f64>>,
) -> EntropyBonusOutput {
    made_choosing(case, options, dtype, strict, entropy, weigh, reference::chosen)
}

/// The same, of other tokens.
fn made_choosing(
    case: &EntropyBonusCase,
    options: &Options,
    dtype: Dtype,
    strict: bool,
    entropy: impl for<'t> Fn(&At<'t>) -> Var<'t>,
    weigh: impl Fn(&Batch<'_>) -> Option<Array2<f64>>,
    choose: impl Fn(&Array2<f64>, &Array2<bool>, &Options, Dtype) -> Array2<bool>,
) -> EntropyBonusOutput {
    let tape = Tape::new(dtype);
    let leaf = tape.leaf(&case.logits);
    let entropies: Array2<Var<'_>> = Array2::from_shape_fn(case.mask.dim(), |at| {
        let logits = leaf.index_axis(Axis(0), at.0).index_axis_move(Axis(0), at.1);
        entropy(&At::position(&tape, logits, options.temperature, strict))
    });
    aggregated(case, options, dtype, (&tape, &leaf), &entropies, weigh, choose)
}

/// The outputs of the entropies of all tokens, which are of a tape and its leaf.
fn aggregated<'t>(
    case: &EntropyBonusCase,
    options: &Options,
    dtype: Dtype,
    (tape, leaf): (&'t Tape, &Array3<Var<'t>>),
    entropies: &Array2<Var<'t>>,
    weigh: impl Fn(&Batch<'_>) -> Option<Array2<f64>>,
    choose: impl Fn(&Array2<f64>, &Array2<bool>, &Options, Dtype) -> Array2<bool>,
) -> EntropyBonusOutput {
    let values = entropies.map(|entropy| entropy.value);
    let chosen = choose(&values, &case.mask, options, dtype);
    let Some(weights) = weigh(&Batch { options, mask: &case.mask, chosen }) else {
        return reference::without_a_token(case, options);
    };
    let weighted = entropies.iter().zip(&weights).filter(|(_, weight)| **weight > 0.0);
    let total = tape.sum(weighted.map(|(entropy, weight)| *entropy * *weight));
    let loss = total * -options.coefficient;
    let number = |var: Var<'_>| Some(Array0::from_elem((), var.value));
    let grad_logits: Option<Array3<f64>> = Some(tape.gradient(loss, leaf));
    EntropyBonusOutput { loss: number(loss), entropy: number(total), grad_logits }
}

/// Other weights of the tokens.
fn reweighted(
    weigh: impl Fn(&Batch<'_>) -> Option<Array2<f64>> + Send + Sync + 'static,
) -> Variant {
    Variant::gives(move |case: &_, options: &_, dtype| {
        made(case, options, dtype, false, |at| at.entropy(), &weigh)
    })
}

/// Other tokens.
fn rechosen(
    choose: impl Fn(&Array2<f64>, &Array2<bool>, &Options, Dtype) -> Array2<bool>
    + Send
    + Sync
    + 'static,
) -> Variant {
    Variant::gives(move |case: &_, options: &_, dtype| {
        let right = |batch: &Batch<'_>| batch.right();
        made_choosing(case, options, dtype, false, |at| at.entropy(), right, &choose)
    })
}

/// Means with a larger count than there are tokens.
fn wider(epsilon: f64) -> Variant {
    Variant::gives(move |case: &EntropyBonusCase, options: &Options, dtype| {
        if count(&case.mask) == 0 {
            let zero = Options { empty_mask: EmptyMask::Zero, ..options.clone() };
            return reference::without_a_token(case, &zero);
        }
        let weigh = |batch: &Batch<'_>| match batch.options.aggregate {
            Aggregate::TokenMean => {
                let wider = count(&batch.chosen) as f64 + epsilon;
                Some(batch.chosen.mapv(|m| f64::from(m) / wider))
            }
            _ => batch.right(),
        };
        made(case, options, dtype, false, |at| at.entropy(), weigh)
    })
}

/// What is right, changed afterwards.
fn changed(change: impl Fn(&mut EntropyBonusOutput, &Options) + Send + Sync + 'static) -> Variant {
    Variant::gives(move |case: &EntropyBonusCase, options: &Options, dtype| {
        let mut output = reference::bonus(case, options, dtype);
        change(&mut output, options);
        output
    })
}

/// An output with other values, and its gradient.
fn with(
    right: EntropyBonusOutput,
    loss: impl Fn(f64) -> f64,
    entropy: impl Fn(f64) -> f64,
) -> EntropyBonusOutput {
    EntropyBonusOutput {
        loss: right.loss.map(|number| number.mapv(loss)),
        entropy: right.entropy.map(|number| number.mapv(entropy)),
        ..right
    }
}

/// The mask of the place that `from` gives, given a token and the width; false where there is none.
fn shifted(case: &mut EntropyBonusCase, from: impl Fn(usize, usize) -> Option<usize>) {
    let (mask, width) = (case.mask.clone(), case.mask.ncols());
    for ((row, token), kept) in case.mask.indexed_iter_mut() {
        *kept = from(token, width).is_some_and(|token| mask[[row, token]]);
    }
}

/// NaN in the gradient wherever a number under the mask is not finite, and in the values too where
/// it is only multiplied by 0.
fn too_late(multiplied: bool) -> Variant {
    Variant::gives(move |case: &EntropyBonusCase, options: &Options, dtype| {
        let mut right = reference::bonus(case, options, dtype);
        let masked = case.logits.lanes(Axis(2)).into_iter().zip(&case.mask);
        let bad: Vec<bool> =
            masked.map(|(logits, kept)| !kept && !logits.iter().all(|x| x.is_finite())).collect();
        if let Some(slopes) = &mut right.grad_logits {
            let lanes = slopes.lanes_mut(Axis(2)).into_iter().zip(&bad);
            lanes.filter(|(_, bad)| **bad).for_each(|(mut lane, _)| lane.fill(f64::NAN));
        }
        match multiplied && bad.contains(&true) {
            true => with(right, |_| f64::NAN, |_| f64::NAN),
            false => right,
        }
    })
}
