//! Components that behave badly, each checked in a real process beside two that are right.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use super::FORK;
use crate::folder::{Folder, Ran};
use crate::report::{Component, Report, Status, check};

/// The folder of the components.
pub(crate) const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python");

/// A time limit that a busy machine does not reach by itself.
pub(crate) const PATIENT: &str = "arrays: list, timeout_ms: 20000";

/// A time limit for components that hang.
pub(crate) const HASTY: &str = "arrays: list, timeout_ms: 300";

/// The interpreter itself, not a script that looks for one; empty where there is none.
pub(crate) static INTERPRETER: LazyLock<String> = LazyLock::new(|| {
    let python = shakedown::host::process::default_interpreter();
    let output = Command::new(python).args(["-c", "import sys; print(sys.executable)"]).output();
    let output = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8(output).unwrap().trim().to_owned()
});

/// Whether there is an interpreter; says what is left out where there is none.
pub(crate) fn has_python() -> bool {
    has("json")
}

/// Whether the interpreter has a module; says what is left out where it has not.
pub(crate) fn has(module: &str) -> bool {
    let code =
        "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)";
    let found = Command::new(&*INTERPRETER).args(["-c", code, module]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        println!("left out: there is no python3 with the module {module}");
    }
    found
}

#[cfg(unix)]
pub(crate) fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// A manifest whose `python` has these entries, with one component under test beside two that are
/// right: one in Python, one in Rust.
pub(crate) fn write_manifest(folder: &Folder, python: &str, target: &str) {
    let quoted = format!("{target:?}");
    let bad = if target.starts_with('{') { target } else { &quoted };
    let python = format!("path: [., {PYTHON:?}], fork: {FORK}, {python}");
    let mut text = format!("version: 1\npython: {{{python}}}\ncomponents:\n");
    for (name, target) in [
        ("bad", bad),
        ("right", "\"python:bad:right\""),
        ("builtin", "\"builtin:group-advantage/reference\""),
    ] {
        let contract = "contract: group-advantage";
        let _ = writeln!(text, "- {{name: {name}, {contract}, target: {target}}}");
    }
    folder.write("manifest.yaml", text);
}

/// Checks one component beside those that are right, on few random cases.
pub(crate) fn check_one(folder: &Folder, python: &str, target: &str) -> (Ran, Report) {
    write_manifest(folder, python, target);
    // One invariant of the neighbour in Python is enough to see that it is checked.
    let only = ["--only", "bad", "--only", "builtin", "--only", "right/finite"];
    let (ran, report) = check(folder, &[&["--cases", "16"], &only[..]].concat());
    assert_passing(&report, "builtin");
    (ran, report)
}

pub(crate) fn assert_passing(report: &Report, name: &str) {
    let component = report.component(name);
    assert_eq!(component.status, Status::Pass, "{component:#?}");
    assert!(component.cases > 100, "{name} was checked on {} cases", component.cases);
}

/// The component breaks these invariants and no others, with these words.
#[track_caller]
pub(crate) fn assert_found(bad: &Component, expected: &[(&str, &str)]) {
    let found: Vec<(&str, &str)> =
        bad.findings.iter().map(|finding| (&*finding.invariant, &*finding.found)).collect();
    let same = |((id, text), (expected, words)): (&(&str, &str), &(&str, &str))| {
        id == expected && text.contains(words)
    };
    let all = found.len() == expected.len() && found.iter().zip(expected).all(same);
    assert!(all, "expected {expected:#?}, found {found:#?}");
}

/// The same for a component that is right below three rewards, which is its smallest case.
#[track_caller]
pub(crate) fn assert_found_from_three(bad: &Component, expected: &[(&str, &str)]) {
    assert_found(bad, expected);
    for finding in &bad.findings {
        let rewards = finding.case["rewards"].as_array().unwrap();
        assert_eq!(rewards.len(), 3, "{} was not shrunk: {}", finding.invariant, finding.case);
    }
}

#[track_caller]
pub(crate) fn assert_finds(target: &str, expected: &[(&str, &str)]) {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let (ran, report) = check_one(&folder, PATIENT, target);
    assert_passing(&report, "right");
    assert_eq!(ran.code, 1);
    assert_found_from_three(report.component("bad"), expected);
}

#[track_caller]
pub(crate) fn assert_hangs(target: &str) {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let (ran, report) = check_one(&folder, HASTY, target);
    assert_eq!(ran.code, 1);
    let expected = [("within-time-limit", "did not answer within 300 ms")];
    assert_found_from_three(report.component("bad"), &expected);
}

/// The component is odd but right.
#[track_caller]
pub(crate) fn assert_passes(target: &str) {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let (ran, report) = check_one(&folder, PATIENT, target);
    assert_passing(&report, "bad");
    assert_passing(&report, "right");
    assert_eq!((ran.code, &*ran.stderr), (0, ""));
}

/// The component does not load, for a reason with all these words.
#[track_caller]
pub(crate) fn assert_error(
    folder: &Folder,
    python: &str,
    target: &str,
    words: &[&str],
) -> Option<Report> {
    if !has_python() {
        return None;
    }
    let (ran, report) = check_one(folder, python, target);
    let bad = report.component("bad");
    assert_eq!((bad.status, ran.code), (Status::Error, 2), "{bad:#?}");
    let reason = bad.reason.as_deref().unwrap();
    for words in words {
        assert!(reason.contains(words), "expected {words:?} in:\n{reason}");
    }
    Some(report)
}
