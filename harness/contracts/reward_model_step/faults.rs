//! Known wrong behaviours of `reward-model-step`: those of the loss of a pair, as a whole trainer
//! shows them, and those that no component has.

use std::sync::Arc;

use ndarray::{Array3, Array4, IxDyn};

use super::reference::{Parts, Rows, at_the_end, right, step};
use super::{Options, Pooled, RewardModelStep, RewardModelStepCase, RewardModelStepOutput, ends};
use crate::preference_loss::{PreferenceLoss, PreferenceLossCase, PreferenceLossOutput};
use crate::step;
use shakedown_core::contract::fault;
use shakedown_core::contract::step::{Part, Stepped as _, lifted, reference};
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<RewardModelStep>;
type Variant = fault::Variant<RewardModelStep>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    [places(), losses(), margins(), centers(), pairs(), updates()].into_iter().flatten().collect()
}

/// A step with a wrong part.
fn made_of(change: impl FnOnce(&mut Parts)) -> Variant {
    let mut parts = right();
    change(&mut parts);
    Variant::gives(move |case, options, dtype| step(case, options, dtype, &parts))
}

/// A step that reads the score of a row elsewhere.
fn pooled(place: impl Fn(&Rows<'_>, usize) -> Option<usize> + Send + Sync + 'static) -> Variant {
    made_of(|parts| parts.pooled = Arc::new(place))
}

/// The same, by the last place of the longest row of those that a row is padded with: of both sides
/// or of its own, behind prompts of one length or of those that a puppet has, where each is one
/// token longer than the one before.
fn padded(place: fn(&Rows<'_>, usize, usize) -> Option<usize>) -> Vec<Variant> {
    let ways = [false, true].map(|is_of_side| [0, 1].map(|longer| (is_of_side, longer)));
    let variant = |(is_of_side, longer): (bool, usize)| {
        pooled(move |rows, row| {
            let others = rows.batch.iter().filter(|other| !is_of_side || *other % 2 == row % 2);
            let lengths = others.map(|other| rows.ends[*other] + longer * (other / 2));
            let longest = lengths.max()? - longer * (row / 2);
            place(rows, row, longest)
        })
    };
    ways.into_iter().flatten().map(variant).collect()
}

/// Faults of where a score is read.
fn places() -> Vec<Fault> {
    vec![
        Fault::new("eos-left-out", "the score is that of the token before the end")
            .seen("trlx #401 (a369dad): an index that leaves the end out")
            .made_of([pooled(|rows, row| at_the_end(rows, row)?.checked_sub(1))]),
        Fault::new(
            "final-eos-dropped-when-pad-is-eos",
            "the score is that of the last token that is not the pad, and the end is one",
        )
        .seen("trl #976, #988, #3200 (485852c94); NeMo-RL #120 (afefe6653)")
        .under("{pad: 1}")
        .as_if(&[|options| Options { pooled: Pooled::LastNonPad, ..options }]),
        Fault::new("end-read-although-pad", "the score is that of the end, which is the pad")
            .seen("transformers' `AutoModelForSequenceClassification`, where it is declared")
            .under("{pad: 1, pooled: last-non-pad}")
            .as_if(&[|options| Options { pooled: Pooled::End, ..options }]),
        Fault::new(
            "score-at-the-padded-end",
            "the score is that of the last place of the batch, pad or not",
        )
        .seen("trlx #420 (ec75e99): `[:, -1]` of rows that are padded")
        .made_of(
            [pooled(|rows, _| Some(rows.width - 1))]
                .into_iter()
                .chain(padded(|_, _, longest| Some(longest))),
        ),
        Fault::new("score-at-the-first-pad", "the score is that of the first pad behind the end")
            .seen("DeepSpeedExamples #316, #571: the index of the first pad, which ends a slice")
            .made_of(
                [
                    padded(|rows, row, longest| Some((rows.ends[row] + 1).min(longest))),
                    padded(|rows, row, longest| {
                        Some(rows.ends[row] + 1).filter(|place| *place <= longest)
                    }),
                ]
                .into_iter()
                .flatten(),
            ),
        Fault::new("score-at-the-first-token", "the score is that of the first token")
            .seen("the first token of an encoder, `hidden[:, 0]`, in a causal model")
            .made_of([pooled(|_, _| Some(0)), pooled(|_, _| None)]),
        Fault::new("pads-seen", "pads before a row have no mask: its score is of pads too")
            .seen("DeepSpeedExamples #457 (9a586b1b), #468 (d2269a50)")
            .made_of(padded(|rows, row, longest| {
                at_the_end(rows, row).filter(|_| rows.ends[row] == longest)
            })),
        Fault::new(
            "loss-over-tokens",
            "each token from the first that differs to the end of the longer completion has a loss",
        )
        .seen("DeepSpeedExamples #316, #571, #401, #693")
        .gives(&[over_tokens]),
    ]
}

/// The mean of the losses of all tokens from the first that differs, or the last, to the end of the
/// longer completion.
fn over_tokens(
    case: &RewardModelStepCase,
    options: &Options,
    dtype: Dtype,
) -> RewardModelStepOutput {
    let (shape, ends) = (RewardModelStep::shape(case, options), ends(case, options));
    let updates = options.plan().updates();
    let mut gradient = Array4::zeros((updates, shape.all_rows(), shape.width(), 1));
    for update in 0..updates {
        let scores = shape.logits(&case.scores, update);
        let batches = shape.micro_batches(update);
        for batch in &batches {
            let pairs = step::pairs(batch);
            for pair in &pairs {
                let rows = [2 * pair, 2 * pair + 1];
                let end = ends[rows[0]].max(ends[rows[1]]);
                let [chosen, rejected] = rows.map(|row| shape.tokens.row(row));
                let first = (0..end).find(|at| chosen[*at] != rejected[*at]).unwrap_or(end);
                let margin = case.margins.as_ref().map_or(0.0, |margins| margins[*pair]);
                let tokens = (end + 1 - first) * pairs.len() * batches.len();
                for at in first..=end {
                    let [chosen, rejected] = rows.map(|row| scores[[row, at, 0]]);
                    let slope = -sigmoid(-(chosen - rejected - margin));
                    let center = 2.0 * options.center * (chosen + rejected);
                    for (row, by_score) in rows.into_iter().zip([slope, -slope]) {
                        let [home, place] = shape.home(row, at);
                        gradient[[update, home, place, 0]] += (by_score + center) / tokens as f64;
                    }
                }
            }
        }
    }
    let gradient = gradient.into_dyn().into_shape_with_order(IxDyn(case.scores.shape()));
    let gradient = gradient.expect("a score for each token");
    RewardModelStepOutput { gradient, ..step(case, options, dtype, &right()) }
}

/// 1 / (1 + e^{-x}).
fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The loss with another slope, given the difference less the margin.
fn sloped(slope: fn(f64) -> f64) -> Variant {
    let part: Part<PreferenceLoss> = Arc::new(move |case: &PreferenceLossCase, options, dtype| {
        let margins = &case.ref_chosen - &case.ref_rejected;
        let z = &case.policy_chosen - &case.policy_rejected - margins;
        let slopes = z.mapv(slope) / z.len() as f64;
        PreferenceLossOutput {
            grad_policy_rejected: Some(-&slopes),
            grad_policy_chosen: Some(slopes),
            ..reference::<PreferenceLoss>()(case, options, dtype)
        }
    });
    made_of(|parts| parts.loss = part)
}

/// A fault of the loss of pairs.
fn of_the_loss(id: &str) -> Fault {
    lifted::<PreferenceLoss, _>(id, "{}", |part| made_of(|parts| parts.loss = part))
}

/// Faults of what is made of two scores.
fn losses() -> Vec<Fault> {
    vec![
        of_the_loss("sign-flipped"),
        of_the_loss("rejected-side-detached"),
        of_the_loss("sum-for-the-mean"),
        of_the_loss("margins-averaged-before-the-loss"),
        Fault::new("sigmoid-left-out", "the difference of the scores is the loss")
            .seen("`-(chosen - rejected).mean()`: TRL's line without `logsigmoid`")
            .made_of([sloped(|_| -1.0)]),
        Fault::new(
            "probability-for-its-logarithm",
            "the probability that the chosen one is better is maximised, not its logarithm",
        )
        .seen("TRL's line with `sigmoid` for `logsigmoid`")
        .made_of([sloped(|z| -sigmoid(z) * sigmoid(-z))]),
        Fault::new("scores-squashed", "scores go through a sigmoid or tanh before the loss")
            .seen("a head that ends in an activation, as those of classifiers do")
            .made_of([
                made_of(|parts| {
                    parts.seen = |x| [sigmoid(x), sigmoid(x) * sigmoid(-x)];
                }),
                made_of(|parts| parts.seen = |x| [x.tanh(), 1.0 - x.tanh() * x.tanh()]),
            ]),
        Fault::new("mean-over-completions", "the sum is divided by the number of completions")
            .seen("the length of a batch in which chosen and rejected rows are concatenated")
            .made_of([made_of(|parts| parts.factor = |_, _| 0.5)]),
    ]
}

fn margins() -> Vec<Fault> {
    vec![
        Fault::new("margin-added", "the margin is added to the difference, not taken off")
            .seen("TRL 1.16, `RewardTrainer.compute_loss`, with `+ inputs[\"margin\"]`")
            .under("{has_margins: true}")
            .on(&[|case, _| case.margins.iter_mut().flatten().for_each(|margin| *margin *= -1.0)]),
        Fault::new("margin-ignored", "the margin has no effect")
            .seen("TRL 1.16 reads `margin` from `inputs`: a collator may drop the column")
            .under("{has_margins: true}")
            .on(&[|case, _| case.margins.iter_mut().flatten().for_each(|margin| *margin = 0.0)]),
        Fault::new("margin-of-another-pair", "each pair has the margin of a neighbour")
            .seen("verl #1943 (b4aa2dce8): rows left in another order than their companions")
            .under("{has_margins: true}")
            .made_of([
                made_of(|parts| parts.loss = with_margin_of(|pair, pairs| (pair + 1) % pairs)),
                made_of(|parts| {
                    parts.loss = with_margin_of(|pair, pairs| (pair + pairs - 1) % pairs);
                }),
            ]),
    ]
}

/// The loss where each pair has the margin of another one of the micro-batch.
fn with_margin_of(other: fn(usize, usize) -> usize) -> Part<PreferenceLoss> {
    let right = reference::<PreferenceLoss>();
    Arc::new(move |case: &PreferenceLossCase, options, dtype| {
        let pairs = case.ref_chosen.len();
        let ref_chosen = (0..pairs).map(|pair| case.ref_chosen[other(pair, pairs)]).collect();
        right(&PreferenceLossCase { ref_chosen, ..case.clone() }, options, dtype)
    })
}

fn centers() -> Vec<Fault> {
    let of = |id, summary, slopes| {
        Fault::new(id, summary)
            .seen("TRL 1.16's `center_rewards_coefficient`, arXiv:2312.09244, equation 2")
            .under("{center: 0.1}")
            .made_of([made_of(|parts| parts.center = slopes)])
    };
    vec![
        Fault::new("center-ignored", "the coefficient of the centre has no effect")
            .seen("TRL 1.16's `center_rewards_coefficient` that never reaches the loss")
            .under("{center: 0.1}")
            .as_if(&[|options| Options { center: 0.0, ..options }]),
        of(
            "center-of-the-difference",
            "the squared difference of the scores is small, not their sum",
            |[r, s], pairs| [2.0 * (r - s) / pairs as f64, 2.0 * (s - r) / pairs as f64],
        ),
        of("center-summed", "the centre is a sum over the pairs, not their mean", |[r, s], _| {
            [2.0 * (r + s); 2]
        }),
        of(
            "center-of-each-score",
            "the squares of both scores are small, not that of their sum",
            |both, pairs| both.map(|x| 2.0 * x / pairs as f64),
        ),
        of(
            "center-of-the-mean",
            "the mean of both scores is squared, not their sum",
            |[r, s], n| [0.5 * (r + s) / n as f64; 2],
        ),
    ]
}

/// The wrong completions are compared.
fn pairs() -> Vec<Fault> {
    let sides = |sides| made_of(|parts| parts.sides = sides);
    vec![
        Fault::new("chosen-and-rejected-swapped", "the rejected completion is to have more")
            .seen("LLaMA-Factory #6050 (089e4d9e9); trl #1402 (4d862da18)")
            .made_of([sides(|pairs| {
                let [chosen, rejected] = (right().sides)(pairs);
                [rejected, chosen]
            })]),
        Fault::new(
            "pairs-across",
            "a chosen completion is compared with another pair's rejected one",
        )
        .seen("verl #1943 (b4aa2dce8): rows left in another order than their companions")
        .made_of([
            sides(|pairs| {
                let [chosen, mut rejected] = (right().sides)(pairs);
                rejected.rotate_left(1);
                [chosen, rejected]
            }),
            sides(|pairs| {
                let [chosen, mut rejected] = (right().sides)(pairs);
                rejected.rotate_right(1);
                [chosen, rejected]
            }),
            sides(|pairs| {
                let [chosen, mut rejected] = (right().sides)(pairs);
                rejected.reverse();
                [chosen, rejected]
            }),
        ]),
        Fault::new(
            "interleaved-rows-halved",
            "rows that alternate are cut in halves, or halves are read as rows that alternate",
        )
        .seen("TRL 1.16 cuts in halves what its collator put one side behind the other")
        .made_of([
            sides(|pairs| {
                let rows: Vec<usize> = pairs.iter().flat_map(|p| [2 * p, 2 * p + 1]).collect();
                let (first, second) = rows.split_at(pairs.len());
                [first.to_vec(), second.to_vec()]
            }),
            sides(|pairs| {
                let rows = (right().sides)(pairs).concat();
                [0, 1].map(|first| rows.iter().skip(first).step_by(2).copied().collect())
            }),
        ]),
    ]
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
                let right = RewardModelStep::shape(case, options).all_micro_batches();
                let first = |update: usize| update - update % usize::from(options.mini_batches);
                let chosen = Array3::from_shape_fn(right.dim(), |(update, batch, at)| {
                    right[[first(update), batch, at]] as i64
                });
                case.micro_batches = Some(chosen);
            }]),
    ]
}
