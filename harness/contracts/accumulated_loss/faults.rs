//! Known wrong behaviours of `accumulated-loss`: real bugs, and conventions mistaken for others.
//!
//! The loss is linear in the token losses, so a fault is two sets of weights: those of the
//! reported value, and those that come back as the gradient.

use ndarray::{Array2, arr0};

use super::{
    AccumulatedLoss, AccumulatedLossCase, AccumulatedLossOutput, MicroBatch, MicroBatchGradient,
    Options, joined, kept, parted, reference, tokens,
};
use shakedown_core::contract::fault;
use shakedown_core::laws::faults::precision;
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::numeric::conventions::{EmptyMask, EmptyRows};
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<AccumulatedLoss>;
type Variant = fault::Variant<AccumulatedLoss>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [divisors(), gradients(), reports(), tokens_and_rows(), lengths()];
    let rounded = precision::inputs_in_half_precision(
        "plausible: autocast left on around the whole computation",
    );
    themes.into_iter().flatten().chain([rounded]).collect()
}

/// Each micro-batch divided by itself, or the whole by another count.
fn divisors() -> Vec<Fault> {
    vec![
        Fault::new(
            "mean-of-micro-batch-means",
            "the mean over micro-batches of each one's mean over tokens",
        )
        .seen("transformers #34191; trl #2175; unsloth #1134; torchtune #1875; axolotl #1980")
        .made_of([
            both(|step, k| step.token_mean(&[k]) / step.count),
            both(|step, k| {
                let some = step.parts.iter().filter(|part| kept(part) > 0).count();
                step.token_mean(&[k]) / some as f64
            }),
        ]),
        Fault::new(
            "per-rank-means-averaged",
            "the mean over two ranks of each one's mean over the tokens of its micro-batches",
        )
        .seen("open-instruct #1161 (7708f0adf); torchtune #2172 (e420bc0c7), #2687")
        .made_of([by_rank(|k, _| k % 2), by_rank(|k, count| 2 * k / count)]),
        Fault::new(
            "count-of-one-sub-step",
            "the sum over all micro-batches, divided by the count of the first (or last) one",
        )
        .seen("transformers #35438, #34373")
        .made_of([
            both(|step, k| step.right(k) * step.counted() / step.counted_in(0).max(1.0)),
            both(|step, k| {
                let last = step.parts.len() - 1;
                step.right(k) * step.counted() / step.counted_in(last).max(1.0)
            }),
        ]),
        Fault::new(
            "count-of-the-largest",
            "the sum over all micro-batches, divided by the largest count among them",
        )
        .seen("plausible: an all-reduce of counts with MAX for SUM")
        .made_of([both(|step, k| {
            let counts = (0..step.parts.len()).map(|k| step.counted_in(k));
            step.right(k) * step.counted() / counts.fold(1.0, f64::max)
        })]),
        Fault::new(
            "first-micro-batch-left-out",
            "the first micro-batch, or the last, adds nothing",
        )
        .seen("plausible: gradients zeroed after the first backward pass, or too early")
        .made_of([
            both(|step, k| step.right(k) * f64::from(k > 0 || step.parts.len() == 1)),
            both(|step, k| {
                step.right(k) * (1.0 - step.is_last(k)).max(f64::from(step.parts.len() == 1))
            }),
        ]),
        Fault::new(
            "divided-again-by-micro-batches",
            "what is normalised already is divided by the number of micro-batches too",
        )
        .seen("unsloth-zoo #1023 (011e1ea0); AReaL #1273 (5e9fb505c)")
        .made_of([both(|step, k| step.right(k) / step.count)]),
        Fault::new(
            "micro-batches-summed",
            "the losses of the micro-batches, each normalised by itself, are added up",
        )
        .seen("NeMo-RL #86 (d1f0609a2)")
        .made_of([both(|step, k| step.own(k))]),
        Fault::new(
            "divisor-fixed-for-uneven-rows",
            "divided by the number of micro-batches, as if all had as many rows (as the first)",
        )
        .seen("verl #141 (695bdbb03), #1922 (60138ebd1)")
        .under("{aggregate: seq-mean-token-mean}")
        .made_of([
            both(|step, k| step.own(k) / step.count),
            both(|step, k| {
                let rows = step.count * step.parts[0].mask.nrows() as f64;
                step.right(k) * step.counted() / rows
            }),
        ]),
        Fault::new(
            "short-last-window",
            "divided by the configured count (4, 2, 8), which the end of an epoch falls short of",
        )
        .seen("LLaMA-Factory #10705 (1b47415a2)")
        .made_of([4.0, 2.0, 8.0].map(window)),
    ]
}

