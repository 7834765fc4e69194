//! Every historical bug is found by all the invariants that it names, and diagnosed by name there.
//!
//! Others may find it too: which of them do depends on the cases of a run. One listed test for each
//! bug: `cargo test -p shakedown-targets --test zoo -- half_kl`. Each runs in a process of its own,
//! so that libtorch has one thread and the machine has work for all of its cores.

#[path = "../support/night.rs"]
mod night;

use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};
use shakedown::engine::subject::Budget;
use shakedown::report::Diagnosis;
use shakedown_targets::zoo::{self, Bug};

/// What a check says of a bug and the bug does not, or the other way round.
fn differences(bug: &Bug, seed: u64) -> Result<(), Failed> {
    let report = bug.check(&Budget { seed, ..Budget::default() })?;
    let found: Vec<&str> = report.findings.iter().map(|finding| &*finding.invariant).collect();
    // It may be told besides in which output or region.
    let is_named = |one: &Diagnosis| {
        one.fault
            .strip_prefix(bug.fault)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let undiagnosed: Vec<String> = report
        .findings
        .iter()
        .filter(|finding| bug.found_by.contains(&&*finding.invariant))
        .filter(|finding| !finding.diagnosis.iter().any(is_named))
        .map(|finding| {
            let faults: Vec<&str> = finding.diagnosis.iter().map(|one| &*one.fault).collect();
            format!("{}: diagnosed as {faults:?}", finding.invariant)
        })
        .collect();
    let missed = bug.found_by.iter().any(|id| !found.contains(id)) || bug.found_by.is_empty();
    if missed || !undiagnosed.is_empty() {
        let expected = format!("expected {:?} and `{}`", bug.found_by, bug.fault);
        let source = bug.source;
        Err(format!(
            "{source} with seed {seed}\n  found {found:?}\n  {undiagnosed:?}\n  {expected}"
        ))?;
    }
    Ok(())
}

/// Checks one bug; with `SHAKEDOWN_NIGHT=1` under a second seed too.
fn check(bug: &Bug) -> Result<(), Failed> {
    (0..if night::is_night() { 2 } else { 1 }).try_for_each(|seed| differences(bug, seed))
}

/// Runs the test of this name in a process of its own.
fn in_a_process(name: &str) -> Result<(), Failed> {
    let program = std::env::current_exe()?;
    let ran = Command::new(program).args(["--exact", name]).output()?;
    let said = String::from_utf8_lossy(&ran.stdout);
    // A name that is not listed would end well, having tested nothing.
    if ran.status.success() && said.contains("1 passed") {
        return Ok(());
    }
    Err(format!("{}\n{said}{}", ran.status, String::from_utf8_lossy(&ran.stderr)).into())
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let alone = arguments.exact && arguments.filter.is_some();
    // The last stages first: training takes longest.
    let trials = zoo::all().into_iter().rev().map(|(name, bug)| {
        let test = move || if alone { check(&bug) } else { in_a_process(name) };
        Trial::test(name, test)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
