//! Known wrong behaviours of `sft-step`.

use std::sync::Arc;

use ndarray::{Array2, Array3, Axis, s};

use super::reference::{Parts, right, step};
use super::{Loss, Options, Over, SftStep, SftStepCase, SftStepOutput};
use crate::token_log_probs::{TokenLogProbs, TokenLogProbsCase};
use shakedown_core::contract::Contract;
use shakedown_core::contract::fault;
use shakedown_core::contract::step::{Part, Stepped as _, lifted};
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<SftStep>;
type Variant = fault::Variant<SftStep>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    [masks(), labels(), losses(), counts(), updates()].into_iter().flatten().collect()
}

/// A step with a wrong part.
fn made_of(change: impl FnOnce(&mut Parts)) -> Variant {
    let mut parts = right();
    change(&mut parts);
    Variant::gives(move |case, options, dtype| step(case, options, dtype, &parts))
}

/// The place of a row's end.
fn end(case: &SftStepCase, options: &Options, row: usize) -> usize {
    let end = case.tokens.row(row).iter().position(|id| *id == options.eos);
    end.expect("every row ends")
}

/// The mask moved by so many places; what comes in is not trained.
fn moved(mask: &Array2<bool>, by: isize) -> Array2<bool> {
    Array2::from_shape_fn(mask.raw_dim(), |(row, at)| {
        let from = at as isize - by;
        usize::try_from(from).ok().and_then(|from| mask.get([row, from])).is_some_and(|flag| *flag)
    })
}

/// No end is trained.
fn without_ends(case: &mut SftStepCase, options: &Options) {
    for row in 0..case.tokens.nrows() {
        let end = end(case, options, row);
        case.mask[[row, end]] = false;
    }
}

/// The pads of each row are trained too, up to some width.
fn pads_trained(case: &mut SftStepCase, options: &Options, width: impl Fn(usize) -> usize) {
    for row in 0..case.tokens.nrows() {
        let end = end(case, options, row);
        case.mask.slice_mut(s![row, end..width(row)]).fill(true);
    }
}

/// Each micro-batch is as wide as its longest row, and its pads are trained too.
fn padded_to_the_longest(case: &SftStepCase, options: &Options, dtype: Dtype) -> SftStepOutput {
    let mut output = step(case, options, dtype, &right());
    let shape = SftStep::shape(case, options);
    for (update, mut table) in output.gradient.outer_iter_mut().enumerate() {
        let mut padded = case.clone();
        let batches = shape.micro_batches(update);
        pads_trained(&mut padded, options, |row| {
            let batch = batches.iter().find(|rows| rows.contains(&row));
            let ends = batch.into_iter().flatten().map(|row| end(case, options, *row) + 1);
            ends.max().unwrap_or(end(case, options, row) + 1)
        });
        let padded = step(&padded, options, dtype, &right()).gradient;
        table.assign(&padded.index_axis(Axis(0), update));
    }
    output
}

fn masks() -> Vec<Fault> {
    vec![
        Fault::new("prompt-trained", "the tokens of the prompt are trained too")
            .seen("DeepSpeedExamples #457 (9a586b1b): labels are the input ids; OpenRLHF #294")
            .on(&[|case, options| {
                for row in 0..case.tokens.nrows() {
                    let end = end(case, options, row);
                    case.mask.slice_mut(s![row, ..=end]).fill(true);
                }
            }]),
        Fault::new("eos-left-out", "the token that ends a sequence is not trained")
            .seen("trlx #401; chat templates that leave the stop token out of the mask")
            .on(&[without_ends]),
        Fault::new(
            "final-eos-dropped-when-pad-is-eos",
            "labels that equal the pad are left out, and the end is one",
        )
        .seen("trl #976, #988, #3200 (485852c94); NeMo-RL #120 (afefe6653)")
        .under("{pad: 1}")
        .on(&[without_ends]),
        Fault::new("padding-trained", "the tokens behind the end are trained too")
            .seen("axolotl #1603: a collator that loses the masks")
            .made_of([
                Variant::On(|case, options| {
                    let width = case.tokens.ncols();
                    pads_trained(case, options, |_| width);
                }),
                Variant::gives(padded_to_the_longest),
            ]),
        Fault::new("mask-one-position-early", "each flag is on the token before its own")
            .seen("verl #3287 (2d6c6dbb3), trl #6800: `mask[:, :-1]` for `mask[:, 1:]`")
            .on(&[|case, _| case.mask = moved(&case.mask, -1)]),
        Fault::new("first-token-left-out", "the first trained token of each turn is left out")
            .seen("OpenRLHF #781 (7a56f00f): a prompt's length that is one off")
            .on(&[|case, _| {
                let before = moved(&case.mask, 1);
                case.mask.zip_mut_with(&before, |flag, before| *flag &= *before);
            }]),
        Fault::new("last-turn-alone", "only the last turn is trained")
            .seen("a mask that begins at the last answer of a conversation")
            .under("{trained: turns}")
            .on(&[|case, _| {
                for mut row in case.mask.rows_mut() {
                    let last = row.iter().rposition(|flag| *flag).unwrap_or(0);
                    let first = row.iter().take(last).rposition(|flag| !*flag);
                    let before = first.map_or(0, |at| at + 1);
                    row.iter_mut().take(before).for_each(|flag| *flag = false);
                }
            }]),
    ]
}

