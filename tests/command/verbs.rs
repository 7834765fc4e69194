//! The command as its users see it: help, catalogue, reports, exit codes, and every verb.

use std::fmt::Write as _;
use std::process::{Command, Stdio};

use shakedown::contracts::IDS;

use crate::folder::{Folder, Ran};
use crate::report::{self, InvariantStatus, Report, Status, check};
use crate::snapshot::assert_snapshot;

/// A manifest of one builtin component.
fn manifest_of(name: &str, target: &str) -> String {
    format!("version: 1\ncomponents:\n{}", component(name, target, ""))
}

fn component(name: &str, target: &str, more: &str) -> String {
    format!(
        "- name: {name}\n  contract: group-advantage\n  \
         target: builtin:group-advantage/{target}\n{more}"
    )
}

/// A folder whose manifest has one component that is right and one that never subtracts the mean.
fn two_components() -> Folder {
    let folder = Folder::new();
    let right = component("right", "reference", "");
    let wrong = component("wrong", "fault/baseline-missing", "");
    folder.write("manifest.yaml", format!("version: 1\ncomponents:\n{right}{wrong}"));
    folder
}

/// The case file of the finding of an invariant, of the components of [`two_components`].
fn finding(folder: &Folder, invariant: &str) -> String {
    let (_, report) = check(folder, &["--cases", "8"]);
    let findings = &report.component("wrong").findings;
    let finding = findings.iter().find(|finding| finding.invariant == invariant);
    finding.expect("it is found").case_file.clone().expect("it has a file")
}

