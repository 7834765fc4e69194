//! Known wrong behaviours of `critic-step`: those of rewards, returns and the loss, as a whole
//! trainer shows them, and those that no component has.

use std::sync::Arc;

use ndarray::{Array2, Array3};

use super::reference::{Batch, Parts, Read, right, step};
use super::{CriticStep, CriticStepCase, CriticStepOutput, Options, Over, Targets, length};
use crate::gae::{Gae, GaeCase, GaeOutput};
use crate::token_rewards::TokenRewards;
use crate::value_loss::{ValueLoss, ValueLossCase};
use shakedown_core::contract::fault;
use shakedown_core::contract::step::{Part, Shape, Stepped as _, lifted, reference};
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<CriticStep>;
type Variant = fault::Variant<CriticStep>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes =
        [places(), masks(), rewards(), returns(), stale(), losses(), rows(), means(), updates()];
    themes.into_iter().flatten().collect()
}

/// A step with a wrong part.
fn made_of(change: impl FnOnce(&mut Parts)) -> Variant {
    let mut parts = right();
    change(&mut parts);
    Variant::gives(move |case, options, dtype| step(case, options, dtype, &parts))
}

/// A fault of the rewards of tokens.
fn of_rewards(id: &str, options: &'static str) -> Fault {
    lifted::<TokenRewards, _>(id, options, |part| made_of(|parts| parts.rewards = part))
}

/// A fault of the returns.
fn of_gae(id: &str, options: &'static str) -> Fault {
    lifted::<Gae, _>(id, options, |part| made_of(|parts| parts.gae = part))
}

/// A fault of the loss.
fn of_loss(id: &str, options: &'static str) -> Fault {
    lifted::<ValueLoss, _>(id, options, |part| made_of(|parts| parts.loss = part))
}

/// Values that are read elsewhere: all of them, those that are trained, or the old ones.
fn read(place: Read) -> [Variant; 3] {
    let of = |change: fn(&mut Parts, Read)| made_of(|parts| change(parts, place));
    [
        of(|parts, place| parts.reads = [place; 2]),
        of(|parts, place| parts.reads[1] = place),
        of(|parts, place| parts.reads[0] = place),
    ]
}

/// Where a value is read.
fn places() -> Vec<Fault> {
    vec![
        Fault::new(
            "values-one-step-late",
            "each token has the value of the state behind it, `values[:, 1:]` for `[:, :-1]`",
        )
        .seen("the shift of trl #137 (8070ac041), the other way")
        .made_of(read(|at| Some(at + 1))),
        Fault::new(
            "values-one-step-early",
            "each token has the value of the state before the one in which it is chosen",
        )
        .seen("trl #137 (8070ac041)")
        .made_of(read(|at| at.checked_sub(1))),
        Fault::new(
            "bootstrap-past-the-end",
            "the last token's return counts on the value of the state behind it, which is 0",
        )
        .seen("torchtune estimate_advantages, where pads have values; compare SB3 #183 (fc952715)")
        .made_of([past_the_end(0.0), past_the_end(super::reference::UNKNOWN)]),
    ]
}

/// Returns that go on behind the end of each row; where no place is left, with this value.
fn past_the_end(beyond: f64) -> Variant {
    let right = reference::<Gae>();
    made_of(|parts| {
        parts.gae = Arc::new(move |case: &GaeCase, options, dtype| {
            let mut case = case.clone();
            for row in 0..case.mask.nrows() {
                if let Some(last) = case.mask.row(row).iter().rposition(|kept| *kept) {
                    let behind = case.values.get([row, last + 1]).copied().unwrap_or(beyond);
                    case.rewards[[row, last]] += options.gamma * behind;
                }
            }
            right(&case, options, dtype)
        });
    })
}