/// Log-probabilities of the tokens that come after those that are asked about.
fn of_the_next_token() -> Part<TokenLogProbs> {
    Arc::new(|case, options, dtype| {
        let last = case.tokens.ncols() - 1;
        let mut tokens = case.tokens.clone();
        tokens.slice_mut(s![.., ..last]).assign(&case.tokens.slice(s![.., 1..]));
        let case = TokenLogProbsCase { tokens, logits: case.logits.clone() };
        (TokenLogProbs::PARTS.reference)(&case, options, dtype)
    })
}

fn labels() -> Vec<Fault> {
    let shifted = {
        let mut parts = right();
        parts.log_probs = of_the_next_token();
        Variant::gives(move |case: &SftStepCase, options, dtype| {
            let case = SftStepCase { mask: moved(&case.mask, -1), ..case.clone() };
            step(&case, options, dtype, &parts)
        })
    };
    let of = |id, options| {
        lifted::<TokenLogProbs, _>(id, options, |part| made_of(|parts| parts.log_probs = part))
    };
    vec![
        Fault::new("labels-shifted-twice", "each token's logits score the token after it")
            .seen("open-instruct #1549 (24080cde7): shifted before a model that shifts them")
            .made_of([shifted]),
        Fault::new("labels-of-another-row", "labels are those of the row behind, in the batch")
            .seen("verl #1943 (b4aa2dce8): rows left in another order than their companions")
            .made_of([made_of(|parts| parts.log_probs = of_the_row_behind())]),
        of("gradient-detached-from-the-normaliser", "{}"),
    ]
}

/// Log-probabilities of the tokens of the next row.
fn of_the_row_behind() -> Part<TokenLogProbs> {
    Arc::new(|case, options, dtype| {
        let rows = case.tokens.nrows();
        let order: Vec<usize> = (0..rows).map(|row| (row + 1) % rows).collect();
        let tokens = case.tokens.select(Axis(0), &order);
        let case = TokenLogProbsCase { tokens, logits: case.logits.clone() };
        (TokenLogProbs::PARTS.reference)(&case, options, dtype)
    })
}

fn losses() -> Vec<Fault> {
    vec![
        Fault::new("sign-flipped", "the log-probability is minimised: trained tokens fall")
            .seen("a negative log-likelihood without its minus")
            .made_of([made_of(|parts| parts.factor = |_| -1.0)]),
        Fault::new("dft-ignored", "a token's loss is not multiplied by its probability")
            .seen("TRL's `loss_type: dft` without effect")
            .under("{loss: dft}")
            .as_if(&[|options| Options { loss: Loss::Nll, ..options }]),
        Fault::new("dft-undeclared", "a token's loss is multiplied by its probability")
            .seen("TRL's `loss_type: dft` where it is not declared")
            .as_if(&[|options| Options { loss: Loss::Dft, ..options }]),
        Fault::new("dft-weight-not-detached", "the probability that multiplies has a gradient")
            .seen("arXiv:2508.05629, without its stop of the gradient")
            .under("{loss: dft}")
            // The derivative of p·log p by log p is p·(1 + log p).
            .made_of([made_of(|parts| {
                parts.slope = |_, log_prob| log_prob.exp() * (1.0 + log_prob)
            })]),
    ]
}

