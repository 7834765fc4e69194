//! Known wrong behaviours of `grpo-step`: those of its components, as a whole trainer shows them,
//! and those that no component has.

use std::sync::Arc;

use ndarray::{Array2, Array3, ArrayView1, Axis, arr0, s};

use super::reference::{Parts, penalty, right, step};
use super::{Action, GrpoStep, GrpoStepCase, GrpoStepOutput, Options, Over};
use crate::completion_mask::CompletionMask;
use crate::group_advantage::GroupAdvantage;
use crate::policy_loss::{PolicyLoss, Ratio};
use crate::reward_combination::RewardCombination;
use crate::token_log_probs::TokenLogProbs;
use shakedown_core::contract::Contract;
use shakedown_core::contract::fault;
use shakedown_core::contract::step::{Part, Shape, Stepped, lifted};
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<GrpoStep>;
type Variant = fault::Variant<GrpoStep>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    [masks(), rewards(), advantages(), temperatures(), losses(), divergences(), updates(), around()]
        .into_iter()
        .flatten()
        .collect()
}

/// A step with some wrong components.
fn made_of(change: impl FnOnce(&mut Parts)) -> Variant {
    let mut parts = right();
    change(&mut parts);
    Variant::gives(move |case, options, dtype| step(case, options, dtype, &parts))
}

/// A fault of a component, in a step under these options.
fn of<C: Contract>(id: &str, options: &'static str, put: fn(&mut Parts, Part<C>)) -> Fault {
    lifted::<C, _>(id, options, |part| made_of(|parts| put(parts, part)))
}

fn masks() -> Vec<Fault> {
    let of = |id, options| of::<CompletionMask>(id, options, |parts, mask| parts.mask = mask);
    vec![
        of("eos-left-out", "{}"),
        of("only-one-eos-id", "{eos: [1, 2], unfinished: drop}"),
        of("final-eos-dropped-when-pad-is-eos", "{pad: 1}"),
        of("unfinished-rows-dropped", "{}"),
        of("unfinished-rows-kept", "{unfinished: drop}"),
        Fault::new("padding-trained", "the tokens behind the end are trained too")
            .seen("a loss that is summed without the completion mask")
            .made_of([
                made_of(|parts| {
                    parts.mask = Arc::new(|case, _, _| case.tokens.mapv(|_| 1.0).into());
                }),
                // As wide as the longest completion is.
                made_of(|parts| {
                    parts.mask = Arc::new(|case, options, _| {
                        let is_end = |id: &i64| options.eos.contains(id);
                        let length = |row: ArrayView1<'_, i64>| {
                            row.iter().position(is_end).map_or(row.len(), |end| end + 1)
                        };
                        let longest = case.tokens.rows().into_iter().map(length).max();
                        let mut mask = Array2::zeros(case.tokens.raw_dim());
                        mask.slice_mut(s![.., ..longest.unwrap_or(0)]).fill(1.0);
                        mask.into()
                    });
                }),
            ]),
    ]
}

fn rewards() -> Vec<Fault> {
    let of = |id, options| of::<RewardCombination>(id, options, |parts, part| parts.reward = part);
    vec![
        of("weights-lost", "{weights: [2.0, 0.5]}"),
        of("mean-for-sum", "{scale: none}"),
        of("first-function-only", "{}"),
        Fault::new("rewards-of-the-next-prompt", "each group has the rewards of the next prompt")
            .seen("verl #1943 (b4aa2dce8): rows left in another order than their companions")
            .on(&[|case, options| {
                let all = case.rewards.dim().0;
                let size = all / usize::from(options.generations);
                let next = |prompt: usize| prompt / size * size + (prompt + 1) % size;
                let order: Vec<usize> = (0..all).map(next).collect();
                case.rewards = case.rewards.select(Axis(0), &order);
            }]),
    ]
}

fn advantages() -> Vec<Fault> {
    let of = |id, options| of::<GroupAdvantage>(id, options, |parts, part| parts.advantage = part);
    vec![
        of("baseline-missing", "{}"),
        of("sign-flipped", "{}"),
        of("groups-strided", "{}"),
        of("batch-mean-as-baseline", "{}"),
        of("batch-deviation-for-the-group-s", "{}"),
        of("group-deviation-for-the-batch-s", "{scale: batch-std}"),
        of("not-divided", "{}"),
        of("divided-although-not-declared", "{scale: none}"),
        of("biased-for-unbiased-deviation", "{}"),
        of("epsilon-of-another-size", "{}"),
        of("own-reward-in-the-baseline", "{baseline: leave-one-out, scale: none}"),
        of("own-reward-left-out-of-the-baseline", "{scale: none}"),
        of("whitened-again-over-the-batch", "{scale: none}"),
        of("negative-advantages-dropped", "{}"),
        of("advantages-clipped", "{scale: none}"),
        of("rewards-truncated-to-integers", "{}"),
    ]
}

