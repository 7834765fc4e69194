//! Reports for machines: JUnit, SARIF and annotations; shards, and their reports merged.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus};
use quick_xml::events::{BytesStart, Event};
use serde_json::{Value, json};

use crate::folder::{Folder, Ran};
use crate::report::{Component, InvariantStatus, Report, Status, check};
use crate::snapshot::assert_snapshot;

/// Every kind of outcome, in components whose names have what files have to escape.
const MANIFEST: &str = "version: 1
python: {interpreter: no-such-python}
components:
- name: right
  contract: group-advantage
  target: builtin:group-advantage/reference
  places: [cpu/f32, cuda/f32, cpu/bf16]
- {name: excused, contract: group-advantage, known: {inputs-unchanged: 'see #12'},
   target: builtin:group-advantage/fault/changes-its-inputs}
- name: 'wrong <&\"]]>, 100 %: {0}'
  contract: group-advantage
  target: builtin:group-advantage/fault/baseline-missing
  known: {finite: 'see #13'}
  skip: {oracle: 'a < b'}
- name: lost
  contract: group-advantage
  target: python:lost.py:grpo
- name: returns
  contract: returns
  target: builtin:returns/fault/pad-rewards-in-the-return
";

fn everything() -> Folder {
    let folder = Folder::new();
    folder.write("manifest.yaml", MANIFEST);
    folder
}

fn read(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(folder.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

// ---- JUnit.

#[test]
fn junit_has_a_suite_for_each_component_and_a_test_case_for_each_invariant() {
    let folder = everything();
    let (ran, report) = check(&folder, &["--cases", "8", "--verbose", "--junit", "junit.xml"]);
    let junit = quick_junit::Report::deserialize_from_str(&read(&folder, "junit.xml")).unwrap();
    assert_eq!(junit.test_suites.len(), report.components.len());
    for (suite, component) in junit.test_suites.iter().zip(&report.components) {
        let title = format!("{} · {}", component.name, component.place);
        assert_eq!(suite.name.as_str(), title);
        assert!(suite.test_cases.iter().all(|case| case.classname.as_deref() == Some(&*title)));
        if component.invariants.is_empty() {
            let [case] = &suite.test_cases[..] else { panic!("{title}: {suite:?}") };
            let kind = if component.status == Status::Error { "error" } else { "skipped" };
            assert_eq!(outcome(case), (kind, component.reason.clone().unwrap()));
            continue;
        }
        assert_eq!(suite.test_cases.len(), component.invariants.len());
        for (case, invariant) in suite.test_cases.iter().zip(&component.invariants) {
            assert_eq!(case.name.as_str(), invariant.id);
            let (kind, words) = outcome(case);
            let reason = invariant.reason.clone().unwrap_or_default();
            match invariant.status {
                InvariantStatus::Pass => assert_eq!(kind, "pass"),
                InvariantStatus::Skipped => assert_eq!((kind, words), ("skipped", reason)),
                InvariantStatus::Known => {
                    assert_eq!((kind, words), ("skipped", format!("known to fail: {reason}")));
                }
                InvariantStatus::Vacuous => assert_eq!(kind, "skipped"),
                InvariantStatus::Fail => {
                    assert_eq!(kind, "failure");
                    let found = component.findings.iter().find(|f| f.invariant == invariant.id);
                    let said = found.map_or(&*reason, |found| &found.found).lines();
                    assert!(said.into_iter().all(|line| words.contains(line)), "{words}");
                    // What it says is what the text report says, after which bug it is.
                    let Some(found) = found else { continue };
                    let heads = component.heads();
                    let head = heads.iter().find(|head| head.bug == found.bug).unwrap();
                    let (which, rest) = words.split_once('\n').unwrap();
                    let (bug, bugs, at) = (found.bug, heads.len(), &head.invariant);
                    assert_eq!(which, format!("bug {bug} of {bugs}, told at `{at}`"));
                    // What breaks twice is told twice.
                    let once = rest.split("\nbug ").next().unwrap();
                    assert!(ran.stdout.contains(once), "{once}");
                }
            }
        }
    }
}

/// What came of a test case, and what is said about it.
fn outcome(case: &TestCase) -> (&'static str, String) {
    let text = |text: &Option<quick_junit::XmlString>| {
        text.as_ref().map_or(String::new(), |text| text.as_str().to_owned())
    };
    match &case.status {
        TestCaseStatus::Success { .. } => ("pass", String::new()),
        TestCaseStatus::Skipped { message, .. } => ("skipped", text(message)),
        TestCaseStatus::NonSuccess { kind: NonSuccessKind::Error, description, .. } => {
            ("error", text(description))
        }
        TestCaseStatus::NonSuccess { description, .. } => ("failure", text(description)),
    }
}

/// Jenkins's schema `junit-10.xsd` as far as it goes for what is written here: element, parent,
/// attributes that must be there, attributes that may be there.
const JUNIT: [(&str, &str, &[&str], &[&str]); 10] = [
    ("testsuites", "", &[], &["name", "time", "tests", "failures", "errors"]),
    ("testsuite", "testsuites", &["name", "tests", "failures", "errors"], &["time", "skipped"]),
    ("properties", "testsuite", &[], &[]),
    ("property", "properties", &["name", "value"], &[]),
    ("testcase", "testsuite", &["name"], &["time", "classname"]),
    ("system-out", "testsuite", &[], &[]),
    ("system-err", "testsuite", &[], &[]),
    ("skipped", "testcase", &[], &["message", "type"]),
    ("failure", "testcase", &[], &["message", "type"]),
    ("error", "testcase", &[], &["message", "type"]),
];

/// What is wrong with a JUnit file.
fn junit_mistakes(xml: &str) -> Vec<String> {
    let mut reader = quick_xml::Reader::from_str(xml);
    let mut open = vec![String::new()];
    let mut mistakes = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) => {
                mistakes.extend(element_mistakes(&start, &open[open.len() - 1]));
                open.push(name_of(&start));
            }
            Event::Empty(start) => mistakes.extend(element_mistakes(&start, &open[open.len() - 1])),
            Event::End(_) => drop(open.pop()),
            Event::Eof => return mistakes,
            _ => {}
        }
    }
}

