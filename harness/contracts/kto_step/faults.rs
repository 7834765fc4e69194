//! Known wrong behaviours of `kto-step`: those of its components, as a whole trainer shows them,
//! and those that no component has.

use std::sync::Arc;

use ndarray::{Array3, ArrayD, Axis, arr0};

use super::reference::{self, Parts, Ratios, mean, right, same_for_all, sigmoid};
use super::{KtoStep, KtoStepCase, KtoStepOutput, Options};
use crate::completion_mask::CompletionMask;
use crate::step;
use crate::token_log_probs::TokenLogProbs;
use shakedown_core::contract::fault;
use shakedown_core::contract::step::{Stepped as _, lifted};
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<KtoStep>;
type Variant = fault::Variant<KtoStep>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    [masks(), labels(), estimates(), losses(), references(), updates()]
        .into_iter()
        .flatten()
        .collect()
}

/// A step with a wrong part.
fn made_of(change: impl FnOnce(&mut Parts)) -> Variant {
    let mut parts = right();
    change(&mut parts);
    Variant::gives(move |case, options, dtype| reference::step(case, options, dtype, &parts))
}

/// Rows are as wide as the longest of their micro-batch, with its prompt, and their pads are
/// trained. Each comes behind the whole row; of a row without a place there, behind what is
/// unknown.
fn padded_to_the_longest(case: &KtoStepCase, options: &Options, dtype: Dtype) -> KtoStepOutput {
    let mut output = reference::step(case, options, dtype, &right());
    let shape = KtoStep::shape(case, options);
    let trained = KtoStep::trained(case, options);
    let length = |row: usize| trained.row(row).iter().filter(|flag| **flag).count();
    let mut unknown = output.unknown.expect("a step has it");
    for (update, mut table) in output.gradient.outer_iter_mut().enumerate() {
        let mut mask = trained.mapv(|flag| f64::from(u8::from(flag)));
        let mut beyond = vec![0; shape.all_rows()];
        for rows in shape.micro_batches(update) {
            let width = rows.iter().map(|row| row + length(*row)).max().unwrap_or(0);
            for row in rows {
                let pads = width - row - length(row);
                match mask.get_mut([row, length(row)]) {
                    Some(place) => *place = pads as f64,
                    None => beyond[row] = pads,
                }
            }
        }
        let (right_mask, tokens) = (right().mask, case.tokens.clone());
        let parts = Parts {
            // The completions of the estimate keep their masks.
            mask: Arc::new(move |case, options, dtype| match case.tokens == tokens {
                true => mask.clone().into(),
                false => right_mask(case, options, dtype),
            }),
            elsewhere: Arc::new(move |options, row, vocabulary| {
                step::unknown_slopes(vocabulary, &[(options.pad, beyond[row])])
            }),
            ..right()
        };
        let padded = reference::step(case, options, dtype, &parts);
        table.assign(&padded.gradient.index_axis(Axis(0), update));
        unknown[update] = padded.unknown.expect("a step has it")[update];
    }
    KtoStepOutput { unknown: Some(unknown), ..output }
}

fn masks() -> Vec<Fault> {
    let of = |id, options| {
        lifted::<CompletionMask, _>(id, options, |part| made_of(|parts| parts.mask = part))
    };
    vec![
        of("eos-left-out", "{}"),
        of("final-eos-dropped-when-pad-is-eos", "{pad: 1}"),
        Fault::new("padding-trained", "the tokens behind the end are trained too")
            .seen("DeepSpeedExamples #457 (9a586b1b): labels are the input ids")
            .made_of([
                made_of(|parts| {
                    parts.mask = Arc::new(|case, _, _| case.tokens.mapv(|_| 1.0).into());
                }),
                Variant::gives(padded_to_the_longest),
            ]),
        Fault::new("prompt-trained", "the tokens of prompts have a loss too")
            .seen("TRL 1.16, `KTOTrainer`, without the `completion_mask` of its labels")
            .made_of([made_of(|parts| {
                parts.elsewhere = Arc::new(|options, row, vocabulary| {
                    let words = step::words(&[options.eos, options.pad], vocabulary);
                    step::prompt_slopes(&words, row, vocabulary)
                });
            })]),
    ]
}

