//! Known wrong behaviours of `preference-step`: those of its components, as a whole trainer shows
//! them, and those that no component has.

use std::sync::Arc;

use ndarray::{Array3, Axis, arr0, s};

use super::reference::{Parts, right, step};
use super::{Nll, NllOver, Options, PreferenceStep, PreferenceStepCase, PreferenceStepOutput};
use crate::completion_mask::CompletionMask;
use crate::pair_objective::PairObjective;
use crate::preference_loss::PreferenceLoss;
use crate::token_log_probs::TokenLogProbs;
use shakedown_core::contract::fault;
use shakedown_core::contract::step::{Stepped as _, lifted};
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<PreferenceStep>;
type Variant = fault::Variant<PreferenceStep>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    [masks(), margins(), objectives(), likelihoods(), references(), updates()]
        .into_iter()
        .flatten()
        .collect()
}

/// A step with a wrong part.
fn made_of(change: impl FnOnce(&mut Parts)) -> Variant {
    let mut parts = right();
    change(&mut parts);
    Variant::gives(move |case, options, dtype| step(case, options, dtype, &parts))
}

/// Rows are as wide as the longest of those that they are batched with, and the pads of some rows
/// are trained too.
fn padded_to_the_longest(
    is_padded: fn(usize) -> bool,
    are_together: fn(usize, usize) -> bool,
) -> Variant {
    Variant::gives(move |case: &PreferenceStepCase, options: &Options, dtype| {
        let mut output = step(case, options, dtype, &right());
        let shape = PreferenceStep::shape(case, options);
        let trained = PreferenceStep::trained(case, options);
        let length = |row: usize| trained.row(row).iter().filter(|flag| **flag).count();
        for (update, mut table) in output.gradient.outer_iter_mut().enumerate() {
            let mut mask = trained.mapv(|flag| f64::from(u8::from(flag)));
            for rows in shape.micro_batches(update) {
                for row in rows.iter().copied().filter(|row| is_padded(*row)) {
                    let others = rows.iter().filter(|other| are_together(row, **other));
                    let longest = others.map(|row| length(*row)).max().unwrap_or(0);
                    mask.slice_mut(s![row, ..longest]).fill(1.0);
                }
            }
            let parts = Parts { mask: Arc::new(move |_, _, _| mask.clone().into()), ..right() };
            let padded = step(case, options, dtype, &parts).gradient;
            table.assign(&padded.index_axis(Axis(0), update));
        }
        output
    })
}

/// Whether two rows are both chosen or both rejected.
fn of_one_side(row: usize, other: usize) -> bool {
    row % 2 == other % 2
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
                padded_to_the_longest(|_| true, |_, _| true),
                padded_to_the_longest(|_| true, of_one_side),
            ]),
        Fault::new("rejected-half-unmasked", "the rejected completions have no mask: pads count")
            .seen("OpenRLHF #294 (6106fb22): a zip of 2N masks with N lengths")
            .made_of([
                made_of(|parts| {
                    let right = right().mask;
                    parts.mask = Arc::new(move |case, options, dtype| {
                        let mut mask = right(case, options, dtype);
                        for mut row in mask.mask.rows_mut().into_iter().skip(1).step_by(2) {
                            row.fill(1.0);
                        }
                        mask
                    });
                }),
                padded_to_the_longest(|row| row % 2 == 1, |_, _| true),
                padded_to_the_longest(|row| row % 2 == 1, of_one_side),
            ]),
    ]
}

/// Faults of losses that look at the margin.
fn margins() -> Vec<Fault> {
    let of = |id, options| {
        lifted::<PreferenceLoss, _>(id, options, |part| made_of(|parts| parts.margin = part))
    };
    vec![
        of("sign-flipped", "{}"),
        of("chosen-and-rejected-inputs-swapped", "{}"),
        of("reference-ignored", "{}"),
        of("reference-added", "{}"),
        of("beta-not-applied", "{}"),
        of("beta-applied-twice", "{}"),
        of("rejected-side-detached", "{}"),
        of("sum-for-the-mean", "{}"),
        of("label-smoothing-ignored", "{label_smoothing: 0.1}"),
        of("label-smoothing-on-the-wrong-side", "{label_smoothing: 0.1}"),
        of("robust-not-normalised", "{kind: robust, label_smoothing: 0.1}"),
        of("margin-added", "{gamma: 0.5}"),
        of("margin-ignored", "{gamma: 0.5}"),
        of("margin-scaled-by-beta", "{gamma: 0.5}"),
        of("hinge-not-clamped", "{kind: hinge, beta: 1.0}"),
        of("ipo-target-doubled", "{kind: ipo}"),
        of("ipo-of-the-scaled-margin", "{kind: ipo}"),
    ]
}

