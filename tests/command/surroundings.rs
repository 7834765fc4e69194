//! `check-run`, `check-config` and `check-data` as their users see them: text, exit codes, every
//! form of the report, the catalogue of rules.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use shakedown::diagnosis::{Diagnosis, RuleStatus, Severity, Verdict};

use crate::folder::{Folder, Ran};
use crate::snapshot::assert_snapshot;

/// A log under TRL's names: the reward goes from one value to another, with a little noise.
fn log(rows: usize, from: f64, to: f64) -> String {
    let mut text = String::new();
    for step in 0..rows {
        let at = step as f64 / (rows - 1) as f64;
        let noise = 0.01 * ((step * 37 % 17) as f64 - 8.0) / 8.0;
        let reward = from + at * (to - from) + noise;
        let row = json!({
            "step": step + 1, "loss": noise, "grad_norm": 0.5 + noise, "learning_rate": 1e-6,
            "reward": reward, "reward_std": 0.3, "frac_reward_zero_std": 0.2, "my/own": 1,
        });
        writeln!(text, "{row}").unwrap();
    }
    text
}

fn folder_with(name: &str, text: impl AsRef<[u8]>) -> Folder {
    let folder = Folder::new();
    folder.write(name, text);
    folder
}

fn diagnosis(folder: &Folder, arguments: &[&str]) -> (Ran, Diagnosis) {
    let mut all = arguments.to_vec();
    all.extend(["--json", "report.json"]);
    let ran = folder.run(&all);
    let text = std::fs::read_to_string(folder.path("report.json"));
    let text = text.unwrap_or_else(|error| panic!("{error}: {}", ran.stderr));
    (ran, serde_json::from_str(&text).expect("the report keeps to its schema"))
}

