//! What must hold of `outcome-advantage`: the laws that apply, one file for each of its own, and
//! what holds of `group-advantage`, on the outcomes.

use std::sync::OnceLock;

use crate::group_advantage::{GroupAdvantage, GroupAdvantageCase};
use crate::outcome_advantage::{
    EmptyRows, Options, OutcomeAdvantage, OutcomeAdvantageCase, Unscored, is_empty, kept, outcomes,
};
use shakedown_core::contract::erased;
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// The invariants of `group-advantage` that hold here on the outcomes, each with the faults that
/// it must catch.
macro_rules! inherited {
    ($( $id:literal [$( $fault:literal ),+] ),+ $(,)?) => {
        [$( {
            let rule = Rule::new(of_groups($id).pitfall, &[$( $fault ),+], |probe| {
                on_outcomes(probe, of_groups($id))
            });
            let rule = rule.under(|options: &Options| {
                of_groups($id).is_under(&options.of_outcomes())
            });
            Invariant::own($id, of_groups($id).doc.0, rule.at(|place| of_groups($id).is_at(place)))
        } ),+]
    };
}

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<OutcomeAdvantage>> {
    let mut all = laws::universal();
    all.extend([
        laws::oracle::law().catching(&[
            "inputs-in-half-precision",
            "epsilon-clamped-for-added",
            "masked-output-not-zeroed",
            "divided-by-the-length",
            "outcome-is-the-mean",
        ]),
        laws::row_permutation::law().catching(&[
            "groups-assumed-contiguous",
            "mask-transposed",
            "mask-of-the-first-row",
        ]),
        laws::row_split::law().catching(&["group-stride-applied-twice", "groups-ignored"]),
        laws::padding::law().catching(&["outcome-is-the-mean"]),
        laws::masked_poison::law()
            .catching(&["outcome-sums-masked-rewards", "excluded-reward-in-the-statistics"]),
    ]);
    all.extend(own());
    all.extend(inherited![
        "zero-sum" ["baseline-missing", "mean-over-std-precedence", "rows-weighted-by-length"],
        "constant-group" ["epsilon-missing", "residue-of-a-rounded-mean", "baseline-missing"],
        "signal" ["rewards-truncated-to-integers"],
        "declared-scale" ["epsilon-swallows-the-signal", "biased-for-unbiased-deviation"],
        "shift-invariant" ["baseline-missing", "every-row-its-own-group"],
        "scales-with-the-rewards" ["divided-by-the-variance", "not-divided"],
        "odd" ["negative-advantages-dropped"],
        "order-preserved" ["sign-flipped"],
        "bounded" ["sum-for-mean"],
        "groups-independent" ["groups-ignored"],
        "relabelling" ["rows-in-group-order"],
        "leave-one-out" ["own-reward-in-the-baseline", "leave-one-out-divided-by-the-group-size"],
        "singleton" ["singleton-keeps-its-reward", "singleton-gets-zero"],
        "unscored" ["unscored-counted-as-zero", "unscored-spoils-its-group"],
    ]);
    all
}

invariants! {
    OutcomeAdvantage;
    one_for_the_row,
    gathered,
    empty_rows,
}

/// The invariants of `group-advantage`.
fn of_groups(id: &str) -> &'static Invariant<GroupAdvantage> {
    static INVARIANTS: OnceLock<Vec<Invariant<GroupAdvantage>>> = OnceLock::new();
    let invariants = INVARIANTS.get_or_init(GroupAdvantage::PARTS.invariants);
    invariants.iter().find(|invariant| invariant.id == id).expect("inherited invariants exist")
}

/// Checks an invariant of `group-advantage` where each row has its whole reward at one token: then
/// its outcome is a number that can be replaced.
fn on_outcomes(
    probe: &mut Probe<'_, OutcomeAdvantage>,
    invariant: &Invariant<GroupAdvantage>,
) -> Outcome {
    let case = probe.case;
    let rows = 0..case.groups.len();
    let gathered = |row: usize| kept(case, row).filter(|reward| *reward != 0.0).count() <= 1;
    let counted = |row: usize| probe.options.empty_rows == EmptyRows::Count && is_empty(case, row);
    if !rows.clone().all(gathered) || rows.clone().any(counted) {
        return Err(Stop::Vacuous);
    }
    let outcomes = outcomes(case, probe.options, |rewards| rewards.sum());
    let options = probe.options.of_outcomes();
    if (GroupAdvantage::PARTS.valid)(&outcomes, &options, probe.place.dtype).is_err() {
        return Err(Stop::Vacuous);
    }
    let given = probe.output()?.output;
    let answer = |probe: &mut Probe<'_, OutcomeAdvantage>, outcomes: &GroupAdvantageCase| {
        let other = with(case, probe.options, outcomes);
        let called = if same_bits(&other, case) { None } else { Some(probe.call(&other)?) };
        let output = called.as_ref().unwrap_or(&given);
        let advantage = |row: usize| {
            let mut tokens = output.advantages.row(row).into_iter().zip(other.mask.row(row));
            tokens.find(|(_, kept)| **kept).map_or(0.0, |(advantage, _)| *advantage)
        };
        Ok((0..other.groups.len()).map(advantage).collect::<Vec<f64>>().into())
    };
    let contract = erased::of::<GroupAdvantage>();
    probe.seen_as(contract, outcomes, options, |probe| invariant.check(probe), answer)
}

/// The case with these outcomes; rows of one token where there is another number of them. A reward
/// stands at the token that has the row's.
fn with(
    case: &OutcomeAdvantageCase,
    options: &Options,
    outcomes: &GroupAdvantageCase,
) -> OutcomeAdvantageCase {
    let mut case = case.clone();
    if outcomes.groups.len() != case.groups.len() {
        let shape = (outcomes.groups.len(), 1);
        case.token_rewards = ndarray::Array2::zeros(shape);
        case.mask = ndarray::Array2::from_elem(shape, true);
    }
    case.groups = outcomes.groups.clone();
    for (row, outcome) in outcomes.rewards.iter().enumerate() {
        let mask = case.mask.row(row);
        let tokens = || (0..mask.len()).filter(|token| mask[*token]);
        let own = tokens().find(|token| case.token_rewards[[row, *token]] != 0.0);
        match own.or_else(|| tokens().next_back()) {
            // A row without a token is unscored to `group-advantage`.
            _ if outcome.is_nan() && options.unscored == Unscored::Avoid => {
                case.mask.row_mut(row).fill(false);
            }
            Some(token) => case.token_rewards[[row, token]] = *outcome,
            None => {}
        }
    }
    case
}
