//! `prove`: the tests that a contract needs itself.

use std::collections::BTreeSet;

use crate::door::check::failure_text;
use shakedown_core::contract::Contract;
use shakedown_core::contract::erased::{self, AnyContract};
use shakedown_core::contract::fault::AnyFault;
use shakedown_core::value::place::Place;
use shakedown_engine::check::run;
use shakedown_engine::host::builtin::Builtin;
use shakedown_engine::report::{ComponentReport, InvariantStatus};
use shakedown_engine::subject::{Budget, DEFAULT_CASES, Subject, read_options};

/// Checks a contract of your own: each invariant claims faults and catches them, each fault is
/// caught and named by its diagnosis, and the reference passes at f64, f32, bf16 and f16, where
/// every invariant has something to say and every class of cases comes up.
///
/// # Panics
/// With all that is wrong with the contract.
#[track_caller]
pub fn prove<C: Contract>() {
    let contract = erased::of::<C>();
    let mut wrong = wrong_claims(contract);
    for place in [Place::CPU_F64, Place::CPU_F32, Place::CPU_BF16, Place::CPU_F16] {
        let reference = Builtin::reference(contract);
        let report = checked(contract, "reference", reference, (place, DEFAULT_CASES), Vec::new());
        wrong.extend(report.warnings.iter().map(|warning| format!("at {place}: {warning}")));
        wrong.extend(failure_text(&[report]));
    }
    wrong.extend(contract.faults().iter().flat_map(|fault| wrong_with(contract, fault)));
    assert!(wrong.is_empty(), "{}:\n{}", C::ID, wrong.join("\n"));
}

/// The invariants that claim no fault, or one that is unknown.
pub fn wrong_claims(contract: &dyn AnyContract) -> Vec<String> {
    let mut wrong = Vec::new();
    for invariant in contract.invariants() {
        if invariant.catches.is_empty() {
            wrong.push(format!("{} claims to catch nothing", invariant.id));
        }
        let unknown = invariant.catches.iter().filter(|id| contract.fault(id).is_none());
        wrong.extend(unknown.map(|id| format!("{} claims the unknown fault {id}", invariant.id)));
    }
    wrong
}

/// Why a fault, in all its variants together, is not caught by each invariant that claims it and
/// named by the diagnosis of what it breaks.
///
/// # Panics
/// If its options cannot be read.
pub fn wrong_with(contract: &'static dyn AnyContract, fault: &'static AnyFault) -> Vec<String> {
    let (mut broken, mut named) = (BTreeSet::new(), BTreeSet::new());
    let mut wrong = Vec::new();
    // Where it has a name, only the invariants that have not caught it yet are tried again.
    let mut only = Vec::new();
    // A fault that misbehaves around right numbers has no variants.
    let variants = 0..fault.variants().len().max(1);
    // Few random cases show most faults.
    let runs =
        [(Place::CPU_F32, 32), (Place::CPU_F32, DEFAULT_CASES), (Place::CPU_F64, DEFAULT_CASES)]
            .into_iter();
    for (run, variant) in runs.flat_map(|run| variants.clone().map(move |at| (run, at))) {
        let planted = Builtin::fault(contract, fault, variant);
        let report = checked(contract, fault.id, planted, run, only);
        let failed = report.invariants.into_iter();
        let failed = failed.filter(|one| one.status == InvariantStatus::Fail);
        broken.extend(failed.map(|invariant| invariant.id));
        for diagnosis in report.findings.into_iter().flat_map(|finding| finding.diagnosis) {
            named.insert(diagnosis.fault);
            named.extend(diagnosis.alike);
        }
        wrong = lacking(contract, fault, &broken, &named);
        if wrong.is_empty() {
            break;
        }
        let quiet = quiet(contract, fault, &broken).map(str::to_owned);
        only = if is_named(fault, &named) { quiet.collect() } else { Vec::new() };
    }
    wrong
}

/// What is still to be broken, or to be said.
fn lacking(
    contract: &'static dyn AnyContract,
    fault: &'static AnyFault,
    broken: &BTreeSet<String>,
    named: &BTreeSet<String>,
) -> Vec<String> {
    let mut lacking = Vec::new();
    if broken.is_empty() {
        lacking.push(format!("{} is caught by nothing", fault.id));
    }
    if !is_named(fault, named) {
        lacking.push(format!("{} is taken for {named:?}", fault.id));
    }
    let quiet = quiet(contract, fault, broken);
    lacking.extend(quiet.map(|id| format!("{id} does not catch {}", fault.id)));
    lacking
}

/// The invariants that claim a fault and have not caught it.
fn quiet<'a>(
    contract: &'static dyn AnyContract,
    fault: &'a AnyFault,
    broken: &'a BTreeSet<String>,
) -> impl Iterator<Item = &'static str> + 'a {
    let claims = contract.invariants().iter().filter(|it| it.catches.contains(&fault.id));
    claims.map(|it| it.id).filter(|id| !broken.contains(*id))
}

/// What misbehaves around right numbers has no name but what it does.
fn is_named(fault: &AnyFault, named: &BTreeSet<String>) -> bool {
    fault.variants().is_empty() || named.contains(fault.id)
}

/// The report at a place on so many random cases, on some invariants: all if none is given.
fn checked(
    contract: &'static dyn AnyContract,
    name: &str,
    component: Builtin,
    (place, cases): (Place, u64),
    only: Vec<String>,
) -> ComponentReport {
    let options = read_options(contract, component.options());
    let mut subject = Subject::new(contract, name, Box::new(component));
    subject.only = only;
    subject.options = options.unwrap_or_else(|error| panic!("the options of {name}: {error}"));
    if let Err((option, why)) = subject.options.check() {
        panic!("the options of {name}: `{option}`: {why}");
    }
    let budget = Budget { cases, ..Budget::default() };
    run(&mut subject, place, &budget, &|_| ()).unwrap_or_else(|error| panic!("{error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use shakedown_contracts::returns::Returns;
    use shakedown_core::contract::fault::{AnyFunction, Behaviour};

    #[test]
    fn a_fault_that_does_nothing_wrong_is_caught_by_nothing() {
        let returns = erased::of::<Returns>();
        let function: AnyFunction = AnyFunction {
            function: Box::new(|case, options, dtype| returns.reference(case, options, dtype)),
            as_if: None,
        };
        let right = Box::leak(Box::new(AnyFault {
            id: "gamma-not-applied",
            summary: "nothing",
            source: "nowhere",
            options: "{}",
            behaviour: Behaviour::Gives(vec![function]),
        }));
        let wrong = wrong_with(returns, right);
        let expected = [
            "gamma-not-applied is caught by nothing",
            "gamma-not-applied is taken for {}",
            "oracle does not catch gamma-not-applied",
        ];
        assert_eq!(wrong[..3], expected, "{wrong:?}");
    }
}