fn name_of(start: &BytesStart<'_>) -> String {
    String::from_utf8(start.name().as_ref().to_vec()).unwrap()
}

fn element_mistakes(start: &BytesStart<'_>, parent: &str) -> Vec<String> {
    let name = name_of(start);
    let Some((_, _, must, may)) = JUNIT.iter().find(|one| (one.0, one.1) == (&name, parent)) else {
        return vec![format!("<{name}> in <{parent}>")];
    };
    let key = |one: quick_xml::events::attributes::Attribute<'_>| {
        String::from_utf8(one.key.as_ref().to_vec()).unwrap()
    };
    let given: BTreeSet<String> = start.attributes().map(|one| key(one.unwrap())).collect();
    let missing = must.iter().filter(|one| !given.contains(**one));
    let strange = given.iter().filter(|one| !must.iter().chain(*may).any(|known| known == one));
    missing
        .map(|one| format!("<{name}> without {one}"))
        .chain(strange.map(|one| format!("<{name} {one}>")))
        .collect()
}

#[test]
fn junit_keeps_to_the_schema() {
    let folder = everything();
    check(&folder, &["--cases", "8", "--junit", "junit.xml"]);
    let xml = read(&folder, "junit.xml");
    assert_eq!(junit_mistakes(&xml), Vec::<String>::new(), "{xml}");
    let wrong = xml.replacen("<testcase name=", "<testcase nom=", 1);
    assert_eq!(junit_mistakes(&wrong), ["<testcase> without name", "<testcase nom>"]);
}

// ---- SARIF.

/// The schema of SARIF 2.1.0, from the crate that our types are generated from.
fn sarif_schema() -> Option<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--offline", "--all-features"]);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = cargo.output().expect("cargo starts");
    let metadata: Value = serde_json::from_slice(&output.stdout).ok()?;
    let mut packages = metadata["packages"].as_array()?.iter();
    let package = packages.find(|package| package["name"] == "serde-sarif")?;
    let source = Path::new(package["manifest_path"].as_str()?).parent()?;
    let text = std::fs::read_to_string(source.join("src/schema.json")).ok()?;
    // One of its patterns, for the names of languages, has a bracket too many.
    serde_json::from_str(&text.replace("{2}]?$", "{2}$")).ok()
}