/// Gradients lost, or taken before the division.
fn gradients() -> Vec<Fault> {
    vec![
        Fault::new(
            "only-the-last-micro-batch",
            "right value; the gradients of all micro-batches but the last are lost",
        )
        .seen("open-instruct #1498 (48664c504)")
        .made_of([gradient(|step, k| step.right(k) * step.is_last(k))]),
        Fault::new(
            "gradient-zeroed-each-micro-batch",
            "right value; gradients are zeroed each time: what is left is the last mean over K",
        )
        .seen("trl #407 (61af5f26b)")
        .made_of([gradient(|step, k| step.own(k) * step.is_last(k) / step.count)]),
        Fault::new(
            "divided-after-backward",
            "right value; the gradient was taken before the division (by K, or by the count)",
        )
        .seen("verl #3332 (e160d3b2e)")
        .made_of([
            gradient(|step, k| step.right(k) * step.count),
            gradient(|step, k| step.right(k) * step.counted()),
        ]),
        Fault::new(
            "divisor-min-for-max",
            "divided by min(count, 1) for max(count, 1), which never divides",
        )
        .seen("prime-rl #816 (dece5e7fc)")
        .made_of([both(|step, k| step.right(k) * step.counted())]),
    ]
}

/// The right gradient under another value.
fn reports() -> Vec<Fault> {
    vec![
        Fault::new(
            "last-micro-batch-reported",
            "right gradient; the value is that of the last micro-batch, or its part of the whole",
        )
        .seen("verl #2259 (6d9ac2f7b); prime-rl #906 (3233022ee)")
        .made_of([
            value(|step, k| step.own(k) * step.is_last(k)),
            value(|step, k| step.right(k) * step.is_last(k)),
        ]),
        Fault::new(
            "scaled-twice-in-the-report",
            "right gradient; each part of the value is multiplied by its share once more",
        )
        .seen("verl #4711 (0af6a385b), #4778 (f1d5e0e27)")
        .made_of([value(|step, k| step.right(k) * step.counted_in(k) / step.counted())]),
        Fault::new(
            "averaged-where-summed",
            "right gradient; the parts of the value, of one denominator, are averaged",
        )
        .seen("verl #3994 (b49178f0f)")
        .made_of([value(|step, k| step.right(k) / step.count)]),
    ]
}

/// Which tokens and rows count.
fn tokens_and_rows() -> Vec<Fault> {
    vec![
        Fault::new(
            "sequence-nll-for-token-nll",
            "the mean over rows of each row's mean, where the mean over tokens is declared",
        )
        .seen("trl #1705 (5bcb8ad0d), #1987 (10f70fa33)")
        .made_of([under(|options| options.aggregate = Aggregate::SeqMeanTokenMean)]),
        Fault::new(
            "masked-tokens-in-the-denominator",
            "the sum over unmasked tokens, divided by the number of all of them",
        )
        .seen("`.mean()` of a masked loss; compare understand-r1-zero 14046dc")
        .made_of([both(|step, k| {
            let cells: usize = step.parts.iter().map(|part| part.mask.len()).sum();
            step.right(k) * tokens(step.case) as f64 / cells as f64
        })]),
        Fault::new("mask-ignored", "masked tokens count as all others do")
            .seen("trl #1987 (10f70fa33): an ignore index that is not honoured")
            .gives(&[|case, options, dtype| {
                let mut unmasked = case.clone();
                unmasked.micro_batches.iter_mut().for_each(|part| part.mask.fill(true));
                weighted(&unmasked, options, dtype, right, right)
            }]),
        Fault::new(
            "empty-micro-batch-gives-nan",
            "0/0 for a micro-batch without a token, which spoils the sum",
        )
        .seen("verl agg_loss and OpenRLHF masked_mean, which are NaN over no token")
        .gives(&[|case, options, dtype| {
            let mut output = weighted(case, options, dtype, right, right);
            if case.micro_batches.iter().any(|part| kept(part) == 0) {
                output.loss = arr0(f64::NAN);
            }
            output
        }]),
        Fault::new(
            "empty-rows-counted",
            "rows without a token count in the number of rows, where they are declared not to",
        )
        .seen("verl's convention and slime's, taken for each other")
        .under("{aggregate: seq-mean-token-mean}")
        .made_of([under(|options| options.empty_rows = EmptyRows::Count)]),
        Fault::new(
            "empty-rows-skipped",
            "rows without a token do not count in the number of rows, where they are declared to",
        )
        .seen("slime's convention and verl's, taken for each other")
        .under("{aggregate: seq-mean-token-mean, empty_rows: count}")
        .made_of([under(|options| options.empty_rows = EmptyRows::Skip)]),
    ]
}