#[test]
fn a_reward_that_falls_is_an_error_of_the_advantage_stage() {
    let folder = folder_with("run.jsonl", log(120, 0.5, 0.1));
    let (ran, diagnosis) = diagnosis(&folder, &["check-run", "run.jsonl"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let subject = &diagnosis.subjects[0];
    assert_eq!((subject.verdict, subject.rows), (Verdict::Findings, 120));
    assert_eq!(subject.unknown_names, ["my/own"]);
    let first = &subject.findings[0];
    assert_eq!((&*first.rule, first.severity), ("reward-declines", Severity::Error));
    assert!(first.location.as_ref().is_some_and(|at| at.file.ends_with("run.jsonl")));
    assert_snapshot("surroundings", "run", &ran.stdout);
}

#[test]
fn a_reward_that_rises_is_none_and_every_rule_says_why_where_it_was_not_judged() {
    let folder = folder_with("run.jsonl", log(120, 0.1, 0.5));
    let (ran, diagnosis) = diagnosis(&folder, &["check-run", "run.jsonl"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    let subject = &diagnosis.subjects[0];
    assert_eq!(subject.verdict, Verdict::NothingFound);
    for rule in &subject.rules {
        let judged = matches!(rule.status, RuleStatus::Fires | RuleStatus::Quiet);
        assert_eq!(judged, rule.reason.is_none(), "{}", rule.id);
    }
}

#[test]
fn exit_codes_follow_the_severity_that_is_asked_for() {
    let folder = folder_with("run.jsonl", log(120, 0.5, 0.1));
    let code = |more: &[&str]| folder.run(&[&["check-run", "run.jsonl"], more].concat()).code;
    assert_eq!(code(&["--fail-on", "error"]), 1);
    assert_eq!(code(&["--only", "learning-rate-zero"]), 0);
    assert_eq!(code(&["--only", "critic-not-learning"]), 3, "no such metric is logged");
    assert_eq!(code(&["--skip", "reward-declines=known", "--fail-on", "error"]), 0);
    assert_eq!(code(&["--only", "no-such-rule"]), 2);
    assert_eq!(folder.run(&["check-run", "nothing.jsonl"]).code, 2);
    folder.write("noise.txt", "nothing of a log\n");
    let ran = folder.run(&["check-run", "noise.txt"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("noise.txt"), "{}", ran.stderr);
}

#[test]
fn a_metric_has_the_name_that_it_is_given() {
    let text = log(120, 0.5, 0.1).replace("\"reward\"", "\"my/score\"");
    let folder = folder_with("run.jsonl", text);
    assert_eq!(folder.run(&["check-run", "run.jsonl", "--only", "reward-declines"]).code, 3);
    let set = ["check-run", "run.jsonl", "--set", "reward.mean=my/score"];
    assert_eq!(folder.run(&set).code, 1);
    let ran = folder.run(&["check-run", "run.jsonl", "--set", "reward.meen=my/score"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("did you mean `reward.mean`?"), "{}", ran.stderr);
}

#[test]
fn findings_name_the_manifest_where_it_has_a_component_of_their_stage() {
    let folder = folder_with("run.jsonl", log(120, 0.5, 0.1));
    let next = |folder: &Folder| {
        let (_, diagnosis) = diagnosis(folder, &["check-run", "run.jsonl"]);
        diagnosis.subjects[0].findings[0].next.join("\n")
    };
    assert!(next(&folder).contains("shakedown init"), "{}", next(&folder));
    folder.write(
        "shakedown.yaml",
        "version: 1\ncomponents:\n- {name: grpo, contract: group-advantage, \
         target: 'builtin:group-advantage/fault/sign-flipped'}\n",
    );
    let told = next(&folder);
    assert!(told.contains("shakedown check shakedown.yaml --stage advantage"), "{told}");
    let ran = folder.run(&["check", "shakedown.yaml", "--stage", "advantage", "--cases", "8"]);
    assert_eq!(ran.code, 1, "the step finds the bug\n{}{}", ran.stdout, ran.stderr);
    assert_eq!(folder.run(&["check", "shakedown.yaml", "--stage", "reward"]).code, 2);
}

#[test]
fn every_form_of_the_report_tells_the_finding() {
    let folder = folder_with("run.jsonl", log(120, 0.5, 0.1));
    let arguments = ["check-run", "run.jsonl", "--github", "--junit", "j.xml", "--sarif", "s.json"];
    let ran = folder.run(&[&arguments[..], &["--html", "h.html"]].concat());
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).expect("it is written");
    assert!(ran.stdout.contains("::error file=run.jsonl,line="), "{}", ran.stdout);
    let junit = quick_junit::Report::deserialize_from_str(&read("j.xml")).expect("JUnit");
    let suite = &junit.test_suites[0];
    assert_eq!(suite.name.as_str(), "run · run.jsonl");
    let failed = |case: &&quick_junit::TestCase| {
        matches!(case.status, quick_junit::TestCaseStatus::NonSuccess { .. })
    };
    let failed: Vec<&str> =
        suite.test_cases.iter().filter(failed).map(|case| case.name.as_str()).collect();
    assert!(failed.contains(&"reward-declines"), "{failed:?}");
    let sarif: Json = serde_json::from_str(&read("s.json")).expect("JSON");
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    let result = results.iter().find(|one| one["ruleId"] == "run/reward-declines").expect("told");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "run.jsonl");
    assert_eq!(result["level"], "error");
    let html = read("h.html");
    for part in ["reward-declines", "<svg", "class=\"firing\"", "class=\"band\"", "not judged"] {
        assert!(html.contains(part), "the page lacks {part}");
    }
}

#[test]
fn reports_of_several_runs_are_merged_and_none_is_there_twice() {
    let folder = folder_with("a.jsonl", log(120, 0.5, 0.1));
    folder.write("b.jsonl", log(120, 0.1, 0.5));
    for name in ["a", "b"] {
        let (log, report) = (format!("{name}.jsonl"), format!("{name}.json"));
        folder.run(&["check-run", &log, "--json", &report]);
    }
    let ran = folder.run(&["merge-reports", "a.json", "b.json", "--json", "all.json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let all = std::fs::read_to_string(folder.path("all.json")).unwrap();
    let all: Diagnosis = serde_json::from_str(&all).unwrap();
    let names: Vec<&str> = all.subjects.iter().map(|subject| subject.name.as_str()).collect();
    assert_eq!(names, ["a.jsonl", "b.jsonl"]);
    let ran = folder.run(&["merge-reports", "a.json", "a.json"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("is given twice"), "{}", ran.stderr);
}

#[test]
fn a_configuration_is_judged_at_its_lines() {
    let folder = folder_with(
        "train.yaml",
        "num_generations: 1\nlearning_rate: 1.0e-6\nper_device_train_batch_size: 8\n\
         num_genrations: 2\n",
    );
    let (ran, diagnosis) = diagnosis(&folder, &["check-config", "train.yaml"]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let findings = &diagnosis.subjects[0].findings;
    let line = |rule: &str| {
        let found = findings.iter().find(|one| one.rule == rule);
        found.and_then(|one| one.location.as_ref()).map(|at| at.line)
    };
    assert_eq!(line("group-of-one"), Some(1), "{}", ran.stdout);
    assert_eq!(line("unknown-field"), Some(4), "{}", ran.stdout);
}

#[test]
fn the_first_line_names_the_library_which_may_be_given() {
    let folder = folder_with("own.yaml", "beta: 0.1\nlearning_rate: 1.0e-6\nmax_steps: 10\n");
    let ran = folder.run(&["check-config", "own.yaml"]);
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    assert!(first(&ran.stdout).contains("own.yaml · unknown library · YAML"), "{}", ran.stdout);
    assert!(ran.stdout.contains("--library names it"), "{}", ran.stdout);
    let ran = folder.run(&["check-config", "own.yaml", "--library", "trl"]);
    assert!(first(&ran.stdout).contains("own.yaml · trl 1."), "{}", ran.stdout);
    let ran = folder.run(&["check-config", "own.yaml", "--library", "trll"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("did you mean `trl`"), "{}", ran.stderr);
}

#[test]
fn a_data_set_is_judged_and_its_texts_stay_where_they_are() {
    let rows: String = (0..40)
        .map(|row| format!("{{\"prompt\": \"what is {row} plus one\", \"answer\": \"7\"}}\n"))
        .collect();
    let folder = folder_with("train.jsonl", rows);
    let (ran, diagnosis) = diagnosis(&folder, &["check-data", "train.jsonl"]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let rules: Vec<&str> =
        diagnosis.subjects[0].findings.iter().map(|one| one.rule.as_str()).collect();
    assert!(rules.contains(&"one-answer"), "{rules:?}");
    assert!(!ran.stdout.contains("plus one"), "{}", ran.stdout);
}

#[test]
fn the_rules_are_listed_and_explained() {
    let folder = Folder::new();
    for list in ["runs", "config", "data"] {
        let ran = folder.run(&["list", list]);
        assert_eq!(ran.code, 0);
        for line in ran.stdout.lines().take_while(|line| !line.is_empty()) {
            let rule = line.split_whitespace().next().expect("an id");
            let told = folder.run(&["explain", rule]);
            assert_eq!(told.code, 0, "{rule}");
            for heading in ["fires when", "causes", "next"] {
                assert!(told.stdout.contains(heading), "{rule} lacks {heading}");
            }
        }
    }
    let ran = folder.run(&["explain", "reward-declined"]);
    assert!(ran.stderr.contains("did you mean `reward-declines`?"), "{}", ran.stderr);
}