#[test]
fn sarif_keeps_to_the_schema() {
    let Some(schema) = sarif_schema() else {
        println!("left out: cargo does not say where the schema of SARIF is");
        return;
    };
    let schema = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let mistakes = |log: &Value| -> Vec<String> {
        schema.iter_errors(log).map(|error| error.to_string()).collect()
    };
    let folder = everything();
    for only in ["", "right"] {
        check(&folder, &["--cases", "8", "--only", only, "--sarif", "report.sarif"]);
        let mut log: Value = serde_json::from_str(&read(&folder, "report.sarif")).unwrap();
        assert_eq!(mistakes(&log), Vec::<String>::new(), "{log:#}");
        log["runs"][0]["tool"]["driver"]["name"] = Value::Null;
        assert_eq!(mistakes(&log).len(), 1);
    }
}

#[test]
fn every_bug_is_a_result_with_its_rule_and_the_line_of_its_component() {
    let folder = everything();
    let (_, report) = check(&folder, &["--cases", "8", "--sarif", "report.sarif"]);
    let log: Value = serde_json::from_str(&read(&folder, "report.sarif")).unwrap();
    let run = &log["runs"][0];
    let results = run["results"].as_array().unwrap();
    let failed: Vec<(&Component, &str)> = report
        .components
        .iter()
        .flat_map(|component| {
            let bugs = component.heads().into_iter().map(|head| head.invariant.as_str());
            let failed = component.invariants.iter();
            let failed = failed.filter(|one| one.status == InvariantStatus::Fail);
            let undeclared = failed
                .map(|one| one.id.as_str())
                .filter(|id| !component.findings.iter().any(|finding| finding.invariant == *id));
            bugs.chain(undeclared).map(move |id| (component, id))
        })
        .collect();
    assert!(results.len() == failed.len() && failed.len() > 2, "{failed:?}");
    let mut fingerprints = BTreeSet::new();
    for (result, (component, invariant)) in results.iter().zip(failed) {
        let id = format!("{}/{invariant}", component.contract);
        assert_eq!(result["ruleId"], *id);
        let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], *id);
        let help = rule["help"]["text"].as_str().unwrap();
        assert!(folder.run(&["explain", &id]).stdout.contains(help), "{help}");
        let physical = &result["locations"][0]["physicalLocation"];
        assert_eq!(physical["artifactLocation"]["uri"], "manifest.yaml");
        assert_eq!(
            physical["region"]["startLine"],
            component.location.as_ref().expect("it has a manifest").line
        );
        let text = result["message"]["text"].as_str().unwrap();
        if let Some(finding) = component.findings.iter().find(|one| one.invariant == invariant) {
            assert!(text.contains(&finding.found) && text.contains(&finding.claim), "{text}");
            assert!(rule["shortDescription"]["text"] == *finding.claim);
            assert_eq!(result["properties"]["case"], finding.case);
            assert_eq!(result["properties"]["caseFile"], json!(finding.case_file));
            let also = component.also(finding.bug);
            assert_eq!(result["properties"]["breaksToo"], json!(also));
            let line = format!("\nbreaks too: {}", also.join(", "));
            assert_eq!(text.contains(&line), !also.is_empty(), "{text}");
        }
        assert!(fingerprints.insert(result["partialFingerprints"].to_string()), "{text}");
    }
    // What could not run is said, too.
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    let told = invocation["toolExecutionNotifications"].as_array().unwrap();
    let said = |level: &str| -> Vec<&str> {
        let of_level = told.iter().filter(|one| one["level"] == level);
        of_level.map(|one| one["message"]["text"].as_str().unwrap()).collect()
    };
    let reason = report.component("lost").reason.as_deref().unwrap();
    assert_eq!(said("error"), [format!("lost · cpu/f32 could not run: {reason}")]);
    let warnings = report.components.iter().flat_map(|component| &component.warnings);
    let warnings: Vec<&String> = warnings.collect();
    assert!(!warnings.is_empty() && said("warning").len() == warnings.len());
    assert!(said("warning").iter().zip(&warnings).all(|(said, one)| said.ends_with(one.as_str())));
}