/// Other lengths, and micro-batches cut short.
fn lengths() -> Vec<Fault> {
    vec![
        Fault::new(
            "norm-length-of-the-batch",
            "the width of the widest (or of each) micro-batch in the place of `norm_length`",
        )
        .seen("verl #3741; understand-r1-zero 14046dc")
        .under("{aggregate: seq-mean-token-sum-norm, norm_length: 10}")
        .made_of([
            both(|step, k| {
                let widths = step.parts.iter().map(|part| part.mask.ncols());
                step.right(k) * step.norm() / widths.max().unwrap_or(1) as f64
            }),
            both(|step, k| step.right(k) * step.norm() / step.parts[k].mask.ncols() as f64),
        ]),
        Fault::new(
            "epsilon-in-the-denominator",
            "divided by the count + ε (1e-3, 1e-4, 1), which also makes 0 of no token at all",
        )
        .seen("NeMo-RL's and verl's masked means with a larger ε than theirs")
        .under("{empty_mask: refuse}")
        .made_of([1e-3, 1e-4, 1.0].map(wider)),
        Fault::new(
            "last-short-micro-batch-dropped",
            "the last micro-batch is left out where it has fewer rows than the first",
        )
        .seen("drop_last in the sampler of a window")
        .made_of([both(|step, k| {
            let last = step.parts.len() - 1;
            let short = step.parts[last].mask.nrows() < step.parts[0].mask.nrows();
            let used = &step.parts[..step.parts.len() - usize::from(short)];
            if k < used.len() { step.within(k, used) } else { step.nothing(k) }
        })]),
        Fault::new(
            "cut-to-the-first-width",
            "later micro-batches lose the tokens beyond the width of the first one",
        )
        .seen("buffers allocated once, for the first micro-batch")
        .gives(&[|case, options, dtype| {
            let width = case.micro_batches[0].mask.ncols();
            let mut cut = case.clone();
            for part in &mut cut.micro_batches {
                for ((_, column), kept) in part.mask.indexed_iter_mut() {
                    *kept &= column < width;
                }
            }
            weighted(&cut, options, dtype, right, right)
        }]),
    ]
}

/// One step, and the weights that the parts of a fault are made of.
struct Step<'a> {
    case: &'a AccumulatedLossCase,
    parts: &'a [MicroBatch],
    options: &'a Options,
    /// The number of micro-batches.
    count: f64,
    right: Vec<Array2<f64>>,
}

impl<'a> Step<'a> {
    fn new(case: &'a AccumulatedLossCase, options: &'a Options) -> Step<'a> {
        let parts = &case.micro_batches[..];
        let right = weights(case, options, options.aggregate);
        Step { case, parts, options, count: parts.len() as f64, right }
    }

    /// The right weights of micro-batch k.
    fn right(&self, k: usize) -> Array2<f64> {
        self.right[k].clone()
    }

    /// The weights of micro-batch k, were it the whole batch.
    fn own(&self, k: usize) -> Array2<f64> {
        self.within(0, &self.parts[k..=k])
    }

    /// The weights of micro-batch k, were some micro-batches the whole batch.
    fn within(&self, k: usize, parts: &[MicroBatch]) -> Array2<f64> {
        let case = AccumulatedLossCase { micro_batches: parts.to_vec() };
        weights(&case, self.options, self.options.aggregate).swap_remove(k)
    }

    /// One over the tokens of some micro-batches, for each token of the first of them.
    fn token_mean(&self, parts: &[usize]) -> Array2<f64> {
        let count: usize = parts.iter().map(|part| kept(&self.parts[*part])).sum();
        let each = 1.0 / count.max(1) as f64;
        self.parts[parts[0]].mask.mapv(|kept| if kept { each } else { 0.0 })
    }

    fn nothing(&self, k: usize) -> Array2<f64> {
        Array2::zeros(self.parts[k].mask.dim())
    }

    fn is_last(&self, k: usize) -> f64 {
        f64::from(k + 1 == self.parts.len())
    }

    /// What the mean divides by in micro-batch k: tokens, or rows.
    fn counted_in(&self, k: usize) -> f64 {
        let mask = &self.parts[k].mask;
        match self.options.aggregate {
            Aggregate::TokenMean => kept(&self.parts[k]) as f64,
            Aggregate::TokenSum => 1.0,
            _ if self.options.empty_rows == EmptyRows::Count => mask.nrows() as f64,
            _ => mask.rows().into_iter().filter(|row| row.iter().any(|m| *m)).count() as f64,
        }
    }

    /// What the mean divides by.
    fn counted(&self) -> f64 {
        match self.options.aggregate {
            Aggregate::TokenSum => 1.0,
            _ => (0..self.parts.len()).map(|k| self.counted_in(k)).sum(),
        }
    }

    fn norm(&self) -> f64 {
        match self.options.aggregate {
            Aggregate::SeqMeanTokenSumNorm => self.options.norm_length.map_or(1.0, f64::from),
            _ => 1.0,
        }
    }
}

