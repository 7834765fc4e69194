//! The loss as a person writes it in a trainer, one step after the other, on a tape: its terms have
//! names, and a fault replaces the step that makes a token's loss.

use ndarray::{Array2, arr0};

use super::{
    Advantages, ApproxKl, KlEstimator, Objective, Options, PolicyLossCase, PolicyLossOutput, Ratio,
    reference,
};
use shakedown_core::numeric::tape::{Tape, Var};
use shakedown_core::value::place::Dtype;

/// The steps that lead to a token's loss.
pub(super) struct Graph<'t> {
    pub(super) tape: &'t Tape,
    pub(super) options: &'t Options,
    case: &'t PolicyLossCase,
    advantages: Advantages<'t>,
    log_probs: Array2<Var<'t>>,
    weights: Array2<f64>,
}

/// A token: its row and column.
pub(super) type At = (usize, usize);

/// Something of each token that is a number on the tape.
pub(super) type OfToken = for<'t> fn(&Graph<'t>, At) -> Var<'t>;

/// What the reference gives.
pub(super) fn policy_loss(
    case: &PolicyLossCase,
    options: &Options,
    dtype: Dtype,
) -> PolicyLossOutput {
    made_of(case, options, dtype, |graph, at| graph.loss(graph.ratio(at), at))
}

/// The outputs where each token's loss is made by `token`; the KL term, the sum and the metrics are
/// right.
pub(super) fn made_of(
    case: &PolicyLossCase,
    options: &Options,
    dtype: Dtype,
    token: OfToken,
) -> PolicyLossOutput {
    let Options { aggregate, empty_rows, norm_length, beta, .. } = *options;
    let Some(weights) = aggregate.weights(&case.mask, empty_rows, norm_length) else {
        return reference::policy_loss(case, options, dtype);
    };
    let tape = Tape::new(dtype);
    let log_probs = tape.leaf(&case.log_probs);
    let advantages = Advantages::of(case);
    let graph = Graph { tape: &tape, options, case, advantages, log_probs, weights };
    let policy = graph.sum(token).term("policy-gradient loss");
    let kl = case.ref_log_probs.as_ref().map(|_| graph.sum(|graph, at| graph.kl(at)));
    let penalty = kl.map(|kl| (kl * beta).term("KL penalty"));
    let loss = penalty.map_or(policy, |penalty| policy + penalty);
    PolicyLossOutput {
        loss: arr0(loss.value),
        clip_fraction: Some(arr0(graph.mean_of_tokens(|graph, at| graph.is_clipped(at)))),
        approx_kl: Some(arr0(graph.mean_of_tokens(|graph, at| graph.approx_kl(at)))),
        kl: kl.map(|kl| arr0(kl.value)),
        grad_log_probs: Some(tape.gradient(loss, &graph.log_probs)),
    }
}

/// The larger one. Where one of them is infinite, no gradient reaches the other: 0·∞ is NaN.
fn larger<'t>(a: Var<'t>, b: Var<'t>) -> Var<'t> {
    match (a.value.is_finite() && b.value.is_finite(), a.value >= b.value) {
        (true, _) => a.max(b),
        (false, true) => a,
        (false, false) => b,
    }
}