/// Log-probabilities that forget the temperature.
fn untempered() -> Part<TokenLogProbs> {
    Arc::new(|case, options, dtype| {
        let options = crate::token_log_probs::Options { temperature: 1.0, ..options.clone() };
        (TokenLogProbs::PARTS.reference)(case, &options, dtype)
    })
}

fn temperatures() -> Vec<Fault> {
    vec![
        Fault::new("temperature-ignored", "no logits are divided by the temperature")
            .seen("trl #3029 (04f659737)")
            .under("{temperature: 0.7}")
            .made_of([made_of(|parts| {
                parts.log_probs = untempered();
                parts.old_log_probs = untempered();
                parts.ref_log_probs = untempered();
            })]),
        Fault::new(
            "temperature-not-applied-to-the-policy",
            "only the sampler's and the reference's logits are divided by the temperature",
        )
        .seen("unsloth-zoo #832")
        .under("{temperature: 0.7, mini_batches: 2}")
        .made_of([made_of(|parts| parts.log_probs = untempered())]),
        Fault::new(
            "temperature-not-applied-to-the-reference",
            "the reference's logits are not divided by the temperature",
        )
        .seen("slime #2085 (1da1bb19e): one side at another temperature")
        .under("{temperature: 0.7, beta: 0.5}")
        .made_of([made_of(|parts| parts.ref_log_probs = untempered())]),
        of::<TokenLogProbs>("gradient-without-temperature", "{temperature: 0.7}", |parts, part| {
            parts.log_probs = part;
        }),
        of::<TokenLogProbs>("gradient-detached-from-the-normaliser", "{}", |parts, part| {
            parts.log_probs = part;
        }),
        of::<TokenLogProbs>("tokens-of-another-row", "{}", |parts, part| {
            parts.log_probs = part.clone();
            parts.old_log_probs = part;
        }),
    ]
}

fn losses() -> Vec<Fault> {
    let of = |id, options| of::<PolicyLoss>(id, options, |parts, part| parts.loss = part);
    vec![
        of("old-log-probs-are-current", "{mini_batches: 2}"),
        of("ratio-inverted", "{mini_batches: 2}"),
        of("gradient-without-the-ratio", "{mini_batches: 2}"),
        of("clipping-ignored", "{mini_batches: 2}"),
        of("lower-bound-ignored", "{mini_batches: 2}"),
        of("upper-bound-ignored", "{mini_batches: 2}"),
        of("clip-bounds-swapped", "{clip_high: 0.28, mini_batches: 2}"),
        of("one-range-for-both-bounds", "{clip_high: 0.28, mini_batches: 2}"),
        of("minimum-for-maximum", "{mini_batches: 2}"),
        of("clipped-tokens-keep-their-gradient", "{mini_batches: 2}"),
        of("dual-clip-ignored", "{dual_clip: 1.5, mini_batches: 2}"),
        of("dual-clip-undeclared", "{mini_batches: 2}"),
        of("sequence-ratio-for-token", "{mini_batches: 2}"),
        of("token-ratio-for-sequence", "{ratio: sequence, mini_batches: 2}"),
        Fault::new(
            "mean-log-prob-for-the-sum",
            "the log-probability of a completion is the mean of its tokens', not the sum",
        )
        .seen("the ratio of GSPO where that of RLOO is declared")
        .under("{action: completion, mini_batches: 2}")
        .as_if(&[|options| Options {
            action: Action::Token,
            ratio: Ratio::Sequence,
            ..options
        }]),
        of("sequence-mean-called-token-mean", "{aggregate: token-mean}"),
        of("norm-by-padded-width", "{aggregate: seq-mean-token-sum-norm, norm_length: 7}"),
        of("empty-rows-skipped", "{unfinished: drop}"),
        of("mask-one-position-early", "{}"),
        of("first-token-left-out", "{}"),
        of("advantages-normalised-again", "{scale: none}"),
    ]
}

/// Options with the divergence in the reward.
const PENALIZED: &str =
    "{action: completion, kl_in: reward, kl_estimator: k1, beta: 0.5, scale: none}";

