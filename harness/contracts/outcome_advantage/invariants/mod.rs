//! What must hold of `outcome-advantage`: the laws that apply, one file for each of its own, and
//! what holds of `group-advantage`, on the outcomes.

use std::sync::OnceLock;

use super::super::group_advantage::{GroupAdvantage, GroupAdvantageCase};
use super::{
    EmptyRows, Options, OutcomeAdvantage, OutcomeAdvantageCase, OutcomeAdvantageOutput, Unscored,
    is_empty, kept, outcomes,
};
use crate::contract::component::{Call, Component, Failure, Gradients, Returned};
use crate::contract::Contract;
use crate::contract::invariant::Invariant;
use crate::contract::probe::{Memo, Outcome, Probe, Stop};
use crate::files::journal::Journal;
use crate::laws;
use crate::generate::pick::Pick;
use crate::value::place::Place;
use crate::value::record::same_bits;

/// The invariants of `group-advantage` that hold here on the outcomes, each with the faults that
/// it must catch.
macro_rules! inherited {
    ($( $id:literal [$( $fault:literal ),+] ),+ $(,)?) => {
        [$( Invariant {
            id: $id,
            doc: of_groups($id).doc,
            pitfall: of_groups($id).pitfall,
            catches: &[$( $fault ),+],
            needs_gradient: false,
            applies: |options: &Options, place: Place| {
                (of_groups($id).applies)(&options.of_outcomes(), place)
            },
            check: |probe: &mut Probe<'_, OutcomeAdvantage>| on_outcomes(probe, of_groups($id)),
        } ),+]
    };
}

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<OutcomeAdvantage>> {
    let mut all = laws::universal();
    all.extend([
        laws::oracle::law().catching(&[
            "epsilon-clamped-for-added",
            "masked-output-not-zeroed",
            "divided-by-the-length",
            "outcome-is-the-mean",
        ]),
        laws::row_permutation::law().catching(&["groups-assumed-contiguous"]),
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

crate::contract::invariant::invariants! {
    OutcomeAdvantage;
    one_for_the_row,
    gathered,
    empty_rows,
}

/// The invariants of `group-advantage`.
fn of_groups(id: &str) -> &'static Invariant<GroupAdvantage> {
    static INVARIANTS: OnceLock<Vec<Invariant<GroupAdvantage>>> = OnceLock::new();
    let invariants = INVARIANTS.get_or_init(GroupAdvantage::invariants);
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
    if GroupAdvantage::valid(&outcomes, &options, probe.place.dtype).is_err() {
        return Err(Stop::Vacuous);
    }
    let given = probe.output()?.output.clone();
    let mut component = OnOutcomes {
        case,
        options: probe.options,
        given,
        component: &mut *probe.component,
        journal: probe.journal.as_deref_mut(),
        calls: &mut *probe.calls,
        tolerance: probe.tolerance,
        stopped: None,
        failed: None,
    };
    let outcome = (invariant.check)(&mut Probe {
        case: &outcomes,
        options: &options,
        place: probe.place,
        tolerance: probe.tolerance,
        pick: probe.pick.clone(),
        failed: None,
        component: &mut component,
        journal: None,
        memo: &mut Memo::default(),
        calls: &mut 0,
    });
    let OnOutcomes { stopped, failed, .. } = component;
    match stopped {
        Some(stop) => {
            probe.failed = failed.or(probe.failed.take());
            Err(stop)
        }
        None => outcome,
    }
}

/// The component as one of `group-advantage`: a reward stands at the token that has the row's.
struct OnOutcomes<'a> {
    case: &'a OutcomeAdvantageCase,
    options: &'a Options,
    /// What the component gave for the case.
    given: OutcomeAdvantageOutput,
    component: &'a mut dyn Component<OutcomeAdvantage>,
    journal: Option<&'a mut Journal>,
    calls: &'a mut u64,
    tolerance: crate::numeric::tolerance::Tolerance,
    /// Why a call gave nothing.
    stopped: Option<Stop>,
    /// The case and the failure of that call.
    failed: Option<(OutcomeAdvantageCase, Failure)>,
}

impl OnOutcomes<'_> {
    /// The case with these outcomes; rows of one token where there is another number of them.
    fn with(&self, outcomes: &GroupAdvantageCase) -> OutcomeAdvantageCase {
        let mut case = self.case.clone();
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
                _ if outcome.is_nan() && self.options.unscored == Unscored::Avoid => {
                    case.mask.row_mut(row).fill(false);
                }
                Some(token) => case.token_rewards[[row, token]] = *outcome,
                None => {}
            }
        }
        case
    }

    fn answer(
        &mut self,
        case: &OutcomeAdvantageCase,
        place: Place,
    ) -> Result<OutcomeAdvantageOutput, Stop> {
        if same_bits(case, self.case) {
            return Ok(self.given.clone());
        }
        let mut probe = Probe {
            case,
            options: self.options,
            place,
            tolerance: self.tolerance,
            pick: Pick::seeded(0),
            failed: None,
            component: &mut *self.component,
            journal: self.journal.as_deref_mut(),
            memo: &mut Memo::default(),
            calls: &mut *self.calls,
        };
        let answer = probe.call(case);
        self.failed = probe.failed;
        answer
    }
}

impl Component<GroupAdvantage> for OnOutcomes<'_> {
    fn call(
        &mut self,
        call: &Call<'_, GroupAdvantage>,
    ) -> Result<Returned<GroupAdvantage>, Failure> {
        let case = self.with(call.case);
        let output = self.answer(&case, call.place).map_err(|stop| {
            self.stopped = Some(stop);
            Failure::Malformed { problem: "the call of the token rewards says why".to_owned() }
        })?;
        let advantage = |row: usize| {
            let mut tokens = output.advantages.row(row).into_iter().zip(case.mask.row(row));
            tokens.find(|(_, kept)| **kept).map_or(0.0, |(advantage, _)| *advantage)
        };
        let advantages: Vec<f64> = (0..case.groups.len()).map(advantage).collect();
        Ok(Returned { output: advantages.into(), changed: Vec::new(), no_gradient: Vec::new() })
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::None("advantages have none".to_owned())
    }
}