/// Between two bounds. Where an infinite number is not, no gradient reaches it.
fn within(x: Var<'_>, lo: f64, hi: f64) -> Var<'_> {
    let x = if (lo..=hi).contains(&x.value) { x } else { x.detach() };
    x.clamp(lo, hi)
}

impl<'t> Graph<'t> {
    /// The tokens under the mask.
    fn tokens(&self) -> impl Iterator<Item = At> {
        self.case.mask.indexed_iter().filter(|(_, kept)| **kept).map(|(at, _)| at)
    }

    /// The sum as declared.
    fn sum(&self, of: OfToken) -> Var<'t> {
        self.tape.sum(self.tokens().map(|at| of(self, at) * self.weights[at]))
    }

    /// The mean over all tokens, whatever is declared.
    fn mean_of_tokens(&self, of: OfToken) -> f64 {
        let count = self.tokens().count() as f64;
        (self.tape.sum(self.tokens().map(|at| of(self, at))) / count).value
    }

    /// The log-probability of a token.
    pub(super) fn log_prob(&self, at: At) -> Var<'t> {
        self.log_probs[at]
    }

    /// The log-ratio of a token.
    pub(super) fn log_ratio(&self, at: At) -> Var<'t> {
        (self.log_probs[at] - self.case.old_log_probs[at]).term("log-ratio")
    }

    pub(super) fn advantage(&self, at: At) -> f64 {
        self.advantages.at(at.0, at.1)
    }

    /// The tokens of a row.
    pub(super) fn row(&self, row: usize) -> Vec<At> {
        let columns = (0..self.case.mask.ncols()).map(|column| (row, column));
        columns.filter(|at| self.case.mask[*at]).collect()
    }

    /// The number of places of a row, masked ones too.
    pub(super) fn width(&self) -> usize {
        self.case.mask.ncols()
    }

    /// The mean log-ratio of a row.
    pub(super) fn mean(&self, row: usize) -> Var<'t> {
        let row = self.row(row);
        self.tape.sum(row.iter().map(|at| self.log_ratio(*at))) / row.len() as f64
    }

    /// The exponent of the ratio, before its clamp.
    pub(super) fn exponent(&self, at: At) -> Var<'t> {
        match self.options.ratio {
            Ratio::Token => self.log_ratio(at),
            Ratio::Sequence => self.mean(at.0),
            Ratio::SequenceToken => {
                self.mean(at.0).detach() + (self.log_prob(at) - self.log_prob(at).detach())
            }
        }
    }

    /// The ratio of an exponent.
    pub(super) fn ratio_of(&self, exponent: Var<'t>) -> Var<'t> {
        let limit = self.options.log_ratio_clamp;
        limit.map_or(exponent, |limit| within(exponent, -limit, limit)).exp()
    }

    /// The ratio.
    pub(super) fn ratio(&self, at: At) -> Var<'t> {
        self.ratio_of(self.exponent(at)).term("ratio")
    }

    /// The ratio between its bounds.
    pub(super) fn clipped(&self, ratio: Var<'t>) -> Var<'t> {
        let (lo, hi) = self.options.bounds();
        within(ratio, lo, hi).term("clipped ratio")
    }

    /// The loss of a token with this ratio.
    pub(super) fn loss(&self, ratio: Var<'t>, at: At) -> Var<'t> {
        let advantage = self.advantage(at);
        match self.options.objective {
            Objective::Reinforce => self.log_prob(at) * -advantage,
            Objective::Cispo => self.clipped(ratio).detach() * -advantage * self.log_prob(at),
            // 0·∞ would be NaN.
            Objective::PpoClip if advantage == 0.0 && !ratio.value.is_finite() => {
                self.tape.constant(0.0)
            }
            Objective::PpoClip => {
                let loss = larger(ratio * -advantage, self.clipped(ratio) * -advantage);
                match self.options.dual() {
                    Some(c) if advantage < 0.0 => -larger(-loss, self.tape.constant(c * advantage)),
                    _ => loss,
                }
            }
        }
    }

    /// 1 where clipping takes the gradient away, else 0.
    fn is_clipped(&self, at: At) -> Var<'t> {
        let (lo, hi) = self.options.bounds();
        let is_beyond = |ratio: f64| match self.advantage(at) {
            advantage if advantage > 0.0 => ratio > hi,
            advantage => advantage < 0.0 && ratio < lo,
        };
        let counts = self.options.objective == Objective::PpoClip;
        self.tape.constant(f64::from(counts && is_beyond(self.ratio(at).value)))
    }

    /// A token's part of the metric `approx_kl`.
    fn approx_kl(&self, at: At) -> Var<'t> {
        let x = self.log_ratio(at);
        match self.options.approx_kl {
            ApproxKl::K1 => -x,
            ApproxKl::K2 => x * x / 2.0,
            ApproxKl::K3 => x.exp() - 1.0 - x,
        }
    }

    /// The divergence of a token from the reference.
    fn kl(&self, at: At) -> Var<'t> {
        let reference = self.case.ref_log_probs.as_ref().expect("the KL term has a reference");
        let d = self.log_prob(at) - reference[at];
        let d = self.options.kl_log_ratio_clamp.map_or(d, |c| within(d, -c, c));
        let kl = match self.options.kl_estimator {
            KlEstimator::K1 => d,
            KlEstimator::Abs => d.abs(),
            KlEstimator::K2 => d * d / 2.0,
            KlEstimator::K3 => (-d).exp() - 1.0 + d,
        };
        let kl = self.options.kl_clamp.map_or(kl, |[lo, hi]| within(kl, lo, hi));
        kl.term("KL estimate")
    }
}