fn divergences() -> Vec<Fault> {
    let of = |id, options| of::<PolicyLoss>(id, options, |parts, part| parts.loss = part);
    vec![
        of("kl-term-subtracted", "{beta: 0.5}"),
        of("kl-coefficient-forced-to-zero", "{beta: 0.5}"),
        of("beta-applied-twice", "{beta: 0.5}"),
        of("kl-direction-reversed", "{beta: 0.5}"),
        of("kl-estimator-mistaken", "{beta: 0.5}"),
        of("kl-of-the-old-policy", "{beta: 0.5, mini_batches: 2}"),
        Fault::new("kl-not-weighted", "each token's divergence counts alike, whatever its ratio")
            .seen("TRL's `use_bias_correction_kl` without effect")
            .under("{beta: 0.5, kl_weighted: true, mini_batches: 2}")
            .as_if(&[|options| Options { kl_weighted: false, ..options }]),
        Fault::new("kl-weighted-undeclared", "each token's divergence is multiplied by its ratio")
            .seen("TRL's `use_bias_correction_kl`, which 1.16 has on by default")
            .under("{beta: 0.5, mini_batches: 2}")
            .as_if(&[|options| Options { kl_weighted: true, ..options }]),
        Fault::new("penalty-over-padding", "the divergence in the reward counts padding too")
            .seen("`(old - ref).sum(1)` without the completion mask")
            .under(PENALIZED)
            .made_of([made_of(|parts| {
                parts.penalty =
                    |_, old, reference, _, row| (&old.row(row) - &reference.row(row)).sum();
            })]),
        Fault::new("penalty-is-a-mean", "the divergence in the reward is the mean over the tokens")
            .seen("`masked_mean(kl)` for the sum over the completion")
            .under(PENALIZED)
            .made_of([made_of(|parts| {
                parts.penalty = |mask, old, reference, options, row| {
                    let count = mask.row(row).iter().filter(|kept| **kept).count().max(1);
                    penalty(mask, old, reference, options, row) / count as f64
                };
            })]),
        Fault::new("penalty-added", "the divergence is added to the reward")
            .seen("`rewards + beta * kl`; compare trl #2277: a sign in the divergence")
            .under(PENALIZED)
            .made_of([made_of(|parts| {
                parts.penalty = |mask, old, reference, options, row| {
                    -penalty(mask, old, reference, options, row)
                };
            })]),
        Fault::new("reference-is-the-policy", "the reference has the policy's first weights")
            .seen("`reference = policy`: PyTorch modules are shared by assignment")
            .under("{beta: 0.5}")
            .on(&[|case, _| {
                let first = case.logits.index_axis(Axis(0), 0).to_owned();
                case.ref_logits = case.ref_logits.as_ref().map(|_| first);
            }]),
    ]
}

/// The rows of every update, where `choose` says which update each takes its rows from.
fn rows_of_another_update(
    case: &mut GrpoStepCase,
    options: &Options,
    choose: fn(usize, &Options) -> usize,
) {
    let right = GrpoStep::shape(case, options).all_micro_batches();
    let (updates, batches, size) = right.dim();
    let chosen = Array3::from_shape_fn((updates, batches, size), |(update, batch, at)| {
        right[[choose(update, options), batch, at]] as i64
    });
    case.micro_batches = Some(chosen);
}

/// Each row of a micro-batch has what is of the one before it, or of the one behind it.
fn beside<const STEP: usize>(shape: &Shape, update: usize) -> Vec<usize> {
    let mut from: Vec<usize> = (0..shape.all_rows()).collect();
    for batch in shape.micro_batches(update) {
        for (at, row) in batch.iter().enumerate() {
            let step = if STEP == 0 { batch.len() - 1 } else { 1 };
            from[*row] = batch[(at + step) % batch.len()];
        }
    }
    from
}

/// Each row has what is of the row that was in its place before the rows were shuffled.
fn unshuffled(shape: &Shape, update: usize) -> Vec<usize> {
    let mut from: Vec<usize> = (0..shape.all_rows()).collect();
    let (chosen, in_order) = (shape.micro_batches(update), shape.in_order(update));
    for (row, other) in chosen.iter().flatten().zip(in_order.iter().flatten()) {
        from[*row] = *other;
    }
    from
}