fn assert_fails(ran: &Ran, code: i32, words: &str) {
    assert_eq!((ran.code, &*ran.stdout), (code, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains(words), "expected {words:?} in:\n{}", ran.stderr);
}

// ---- Reports for programs.

#[test]
fn a_component_is_chosen_by_its_exact_name() {
    let folder = Folder::new();
    let [a, ab] = ["a", "ab"].map(|name| component(name, "reference", ""));
    folder.write("manifest.yaml", format!("version: 1\ncomponents:\n{a}{ab}"));
    let names = |more: &[&str]| -> Vec<String> {
        let (_, report) = check(&folder, &[&["--cases", "1"], more].concat());
        report.components.into_iter().map(|component| component.name).collect()
    };
    assert_eq!(names(&["--only", "a"]), ["a", "ab"]);
    assert_eq!(names(&["--component", "a"]), ["a"]);
    assert_eq!(names(&["--component", "ab", "--component", "a"]), ["a", "ab"]);
    assert_eq!(names(&["--component", "a", "--only", "a/zero-sum"]), ["a"]);
    let ran = folder.run(&["check", "manifest.yaml", "--component", "b"]);
    let words = "error: --component: unknown component `b`, expected one of `a`, `ab`";
    assert_fails(&ran, 2, words);
}

#[test]
fn a_report_is_printed_where_its_file_is_a_dash() {
    let folder = two_components();
    let ran = folder.run(&["check", "manifest.yaml", "--cases", "8", "--json", "-"]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).expect("only the report");
    assert_eq!((&report["schema"], ran.code), (&"shakedown/report/1".into(), 1));
    assert!(ran.stderr.contains("✗ advantage · wrong · cpu/f32"), "{}", ran.stderr);
    assert!(!folder.path("-").exists());
}

// ---- Help and catalogue.

#[test]
fn the_help_of_every_verb() {
    let folder = Folder::new();
    let help = folder.run(&["--help"]);
    assert_eq!((help.code, &*help.stderr), (0, ""));
    // The list of verbs is recorded with all of them.
    if cfg!(all(feature = "init", feature = "fuzz")) {
        assert_snapshot("help", "shakedown", &help.stdout);
    } else {
        println!("left out: the list of verbs takes the features `init` and `fuzz`");
    }
    let (_, verbs) = help.stdout.split_once("Commands:\n").expect("there are verbs");
    let verbs = verbs.lines().take_while(|line| !line.is_empty());
    for verb in verbs.filter_map(|line| line.split_whitespace().next()) {
        if verb != "help" {
            let help = folder.run(&[verb, "--help"]);
            assert_eq!((help.code, &*help.stderr), (0, ""), "{verb}");
            assert_snapshot("help", verb, &help.stdout);
        }
    }
    assert_eq!(folder.run(&["--version"]).stdout, "shakedown 0.1.0\n");
}

#[test]
fn help_has_pages_and_knows_their_names() {
    let folder = Folder::new();
    let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/harness/python/shakedown/pages");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(pages).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let page = folder.run(&["help", &name]);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!((page.code, &*page.stdout), (0, &*text), "{name}");
        names.push(name);
    }
    assert!(names.contains(&"manifest".to_owned()), "{names:?}");
    assert_eq!(folder.run(&["help", "check"]).stdout, folder.run(&["check", "--help"]).stdout);
    assert_eq!(folder.run(&["help"]).stdout, folder.run(&["--help"]).stdout);
    let wrong = folder.run(&["help", "manifests"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("did you mean `manifest`?"), "{}", wrong.stderr);
}

#[test]
fn the_catalogue_of_every_contract() {
    let folder = Folder::new();
    let list = folder.run(&["list"]);
    assert_eq!((list.code, &*list.stderr), (0, ""));
    assert_snapshot("catalogue", "list", &list.stdout);
    for id in IDS {
        let catalogue = folder.run(&["list", id]);
        assert_eq!((catalogue.code, &*catalogue.stderr), (0, ""), "{id}");
        assert_snapshot("catalogue", id, &catalogue.stdout);
        // A rule about configurations may have the same name, and is explained too.
        let explained = folder.run(&["explain", id]).stdout;
        assert!(explained.starts_with(&catalogue.stdout), "explain {id}: {explained}");
    }
}

#[test]
fn explanations_of_every_kind_of_name() {
    let folder = Folder::new();
    let mut told = String::new();
    for id in [
        "group-advantage/zero-sum",
        "zero-sum",
        "group-advantage/baseline-missing",
        "group-advantage/epsilon_mode",
        "group-advantage/constant-group",
        "group-advantage/singleton",
        "group-advantage/odd-ids",
        "advantage-normalisation",
        "probability-ratio",
        "zero-sums",
        "group-advantage/zero_sum",
        "group-advantages/zero-sum",
        "nothing-like-it",
    ] {
        let ran = folder.run(&["explain", id]);
        let _ = writeln!(told, "$ shakedown explain {id}\n{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, if ran.stderr.is_empty() { 0 } else { 2 }, "{id}");
    }
    assert_snapshot("catalogue", "explain", &told);
}

#[test]
fn every_name_of_the_catalogue_can_be_explained() {
    let folder = Folder::new();
    for contract in IDS {
        let catalogue = folder.run(&["list", contract]).stdout;
        let (_, names) = catalogue.split_once("\noptions\n").expect("there are options");
        let (names, _) = names.split_once("\na right function\n").expect("there is an example");
        let names = names.lines().filter(|line| line.starts_with("  "));
        let names = names.filter_map(|line| line.split_whitespace().next());
        let ids: Vec<String> = names.map(|name| format!("{contract}/{name}")).collect();
        let mut arguments = vec!["explain"];
        arguments.extend(ids.iter().map(String::as_str));
        let ran = folder.run(&arguments);
        assert_eq!(ran.code, 0, "{contract}: {}", ran.stderr);
    }
}

// ---- Reports.

#[test]
fn the_report_of_a_missing_baseline() {
    assert_report("baseline-missing");
}

#[test]
fn the_report_of_nan_for_a_group_of_one() {
    assert_report("one-row-unbiased-deviation");
}

#[test]
fn the_report_of_groups_read_the_wrong_way() {
    assert_report("groups-strided");
}

fn assert_report(fault: &str) {
    let folder = Folder::new();
    folder.write("manifest.yaml", manifest_of("grpo", &format!("fault/{fault}")));
    let ran = folder.run(&["check", "manifest.yaml"]);
    assert_eq!((ran.code, &*ran.stderr), (1, ""));
    assert_snapshot("reports", fault, &ran.stdout);
}

#[test]
fn the_table_of_values() {
    let folder = two_components();
    let ran = folder.run(&["check", "manifest.yaml", "--values", "--only", "wrong/zero-sum"]);
    assert_eq!((ran.code, &*ran.stderr), (1, ""));
    assert_snapshot("reports", "values", &ran.stdout);
}

#[test]
fn the_report_of_everything_but_findings() {
    let folder = Folder::new();
    let components = [
        component("right", "reference", ""),
        component("skipped", "reference", "  places: [cuda/f32]\n"),
        component(
            "excused",
            "fault/changes-its-inputs",
            "  known: {inputs-unchanged: \"see #12\"}\n",
        ),
        component("cured", "reference", "  known: {finite: \"see #13\"}\n"),
        "- name: lost\n  contract: group-advantage\n  target: python:lost.py:grpo\n".to_owned(),
        "- name: unfit\n  contract: group-advantage\n  target: {process: [no-such-program]}\n"
            .to_owned(),
    ];
    // Without an interpreter the report is the same wherever the tests run.
    let head = "version: 1\npython: {interpreter: no-such-python}\ncomponents:\n";
    folder.write("manifest.yaml", format!("{head}{}", components.concat()));
    let (ran, report) = check(&folder, &["--cases", "8", "--jobs", "1"]);
    assert_eq!((ran.code, &*ran.stderr), (2, ""));
    assert_snapshot("reports", "everything_but_findings", &ran.stdout);
    let statuses = ["right", "skipped", "excused", "cured", "lost", "unfit"]
        .map(|name| report.component(name).status);
    use Status::{Error, Fail, Pass, Skipped};
    assert_eq!(statuses, [Pass, Skipped, Pass, Fail, Error, Error]);
    let invariants = &report.component("excused").invariants;
    let known = invariants.iter().find(|one| one.id == "inputs-unchanged").unwrap();
    assert_eq!(known.status, InvariantStatus::Known);
}

#[test]
fn the_same_seed_gives_the_same_report_byte_for_byte() {
    let folder = two_components();
    let run = |jobs: &str| {
        let (ran, _) = check(&folder, &["--seed", "7", "--jobs", jobs, "--values"]);
        let json = std::fs::read_to_string(folder.path("report.json")).unwrap();
        let is_time = |line: &&str| line.contains("_ms\": ");
        let json: Vec<String> = json.lines().filter(|l| !is_time(l)).map(str::to_owned).collect();
        (ran.stdout, json)
    };
    assert_eq!(run("1"), run("1"));
    assert_eq!(run("1"), run("2"));
}

#[test]
fn another_seed_gives_another_run_with_the_same_findings() {
    let folder = two_components();
    let run = |seed: &str| {
        let (ran, report) = check(&folder, &["--seed", seed]);
        assert_eq!((ran.code, report.seed), (1, seed.parse().unwrap()));
        assert_eq!(report.component("right").status, Status::Pass);
        let component = report.component("wrong");
        let found = component.findings.iter().map(|f| (f.invariant.clone(), f.case.clone()));
        (found.collect::<Vec<_>>(), report.component("right").classes.clone())
    };
    let (one, two) = (run("1"), run("2"));
    assert_eq!(one.0, two.0);
    assert_ne!(one.1, two.1, "the random cases are the same");
}

// ---- Exit codes and choices.

#[test]
fn exit_codes_say_what_came_of_it() {
    let folder = two_components();
    let code = |arguments: &[&str]| folder.run(arguments).code;
    let with = |more: &[&str]| code(&[&["check", "manifest.yaml", "--cases", "8"], more].concat());
    assert_eq!(with(&["--only", "right"]), 0);
    assert_eq!(with(&[]), 1);
    assert_eq!(with(&["--only", "right", "--only", "wrong/finite"]), 0);
    assert_eq!(with(&["--places", "cpu/f33"]), 2);
    assert_eq!(with(&["--only", "neither"]), 2);
    assert_eq!(with(&["--cases", "-1"]), 2);
    assert_eq!(with(&["--places", "cuda/f32"]), 3, "no component on host arrays runs there");
    assert_eq!(with(&["--only", "right/leave-one-out"]), 3, "it does not apply");
    for arguments in [&["chek"][..], &["check"], &["check", "--colour"], &["adopt", "x.yaml"], &[]]
    {
        assert_eq!(code(arguments), 2, "{arguments:?}");
    }
}

#[test]
fn mistakes_on_the_command_line_are_told_with_what_was_expected() {
    let folder = two_components();
    let mut told = String::new();
    let check = |more: &[&'static str]| [&["check", "manifest.yaml"], more].concat();
    for arguments in [
        vec!["chek", "manifest.yaml"],
        vec!["check"],
        check(&["--seeds", "3"]),
        check(&["--seed", "three"]),
        check(&["--cases", "-1"]),
        check(&["--time", "3 weeks"]),
        check(&["--places", "cpu/fp32"]),
        check(&["--places", "gpu/f32"]),
        check(&["--places", ""]),
        check(&["--only", "rihgt"]),
        check(&["--shard", "x"]),
        check(&["--shard", "0/8"]),
        check(&["--shard", "9/8"]),
        vec!["merge-reports"],
        vec!["list", "group_advantages"],
        vec!["adopt", "case.yaml"],
        vec!["adopt", "case.yaml", "--why", " "],
    ] {
        let ran = folder.run(&arguments);
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{arguments:?}");
        let _ = writeln!(told, "$ shakedown {}\n{}", arguments.join(" "), ran.stderr);
    }
    assert_snapshot("help", "mistakes", &told);
}

#[test]
fn only_chooses_components_and_invariants() {
    let folder = two_components();
    let chosen = |patterns: &[&str]| -> Vec<(String, Vec<String>)> {
        let only = patterns.iter().flat_map(|pattern| ["--only", pattern]);
        let arguments: Vec<&str> = ["--cases", "1"].into_iter().chain(only).collect();
        let (_, report) = check(&folder, &arguments);
        let ids = |report: &report::Component| -> Vec<String> {
            report.invariants.iter().map(|invariant| invariant.id.clone()).collect()
        };
        report.components.iter().map(|one| (one.name.clone(), ids(one))).collect()
    };
    let some = |name: &str, ids: &[&str]| {
        (name.to_owned(), ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(chosen(&["wrong/zero-sum"]), [some("wrong", &["zero-sum"])]);
    let both = [some("right", &["zero-sum"]), some("wrong", &["zero-sum"])];
    assert_eq!(chosen(&["/zero-sum"]), both);
    let two = chosen(&["wrong/zero", "wrong/finite"]);
    assert_eq!(two, [some("wrong", &["finite", "zero-sum"])]);
    let all = chosen(&["right"]);
    assert!(all.len() == 1 && all[0].1.len() > 15, "{all:?}");
}

#[test]
#[cfg(not(all(feature = "init", feature = "fuzz")))]
fn a_verb_that_was_left_out_says_how_to_get_it() {
    let folder = Folder::new();
    for (verb, is_here) in [("init", cfg!(feature = "init")), ("fuzz", cfg!(feature = "fuzz"))] {
        if !is_here {
            let ran = folder.run(&[verb, "grpo", "--time", "1s"]);
            let how = format!(
                "this shakedown was built without `{verb}`: `cargo install … --features {verb}`"
            );
            assert_fails(&ran, 2, &how);
        }
    }
}

#[test]
fn places_can_be_chosen_for_all_components() {
    let folder = two_components();
    let places = |report: &Report| -> Vec<String> {
        report.components.iter().map(|component| component.place.clone()).collect()
    };
    let (_, report) = check(&folder, &["--cases", "1", "--places", "cpu/f64, cpu/bf16"]);
    assert_eq!(places(&report), ["cpu/f64", "cpu/bf16", "cpu/f64", "cpu/bf16"]);
    let arguments = ["check", "manifest.yaml", "--cases", "1", "--only", "right"];
    let run = |places: &str| folder.command(&arguments).env("SHAKEDOWN_PLACES", places).output();
    let output = run("cpu/f16").unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("right · cpu/f16"));
    let output = run("cpu").unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("SHAKEDOWN_PLACES: `cpu` is not a place, expected "), "{error}");
}

#[test]
fn time_limits_the_cases() {
    let folder = two_components();
    let arguments = ["--only", "right", "--time", "1ms", "--cases", "1000000000"];
    let (ran, report) = check(&folder, &arguments);
    assert_eq!(ran.code, 0);
    assert!(report.component("right").cases < 1_000_000);
}

// ---- Replay, shrink, adopt.

#[test]
fn replay_says_fixed_still_failing_or_stale() {
    let folder = two_components();
    let case = finding(&folder, "oracle");
    let manifest = ["--manifest", "manifest.yaml"];
    let replay = |more: &[&str]| folder.run(&[&["replay"], more].concat());

    let failing = replay(&[&[&*case], &manifest[..]].concat());
    let found = "oracle: advantages[0] is 1, expected 0 ± 2.4e-7";
    let expected = format!("still failing  {case} · wrong · cpu/f32: {found}\n1 still failing\n");
    assert_eq!((failing.code, &*failing.stderr, &*failing.stdout), (1, "", &*expected));

    let message = "it is of the component `wrong`: add --manifest with its manifest";
    assert_fails(&replay(&[&case]), 2, message);
    let text = std::fs::read_to_string(folder.path(&case)).unwrap();
    folder.write("kept.yaml", text.replace("component: wrong\n", ""));
    let unjudged = replay(&["kept.yaml"]);
    let expected = "not judged     kept.yaml · builtin reference · cpu/f32: no component of yours \
                    was called: add --manifest\n1 not judged\n";
    assert_eq!((unjudged.code, &*unjudged.stderr, &*unjudged.stdout), (3, "", expected));
    folder.write(
        "test.yaml",
        text.replace("component: wrong\n", "component: \"test_it.py::test\"\n"),
    );
    let test = replay(&["test.yaml"]);
    let expected = "not judged     test.yaml · no component: run pytest test_it.py::test\n\
                    1 not judged\n";
    assert_eq!((test.code, &*test.stderr, &*test.stdout), (3, "", expected));

    folder.write("stale.yaml", text.replace("reward_range: [-10.0, 10.0]", "reward_range: [3, 4]"));
    let stale = replay(&[&["stale.yaml"], &manifest[..]].concat());
    let expected = "stale          stale.yaml · wrong · cpu/f32: outside the contract: reward 1 is \
                    outside [3, 4]\n1 stale\n";
    assert_eq!((stale.code, &*stale.stdout), (3, expected), "nothing was checked");

    let all = replay(&[&[&*case, "stale.yaml"], &manifest[..]].concat());
    assert_eq!(all.code, 1);
    assert!(all.stdout.ends_with("\n1 still failing, 1 stale\n"), "{}", all.stdout);
    folder.write(
        "stale.yaml",
        text.replace("reward_range: [-10.0, 10.0]", "reward_range: [3, 4]")
            .replace("component: wrong\n", ""),
    );
    let some = replay(&["kept.yaml", "stale.yaml"]);
    assert_eq!(some.code, 3);
    assert!(some.stdout.ends_with("\n1 stale, 1 not judged\n"), "{}", some.stdout);
}

#[test]
fn shrink_finds_the_minimum_of_a_large_case() {
    let folder = two_components();
    let case = finding(&folder, "oracle");
    let text = std::fs::read_to_string(folder.path(&case)).unwrap();
    let (head, small) = text.split_once("case:\n").unwrap();
    let large = "  rewards: [0.25, 3.5, -1.0, 9.0, 2.5, 7.75]\n  groups: [4, 7, 4, 7, 7, 4]\n";
    folder.write("large.yaml", format!("{head}case:\n{large}"));
    let shrink = |more: &[&str]| folder.run(&[&["shrink", "large.yaml"], more].concat());

    let elsewhere = shrink(&["--manifest", "manifest.yaml", "--output", "small.yaml"]);
    assert_eq!((elsewhere.code, &*elsewhere.stderr), (0, ""));
    let said = "rewards [1]  groups [0]\nwritten to small.yaml after ";
    assert!(elsewhere.stdout.starts_with(said), "{}", elsewhere.stdout);
    let read = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap();
    assert!(read("small.yaml").ends_with(small), "{}", read("small.yaml"));
    assert!(read("large.yaml").ends_with(large), "it was written over");

    assert_fails(&shrink(&[]), 2, "it is of the component `wrong`: add --manifest");
    assert_eq!(shrink(&["--manifest", "manifest.yaml"]).code, 0);
    assert!(read("large.yaml").ends_with(small), "{}", read("large.yaml"));

    folder.write("aimless.yaml", text.replace("invariant: oracle\n", ""));
    let aimless = folder.run(&["shrink", "aimless.yaml"]);
    assert_fails(&aimless, 2, "aimless.yaml: the case names no invariant to shrink for");
}

#[test]
fn adopt_moves_a_finding_to_the_regressions() {
    let folder = two_components();
    let found = finding(&folder, "zero-sum");
    let (_, file) = found.rsplit_once('/').unwrap();
    let adopt = |case: &str, more: &[&str]| folder.run(&[&["adopt", case], more].concat());

    assert_fails(&adopt(&found, &[]), 2, "--why <WHY>");
    assert_fails(&adopt(&found, &["--why", " "]), 2, "--why is empty");
    assert!(folder.path(&found).exists(), "a refusal keeps the finding");

    let link = "https://example.org/7";
    let ran = adopt(&found, &["--why", "the mean was forgotten", "--link", link]);
    let kept = format!("corpora/group-advantage/regressions/{file}");
    assert_eq!((ran.code, &*ran.stdout), (0, &*format!("kept as {kept}\n")), "{}", ran.stderr);
    assert!(!folder.path(&found).exists() && folder.path(&kept).exists());
    let text = std::fs::read_to_string(folder.path(&kept)).unwrap();
    assert!(text.contains("\nwhy: \"the mean was forgotten\"\n"), "{text}");
    assert!(text.contains(&format!("\nlink: \"{link}\"\n")), "{text}");
    assert!(text.contains("\ncomponent: wrong\n") && !text.contains("place:"), "{text}");

    // The next check begins with it, and finds the same again.
    let ran = folder.run(&["check", "manifest.yaml", "--only", "wrong"]);
    let why = format!("it was kept for: the mean was forgotten, {link}");
    let again = format!("the kept case {file} fails again; {why}\n");
    assert!(ran.stdout.contains(&again), "{}", ran.stdout);
    assert!(!ran.stdout.contains("shakedown adopt"), "{}", ran.stdout);
    assert_eq!(finding(&folder, "zero-sum"), found);
    let again = adopt(&found, &["--why", "again"]);
    assert_fails(&again, 2, &format!("{kept}: a regression of this name exists"));
    assert_eq!(std::fs::read_to_string(folder.path(&kept)).unwrap(), text);
    assert!(folder.path(&found).exists(), "a refusal keeps the finding");
    let ran = adopt(&found, &["--why", "again", "--name", "mean-forgotten"]);
    let expected = "kept as corpora/group-advantage/regressions/mean-forgotten.yaml\n";
    assert_eq!((ran.code, &*ran.stdout), (0, expected), "{}", ran.stderr);

    assert_fails(&adopt("missing.yaml", &["--why", "x"]), 2, "cannot read missing.yaml");
}

// ---- Terminals and pipes.

/// Runs the command on a terminal of its own; `None`, in words, where that is not possible.
fn on_a_terminal(folder: &Folder, arguments: &str, no_color: bool) -> Option<String> {
    let known = Command::new("script").arg("--version").output().ok();
    if !known.is_some_and(|output| String::from_utf8_lossy(&output.stdout).contains("util-linux")) {
        println!("left out: there is no `script` of util-linux, so no terminal");
        return None;
    }
    let line = format!("{} {arguments}", env!("CARGO_BIN_EXE_shakedown"));
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).current_dir(folder.path("")).stdin(Stdio::null());
    command.env("TERM", "xterm-256color").env_remove("CLICOLOR").env_remove("NO_COLOR");
    if no_color {
        command.env("NO_COLOR", "1");
    }
    Some(String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned())
}

const COLOUR: &str = "\u{1b}[";

#[test]
fn colours_and_progress_are_for_terminals() {
    let folder = two_components();
    let arguments = ["check", "manifest.yaml", "--cases", "8"];
    let ran = folder.run(&arguments);
    assert!(!ran.stdout.contains(COLOUR) && ran.stderr.is_empty(), "{}{}", ran.stdout, ran.stderr);

    let Some(shown) = on_a_terminal(&folder, &arguments.join(" "), false) else { return };
    assert!(shown.contains("\u{1b}[32m✓\u{1b}[0m"), "no green tick in {shown:?}");
    assert!(shown.contains("\u{1b}[1m\u{1b}[31m✗\u{1b}[0m"), "no red cross in {shown:?}");
    assert!(shown.contains("/2"), "no progress of 2 components in {shown:?}");
}

#[test]
fn no_color_turns_colours_off() {
    let folder = two_components();
    let Some(shown) = on_a_terminal(&folder, "check manifest.yaml --cases 8", true) else { return };
    // The progress bar still moves the cursor; `m` ends the codes of colours.
    let codes = shown.split(COLOUR).skip(1).filter_map(|rest| {
        rest.chars().find(|c| c.is_ascii_alphabetic()).map(|end| (end, rest.to_owned()))
    });
    for (end, rest) in codes {
        assert_ne!(end, 'm', "a colour before {rest:?}");
    }
    assert!(shown.contains("✗ oracle"), "{shown}");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let folder = Folder::new();
    for id in IDS {
        let mut child = folder
            .command(&["list", id])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}

#[test]
fn a_report_that_cannot_be_written_is_an_error() {
    let folder = two_components();
    folder.write("taken", "");
    let ran =
        folder.run(&["check", "manifest.yaml", "--cases", "1", "--json", "taken/report.json"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.starts_with("error: cannot write taken/report.json: "), "{}", ran.stderr);
    assert!(ran.stdout.contains("1 passed, 1 failed"), "{}", ran.stdout);
}