#[test]
fn a_finding_has_the_same_fingerprint_under_another_seed() {
    let folder = everything();
    let fingerprints = |seed: &str| -> Vec<Value> {
        check(&folder, &["--cases", "8", "--seed", seed, "--sarif", "report.sarif"]);
        let log: Value = serde_json::from_str(&read(&folder, "report.sarif")).unwrap();
        let results = log["runs"][0]["results"].as_array().unwrap();
        results.iter().map(|result| result["partialFingerprints"].clone()).collect()
    };
    assert_eq!(fingerprints("1"), fingerprints("2"));
}

// ---- Bugs.

/// The report of a component with two bugs, in every form.
fn two_bugs() -> (Folder, Ran, Report) {
    let folder = Folder::new();
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python");
    let manifest = format!(
        "version: 1\npython: {{arrays: list, path: [\"{here}\"], timeout_ms: 20000}}\n\
         components:\n- name: ours\n  contract: group-advantage\n  \
         target: python:nested:no_baseline_and_raises\n  options: {{scale: none}}\n  \
         places: [cpu/f64]\n"
    );
    folder.write("manifest.yaml", manifest);
    let forms = ["--sarif", "s.json", "--html", "p.html", "--junit", "j.xml", "--github"];
    let (ran, report) = check(&folder, &forms);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    (folder, ran, report)
}

#[test]
fn two_bugs_in_one_component_are_two_findings_in_every_form() {
    let (folder, ran, report) = two_bugs();
    let ours = report.component("ours");
    let heads = ours.heads();
    assert!(heads.len() == 2 && ours.findings.len() > 3, "{}", ran.stdout);
    assert_ne!(heads[0].case, heads[1].case, "each has its own smallest case");
    // Text.
    assert_eq!(ran.stdout.matches("  ✗ ").count(), 2, "{}", ran.stdout);
    assert!(ran.stdout.contains(" 2 findings on "), "{}", ran.stdout);
    for head in &heads {
        let also = ours.also(head.bug).join(", ");
        let line = format!("    breaks too {also}\n");
        assert_eq!(ran.stdout.contains(&line), !also.is_empty(), "{}", ran.stdout);
    }
    let annotations = ran.stdout.lines().filter(|line| line.starts_with("::error "));
    assert_eq!(annotations.count(), 2, "{}", ran.stdout);
    // SARIF.
    let log: Value = serde_json::from_str(&read(&folder, "s.json")).unwrap();
    let results = log["runs"][0]["results"].as_array().unwrap();
    let cases: Vec<&Value> = results.iter().map(|result| &result["properties"]["case"]).collect();
    assert_eq!(cases, [&heads[0].case, &heads[1].case]);
    // HTML.
    let page = read(&folder, "p.html");
    assert_eq!(page.matches("<section class=\"finding\"").count(), 2);
    assert!(page.contains("<span class=\"gist\">2 findings"), "{page}");
    // `found` has a case of each.
    let kept = std::fs::read_dir(folder.path("corpora/group-advantage/found")).unwrap();
    let names: Vec<_> = kept.map(|entry| entry.unwrap().file_name()).collect();
    let is_case = |name: &&std::ffi::OsString| name.to_string_lossy().ends_with(".yaml");
    assert_eq!(names.iter().filter(is_case).count(), 2, "{names:?}");
}