fn updates() -> Vec<Fault> {
    let advantage = |companion| made_of(|parts| parts.advantage_of = companion);
    let old = |companion| made_of(|parts| parts.old_of = companion);
    vec![
        Fault::new(
            "advantages-stay-behind",
            "rows are shuffled or split, and their advantages are left in another order",
        )
        .seen("verl #1943 (b4aa2dce8): rows left in another order than their companions")
        .made_of([advantage(unshuffled), advantage(beside::<0>), advantage(beside::<1>)]),
        Fault::new(
            "old-log-probs-stay-behind",
            "rows are shuffled or split, and their old log-probabilities are left behind",
        )
        .seen("verl #1943 (b4aa2dce8): rows left in another order than their companions")
        .under("{mini_batches: 2}")
        .made_of([old(unshuffled), old(beside::<0>), old(beside::<1>)]),
        Fault::new(
            "mean-of-micro-batch-means",
            "each micro-batch has its own mean, however few its tokens are",
        )
        .seen("transformers #34191; trl #2175; verl #906")
        .under("{aggregate: token-mean, over: update, accumulation: 2}")
        .as_if(&[|options| Options { over: Over::MicroBatch, ..options }]),
        Fault::new(
            "mean-over-the-update",
            "the mean of all tokens where micro-batches have theirs",
        )
        .seen("DAPO's mean where BNPO's is declared")
        .under("{aggregate: token-mean, accumulation: 2}")
        .as_if(&[|options| Options { over: Over::Update, ..options }]),
        Fault::new(
            "mean-over-the-generation",
            "the tokens of the whole generation are counted, not those of the update",
        )
        .seen("TRL's `num_items_in_batch`, which spans the generation")
        .under("{aggregate: token-mean, over: update, mini_batches: 2}")
        .as_if(&[|options| Options { over: Over::Generation, ..options }]),
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
            .seen("an index of the buffer that is never raised; compare trl #3231")
            .under("{mini_batches: 2}")
            .on(&[|case, options| {
                rows_of_another_update(case, options, |update, options| {
                    update - update % usize::from(options.mini_batches)
                });
            }]),
        Fault::new("generation-never-renewed", "all updates train the first generation")
            .seen("a buffer that is filled once; compare trl #3231")
            .under("{generations: 2}")
            .on(&[|case, options| {
                rows_of_another_update(case, options, |update, options| {
                    update % options.plan().updates_of_a_generation()
                });
            }]),
    ]
}

/// What is beside the update: what the model was shown, the reference's state, the rewards.
fn around() -> Vec<Fault> {
    let right = |case: &GrpoStepCase, options: &Options, dtype: Dtype| -> GrpoStepOutput {
        step(case, options, dtype, &right())
    };
    vec![
        Fault::new(
            "attention-mask-forgotten",
            "the model sees the pads before a shorter prompt as tokens",
        )
        .seen("trlx #108 (8edcd9d): left padding, and positions that count it")
        .made_of([Variant::gives(move |case, options, dtype| {
            let mut output = right(case, options, dtype);
            // The longest prompt is the last: it has no pads.
            let last = case.tokens.dim().0 - 1;
            let mut unknown = Vec::new();
            for mut table in output.gradient.outer_iter_mut() {
                let mut most = 0.0_f64;
                for mut prompt in table.outer_iter_mut().take(last) {
                    most = prompt.iter().fold(most, |most, x| most.max(x.abs()));
                    prompt.fill(0.0);
                }
                unknown.push(most);
            }
            GrpoStepOutput { unknown: Some(unknown.into()), ..output }
        })]),
        Fault::new("reference-in-training-mode", "the reference is asked with dropout on")
            .seen("TRL 1.16, `DPOTrainer`: a reference that is handed over keeps its mode")
            .under("{beta: 0.5}")
            .made_of([Variant::gives(move |case, options, dtype| {
                let output = right(case, options, dtype);
                GrpoStepOutput { ref_training: Some(arr0(1.0)), ..output }
            })]),
        Fault::new("reference-trained", "the divergence has a gradient on the reference too")
            .seen("the reference's forward pass outside of `torch.no_grad()`")
            .under("{beta: 0.5}")
            .made_of([Variant::gives(move |case, options, dtype| {
                let output = right(case, options, dtype);
                let most = output.gradient.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
                GrpoStepOutput { ref_gradient: Some(arr0(most)), ..output }
            })]),
        Fault::new("scored-twice", "every completion is scored twice")
            .seen("a reward function that is called for the metrics again")
            .made_of([Variant::gives(move |case, options, dtype| {
                let output = right(case, options, dtype);
                GrpoStepOutput { scored: output.scored.map(|times| times * 2.0), ..output }
            })]),
    ]
}
