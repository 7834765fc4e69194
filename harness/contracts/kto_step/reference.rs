//! The reference implementation of `kto-step`. A fault replaces one of its parts.

use std::sync::Arc;

use ndarray::{Array1, Array2, Array3, Array4, ArrayView3, Axis, Ix3, IxDyn, arr0};

use super::{Behind, Kind, KtoStep, KtoStepCase, KtoStepOutput, Options};
use crate::completion_mask::{CompletionMask, CompletionMaskCase};
use crate::token_log_probs::{self, TokenLogProbs, TokenLogProbsCase};
use shakedown_core::contract::step::{Part, Stepped, reference};
use shakedown_core::value::place::Dtype;

/// What the estimate of the KL over a micro-batch is made of, row by row.
pub(super) struct Ratios<'a> {
    /// The log-probabilities of prompts with completions of others.
    pub(super) policy: Vec<f64>,
    pub(super) reference: Vec<f64>,
    /// How many tokens these completions have.
    pub(super) lengths: Vec<f64>,
    /// The labels of the rows.
    pub(super) labels: &'a [bool],
}

impl Ratios<'_> {
    pub(super) fn all(&self) -> Vec<f64> {
        self.policy.iter().zip(&self.reference).map(|(policy, other)| policy - other).collect()
    }
}

/// What a row trains that is no token of a completion.
pub(super) type Elsewhere = Arc<dyn Fn(&Options, usize, usize) -> Array1<f64> + Send + Sync>;

