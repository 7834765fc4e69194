//! Known wrong behaviours of `pair-objective`: real bugs, and conventions mistaken for others.
//!
//! Each is the loss of a [`Pair`] with one step replaced. The gradient follows.

mod averages;
mod batches;
mod divergences;
mod odds;
mod ranks;
mod rewards;
mod scales;
mod shares;
mod sides;

use super::reference::{Pair, Side, log_odds, logistic, made_of};
use super::{Kind, Options, PairObjective, PairObjectiveCase, PairObjectiveOutput, reference};
use shakedown_core::contract::fault;
use shakedown_core::numeric::tape::Var;
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<PairObjective>;
type Variant = fault::Variant<PairObjective>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    [
        odds::odds(),
        averages::averages(),
        shares::simpo(),
        sides::squares(),
        sides::sides(),
        divergences::divergences(),
        ranks::ranks(),
        scales::references(),
        scales::scales(),
        scales::gradients(),
        batches::batches(),
        rewards::rewards(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// 1 / (1 + e^{-x}), as it stands.
fn naive_sigmoid(x: Var<'_>) -> Var<'_> {
    // 0·x keeps the graph, as 1 by itself would not be a number on the tape.
    let one = x * 0.0 + 1.0;
    one / ((-x).exp() + 1.0)
}

impl<'t> Pair<'_, 't> {
    /// β times the log-ratios of both sides.
    fn scaled(&self) -> [Var<'t>; 2] {
        [self.chosen, self.rejected].map(|side| side.ratio() * self.options.beta)
    }

    /// β times the difference of the log-ratios.
    fn difference(&self) -> Var<'t> {
        (self.chosen.ratio() - self.rejected.ratio()) * self.options.beta
    }

    /// The difference of the averaged log-ratios.
    fn average_difference(&self) -> Var<'t> {
        self.chosen.average_ratio() - self.rejected.average_ratio()
    }

    /// The log odds ratio.
    fn odds_ratio(&self) -> Var<'t> {
        log_odds(self.chosen.average()) - log_odds(self.rejected.average())
    }

    /// `orpo`, of another log odds ratio.
    fn orpo(&self, odds_ratio: Var<'t>) -> Var<'t> {
        let of_odds = logistic(odds_ratio) * self.options.beta;
        if self.options.sft { of_odds - self.chosen.average() } else { of_odds }
    }

    /// The squared distance from a target.
    fn squared(&self, x: Var<'t>, target: f64) -> Var<'t> {
        (x - target) * (x - target)
    }

    /// `sppo-hard`, with other targets.
    fn sppo(&self, target: f64) -> Var<'t> {
        self.squared(self.chosen.ratio(), target) + self.squared(self.rejected.ratio(), -target)
    }
}

/// Another loss of each pair, for the kinds that look at pairs.
fn each(loss: for<'a, 't> fn(&Pair<'a, 't>) -> Var<'t>) -> Variant {
    Variant::gives(move |case: &PairObjectiveCase, options: &Options, dtype| {
        made_of(case, options, dtype, |pairs, options| match options.kind.sorts() {
            true => reference::losses(pairs, options),
            false => pairs.iter().map(loss).collect(),
        })
    })
}

/// Another loss of each pair for one kind.
fn of(kind: Kind, loss: for<'a, 't> fn(&Pair<'a, 't>) -> Var<'t>) -> Variant {
    Variant::gives(move |case: &PairObjectiveCase, options: &Options, dtype| {
        made_of(case, options, dtype, |pairs, options| match options.kind == kind {
            true => pairs.iter().map(loss).collect(),
            false => reference::losses(pairs, options),
        })
    })
}

/// The losses of other sides, and rewards of the declared ones.
fn of_sides(change: for<'t> fn(Side<'t>, &Options) -> Side<'t>) -> Variant {
    of_pairs(move |Pair { chosen, rejected, options }| Pair {
        chosen: change(chosen, options),
        rejected: change(rejected, options),
        options,
    })
}

/// The losses of other pairs, and rewards of the declared ones.
fn of_pairs(
    change: impl for<'a, 't> Fn(Pair<'a, 't>) -> Pair<'a, 't> + Send + Sync + 'static,
) -> Variant {
    Variant::gives(move |case: &PairObjectiveCase, options: &Options, dtype| {
        made_of(case, options, dtype, |pairs, options| {
            let changed: Vec<Pair<'_, '_>> = pairs
                .iter()
                .map(|Pair { chosen, rejected, options }| {
                    change(Pair { chosen: *chosen, rejected: *rejected, options })
                })
                .collect();
            reference::losses(&changed, options)
        })
    })
}

/// The right losses, of pairs or of ranks, changed.
fn of_losses(change: for<'t> fn(Var<'t>, &Options) -> Var<'t>) -> Variant {
    Variant::gives(move |case: &PairObjectiveCase, options: &Options, dtype| {
        made_of(case, options, dtype, |pairs, options| {
            let losses = reference::losses(pairs, options);
            losses.into_iter().map(|loss| change(loss, options)).collect()
        })
    })
}

/// The right output, changed.
fn changed(change: fn(&mut PairObjectiveOutput, &PairObjectiveCase, &Options)) -> Variant {
    Variant::gives(move |case: &PairObjectiveCase, options: &Options, dtype| {
        let mut output = reference::loss(case, options, dtype);
        change(&mut output, case, options);
        output
    })
}

fn scale_gradients(output: &mut PairObjectiveOutput, [of_chosen, of_rejected]: [f64; 2]) {
    let leaves = [
        (&mut output.grad_policy_chosen, of_chosen),
        (&mut output.grad_policy_rejected, of_rejected),
    ];
    for (gradient, factor) in leaves {
        gradient.iter_mut().for_each(|gradient| *gradient *= factor);
    }
}

/// The rewards of the right output.
fn with_right_rewards(
    output: PairObjectiveOutput,
    case: &PairObjectiveCase,
    options: &Options,
    dtype: Dtype,
) -> PairObjectiveOutput {
    let right = reference::loss(case, options, dtype);
    PairObjectiveOutput {
        chosen_rewards: right.chosen_rewards,
        rejected_rewards: right.rejected_rewards,
        ..output
    }
}
