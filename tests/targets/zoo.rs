//! Every historical bug is found by exactly the invariants that it names, and diagnosed by name.

use shakedown::check::Budget;
use shakedown_targets::zoo;

#[test]
fn every_bug_is_found_by_what_it_names_and_diagnosed() {
    for bug in zoo::all() {
        for seed in 0..5 {
            let report = bug.check(&Budget { seed, ..Budget::default() }).unwrap();
            let found: Vec<&str> = report.findings.iter().map(|f| f.invariant).collect();
            assert_eq!(found, bug.found_by, "{} with seed {seed}", bug.source);
            for finding in &report.findings {
                let faults: Vec<&str> = finding.diagnosis.iter().map(|d| d.fault).collect();
                assert_eq!(faults.first(), Some(&bug.fault), "{} {faults:?}", bug.source);
            }
        }
    }
}