#[test]
fn verbose_shows_the_findings_of_a_bug_one_by_one() {
    let (folder, _, report) = two_bugs();
    let ours = report.component("ours");
    let ran = folder.run(&["check", "manifest.yaml", "--verbose"]);
    assert_eq!(ran.stdout.matches("  ✗ ").count(), ours.findings.len(), "{}", ran.stdout);
    for finding in &ours.findings {
        let Some(found) = finding.found.lines().next() else { panic!("{finding:?}") };
        assert!(ran.stdout.contains(&format!("    found      {found}\n")), "{found}");
        assert!(ran.stdout.contains(&format!("explain group-advantage/{}\n", finding.invariant)));
    }
    let same = ran.stdout.matches("   the same bug as `").count();
    assert_eq!(same, ours.findings.len() - 2, "{}", ran.stdout);
    assert!(ran.stdout.contains(" 2 findings on "), "they are no more bugs: {}", ran.stdout);
    let commands = ran.stdout.matches("    replay     ").count();
    assert_eq!(commands, 2, "each bug says once how to go on");
}

#[test]
fn junit_says_in_each_test_case_which_bug_it_is() {
    let (folder, _, report) = two_bugs();
    let ours = report.component("ours");
    let junit = quick_junit::Report::deserialize_from_str(&read(&folder, "j.xml")).unwrap();
    let cases = &junit.test_suites[0].test_cases;
    assert_eq!(cases.len(), ours.invariants.len());
    for finding in &ours.findings {
        let head = ours.heads().into_iter().find(|head| head.bug == finding.bug).unwrap();
        let which = format!("bug {} of 2, told at `{}`", finding.bug, head.invariant);
        let case = cases.iter().find(|case| case.name.as_str() == finding.invariant).unwrap();
        let words = outcome(case).1;
        assert!(words.lines().any(|line| line == which), "{which} is not in {words}");
        let TestCaseStatus::NonSuccess { message: Some(message), .. } = &case.status else {
            panic!("{case:?}")
        };
        assert!(message.as_str().contains(" of 2, told at `"), "{message:?}");
    }
}

// ---- Annotations and places in files.

#[test]
fn the_annotations_of_everything_that_is_wrong() {
    let folder = everything();
    let ran = folder.run(&["check", "manifest.yaml", "--cases", "8", "--github"]);
    let annotations: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("::")).collect();
    assert_snapshot("reports", "annotations", &annotations.join("\n"));
    let without = folder.run(&["check", "manifest.yaml", "--cases", "8"]);
    assert!(!without.stdout.contains("\n::"), "{}", without.stdout);
}

#[test]
fn locations_are_from_the_root_of_the_repository() {
    let folder = Folder::new();
    folder.write(".git/HEAD", "ref: refs/heads/main\n");
    folder.write("my training/shakedown.yaml", MANIFEST);
    let mut command =
        folder.command(&["check", "./shakedown.yaml", "--cases", "1", "--sarif", "report.sarif"]);
    command.current_dir(folder.path("my training")).output().unwrap();
    let log: Value = serde_json::from_str(&read(&folder, "my training/report.sarif")).unwrap();
    let location = &log["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "my%20training/shakedown.yaml");
}

// ---- Shards.

/// A text without what says how long something took.
fn timeless(text: &str) -> String {
    let is_time = |line: &&str| !line.contains("_ms\": ");
    let lines = text.lines().filter(is_time).map(|line| match line.split_once(" time=\"") {
        Some((before, after)) => format!("{before}{}\n", after.split_once('"').unwrap().1),
        None => format!("{line}\n"),
    });
    lines.collect()
}

#[test]
fn merged_shards_say_what_one_run_says_byte_for_byte_but_for_times() {
    let folder = everything();
    let forms = |name: &str| -> [String; 6] {
        ["--json", "--junit", "--sarif"]
            .map(|form| [form.to_owned(), format!("{name}{form}")])
            .concat()
            .try_into()
            .unwrap()
    };
    let run = |arguments: &[&str], name: &str| -> (Ran, [String; 3]) {
        let forms = forms(name);
        let forms: Vec<&str> = forms.iter().map(String::as_str).collect();
        let ran = folder.run(&[arguments, &forms].concat());
        (ran, [1, 3, 5].map(|file| timeless(&read(&folder, forms[file]))))
    };
    let (whole, files) = run(&["check", "manifest.yaml", "--cases", "8"], "whole");
    for of in [1, 2, 3, 9] {
        let mut shards = Vec::new();
        for index in (1..=of).rev() {
            let shard = format!("{index}/{of}");
            let json = format!("{index}-of-{of}.json");
            let (_, report) = check(&folder, &["--cases", "8", "--shard", &shard]);
            assert_eq!(report.shard.as_deref(), Some(&*shard));
            std::fs::rename(folder.path("report.json"), folder.path(&json)).unwrap();
            shards.push(json);
        }
        let mut arguments = vec!["merge-reports"];
        arguments.extend(shards.iter().map(String::as_str));
        let (merged, merged_files) = run(&arguments, "merged");
        assert_eq!((merged.code, &merged.stdout), (whole.code, &whole.stdout), "{of} shards");
        assert_eq!(merged_files, files, "{of} shards");
    }
}

#[test]
fn a_shard_with_nothing_in_it_says_so_and_is_no_error() {
    let folder = everything();
    let ran = folder.run(&["check", "manifest.yaml", "--only", "lost", "--shard", "2/2"]);
    let expected =
        "nothing to check, shard 2/2: there are fewer components and places than shards\n";
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (0, expected, ""));
}