/// Faults of the other losses.
fn objectives() -> Vec<Fault> {
    let of = |id, options| {
        lifted::<PairObjective, _>(id, options, |part| made_of(|parts| parts.objective = part))
    };
    vec![
        of("sums-for-averages", "{kind: sigmoid-norm}"),
        of("lengths-swapped", "{kind: sigmoid-norm}"),
        of("ipo-on-sums", "{kind: ipo-norm}"),
        of("ipo-target", "{kind: ipo-norm}"),
        of("odds-without-the-complement", "{kind: orpo, nll_weight: 1.0}"),
        of("gamma-added", "{kind: simpo, gamma: 0.5}"),
        of("nca-weights", "{kind: nca}"),
        of("bco-rejected-side-left-out", "{kind: bco-pair}"),
        of("sppo-target", "{kind: sppo-hard}"),
        of("apo-zero-for-down", "{kind: apo-down}"),
        of("apo-down-for-zero", "{kind: apo-zero}"),
        of("exo-forward", "{kind: exo, label_smoothing: 0.1}"),
        of("aot-not-sorted", "{kind: aot}"),
    ]
}

/// Faults of the negative log-likelihood, and of rewards without a reference.
fn likelihoods() -> Vec<Fault> {
    let nll = |nll| made_of(|parts| parts.nll = nll);
    vec![
        Fault::new("nll-left-out", "the negative log-likelihood has no effect")
            .seen("LLaMA-Factory 52d402e2a: ORPO's odds ratio alone; CPO with `cpo_alpha` ignored")
            .under("{nll_weight: 1.0}")
            .as_if(&[|options| Options { nll_weight: 0.0, ..options }]),
        Fault::new("nll-weight-ignored", "the negative log-likelihood has a weight of 1")
            .seen("TRL 1.16, `CPOTrainer`, without the `cpo_alpha` of its sum")
            .under("{nll_weight: 0.5}")
            .as_if(&[|options| Options { nll_weight: 1.0, ..options }]),
        Fault::new("nll-of-the-rejected-side", "the rejected completions have the likelihood")
            .seen("TRL 1.16, `CPOTrainer`, with `all_logits[len_chosen:]`")
            .under("{nll_weight: 1.0}")
            .made_of([nll(|options, [chosen, rejected]| {
                [vec![0.0; chosen.len()], options.nll_weights(rejected)]
            })]),
        Fault::new("nll-of-both-sides", "the rejected completions have a likelihood too")
            .seen("TRL 1.16, `CPOTrainer`, with `all_logits` of both sides")
            .under("{nll_weight: 1.0}")
            .made_of([nll(|options, [chosen, rejected]| {
                let all = options.nll_weights(&[chosen, rejected].concat());
                let (chosen, rejected) = all.split_at(chosen.len());
                [chosen.to_vec(), rejected.to_vec()]
            })]),
        Fault::new("nll-averaged-otherwise", "the likelihood is averaged over something else")
            .seen("TRL 1.16 averages over tokens; arXiv:2401.08417, equation 4, over completions")
            .under("{nll_weight: 1.0}")
            .as_if(&[
                |options| Options { nll: Nll::TokenMean, ..options },
                |options| Options { nll: Nll::SequenceMean, ..options },
                |options| Options { nll: Nll::SequenceSum, ..options },
            ]),
        Fault::new("nll-of-prompts", "prompts have a likelihood too")
            .seen("TRL 1.16, `ORPOTrainer`: the labels of its likelihood are all tokens")
            .under("{nll_weight: 1.0}")
            .as_if(&[|options| Options { nll_over: NllOver::Text, ..options }]),
        Fault::new("alpha-ignored", "the power of AlphaPO has no effect")
            .seen("TRL 1.16, `CPOTrainer`, without its `alpha`")
            .under("{has_reference: false, alpha: 0.25}")
            .as_if(&[|options| Options { alpha: 0.0, ..options }]),
        Fault::new("alpha-of-the-other-sign", "the power of AlphaPO has the other sign")
            .seen("TRL 1.16, `CPOTrainer`, with `pow(self.alpha)`")
            .under("{has_reference: false, alpha: 0.25}")
            .as_if(&[|options| Options { alpha: -options.alpha, ..options }]),
    ]
}