fn counts() -> Vec<Fault> {
    let counted = |count| made_of(|parts| parts.counted = count);
    vec![
        Fault::new(
            "untrained-tokens-counted",
            "the sum is divided by the number of all tokens, trained or not",
        )
        .seen("a mean over the padded batch, `(losses * mask).mean()`")
        .made_of([
            counted(|mask, _, _| mask.len() as f64),
            counted(|_, tokens, options| lengths(tokens, options)),
            counted(|_, tokens, options| lengths(tokens, options) + tokens.nrows() as f64),
        ]),
        Fault::new("sequence-mean-called-token-mean", "each sequence counts alike, however long")
            .seen("arXiv:2503.14476, section 3.3: the mean of sequence means")
            .as_if(&[|options| Options { aggregate: Aggregate::SeqMeanTokenMean, ..options }]),
        Fault::new("token-mean-called-sequence-mean", "each token counts alike, in long ones too")
            .seen("arXiv:2503.14476, section 3.3: the mean over all tokens")
            .under("{aggregate: seq-mean-token-mean}")
            .as_if(&[|options| Options { aggregate: Aggregate::TokenMean, ..options }]),
        Fault::new(
            "mean-of-micro-batch-means",
            "each micro-batch has its own mean, however few its tokens are",
        )
        .seen("transformers #34191; trl #2175")
        .under("{accumulation: 2}")
        .as_if(&[|options| Options { over: Over::MicroBatch, ..options }]),
        Fault::new(
            "mean-over-the-update",
            "the mean of all tokens where micro-batches have theirs",
        )
        .seen("transformers' `num_items_in_batch` where it is not declared")
        .under("{over: micro-batch, accumulation: 2}")
        .as_if(&[|options| Options { over: Over::Update, ..options }]),
        Fault::new("micro-batches-summed", "the losses of micro-batches are added, not averaged")
            .seen("NeMo-RL #86 (d1f0609a2)")
            .under("{accumulation: 2}")
            .made_of([made_of(|parts| parts.factor = |options| f64::from(options.accumulation))]),
        Fault::new(
            "divided-again-by-micro-batches",
            "the loss is divided by the number of micro-batches twice",
        )
        .seen("unsloth-zoo #1023 (011e1ea0); AReaL #1273 (5e9fb505c)")
        .under("{accumulation: 2}")
        .made_of([made_of(|parts| parts.factor = |options| 1.0 / f64::from(options.accumulation))]),
    ]
}

/// How many tokens all rows have up to their ends.
fn lengths(tokens: &Array2<i64>, options: &Options) -> f64 {
    let rows = tokens.rows().into_iter();
    let length = |row: ndarray::ArrayView1<'_, i64>| {
        row.iter().position(|id| *id == options.eos).map_or(row.len(), |end| end + 1)
    };
    rows.map(|row| length(row) as f64).sum()
}

fn updates() -> Vec<Fault> {
    vec![
        Fault::new("same-slice-again", "every update of a pass trains the first of its slices")
            .seen("an index of the data that is never raised; compare trl #3231")
            .under("{mini_batches: 2}")
            .on(&[|case, options| {
                let right = SftStep::shape(case, options).all_micro_batches();
                let (updates, batches, size) = right.dim();
                let first = |update: usize| update - update % usize::from(options.mini_batches);
                let chosen =
                    Array3::from_shape_fn((updates, batches, size), |(update, batch, at)| {
                        right[[first(update), batch, at]] as i64
                    });
                case.micro_batches = Some(chosen);
            }]),
        Fault::new("neighbours-seen", "a sequence sees those before it in its packed row")
            .seen("torchtune #2613 (b18312c7d); rows that are packed without position ids")
            .made_of([Variant::gives(|case: &SftStepCase, options, dtype| {
                let mut output = step(case, options, dtype, &right());
                let shape = SftStep::shape(case, options);
                let mut unknown = Vec::new();
                for (update, mut table) in output.gradient.outer_iter_mut().enumerate() {
                    let mut most = 0.0_f64;
                    for row in
                        shape.micro_batches(update).iter().flat_map(|rows| rows.iter().skip(1))
                    {
                        let mut of_row = table.index_axis_mut(Axis(0), *row);
                        most = of_row.iter().fold(most, |most, x| most.max(x.abs()));
                        of_row.fill(0.0);
                    }
                    unknown.push(most);
                }
                SftStepOutput { unknown: Some(unknown.into()), ..output }
            })]),
    ]
}