/// The right weights.
fn right(step: &Step<'_>, k: usize) -> Array2<f64> {
    step.right(k)
}

/// The weights of a batch, micro-batch by micro-batch.
fn weights(
    case: &AccumulatedLossCase,
    options: &Options,
    aggregate: Aggregate,
) -> Vec<Array2<f64>> {
    let mask = joined(case).mask;
    let weights = aggregate.weights(&mask, options.empty_rows, options.norm_length);
    parted(case, &weights.unwrap_or_else(|| Array2::zeros(mask.dim())))
}

/// Value and gradient of some weights.
fn weighted(
    case: &AccumulatedLossCase,
    options: &Options,
    dtype: Dtype,
    value: impl Fn(&Step<'_>, usize) -> Array2<f64>,
    gradient: impl Fn(&Step<'_>, usize) -> Array2<f64>,
) -> AccumulatedLossOutput {
    if tokens(case) == 0 {
        return reference::loss(case, options, dtype);
    }
    let step = Step::new(case, options);
    let mut loss = 0.0;
    for (k, part) in case.micro_batches.iter().enumerate() {
        let terms = part.token_losses.iter().zip(value(&step, k));
        loss += terms.filter(|(_, weight)| *weight != 0.0).map(|(x, w)| x * w).sum::<f64>();
    }
    let gradients = (0..case.micro_batches.len())
        .map(|k| MicroBatchGradient { token_losses: gradient(&step, k) });
    AccumulatedLossOutput { loss: arr0(loss), grad_micro_batches: gradients.collect() }
}

/// A wrong value with the gradient that follows from it.
fn both(weights: impl Fn(&Step<'_>, usize) -> Array2<f64> + Send + Sync + 'static) -> Variant {
    Variant::gives(move |case: &_, options: &_, dtype| {
        weighted(case, options, dtype, &weights, &weights)
    })
}

/// A right value with a wrong gradient.
fn gradient(weights: fn(&Step<'_>, usize) -> Array2<f64>) -> Variant {
    Variant::gives(move |case: &_, options: &_, dtype| {
        weighted(case, options, dtype, right, weights)
    })
}

/// A wrong value with the right gradient.
fn value(weights: fn(&Step<'_>, usize) -> Array2<f64>) -> Variant {
    Variant::gives(move |case: &_, options: &_, dtype| {
        weighted(case, options, dtype, weights, right)
    })
}

/// Right under other options.
fn under(change: fn(&mut Options)) -> Variant {
    Variant::gives(move |case: &AccumulatedLossCase, options: &Options, dtype| {
        let mut others = options.clone();
        change(&mut others);
        let others = weights(case, &others, others.aggregate);
        let weights = |_: &Step<'_>, k: usize| others[k].clone();
        weighted(case, options, dtype, weights, weights)
    })
}

/// The mean over two ranks of each one's mean over tokens; one micro-batch has one rank.
fn by_rank(rank: fn(usize, usize) -> usize) -> Variant {
    both(move |step, k| {
        let count = step.parts.len();
        let others =
            (0..count).filter(|other| *other != k && rank(*other, count) == rank(k, count));
        let mut together = vec![k];
        together.extend(others);
        step.token_mean(&together) / if count > 1 { 2.0 } else { 1.0 }
    })
}

/// The right loss of a full window, too small in a shorter one.
fn window(configured: f64) -> Variant {
    both(move |step, k| step.right(k) * (step.count / configured).min(1.0))
}

/// Divided by the count and a little more.
fn wider(epsilon: f64) -> Variant {
    Variant::gives(move |case: &AccumulatedLossCase, options: &Options, dtype| {
        if tokens(case) == 0 {
            let options = Options { empty_mask: EmptyMask::Zero, ..options.clone() };
            return reference::loss(case, &options, dtype);
        }
        let weights =
            |step: &Step<'_>, k: usize| step.right(k) * step.counted() / (step.counted() + epsilon);
        weighted(case, options, dtype, weights, weights)
    })
}