fn references() -> Vec<Fault> {
    vec![
        Fault::new("reference-is-the-policy", "the reference has the policy's weights")
            .seen("`reference = policy`: PyTorch modules are shared by assignment")
            .made_of([
                Variant::On(|case, _| {
                    let first = case.logits.index_axis(Axis(0), 0).to_owned();
                    case.ref_logits = case.ref_logits.as_ref().map(|_| first);
                }),
                Variant::gives(at_each_update),
            ]),
        Fault::new("reference-in-training-mode", "the reference is asked with dropout on")
            .seen("TRL 1.16, `DPOTrainer`: a reference that is handed over keeps its mode")
            .made_of([Variant::gives(|case: &PreferenceStepCase, options, dtype| {
                let output = step(case, options, dtype, &right());
                PreferenceStepOutput { ref_training: Some(arr0(1.0)), ..output }
            })]),
        Fault::new("reference-trained", "the loss has a gradient on the reference too")
            .seen("the reference's forward pass outside of `torch.no_grad()`")
            .made_of([made_of(|parts| parts.trains_reference = true)]),
        Fault::new(
            "pairs-across",
            "a chosen completion is compared with another pair's rejected one",
        )
        .seen("verl #1943 (b4aa2dce8): rows left in another order than their companions")
        .made_of([
            made_of(|parts| parts.rejected_of = |pair, pairs| (pair + 1) % pairs),
            made_of(|parts| parts.rejected_of = |pair, pairs| (pair + pairs - 1) % pairs),
            made_of(|parts| parts.rejected_of = |pair, pairs| pairs - 1 - pair),
        ]),
        lifted::<TokenLogProbs, _>("gradient-detached-from-the-normaliser", "{}", |part| {
            made_of(|parts| parts.log_probs = part)
        }),
    ]
}

/// A step whose reference is the policy of every update.
fn at_each_update(
    case: &PreferenceStepCase,
    options: &Options,
    dtype: Dtype,
) -> PreferenceStepOutput {
    let mut output = step(case, options, dtype, &right());
    for update in 0..case.logits.shape()[0] {
        let table = case.logits.index_axis(Axis(0), update).to_owned();
        let ref_logits = case.ref_logits.as_ref().map(|_| table);
        let case = PreferenceStepCase { ref_logits, ..case.clone() };
        let own = step(&case, options, dtype, &right()).gradient;
        let mut gradient = output.gradient.index_axis_mut(Axis(0), update);
        gradient.assign(&own.index_axis(Axis(0), update));
    }
    output
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
                let right = PreferenceStep::shape(case, options).all_micro_batches();
                let first = |update: usize| update - update % usize::from(options.mini_batches);
                let chosen = Array3::from_shape_fn(right.dim(), |(update, batch, at)| {
                    right[[first(update), batch, at]] as i64
                });
                case.micro_batches = Some(chosen);
            }]),
        Fault::new("neighbours-seen", "a completion sees those before it in its packed row")
            .seen("torchtune #2613 (b18312c7d); rows that are packed without position ids")
            .made_of([Variant::gives(|case: &PreferenceStepCase, options, dtype| {
                let mut output = step(case, options, dtype, &right());
                let mut unknown = Vec::new();
                for mut table in output.gradient.outer_iter_mut() {
                    let mut most = 0.0_f64;
                    for mut pair in table.outer_iter_mut() {
                        let mut rejected = pair.index_axis_mut(Axis(0), 1);
                        most = rejected.iter().fold(most, |most, x| most.max(x.abs()));
                        rejected.fill(0.0);
                    }
                    unknown.push(most);
                }
                PreferenceStepOutput { unknown: Some(unknown.into()), ..output }
            })]),
    ]
}