/// A loss on other tokens: which ones, of a batch and a row of it.
fn masked(has_loss: impl Fn(&Batch<'_>, usize, usize) -> bool + Send + Sync + 'static) -> Variant {
    made_of(|parts| {
        parts.mask = Arc::new(move |batch| {
            let shape = (batch.rows.len(), batch.shape.width());
            Array2::from_shape_fn(shape, |(of, at)| has_loss(batch, batch.rows[of], at))
        });
    })
}

/// A loss on all tokens and pads up to the longest of the rows that a row is padded with.
fn padded(others: fn(&Batch<'_>, usize) -> Vec<usize>) -> Variant {
    masked(move |batch, row, at| {
        let others = others(batch, row).into_iter();
        others.map(|other| length(batch.case, batch.options, other)).max() > Some(at)
    })
}

/// Which tokens have a loss.
fn masks() -> Vec<Fault> {
    vec![
        Fault::new("padding-trained", "pads have a loss too, up to the width of their batch")
            .seen("`mse_loss` without the mask; compare trl #7024")
            .made_of([
                masked(|_, _, _| true),
                padded(|batch, _| {
                    batch.shape.rows_of(batch.shape.generation(batch.update)).collect()
                }),
                padded(|batch, row| {
                    let batches = batch.shape.micro_batches(batch.update);
                    batches.into_iter().find(|rows| rows.contains(&row)).unwrap_or_default()
                }),
            ]),
        Fault::new("observations-trained", "tokens that the policy did not write have a loss too")
            .seen("an attention mask in the place of the mask; compare verl #7278, #7300")
            .under("{holes: true}")
            .made_of([masked(|batch, row, at| at < length(batch.case, batch.options, row))]),
        Fault::new("last-token-left-out", "the last token of a completion has no loss")
            .seen("trl #2332 (7f2ccbe3a), there of a policy loss")
            .made_of([masked(|batch, row, at| {
                batch.case.mask[[row, at]] && at + 1 < length(batch.case, batch.options, row)
            })]),
        Fault::new("first-token-left-out", "the first token of a completion has no loss")
            .seen("verl #3287 (2d6c6dbb3), there of a policy loss")
            .made_of([masked(|batch, row, at| batch.case.mask[[row, at]] && at > 0)]),
    ]
}

/// What a token's reward is made of.
fn rewards() -> Vec<Fault> {
    vec![
        of_rewards("score-at-the-first-token", "{}"),
        of_rewards("score-in-the-last-column", "{}"),
        of_rewards("score-at-every-token", "{}"),
        of_rewards("score-before-the-last-token", "{}"),
        of_rewards("score-of-another-row", "{}"),
        of_rewards("kl-left-out", "{beta: 0.1}"),
        of_rewards("penalty-added", "{beta: 0.1}"),
        of_rewards("beta-twice", "{beta: 0.1}"),
        of_rewards("all-at-the-end", "{beta: 0.1}"),
        Fault::new("kl-subtracted-twice", "the divergence is taken off the rewards twice")
            .seen("KL both in the reward and taken off again where the rewards are used")
            .under("{beta: 0.1}")
            .as_if(&[|options| Options { beta: 2.0 * options.beta, ..options }]),
    ]
}

/// Critics that are trained towards something else.
fn targets(targets: fn(GaeOutput, &Array2<f64>) -> Array2<f64>) -> Variant {
    made_of(|parts| parts.targets = targets)
}

/// Other numbers, less their mean and over their deviation: of all that are not 0, which the masked
/// ones are.
fn whitened(numbers: &Array2<f64>) -> Array2<f64> {
    let kept: Vec<f64> = numbers.iter().copied().filter(|x| *x != 0.0).collect();
    let count = kept.len() as f64;
    let mean = kept.iter().sum::<f64>() / count.max(1.0);
    let squares: f64 = kept.iter().map(|x| (x - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0).max(1.0) + 1e-8).sqrt();
    numbers.mapv(|x| if x == 0.0 { 0.0 } else { (x - mean) / deviation })
}

/// What values are trained towards.
fn returns() -> Vec<Fault> {
    vec![
        Fault::new("advantages-trained", "the targets are the advantages, not the returns")
            .seen("arguments of the loss mistaken: both are of one shape")
            .under("{targets: given}")
            .made_of([targets(|output, _| output.advantages)]),
        Fault::new("returns-whitened", "the returns are whitened as advantages are")
            .seen("verl and TRL PPO whiten the advantages alone")
            .under("{targets: gae}")
            .made_of([targets(|output, _| whitened(&output.returns))]),
        Fault::new(
            "returns-of-whitened-advantages",
            "the targets are the whitened advantages and the old values",
        )
        .seen("returns that are made one line too late")
        .made_of([targets(|output, old| whitened(&output.advantages) + old)]),
        of_gae("returns-from-stale-advantages", "{}"),
        of_gae("rewards-one-step-early", "{}"),
        of_gae("lambda-not-applied", "{}"),
        of_gae("carry-left-out", "{}"),
        of_gae("gamma-not-applied", "{gamma: 0.9}"),
        of_gae("next-value-not-discounted", "{gamma: 0.9, lam: 1}"),
        of_gae("value-not-subtracted", "{}"),
        of_gae("recursion-from-the-start", "{}"),
        of_gae("carry-crosses-rows", "{}"),
        of_gae("reset-at-observation", "{holes: true}"),
        of_gae("time-passes-at-masked-tokens", "{holes: true}"),
        of_gae("masked-tokens-skipped", "{holes: true, masked: zero}"),
    ]
}

/// The update whose values are the old ones, for an update.
type Old = fn(&Shape, &Options, usize) -> usize;

/// The first update of the pass in which an update is.
fn of_the_pass(_: &Shape, options: &Options, update: usize) -> usize {
    update - update % usize::from(options.mini_batches)
}

/// Old values, and targets, of another time.
fn stale() -> Vec<Fault> {
    let now: Old = |_, _, update| update;
    let first: Old = |_, _, _| 0;
    let of = |old: [Option<Old>; 2]| {
        made_of(|parts| {
            for (part, old) in parts.old.iter_mut().zip(old) {
                *part = old.unwrap_or(*part);
            }
        })
    };
    vec![
        Fault::new(
            "old-values-recomputed",
            "old values, around which values are clipped, are computed again in each pass",
        )
        .seen("verl computes them once, before its epochs; compare trl #3231")
        .under("{clip: 0.2, epochs: 2, mini_batches: 2}")
        .made_of([of([Some(of_the_pass), None])]),
        Fault::new(
            "returns-recomputed",
            "the returns are made again of the values of each pass, or of each update",
        )
        .seen("PPO with its targets inside the loop over epochs")
        .under("{epochs: 2}")
        .made_of([
            of([Some(of_the_pass); 2]),
            of([Some(now); 2]),
            of([None, Some(of_the_pass)]),
            of([None, Some(now)]),
        ]),
        Fault::new(
            "values-of-the-first-generation",
            "the old values of the first generation are never computed again",
        )
        .seen("a buffer that is never renewed")
        .under("{generations: 2}")
        .made_of([of([Some(first); 2]), of([Some(first), None]), of([None, Some(first)])]),
        Fault::new(
            "gradient-through-the-targets",
            "returns are made of the current values, with their gradient",
        )
        .seen("a value that is not detached in the TD error: the residual gradient")
        .gives(&[residual]),
    ]
}

/// The gradient of the loss where the returns follow the values: that by the values, and what comes
/// through the returns.
fn residual(case: &CriticStepCase, options: &Options, dtype: Dtype) -> CriticStepOutput {
    let mut parts = right();
    if options.targets == Targets::Gae {
        parts.old[1] = |_, _, update| update;
    }
    let mut output = step(case, options, dtype, &parts);
    if options.targets == Targets::Given {
        return output;
    }
    // Returns are linear in the values: what each adds to them is seen one by one.
    let (rows, width) = case.tokens.dim();
    let gae = |at: usize| {
        let none = Array2::zeros((rows, width));
        let mut values: Array2<f64> = none.clone();
        values.column_mut(at).fill(1.0);
        let asked = GaeCase { rewards: none, values, mask: case.mask.clone() };
        (reference::<Gae>())(&asked, &options.gae(), Dtype::F64).returns
    };
    let right = output.gradient.clone();
    for from in 0..width {
        let slopes = gae(from);
        for ((row, at), slope) in slopes.indexed_iter() {
            for update in 0..right.shape()[0] {
                output.gradient[[update, row, from]] -= right[[update, row, at]] * slope;
            }
        }
    }
    output
}

/// What is made of values, old values and returns.
fn losses() -> Vec<Fault> {
    vec![
        of_loss("half-factor-lost", "{}"),
        of_loss("factor-applied-twice", "{}"),
        of_loss("smaller-error", "{clip: 0.5, epochs: 2}"),
        of_loss("clip-without-effect", "{clip: 0.5, epochs: 2}"),
        of_loss("clipped-error-only", "{clip: 0.5, epochs: 2}"),
        of_loss("clip-around-the-return", "{clip: 0.5}"),
        of_loss("clip-although-null", "{epochs: 2}"),
        of_loss("gradient-through-the-clip", "{clip: 0.5, epochs: 2}"),
        of_loss("absolute-error", "{}"),
        of_loss("sign-of-the-return-flipped", "{targets: given}"),
    ]
}

/// The rows of a batch in the order in which they are numbered from the first of its mini-batch.
fn by_position(batch: &Batch<'_>) -> Vec<usize> {
    let rows = batch.shape.in_order(batch.update).concat();
    let batches = batch.shape.micro_batches(batch.update).concat();
    let place = |row: &usize| batches.iter().position(|other| other == row);
    batch.rows.iter().filter_map(|row| rows.get(place(row)?).copied()).collect()
}

/// The same, each moved on to the next row of the batch.
fn next_of(batch: &Batch<'_>) -> Vec<usize> {
    let mut rows = batch.rows.to_vec();
    rows.rotate_left(1);
    rows
}

/// The same, each moved back to the row before.
fn before_of(batch: &Batch<'_>) -> Vec<usize> {
    let mut rows = batch.rows.to_vec();
    rows.rotate_right(1);
    rows
}

/// The same, each moved on by so many rows in its generation.
fn in_the_generation(batch: &Batch<'_>, by: usize) -> Vec<usize> {
    let all = batch.shape.rows_of(batch.shape.generation(batch.update));
    batch.rows.iter().map(|row| all.start + (row - all.start + by) % all.len()).collect()
}

/// Companions of other rows.
fn rows() -> Vec<Fault> {
    type Companions = fn(&Batch<'_>) -> Vec<usize>;
    let ways: [Companions; 5] = [
        next_of,
        before_of,
        |batch| in_the_generation(batch, 1),
        |batch| in_the_generation(batch, batch.shape.rows - 1),
        by_position,
    ];
    let with = |at: usize| ways.map(|way| made_of(|parts| parts.companions[at] = way));
    vec![
        Fault::new("returns-of-another-row", "a completion has the returns of another one")
            .seen("verl #1440 (f147ede20): rows left in another order than their companions")
            .made_of(with(1)),
        Fault::new("old-values-of-another-row", "a completion has the old values of another one")
            .seen("verl #1440 (f147ede20), there of values and masks")
            .under("{clip: 0.2, epochs: 2}")
            .made_of(with(0)),
    ]
}

/// Other means of the losses of tokens.
fn means() -> Vec<Fault> {
    vec![
        Fault::new("row-means-for-the-token-mean", "each completion counts alike, however long")
            .seen("slime's mean over rows where verl's over tokens is declared")
            .as_if(&[|options| Options { aggregate: Aggregate::SeqMeanTokenMean, ..options }]),
        Fault::new("token-mean-for-row-means", "each token counts alike, in long completions too")
            .seen("verl's mean over tokens where slime's over rows is declared")
            .under("{aggregate: seq-mean-token-mean}")
            .as_if(&[|options| Options { aggregate: Aggregate::TokenMean, ..options }]),
        Fault::new("sum-for-mean", "the losses of tokens are added, not averaged")
            .seen("PyTorch's `reduction='sum'` where the mean is declared")
            .as_if(&[|options| Options { aggregate: Aggregate::TokenSum, ..options }]),
        Fault::new("mean-over-padding", "the sum is divided by the number of all cells")
            .seen("`(losses * mask).mean()`, compare trlx")
            .made_of([made_of(|parts| parts.loss = over_padding())]),
        Fault::new(
            "mean-of-micro-batch-means",
            "each micro-batch has its own mean, however few its tokens are",
        )
        .seen("transformers #34191; trl #2175; TRL's PPO, where the update's mean is declared")
        .under("{accumulation: 2}")
        .as_if(&[|options| Options { over: Over::MicroBatch, ..options }]),
        Fault::new(
            "mean-over-the-update",
            "the mean of all tokens where micro-batches have theirs",
        )
        .seen("verl's `batch_num_tokens` where it is not declared")
        .under("{over: micro-batch, accumulation: 2}")
        .as_if(&[|options| Options { over: Over::Update, ..options }]),
    ]
}

/// The loss of a batch that is as wide as its longest row, over the number of its cells.
fn over_padding() -> Part<ValueLoss> {
    let right = reference::<ValueLoss>();
    Arc::new(move |case: &ValueLossCase, options, dtype| {
        let mut output = right(case, options, dtype);
        let last = case.mask.rows().into_iter().filter_map(|row| row.iter().rposition(|m| *m));
        let cells = case.mask.nrows() * (last.max().unwrap_or(0) + 1);
        let kept = case.mask.iter().filter(|kept| **kept).count();
        let share = kept as f64 / cells as f64;
        output.grad_values = output.grad_values.map(|slopes| slopes * share);
        output
    })
}

fn updates() -> Vec<Fault> {
    let of = |id, summary, source, factor| {
        Fault::new(id, summary)
            .seen(source)
            .under("{accumulation: 2}")
            .made_of([made_of(|parts| parts.factor = factor)])
    };
    vec![
        of(
            "micro-batches-summed",
            "the losses of micro-batches are added, not averaged",
            "NeMo-RL #86 (d1f0609a2)",
            |options, _| f64::from(options.accumulation),
        ),
        of(
            "divided-again-by-micro-batches",
            "the loss is divided by the number of micro-batches twice",
            "unsloth-zoo #1023 (011e1ea0); AReaL #1273 (5e9fb505c)",
            |options, _| 1.0 / f64::from(options.accumulation),
        ),
        of(
            "only-the-last-micro-batch",
            "the gradients of all micro-batches but the last are lost",
            "open-instruct #1498 (48664c504); trl #407 (61af5f26b)",
            |options, batch| f64::from(u8::from(batch + 1 == usize::from(options.accumulation))),
        ),
        Fault::new("same-slice-again", "every update of a pass trains the first of its slices")
            .seen("an index of the data that is never raised; compare trl #3231")
            .under("{mini_batches: 2}")
            .on(&[|case, options| {
                let right = CriticStep::shape(case, options).all_micro_batches();
                let first = |update: usize| update - update % usize::from(options.mini_batches);
                let chosen = Array3::from_shape_fn(right.dim(), |(update, batch, at)| {
                    right[[first(update), batch, at]] as i64
                });
                case.micro_batches = Some(chosen);
            }]),
    ]
}
