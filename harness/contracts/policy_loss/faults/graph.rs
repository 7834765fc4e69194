//! The loss as a person writes it in a trainer, one step after the other, on a tape: a fault
//! replaces the step that makes a token's loss.

use ndarray::Array2;

use super::super::{Advantages, Objective, Options, PolicyLossCase, Ratio, reference};
use super::{Variant, gradient, right, with_loss};
use crate::numeric::tape::{Tape, Var};

/// The steps that lead to a token's loss.
pub(super) struct Graph<'t> {
    pub(super) tape: &'t Tape,
    pub(super) options: &'t Options,
    case: &'t PolicyLossCase,
    advantages: Advantages<'t>,
    log_probs: Array2<Var<'t>>,
}

/// A token: its row and column.
pub(super) type At = (usize, usize);

/// Loss and gradient where each token's loss is made by `token`; the KL term, the sum and the
/// metrics are right.
pub(super) fn on_tape(token: for<'t> fn(&Graph<'t>, At) -> Var<'t>) -> Variant {
    Variant::gives(move |case: &PolicyLossCase, options: &Options, dtype| {
        let right = right(case, options, dtype);
        let Some(weights) =
            options.aggregate.weights(&case.mask, options.empty_rows, options.norm_length)
        else {
            return right;
        };
        let tape = Tape::new(dtype);
        let graph = Graph {
            tape: &tape,
            options,
            case,
            advantages: Advantages::of(case),
            log_probs: tape.leaf(&case.log_probs),
        };
        let kept = case.mask.indexed_iter().filter(|(_, kept)| **kept);
        let loss = tape.sum(kept.map(|(at, _)| token(&graph, at) * weights[at]));
        let mut slopes = tape.gradient(loss, &graph.log_probs);
        let mut total = loss.value;
        if let Some(kl) = &right.kl {
            let still =
                PolicyLossCase { advantages: case.advantages.mapv(|_| 0.0), ..case.clone() };
            slopes += &gradient(&reference::policy_loss(&still, options, dtype));
            total += options.beta * kl[()];
        }
        with_loss(right, ndarray::arr0(total), Some(slopes))
    })
}

impl<'t> Graph<'t> {
    /// The log-probability of a token.
    pub(super) fn log_prob(&self, at: At) -> Var<'t> {
        self.log_probs[at]
    }

    /// The log-ratio of a token.
    pub(super) fn log_ratio(&self, at: At) -> Var<'t> {
        self.log_probs[at] - self.case.old_log_probs[at]
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
        match self.options.log_ratio_clamp {
            Some(limit) => exponent.clamp(-limit, limit).exp(),
            None => exponent.exp(),
        }
    }

    /// The ratio.
    pub(super) fn ratio(&self, at: At) -> Var<'t> {
        self.ratio_of(self.exponent(at))
    }

    /// The ratio between its bounds.
    pub(super) fn clipped(&self, ratio: Var<'t>) -> Var<'t> {
        let (lo, hi) = self.options.bounds();
        ratio.clamp(lo, hi)
    }

    /// The loss of a token with this ratio.
    pub(super) fn loss(&self, ratio: Var<'t>, at: At) -> Var<'t> {
        let advantage = self.advantage(at);
        match self.options.objective {
            Objective::Reinforce => self.log_prob(at) * -advantage,
            Objective::Cispo => self.clipped(ratio).detach() * -advantage * self.log_prob(at),
            Objective::PpoClip => {
                let loss = (ratio * -advantage).max(self.clipped(ratio) * -advantage);
                match self.options.dual() {
                    Some(c) if advantage < 0.0 => loss.min(self.tape.constant(-c * advantage)),
                    _ => loss,
                }
            }
        }
    }
}