/// What a step is made of.
pub(super) struct Parts {
    pub(super) mask: Part<CompletionMask>,
    pub(super) log_probs: Part<TokenLogProbs>,
    pub(super) ref_log_probs: Part<TokenLogProbs>,
    /// What the log-probability of a completion is: this many times the sum of its tokens', given
    /// their number.
    pub(super) of_sum: fn(f64) -> f64,
    /// Of which rows the prompts of a micro-batch have the completions in the estimate of the KL,
    /// given all micro-batches of the update, and the place of this one.
    pub(super) others: fn(&Options, &[Vec<usize>], usize) -> Vec<usize>,
    /// The log-ratio of a completion, of its log-probabilities under policy and reference.
    pub(super) ratio: fn(f64, f64) -> f64,
    /// The estimate that each row's log-ratio is compared with.
    pub(super) estimate: fn(&Ratios<'_>) -> Vec<f64>,
    /// What is compared, of the log-ratio of a completion and the estimate.
    pub(super) compared: fn(f64, f64) -> f64,
    /// The slope of what grows with the loss, 1 - σ(x).
    pub(super) slope: fn(f64) -> f64,
    /// The share of each row in the loss of its micro-batch, given the labels.
    pub(super) shares: fn(&Options, &[bool]) -> Vec<f64>,
    /// What the gradient of an update is multiplied by.
    pub(super) factor: fn(&Options) -> f64,
    /// Whether the estimate of the KL has a gradient.
    pub(super) trains_kl: bool,
    /// Whether the reference has one.
    pub(super) trains_reference: bool,
    /// The slopes of a row's log-probability by the logits of what is no completion, given the row
    /// and the vocabulary.
    pub(super) elsewhere: Elsewhere,
}

/// All parts right.
pub(super) fn right() -> Parts {
    Parts {
        mask: reference::<CompletionMask>(),
        log_probs: reference::<TokenLogProbs>(),
        ref_log_probs: reference::<TokenLogProbs>(),
        of_sum: |_| 1.0,
        others: |options, batches, at| {
            let rows = &batches[at];
            (0..rows.len()).map(|of| rows[options.other(of, rows.len())]).collect()
        },
        ratio: |policy, reference| policy - reference,
        estimate: |ratios| same_for_all(mean(&ratios.all()).max(0.0), ratios),
        compared: |ratio, estimate| ratio - estimate,
        slope: |x| -sigmoid(x) * sigmoid(-x),
        shares: |_, labels| vec![1.0 / labels.len() as f64; labels.len()],
        factor: |_| 1.0,
        trains_kl: false,
        trains_reference: false,
        elsewhere: Arc::new(|_, _, vocabulary| Array1::zeros(vocabulary)),
    }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// One estimate for each row.
pub(super) fn same_for_all(estimate: f64, ratios: &Ratios<'_>) -> Vec<f64> {
    vec![estimate; ratios.labels.len()]
}

/// 1 / (1 + e^{-x}).
pub(super) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Tokens of some rows, how far each is trained, and what models make of them.
struct Scored {
    mask: Array2<f64>,
    policy: Array2<f64>,
    slopes: Array3<f64>,
    reference: Array2<f64>,
    ref_slopes: Array3<f64>,
    of_sum: fn(f64) -> f64,
}

impl Scored {
    fn of(
        tokens: &Array2<i64>,
        [logits, ref_logits]: [Array3<f64>; 2],
        options: &Options,
        dtype: Dtype,
        parts: &Parts,
    ) -> Scored {
        let mask = CompletionMaskCase { tokens: tokens.clone() };
        let scored = |part: &Part<TokenLogProbs>, logits| {
            let case = TokenLogProbsCase { logits, tokens: tokens.clone() };
            let output = part(&case, &token_log_probs::Options::default(), dtype);
            (output.log_probs, output.grad_logits.expect("the reference gives its gradient"))
        };
        let (policy, slopes) = scored(&parts.log_probs, logits);
        let (reference, ref_slopes) = scored(&parts.ref_log_probs, ref_logits);
        let mask = (parts.mask)(&mask, &options.mask(), dtype).mask;
        Scored { mask, policy, slopes, reference, ref_slopes, of_sum: parts.of_sum }
    }

    fn length(&self, row: usize) -> f64 {
        self.mask.row(row).sum()
    }

    /// How much each token of a row counts.
    fn weights(&self, row: usize) -> Array1<f64> {
        &self.mask.row(row) * (self.of_sum)(self.length(row))
    }

    fn sum(&self, log_probs: &Array2<f64>, row: usize) -> f64 {
        let terms = log_probs.row(row).to_vec().into_iter().zip(self.weights(row));
        terms.filter(|(_, weight)| *weight != 0.0).map(|(x, weight)| x * weight).sum()
    }
}

/// The gradients of all updates.
pub(super) fn step(
    case: &KtoStepCase,
    options: &Options,
    dtype: Dtype,
    parts: &Parts,
) -> KtoStepOutput {
    let f = |x: f64| dtype.arithmetic().round(x);
    let (shape, updates) = (KtoStep::shape(case, options), options.plan().updates());
    let vocabulary = case.logits.shape()[3];
    let mut gradient = Array4::zeros((updates, shape.all_rows(), shape.width(), vocabulary));
    let mut by_kl_logit = gradient.clone();
    let mut unknown = Array1::zeros(updates);
    let mut ref_gradient = 0.0_f64;
    for update in 0..updates {
        let logits = shape.logits(&case.logits, update);
        let ref_logits = shape.held(case.ref_logits.view().into_dyn());
        let own = Scored::of(&shape.tokens, [logits, ref_logits], options, dtype, parts);
        let batches = shape.micro_batches(update);
        let share = (parts.factor)(options) / batches.len() as f64;
        let mut elsewhere = Array1::zeros(vocabulary);
        for (at, rows) in batches.iter().enumerate() {
            let labels: Vec<bool> = rows.iter().map(|row| case.labels[*row]).collect();
            let others = (parts.others)(options, &batches, at);
            let behind = Behind::new(case, rows, &others);
            let kl = (options.kind == Kind::Kto).then(|| {
                Scored::of(&behind.tokens, held(case, &behind, update), options, dtype, parts)
            });
            let estimates = kl.as_ref().map_or_else(
                || vec![0.0; rows.len()],
                |kl| {
                    let sums = |of| (0..rows.len()).map(|row| f(kl.sum(of, row))).collect();
                    let lengths = (0..rows.len()).map(|row| kl.length(row)).collect();
                    let (policy, reference) = (sums(&kl.policy), sums(&kl.reference));
                    (parts.estimate)(&Ratios { policy, reference, lengths, labels: &labels })
                },
            );
            let shares = (parts.shares)(options, &labels);
            let by_row: Vec<f64> = (0..rows.len())
                .map(|of| {
                    let [policy, reference] =
                        [&own.policy, &own.reference].map(|all| f(own.sum(all, rows[of])));
                    let ratio = (parts.ratio)(policy, reference);
                    let sign = if labels[of] { 1.0 } else { -1.0 };
                    let compared = (parts.compared)(f(ratio), f(estimates[of]));
                    let slope = f((parts.slope)(f(sign * options.beta * compared)));
                    f(sign * options.beta * options.weight(labels[of]) * slope * shares[of]) * share
                })
                .collect();
            shape.add(&mut gradient, update, rows, |[of, at], [row, id]| {
                by_row[of] * own.weights(row)[at] * own.slopes[[row, at, id]]
            });
            for (of, row) in rows.iter().enumerate() {
                let trained = own.weights(*row);
                let by_logit = own.ref_slopes.index_axis(Axis(0), *row);
                let by_logit =
                    by_logit.indexed_iter().map(|((at, _), x)| by_row[of] * trained[at] * x);
                ref_gradient = by_logit.fold(ref_gradient, |most, x| most.max(x.abs()));
                elsewhere += &((parts.elsewhere)(options, *row, vocabulary) * by_row[of]);
            }
            let Some(kl) = kl.filter(|_| parts.trains_kl && estimates[0] > 0.0) else { continue };
            let by_estimate = -by_row.iter().sum::<f64>() / rows.len() as f64;
            for ((of, at, id), slope) in kl.slopes.indexed_iter() {
                let is_own = behind.is_own[[of, at]];
                let tables = if is_own { &mut gradient } else { &mut by_kl_logit };
                tables[[update, rows[of], at, id]] += by_estimate * kl.weights(of)[at] * slope;
            }
        }
        unknown[update] = elsewhere.fold(0.0, |most: f64, x: &f64| most.max(x.abs()));
    }
    let gradient = gradient.into_dyn().into_shape_with_order(IxDyn(case.logits.shape()));
    let largest =
        |table: ndarray::ArrayView3<'_, f64>| table.fold(0.0, |most: f64, x| most.max(x.abs()));
    KtoStepOutput {
        gradient: gradient.expect("a row of the table for each place"),
        micro_batches: Some(shape.all_micro_batches()),
        kl_gradient: Some(by_kl_logit.outer_iter().map(largest).collect()),
        unknown: Some(unknown),
        ref_gradient: Some(arr0(if parts.trains_reference { ref_gradient } else { 0.0 })),
        ref_training: Some(arr0(0.0)),
    }
}

/// The logits of policy and reference that hold for prompts with completions of others.
fn held(case: &KtoStepCase, behind: &Behind, update: usize) -> [Array3<f64>; 2] {
    let kl_logits = case.kl_logits.as_ref().expect("`kto` has them");
    let [own, others] = [&case.logits, kl_logits].map(|tables| {
        let table = tables.index_axis(Axis(0), update);
        table.into_dimensionality::<Ix3>().expect("a row of the table for each place")
    });
    let ref_kl_logits = case.ref_kl_logits.as_ref().expect("`kto` has them").view();
    let tables: [[ArrayView3<'_, f64>; 2]; 2] =
        [[own, others], [case.ref_logits.view(), ref_kl_logits]];
    tables.map(|[own, others]| behind.held(own, others))
}