#[test]
fn reports_of_different_components_merge_in_the_order_given() {
    let folder = everything();
    let one = |name: &str| {
        check(&folder, &["--cases", "1", "--only", name]);
        std::fs::rename(folder.path("report.json"), folder.path(name)).unwrap();
    };
    one("returns");
    one("right");
    let merge = |files: &[&str]| folder.run(&[&["merge-reports"], files].concat());
    let ran = merge(&["right", "returns", "--json", "merged.json"]);
    let names: Vec<&str> = ran.stdout.lines().filter_map(|line| line.split(" · ").nth(1)).collect();
    assert_eq!((ran.code, names), (1, vec!["right", "right", "right", "returns"]));
    assert_eq!(merge(&["right"]).code, 0);
    assert_eq!(merge(&["merged.json"]).stdout, ran.stdout);
}

#[test]
fn reports_that_do_not_belong_together_are_refused() {
    let folder = everything();
    let write = |name: &str, arguments: &[&str]| {
        let ran = ["check", "manifest.yaml", "--cases", "1", "--json", name];
        folder.run(&[&ran, arguments].concat());
    };
    for shard in ["1/3", "2/3", "3/3", "1/2"] {
        write(&format!("{}.json", shard.replace('/', "-of-")), &["--shard", shard]);
    }
    write("1-of-99.json", &["--shard", "1/99"]);
    write("all.json", &[]);
    write("returns.json", &["--only", "returns"]);
    write("seed.json", &["--seed", "7"]);
    write("few.json", &["--shard", "3/3", "--only", "right"]);
    let all = read(&folder, "all.json");
    let version = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    folder.write("old.json", all.replace(&version, "\"version\": \"0.0.9\""));
    folder.write("schema.json", all.replace("shakedown/report/1", "shakedown/report/2"));
    folder.write("other.json", "{\"tests\": 3}");
    folder.write("list.json", "[1]");
    folder.write("key.json", all.replacen("\"seed\"", "\"sead\"", 1));
    folder.write("half.json", all.split("\"stage\"").next().unwrap());
    let mut told = String::new();
    for files in [
        &["1-of-3.json", "3-of-3.json"][..],
        &["2-of-3.json"],
        &["1-of-99.json"],
        &["1-of-3.json", "2-of-3.json", "1-of-3.json", "3-of-3.json"],
        &["1-of-3.json", "1-of-2.json"],
        &["1-of-3.json", "returns.json"],
        &["1-of-3.json", "2-of-3.json", "few.json"],
        &["all.json", "returns.json"],
        &["all.json", "seed.json"],
        &["all.json", "old.json"],
        &["schema.json"],
        &["other.json"],
        &["list.json"],
        &["key.json"],
        &["half.json"],
        &["none.json"],
    ] {
        let ran = folder.run(&[&["merge-reports"], files].concat());
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{files:?}");
        let _ = writeln!(told, "$ shakedown merge-reports {}\n{}", files.join(" "), ran.stderr);
    }
    assert_snapshot("reports", "not_merged", &told);
}