fn labels() -> Vec<Fault> {
    vec![
        Fault::new("labels-swapped", "desirable completions are taken for the others")
            .seen("LLaMA-Factory #6050 (089e4d9e9): the roles of two answers are exchanged")
            .on(&[|case, _| case.labels.mapv_inplace(|flag| !flag)]),
        Fault::new("label-ignored", "every completion is taken for a desirable one")
            .seen("LLaMA-Factory #3803: all rows of a format were read as desired")
            .on(&[|case, _| case.labels.fill(true)]),
        Fault::new("weights-swapped", "each label has the weight of the other")
            .seen("TRL 1.16, `KTOTrainer`, with its two weights exchanged")
            .under("{desirable_weight: 1.5}")
            .as_if(&[|options| Options {
                desirable_weight: options.undesirable_weight,
                undesirable_weight: options.desirable_weight,
                ..options
            }]),
        Fault::new("weights-ignored", "the weight of one label, or of both, has no effect")
            .seen("ms-swift #2167: `desirable_weight` that never reaches the trainer")
            .under("{desirable_weight: 1.5}")
            .as_if(&[
                |options| Options { desirable_weight: 1.0, undesirable_weight: 1.0, ..options },
                |options| Options { desirable_weight: 1.0, ..options },
                |options| Options { undesirable_weight: 1.0, ..options },
            ]),
        Fault::new("divided-by-the-weights", "the sum is divided by that of the weights")
            .seen("the weighted mean of `numpy.average`")
            .under("{desirable_weight: 1.5}")
            .made_of([made_of(|parts| {
                parts.shares = |options, labels| {
                    let sum: f64 = labels.iter().map(|flag| options.weight(*flag)).sum();
                    vec![if sum == 0.0 { 0.0 } else { 1.0 / sum }; labels.len()]
                };
            })]),
        Fault::new("averaged-by-label", "the mean of each label is taken, and their sum, or mean")
            .seen("TRL 1.16, `KTOTrainer`, with a mean of `chosen_losses` and of `rejected_losses`")
            .made_of([
                made_of(|parts| parts.shares = |_, labels| by_label(labels, 1.0)),
                made_of(|parts| parts.shares = |_, labels| by_label(labels, 0.5)),
            ]),
    ]
}

/// One over the number of each row's label, so many times.
fn by_label(labels: &[bool], times: f64) -> Vec<f64> {
    let count = |label| labels.iter().filter(|other| **other == label).count() as f64;
    labels.iter().map(|label| times / count(*label)).collect()
}

/// A fault that shows where β is large.
fn at_a_large_beta(
    id: &'static str,
    summary: &'static str,
    source: &'static str,
    change: fn(&mut Parts),
) -> Fault {
    Fault::new(id, summary).seen(source).under("{beta: 1.0}").made_of([made_of(change)])
}

