//! How runs end: whatever keeps one from its end, what it did is reported, and nobody is harmed.

use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::folder::{Folder, Ran};
use crate::report::{Report, Status, check};

const RIGHT: &str = "- name: right\n  contract: group-advantage\n  \
                     target: builtin:group-advantage/reference\n";
const WRONG: &str = "- name: wrong\n  contract: group-advantage\n  \
                     target: builtin:group-advantage/fault/baseline-missing\n";

fn folder_with(components: &[&str]) -> Folder {
    let folder = Folder::new();
    folder.write("shakedown.yaml", format!("version: 1\ncomponents:\n{}", components.concat()));
    folder
}

fn read(folder: &Folder) -> Report {
    let text = std::fs::read_to_string(folder.path("report.json")).expect("there is a report");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn status(report: &Report, name: &str) -> Status {
    report.component(name).status
}

// ---- What cannot be checked.

#[test]
fn a_component_that_cannot_be_checked_keeps_no_other_from_its_report() {
    let broken = "- name: broken\n  contract: returns\n  target: builtin:returns/reference\n";
    let folder = folder_with(&[RIGHT, broken, WRONG]);
    folder.write("corpora/returns/regressions/old.yaml", "schema: 1\ncontract: returns\n");
    let ran = folder.run(&["check", "--cases", "8", "--json", "report.json"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    let report = read(&folder);
    let statuses = ["right", "broken", "wrong"].map(|name| status(&report, name));
    assert_eq!(statuses, [Status::Pass, Status::Error, Status::Fail]);
    let reason = report.component("broken").reason.as_deref().unwrap();
    assert!(reason.contains("old.yaml:1:1: the key `case` is missing"), "{reason}");
    assert!(ran.stdout.contains("✗ oracle"), "{}", ran.stdout);
}

#[test]
fn a_pattern_that_matches_nothing_is_an_error_beside_one_that_does() {
    let folder = folder_with(&[RIGHT]);
    let ran = folder.run(&["check", "--only", "right", "--only", "rigth"]);
    let expected = "error: `--only rigth` matches nothing; the components are `right`; did you \
                    mean `right`?\n";
    assert_eq!((ran.code, &*ran.stderr), (2, expected));
}

#[test]
fn a_component_that_never_answers_does_not_pass_whatever_is_skipped() {
    let folder = Folder::new();
    if !has_python() {
        return;
    }
    folder.write("mine.py", "def grpo(rewards, groups):\n    raise ValueError('always')\n");
    let component = "- name: mine\n  contract: group-advantage\n  target: python:mine.py:grpo\n  \
                     skip: {does-not-raise: it is known}\n";
    let manifest = format!("version: 1\npython: {{arrays: list}}\ncomponents:\n{component}");
    folder.write("manifest.yaml", manifest);
    let (ran, report) = check(&folder, &["--cases", "8"]);
    assert_eq!((ran.code, status(&report, "mine")), (2, Status::Error), "{}", ran.stdout);
    let reason = report.component("mine").reason.as_deref().unwrap();
    assert!(reason.starts_with("no call gave an output on 0 of "), "{reason}");
    assert!(reason.contains("ValueError: always"), "{reason}");
}

#[test]
fn printed_commands_can_be_given_to_a_shell() {
    let folder = folder_with(&[WRONG]);
    let manifest = "it's mine; rm.yaml";
    std::fs::rename(folder.path("shakedown.yaml"), folder.path(manifest)).unwrap();
    let ran = folder.run(&["check", manifest, "--cases", "8"]);
    let replay = ran.stdout.lines().find_map(|line| line.trim().strip_prefix("replay")).unwrap();
    let replay = replay.trim().replacen("shakedown", env!("CARGO_BIN_EXE_shakedown"), 1);
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", &replay]).current_dir(folder.path("")).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{replay}: {stdout}");
    assert!(stdout.contains("still failing"), "{stdout}");
}

// ---- What is counted.

#[test]
fn an_invariant_counts_only_the_cases_about_which_it_says_something() {
    let open = "- name: open\n  contract: answer-extractor\n  \
                target: builtin:answer-extractor/reference\n";
    let folder = folder_with(&[open]);
    let (_, report) = check_here(&folder, &["--cases", "256"]);
    let open = report.component("open");
    let oracle = open.invariants.iter().find(|one| one.id == "oracle").unwrap();
    // The definition leaves open what some of the texts answer.
    assert!((1..open.cases).contains(&oracle.cases), "{} of {}", oracle.cases, open.cases);
    assert_eq!((open.unanswered, open.planned), (0, open.cases));
}

#[test]
fn a_wider_tolerance_is_said() {
    let wide = "- name: wide\n  contract: group-advantage\n  \
                target: builtin:group-advantage/reference\n  tolerance: 1e6\n";
    let folder = folder_with(&[wide]);
    let (ran, report) = check_here(&folder, &["--cases", "8"]);
    assert_eq!(report.component("wide").warnings[0], "every tolerance is multiplied by 1000000");
    assert!(ran.stdout.contains("warning  every tolerance is"), "{}", ran.stdout);
}

#[test]
fn a_reward_range_beyond_f64_is_no_bug_of_a_component_and_its_cases_are_none() {
    let huge = "- name: huge\n  contract: group-advantage\n  \
                target: builtin:group-advantage/reference\n  \
                options: {reward_range: [-1e308, 1e308]}\n  places: [cpu/f64]\n";
    let folder = folder_with(&[huge, RIGHT]);
    let (ran, report) = check_here(&folder, &["--cases", "256"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    let (huge, right) = (report.component("huge"), report.component("right"));
    assert!((1..right.cases).contains(&huge.cases), "{} of {}", huge.cases, right.cases);
    assert_eq!(huge.planned, huge.cases);
}

// ---- Time.

#[test]
fn time_cuts_everything_but_regressions_and_says_so() {
    let folder = folder_with(&[RIGHT]);
    for number in 0..5 {
        let case = format!(
            "schema: 1\ncontract: group-advantage\nwhy: kept\ncase:\n  rewards: [0.0, {number}.0]\
             \n  groups: [0, 0]\n"
        );
        folder.write(&format!("corpora/group-advantage/regressions/{number}.yaml"), case);
    }
    let (ran, report) = check_here(&folder, &["--time", "0ms", "--junit", "junit.xml"]);
    let right = report.component("right");
    assert_eq!((ran.code, right.cut.as_deref()), (0, Some("time")));
    // Those of the folder, and those that come with the contract.
    assert!((5..20).contains(&right.cases), "{} cases", right.cases);
    let extent = format!("{} of {} cases", right.cases, right.planned);
    assert!(ran.stdout.contains(&format!("hold on {extent} (time)")), "{}", ran.stdout);
    assert!(right.planned > 256, "{} planned", right.planned);
    let warning = format!("checked on {extent}: the time was over");
    assert!(right.warnings.contains(&warning), "{:?}", right.warnings);
    let junit = std::fs::read_to_string(folder.path("junit.xml")).unwrap();
    assert!(junit.contains(&warning), "{junit}");
}

#[test]
fn time_bounds_shrinking_and_diagnosis() {
    let folder = folder_with(&[WRONG]);
    let (ran, report) = check_here(&folder, &["--time", "0ms"]);
    assert_eq!(ran.code, 1);
    let wrong = report.component("wrong");
    let tried: u64 = wrong.findings.iter().map(|finding| finding.shrink_calls).sum();
    assert_eq!(tried, 0, "{:?}", wrong.findings);
    let warning = "the time was over: cases may not be minimal, and diagnoses may be incomplete";
    assert!(wrong.warnings.iter().any(|said| said == warning), "{:?}", wrong.warnings);
}

#[test]
fn time_bounds_imports() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    folder.write("mine.py", "import time\ntime.sleep(60)\ndef grpo(rewards, groups): ...\n");
    let component = "- name: mine\n  contract: group-advantage\n  target: python:mine.py:grpo\n";
    let manifest = format!("version: 1\npython: {{arrays: list}}\ncomponents:\n{component}");
    folder.write("shakedown.yaml", manifest);
    let started = Instant::now();
    let ran = folder.run(&["check", "--time", "3s"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stdout.contains("did not load it within 3000 ms"), "{}", ran.stdout);
    assert!(started.elapsed() < Duration::from_secs(30), "it waited for the import");
}

// ---- Values that hide mistakes.

#[test]
fn options_that_are_equal_are_also_told_apart_where_the_component_takes_them() {
    if !has_python() {
        return;
    }
    // The bounds the wrong way round: right as long as both are equal.
    let code = "\
import math

def loss(log_probs, old_log_probs, advantages, mask, clip_low, clip_high):
    total, tokens = 0.0, 0
    for row in zip(log_probs, old_log_probs, advantages, mask):
        for new, old, advantage, counts in zip(*row):
            if counts:
                ratio = math.exp(new - old)
                clipped = min(max(ratio, 1 - clip_high), 1 + clip_low)
                total -= min(ratio * advantage, clipped * advantage)
                tokens += 1
    return {'loss': total / tokens if tokens else 0.0}
";
    let swapped = "- name: swapped\n  contract: policy-loss\n  target: python:mine.py:loss\n";
    let fixed = "- name: fixed\n  contract: policy-loss\n  target: python:mine.py:fixed\n";
    let fixed_code = code
        .replace("def loss", "def fixed")
        .replace(", clip_low, clip_high)", ")")
        .replace("1 - clip_high", "0.8")
        .replace("1 + clip_low", "1.2");
    let folder = Folder::new();
    folder.write("mine.py", format!("{code}\n\n{fixed_code}"));
    let manifest = format!("version: 1\npython: {{arrays: list}}\ncomponents:\n{swapped}{fixed}");
    folder.write("shakedown.yaml", manifest);
    let (_, report) = check_here(&folder, &["--cases", "32", "--places", "cpu/f64"]);
    let findings = &report.component("swapped").findings;
    let oracle = findings.iter().find(|finding| finding.invariant == "oracle");
    let oracle = oracle.unwrap_or_else(|| panic!("not found in {findings:?}"));
    assert!(oracle.found.starts_with("under `clip_low: 0.1, clip_high: 0.3`: "), "{oracle:?}");
    let file = std::fs::read_to_string(folder.path(oracle.case_file.as_ref().unwrap())).unwrap();
    assert!(file.contains("clip_low: 0.1"), "{file}");
    let warnings = &report.component("fixed").warnings;
    let warning = "`clip_low` and `clip_high` are equal, and the component takes no other values";
    assert!(warnings.iter().any(|said| said.starts_with(warning)), "{warnings:?}");
}

// ---- Interruptions.

/// Runs a check without end, and sends it a signal as soon as it calls a component.
fn interrupted(folder: &Folder, signal: &str) -> Ran {
    interrupted_with(folder, signal, &[])
}

fn interrupted_with(folder: &Folder, signal: &str, more: &[&str]) -> Ran {
    let arguments = ["check", "--cases", "1000000000", "--json", "report.json"];
    let mut command = folder.command(&[&arguments[..], more].concat());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let found = folder.path("corpora/group-advantage/found");
    let limit = Instant::now() + Duration::from_secs(30);
    while !found.is_dir() {
        assert!(Instant::now() < limit, "it does not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn an_interrupted_check_reports_what_it_did() {
    for signal in ["-INT", "-TERM"] {
        let folder = folder_with(&[RIGHT]);
        let ran = interrupted(&folder, signal);
        assert_eq!(ran.code, 130, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("of 1000000"), "{}", ran.stdout);
        assert!(ran.stdout.contains("cases (interrupted)"), "{}", ran.stdout);
        let report = read(&folder);
        let right = report.component("right");
        assert_eq!(right.cut.as_deref(), Some("interrupted"));
        assert!(right.cases > 0);
        let left = std::fs::read_dir(folder.path("corpora/group-advantage/found")).unwrap();
        let names: Vec<_> = left.flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(names, [".gitignore"], "the journal goes");
    }
}

#[test]
fn what_an_interrupted_check_did_not_begin_is_not_begun() {
    let others: Vec<String> =
        (0..4).map(|number| RIGHT.replace("right", &format!("right{number}"))).collect();
    let folder = folder_with(&others.iter().map(String::as_str).collect::<Vec<_>>());
    let ran = interrupted_with(&folder, "-INT", &["--jobs", "1"]);
    assert_eq!(ran.code, 130, "{}", ran.stdout);
    let report = read(&folder);
    let begun = report.components.iter().filter(|one| one.cases > 0).count();
    assert_eq!((begun, report.components.len()), (1, 4));
    assert!(ran.stdout.contains("skipped: interrupted before it began"), "{}", ran.stdout);
}

#[test]
fn an_interrupted_check_ends_with_its_findings() {
    let folder = folder_with(&[WRONG, RIGHT]);
    let ran = interrupted(&folder, "-TERM");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    let report = read(&folder);
    assert_eq!(status(&report, "wrong"), Status::Fail);
    assert!(ran.stdout.contains("interrupted: what follows"), "{}", ran.stdout);
}

// ---- What failed last.

#[test]
fn what_failed_last_can_be_checked_alone() {
    let folder = folder_with(&[RIGHT, WRONG]);
    let failed = || {
        let ran = folder.run(&["check", "--last-failed", "--cases", "8", "--json", "report.json"]);
        let names = read(&folder).components.into_iter().map(|component| component.name);
        (ran.code, ran.stderr, names.collect::<Vec<_>>())
    };
    let (code, said, names) = failed();
    assert_eq!((code, &*said), (1, "nothing failed last time: all are checked\n"));
    assert_eq!(names, ["right", "wrong"]);
    assert_eq!(failed(), (1, String::new(), vec!["wrong".to_owned()]));
    // What is checked alone says nothing of the others, and one invariant nothing of all.
    for alone in ["right", "wrong/finite"] {
        assert_eq!(folder.run(&["check", "--only", alone, "--cases", "8"]).code, 0);
        assert_eq!(failed().2, ["wrong"]);
    }
    let mended = std::fs::read_to_string(folder.path("shakedown.yaml")).unwrap();
    folder.write("shakedown.yaml", mended.replace("fault/baseline-missing", "reference"));
    assert_eq!(failed().0, 0);
    assert_eq!(failed().2, ["right", "wrong"]);
    assert_eq!(std::fs::read_to_string(folder.path(".shakedown/.gitignore")).unwrap(), "*\n");
}

// ---- Where reports go.

#[test]
fn a_full_disk_under_standard_output_keeps_no_report_from_its_file() {
    let folder = folder_with(&[WRONG]);
    let Ok(full) = File::options().write(true).open("/dev/full") else {
        println!("left out: no /dev/full");
        return;
    };
    let mut command = folder.command(&["check", "--cases", "8", "--json", "report.json"]);
    let output = command.stdout(full).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("cannot write the output"), "{error}");
    assert_eq!(status(&read(&folder), "wrong"), Status::Fail);
}

#[test]
fn a_reader_that_leaves_keeps_no_report_from_its_file_nor_the_exit_code() {
    let folder = folder_with(&[WRONG]);
    let mut command = folder.command(&["check", "--cases", "8", "--json", "report.json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    assert_eq!(status(&read(&folder), "wrong"), Status::Fail);
}

#[test]
fn a_finding_whose_case_cannot_be_kept_is_reported() {
    let folder = folder_with(&[WRONG]);
    // Nothing can be made in a file.
    folder.write("corpora/group-advantage/found", "taken");
    let ran = folder.run(&["check", "--cases", "8", "--json", "report.json"]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let report = read(&folder);
    let wrong = report.component("wrong");
    assert!(wrong.findings.iter().all(|finding| finding.case_file.is_none()));
    let said = wrong.warnings.iter().any(|warning| warning.contains("the case is not kept"));
    assert!(said && !ran.stdout.contains("keep  "), "{}", ran.stdout);
}

#[cfg(unix)]
#[test]
fn what_is_no_regular_file_is_written_through_and_not_replaced() {
    let folder = folder_with(&[RIGHT]);
    std::os::unix::fs::symlink("real.json", folder.path("link.json")).unwrap();
    folder.write("real.json", "old");
    let run = |to: &str| folder.run(&["check", "--cases", "8", "--json", to]);
    assert_eq!(run("link.json").code, 0);
    let link = std::fs::symlink_metadata(folder.path("link.json")).unwrap();
    assert!(link.is_symlink(), "the link was replaced");
    let text = std::fs::read_to_string(folder.path("real.json")).unwrap();
    assert!(text.contains("\"right\""), "{text}");
    // Standard output is a pipe here.
    let ran = run("/dev/stdout");
    assert!(ran.code == 0 && ran.stdout.contains("\"schema\": "), "{}", ran.stderr);
}

// ---- Texts of others.

#[test]
fn what_others_wrote_does_nothing_to_who_shows_it() {
    let why = "\\e[31mred\\n::stop-commands::x\\n  ::error::y\\n##[error]z\\uFFFE\\u202e";
    let known = format!(
        "- name: wrong\n  contract: group-advantage\n  \
         target: builtin:group-advantage/fault/baseline-missing\n  known: {{zero-sum: \"{why}\"}}\n"
    );
    let folder = folder_with(&[&known]);
    let forms = ["--junit", "junit.xml", "--sarif", "sarif.json", "--html", "html.html"];
    let arguments = [&["check", "--cases", "8", "--github"], &forms[..]].concat();
    let ran = folder.run(&arguments);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let texts = ["junit.xml", "sarif.json", "html.html"];
    let texts = texts.map(|name| std::fs::read_to_string(folder.path(name)).unwrap());
    for text in texts.iter().chain([&ran.stdout]) {
        assert!(text.contains("red"), "it is said: {text}");
        for active in ['\u{1b}', '\u{fffe}', '\u{202e}'] {
            assert!(!text.contains(active), "{active:?} in {text}");
        }
    }
    let shown = ran.stdout.lines().filter(|line| !line.starts_with("::error file="));
    for line in shown {
        assert!(!line.trim_start().starts_with("::") && !line.contains("##["), "{line}");
    }
}

#[test]
fn what_components_print_is_shown_where_it_is_asked_for() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let code = "def grpo(rewards, groups):\n    print('\\x1b[31m', len(rewards), 'rewards')\n    \
                raise ValueError\n";
    folder.write("mine.py", code);
    let component = "- name: mine\n  contract: group-advantage\n  target: python:mine.py:grpo\n";
    let manifest = format!("version: 1\npython: {{arrays: list}}\ncomponents:\n{component}");
    folder.write("shakedown.yaml", manifest);
    let quiet = folder.run(&["check", "--cases", "1"]);
    assert_eq!((quiet.code, &*quiet.stderr), (1, ""));
    let shown = folder.run(&["check", "--cases", "1", "--show-output"]);
    let line = "python:mine.py:grpo: \\u{1b}[31m 2 rewards\n";
    assert!(shown.stderr.contains(line), "{}", shown.stderr);
}

// ---- What the tests share.

/// As [`check`], with the manifest of the working folder.
fn check_here(folder: &Folder, arguments: &[&str]) -> (Ran, Report) {
    let text = std::fs::read_to_string(folder.path("shakedown.yaml")).unwrap();
    folder.write("manifest.yaml", text);
    check(folder, arguments)
}

/// Whether there is an interpreter; says what is left out where there is none.
fn has_python() -> bool {
    let found = Command::new("python3").args(["-c", ""]).status().is_ok_and(|s| s.success());
    if !found {
        println!("left out: no python3");
    }
    found
}