/// Faults of the estimate of the KL.
fn estimates() -> Vec<Fault> {
    vec![
        at_a_large_beta(
            "kl-not-detached",
            "the estimate of the KL has a gradient",
            "ContextualAI/HALOs #4: an early release went back through the estimate",
            |parts| parts.trains_kl = true,
        ),
        at_a_large_beta(
            "kl-not-clamped",
            "the estimate of the KL may be below 0",
            "TRL 1.16, `KTOTrainer`, without its `clamp(min=0)`",
            |parts| parts.estimate = |ratios| same_for_all(mean(&ratios.all()), ratios),
        ),
        at_a_large_beta(
            "kl-clamped-before-the-mean",
            "each log-ratio is clamped at 0, not their mean",
            "align-anything #216: each batch's KL is clamped before their mean",
            |parts| {
                parts.estimate = |ratios| {
                    let clamped: Vec<f64> = ratios.all().iter().map(|x| x.max(0.0)).collect();
                    same_for_all(mean(&clamped), ratios)
                };
            },
        ),
        at_a_large_beta(
            "kl-of-matched-pairs",
            "the estimate of the KL is of prompts with their own completions",
            "trl #2153: of a batch of one row the estimate is the reward itself",
            |parts| parts.others = |_, batches, at| batches[at].clone(),
        ),
        at_a_large_beta(
            "kl-completions-reversed",
            "completions are in reverse order in the estimate: the middle one keeps its prompt",
            "trl #1911 (#1970); LLaMA-Factory #7509",
            |parts| {
                parts.others = |_, batches, at| batches[at].iter().rev().copied().collect();
            },
        ),
        Fault::new(
            "kl-completions-of-the-update",
            "the completions of the estimate of the KL go round in an update, not a micro-batch",
        )
        .seen("trl #2153: batches of the KL were those of all micro-batches")
        .under("{beta: 1.0, accumulation: 2}")
        .made_of([made_of(|parts| {
            parts.others = |options, batches, at| {
                let all = batches.concat();
                let first: usize = batches[..at].iter().map(Vec::len).sum();
                let other = |of| all[options.other(first + of, all.len())];
                (0..batches[at].len()).map(other).collect()
            };
        })]),
        at_a_large_beta(
            "kl-of-each-row",
            "each row has its own log-ratio for an estimate of the KL",
            "TRL 1.16, `KTOTrainer`, without the mean over its rows",
            |parts| parts.estimate = |ratios| ratios.all().iter().map(|x| x.max(0.0)).collect(),
        ),
        at_a_large_beta(
            "kl-of-one-row",
            "the estimate of the KL is the log-ratio of one row",
            "align-anything #216: the last estimate is kept, not their mean",
            |parts| {
                parts.estimate = |ratios| {
                    let last = ratios.all().last().map_or(0.0, |x| x.max(0.0));
                    same_for_all(last, ratios)
                };
            },
        ),
        at_a_large_beta(
            "kl-summed",
            "the estimate of the KL is a sum, not a mean",
            "TRL 1.16, `KTOTrainer`, with a sum over its rows",
            |parts| {
                parts.estimate =
                    |ratios| same_for_all(ratios.all().iter().sum::<f64>().max(0.0), ratios);
            },
        ),
        at_a_large_beta(
            "kl-averaged-over-tokens",
            "the estimate of the KL is that of a token, not of a completion",
            "`average_log_prob` of TRL's older trainers",
            |parts| {
                parts.estimate = |ratios| {
                    let all = ratios.all().into_iter().zip(&ratios.lengths);
                    let by_token: Vec<f64> = all.map(|(x, length)| x / length).collect();
                    same_for_all(mean(&by_token).max(0.0), ratios)
                };
            },
        ),
        at_a_large_beta(
            "kl-of-one-label",
            "the estimate of the KL is over the prompts of desirable completions, or of the others",
            "ContextualAI/HALOs #4: an early release took the rows of one label",
            |parts| parts.estimate = |ratios| of_label(ratios, true),
        )
        .made_of([made_of(|parts| parts.estimate = |ratios| of_label(ratios, false))]),
        at_a_large_beta(
            "kl-reversed",
            "the policy is taken off the reference in the estimate of the KL",
            "TRL 1.16, `KTOTrainer`, with `ref_KL_logps - KL_logps`",
            |parts| {
                parts.estimate = |ratios| same_for_all((-mean(&ratios.all())).max(0.0), ratios);
            },
        ),
        at_a_large_beta(
            "kl-ignored",
            "the log-ratio is compared with 0, as an estimate without its reference always is",
            "TRL 1.16, `KTOTrainer`, with the loss of `apo_zero_unpaired`",
            |parts| parts.compared = |ratio, _| ratio,
        ),
        at_a_large_beta(
            "kl-added",
            "the estimate of the KL is added to the log-ratio",
            "TRL 1.16, `KTOTrainer`, with `chosen_logratios + kl`",
            |parts| parts.compared = |ratio, estimate| ratio + estimate,
        ),
    ]
}

/// The estimate over the rows of one label.
fn of_label(ratios: &Ratios<'_>, label: bool) -> Vec<f64> {
    let rows = ratios.all().into_iter().zip(ratios.labels);
    let kept: Vec<f64> = rows.filter(|(_, flag)| **flag == label).map(|(x, _)| x).collect();
    same_for_all(if kept.is_empty() { 0.0 } else { mean(&kept).max(0.0) }, ratios)
}

fn losses() -> Vec<Fault> {
    vec![
        Fault::new("sign-flipped", "the loss has the other sign")
            .seen("σ(β(r - z)) as it is, where it has to be taken off 1")
            .made_of([made_of(|parts| parts.slope = |x| sigmoid(x) * sigmoid(-x))]),
        at_a_large_beta(
            "logarithm-of-the-sigmoid",
            "the loss is -log σ, not 1 - σ",
            "the loss of DPO, with `logsigmoid`",
            |parts| parts.slope = |x| -sigmoid(-x),
        ),
        at_a_large_beta(
            "sigmoid-left-out",
            "the log-ratio is the loss",
            "equation 7 of arXiv:2402.01306 without σ",
            |parts| parts.slope = |_| -1.0,
        ),
        Fault::new("sum-for-the-mean", "the losses of a micro-batch are added")
            .seen("`losses.sum()` where TRL 1.16 has `losses.nanmean()`")
            .made_of([made_of(|parts| parts.shares = |_, labels| vec![1.0; labels.len()])]),
        at_a_large_beta(
            "averages-for-sums",
            "the log-probability of a completion is the mean of its tokens'",
            "`average_log_prob` of TRL's older trainers",
            |parts| parts.of_sum = |length| if length == 0.0 { 0.0 } else { 1.0 / length },
        ),
        Fault::new("beta-not-applied", "the log-ratio is not multiplied by β")
            .seen("`preference-loss` has the fault of this name")
            .as_if(&[|options| Options { beta: 1.0, ..options }]),
        Fault::new("beta-applied-twice", "the log-ratio is multiplied by β twice")
            .seen("`preference-loss` has the fault of this name")
            .as_if(&[|options| Options { beta: options.beta * options.beta, ..options }]),
        lifted::<TokenLogProbs, _>("gradient-detached-from-the-normaliser", "{}", |part| {
            made_of(|parts| parts.log_probs = part)
        }),
    ]
}

/// The reference has other tables than those of the case: the policy's of the update.
fn as_reference(
    case: &KtoStepCase,
    options: &Options,
    dtype: Dtype,
    of: impl Fn(usize) -> usize,
) -> KtoStepOutput {
    let mut output = reference::step(case, options, dtype, &right());
    for update in 0..case.logits.shape()[0] {
        let table = |tables: &ArrayD<f64>| -> Array3<f64> {
            let table = tables.index_axis(Axis(0), of(update)).to_owned();
            table.into_dimensionality().expect("a row of the table for each place")
        };
        let (ref_logits, ref_kl_logits) = (table(&case.logits), case.kl_logits.as_ref().map(table));
        let case = KtoStepCase { ref_logits, ref_kl_logits, ..case.clone() };
        let own = reference::step(&case, options, dtype, &right()).gradient;
        let mut gradient = output.gradient.index_axis_mut(Axis(0), update);
        gradient.assign(&own.index_axis(Axis(0), update));
    }
    output
}

fn references() -> Vec<Fault> {
    vec![
        Fault::new("reference-is-the-policy", "the reference has the policy's weights")
            .seen("`reference = policy`: PyTorch modules are shared by assignment")
            .under("{beta: 1.0}")
            .gives(&[
                |case, options, dtype| as_reference(case, options, dtype, |_| 0),
                |case, options, dtype| as_reference(case, options, dtype, |update| update),
            ]),
        Fault::new("reference-ignored", "the log-probability is the log-ratio")
            .seen("`preference-loss` has the fault of this name")
            .under("{beta: 1.0}")
            .made_of([
                made_of(|parts| parts.ratio = |policy, _| policy),
                made_of(|parts| {
                    let right = right().ref_log_probs;
                    parts.ref_log_probs = Arc::new(move |case, options, dtype| {
                        let mut output = right(case, options, dtype);
                        output.log_probs.fill(0.0);
                        output
                    });
                }),
            ]),
        Fault::new("reference-in-training-mode", "the reference is asked with dropout on")
            .seen("TRL 1.16, `DPOTrainer`: a reference that is handed over keeps its mode")
            .gives(&[|case, options, dtype| {
                let output = reference::step(case, options, dtype, &right());
                KtoStepOutput { ref_training: Some(arr0(1.0)), ..output }
            }]),
        Fault::new("reference-trained", "the loss has a gradient on the reference too")
            .seen("the reference's forward pass outside of `torch.no_grad()`")
            .made_of([made_of(|parts| parts.trains_reference = true)]),
    ]
}

fn updates() -> Vec<Fault> {
    vec![
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
        Fault::new("same-slice-again", "every update of a pass trains the first of its slices")
            .seen("an index of the data that is never raised; compare trl #3231")
            .under("{mini_batches: 2}")
            .on(&[|case, options| {
                let right = KtoStep::shape(case, options).all_micro_batches();
                let first = |update: usize| update - update % usize::from(options.mini_batches);
                let chosen = Array3::from_shape_fn(right.dim(), |(update, batch, at)| {
                    right[[first(update), batch, at]] as i64
                });
                case.micro_batches = Some(chosen);
            }]),
    ]
}
