//! `shakedown fuzz`: that it finds what chance does not, tells bugs apart, and keeps its folders.

use std::collections::BTreeSet;
use std::fs;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::folder::{Folder, Ran};
use crate::report::{self, InvariantStatus, Report, Status, check};

/// A folder with a manifest of one Python component.
fn folder_of(function: &str) -> Folder {
    with_manifest("shakedown.yaml", function)
}

fn with_manifest(name: &str, function: &str) -> Folder {
    let folder = Folder::new();
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python");
    folder.write(
        name,
        format!(
            "version: 1\npython: {{arrays: list, path: [\"{here}\"], timeout_ms: 20000}}\n\
             components:\n- name: ours\n  contract: group-advantage\n  \
             target: python:nested:{function}\n  options: {{scale: none}}\n  places: [cpu/f64]\n"
        ),
    );
    folder
}

fn fuzz(folder: &Folder, arguments: &[&str]) -> (Ran, Report) {
    report::run(folder, &[&["fuzz", "--time", "10m", "--allow-known"], arguments].concat())
}

/// After how many cases the first finding came; `None` where there is none.
fn first_finding(report: &Report) -> Option<u64> {
    report.component("ours").findings.iter().map(|finding| finding.cases_to_failure).min()
}

fn at_random(seed: u64, cases: u64) -> Option<u64> {
    let folder = with_manifest("manifest.yaml", "advantages");
    let (seed, cases) = (seed.to_string(), cases.to_string());
    let (_, report) =
        check(&folder, &["--only", "ours/oracle", "--cases", &cases, "--seed", &seed]);
    first_finding(&report)
}

fn guided(seed: u64, runs: u64) -> Option<u64> {
    let folder = folder_of("advantages");
    let (_, report) = fuzz(&folder, &["--runs", &runs.to_string(), "--seed", &seed.to_string()]);
    first_finding(&report)
}

#[test]
fn a_bug_behind_two_conditions_is_found_where_chance_finds_nothing() {
    assert_eq!(at_random(1, 6000), None);
    let found = (1..=3).find_map(|seed| guided(seed, 6000));
    assert!(found.is_some(), "three times 6000 guided cases found nothing");
}

/// The figures of `fuzz/README.md`:
/// `cargo test --release --features fuzz --test command -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement of some minutes"]
fn guided_cases_find_it_ten_times_sooner_than_chance() {
    let (chance, guide) = (100_000, 20_000);
    let (mut random, mut sooner) = (0, 0);
    for seed in 1..=10 {
        let (a, b) = (at_random(seed, chance), guided(seed, guide));
        println!("seed {seed}: chance {a:?}, guided {b:?}");
        random += a.unwrap_or(chance);
        sooner += b.unwrap_or(guide);
    }
    println!(
        "chance {random}, guided {sooner} cases in all: {:.1} times",
        random as f64 / sooner as f64
    );
    assert!(random >= 10 * sooner);
}

#[test]
fn a_finding_is_new_once_and_known_after_that_and_fails_until_it_is_mended() {
    let folder = folder_of("two_bugs");
    let (first, report) = fuzz(&folder, &["--runs", "300", "--seed", "1"]);
    assert_eq!(first.code, 1, "{}", first.stdout);
    let keys: Vec<_> = report
        .component("ours")
        .findings
        .iter()
        .map(|f| {
            (f.invariant.clone(), f.diagnosis.first().map(|diagnosis| diagnosis.fault.clone()))
        })
        .collect();
    let different: BTreeSet<_> = keys.iter().collect();
    assert_eq!(different.len(), keys.len(), "a finding is there twice: {keys:?}");
    let (second, report) = fuzz(&folder, &["--runs", "300", "--seed", "1"]);
    assert_eq!(second.code, 0, "{}", second.stdout);
    let ours = report.component("ours");
    assert_eq!((ours.status, ours.findings.len()), (Status::Pass, 0));
    assert!(ours.warnings.iter().any(|warning| warning.contains("a known finding, met ")));
    let run = ["fuzz", "--time", "10m", "--runs", "300", "--seed", "1"];
    let (third, report) = report::run(&folder, &run);
    assert_eq!(third.code, 1, "{}", third.stdout);
    let again = |finding: &report::Finding| {
        finding.again.as_deref().is_some_and(|again| again.contains("an earlier run"))
    };
    let findings = &report.component("ours").findings;
    assert!(!findings.is_empty() && findings.iter().all(again), "{}", third.stdout);
    use_function(&folder, "two_bugs", "right");
    assert_eq!(report::run(&folder, &run).0.code, 0);
}

/// The case files of what was found, by name.
fn found_in(folder: &Folder) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder.path("corpora/group-advantage/found")) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    paths.sort();
    paths
}

fn use_function(folder: &Folder, before: &str, after: &str) {
    let manifest = fs::read_to_string(folder.path("shakedown.yaml")).unwrap();
    assert!(manifest.contains(before), "{manifest}");
    folder.write("shakedown.yaml", manifest.replace(before, after));
}

#[test]
fn what_a_killed_run_found_is_reported_by_the_next_one() {
    let folder = folder_of("two_bugs");
    let mut killed = folder.command(&["fuzz", "ours", "--time", "10m"]).spawn().unwrap();
    let began = Instant::now();
    while found_in(&folder).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(120), "nothing is found");
        thread::sleep(Duration::from_millis(20));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let (first, report) = fuzz(&folder, &["--runs", "1", "--seed", "1"]);
    assert_eq!(first.code, 1, "{}", first.stdout);
    assert!(!report.component("ours").findings.is_empty());
    let (second, report) = fuzz(&folder, &["--runs", "1", "--seed", "1"]);
    assert_eq!(second.code, 0, "{}", second.stdout);
    assert!(report.component("ours").warnings.iter().any(|line| line.contains("known finding")));
}

#[test]
#[cfg(unix)]
fn a_run_that_is_stopped_reports_what_it_found() {
    let folder = folder_of("two_bugs");
    let run = ["fuzz", "ours", "--time", "10m", "--jobs", "2", "--json", "report.json"];
    let mut stopped = folder.command(&run).stdout(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while found_in(&folder).is_empty() {
        assert!(began.elapsed() < Duration::from_secs(120), "nothing is found");
        thread::sleep(Duration::from_millis(20));
    }
    let kill = Command::new("kill").args(["-TERM", &stopped.id().to_string()]).status();
    assert!(kill.unwrap().success());
    assert_eq!(stopped.wait().unwrap().code(), Some(1));
    assert!(began.elapsed() < Duration::from_secs(240));
    let text = fs::read_to_string(folder.path("report.json")).unwrap();
    let report: Report = serde_json::from_str(&text).unwrap();
    assert!(!report.component("ours").findings.is_empty());
    let texts = found_in(&folder).into_iter().map(|path| fs::read_to_string(path).unwrap());
    assert!(texts.into_iter().all(|text| text.contains("\nreported: true\n")));
}

#[test]
fn what_check_found_is_reported_by_fuzz_too() {
    let folder = folder_of("two_bugs");
    assert_eq!(folder.run(&["check", "shakedown.yaml"]).code, 1);
    let before = found_in(&folder);
    assert!(!before.is_empty());
    let (first, report) = fuzz(&folder, &["--runs", "1", "--seed", "1"]);
    assert_eq!(first.code, 1, "{}", first.stdout);
    assert!(!report.component("ours").findings.is_empty());
    // `check` writes the same cases again; that fuzz has reported them stays.
    assert_eq!(folder.run(&["check", "shakedown.yaml"]).code, 1);
    let (second, _) = fuzz(&folder, &["--runs", "1", "--seed", "1"]);
    assert_eq!(second.code, 0, "{}", second.stdout);
}

#[test]
fn a_report_that_could_not_be_written_reports_nothing() {
    let folder = folder_of("two_bugs");
    folder.write("file", "");
    let run = |json: &str| folder.run(&["fuzz", "--runs", "20", "--seed", "1", "--json", json]);
    assert_eq!(run("file/report.json").code, 2);
    let ran = run("report.json");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
}

#[test]
fn what_is_declared_to_fail_and_holds_is_said_as_by_check() {
    let folder = folder_of("right");
    use_function(&folder, "  places:", "  known: {oracle: \"#7\"}\n  places:");
    let (ran, report) = fuzz(&folder, &["--runs", "50", "--seed", "1"]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    let warnings = &report.component("ours").warnings;
    let words = "oracle holds, but is declared to fail (known: #7)";
    assert!(warnings.iter().any(|line| line == words), "{warnings:?}");
    use_function(&folder, "nested:right", "nested:one_nameless_bug");
    let (_, report) = fuzz(&folder, &["--runs", "50", "--seed", "1", "--jobs", "2"]);
    let oracle = report.component("ours").invariants.iter().find(|one| one.id == "oracle");
    assert_eq!(oracle.unwrap().status, InvariantStatus::Known);
}

#[test]
fn a_second_bug_without_a_name_is_no_known_finding() {
    let folder = folder_of("one_nameless_bug");
    let run = || fuzz(&folder, &["--runs", "200", "--seed", "1"]);
    let (first, report) = run();
    assert_eq!(first.code, 1, "{}", first.stdout);
    let unnamed = |report: &Report| {
        let findings = report.component("ours").findings.iter();
        findings.filter(|one| one.diagnosis.is_empty()).count()
    };
    assert!(unnamed(&report) > 0, "{}", first.stdout);
    let (again, _) = run();
    assert_eq!(again.code, 0, "{}", again.stdout);
    let before = found_in(&folder);
    use_function(&folder, "one_nameless_bug", "another_nameless_bug");
    let (other, report) = run();
    assert_eq!(other.code, 1, "{}", other.stdout);
    assert!(unnamed(&report) > 0, "{}", other.stdout);
    assert!(before.iter().all(|path| path.is_file()), "cases of the first one are gone");
}

#[test]
fn a_second_bug_without_a_name_beside_the_first_is_no_known_finding() {
    let folder = folder_of("one_nameless_bug");
    let run = || fuzz(&folder, &["--runs", "200", "--seed", "1"]);
    assert_eq!(run().0.code, 1);
    assert_eq!(run().0.code, 0);
    use_function(&folder, "one_nameless_bug", "two_nameless_bugs");
    let (both, _) = run();
    assert_eq!(both.code, 1, "{}", both.stdout);
}

#[test]
fn cases_of_other_places_stay() {
    let folder = folder_of("two_bugs");
    let run = || fuzz(&folder, &["--runs", "100", "--seed", "1"]);
    assert_eq!(run().0.code, 1);
    let mut others = Vec::new();
    for path in found_in(&folder) {
        let text = fs::read_to_string(&path).unwrap();
        let name = format!("corpora/group-advantage/found/other-{}.yaml", others.len());
        folder.write(&name, text.replace("cpu/f64", "cuda:7/f32"));
        others.push(folder.path(&name));
    }
    assert_eq!(run().0.code, 0);
    assert!(others.iter().all(|path| path.is_file()));
}

/// What of a name is in the folder of temporary files of a command.
#[cfg(target_os = "linux")]
fn begins(folder: &Path, name: &str) -> usize {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(name)).count()
}

/// The processes whose command line has this text.
#[cfg(target_os = "linux")]
fn running(text: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| {
        let line = fs::read(process.path().join("cmdline")).ok()?;
        let folder = fs::read_link(process.path().join("cwd")).ok()?;
        Some(format!("{} in {}", String::from_utf8_lossy(&line), folder.display()))
    });
    lines.filter(|line| line.contains(text)).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_of_a_killed_run_stays() {
    let folder = folder_of("slow");
    folder.write("tmp/file", "");
    let temporary = folder.path("tmp");
    let here = folder.path("").canonicalize().unwrap().display().to_string();
    let run = ["fuzz", "ours", "--time", "10m", "--jobs", "2"];
    let mut killed = folder.command(&run).env("TMPDIR", &temporary).spawn().unwrap();
    let began = Instant::now();
    let limit = |what: &str| {
        assert!(began.elapsed() < Duration::from_secs(120), "{what}: {:?}", running(&here));
        thread::sleep(Duration::from_millis(20));
    };
    let found = folder.path("corpora/group-advantage/found");
    while running(&here).len() < 5 || begins(&found, "in-flight-") < 2 {
        limit("two jobs and their components run");
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    while !running(&here).is_empty() {
        limit("all are gone");
    }
    assert_eq!(begins(&temporary, "shakedown-fuzz-"), 0);

    // What is killed with its jobs leaves folders and journals, which the next run takes away.
    folder.write("tmp/shakedown-fuzz-dead/lock", "");
    folder.write("tmp/shakedown-fuzz-foreign/file", "");
    let empty = fs::read_dir(&found).unwrap().flatten().map(|entry| entry.path());
    let journal = empty.filter(|path| path.extension().is_some_and(|end| end == "journal"));
    for path in journal {
        fs::write(path, "").unwrap();
    }
    use_function(&folder, "slow", "right");
    let next = folder.command(&["fuzz", "--runs", "5"]).env("TMPDIR", &temporary).output().unwrap();
    assert!(next.status.success(), "{}", String::from_utf8_lossy(&next.stderr));
    assert_eq!(begins(&temporary, "shakedown-fuzz-dead"), 0);
    assert_eq!(begins(&temporary, "shakedown-fuzz-foreign"), 1, "it is none of ours");
    assert_eq!(begins(&found, "in-flight-"), 0);
}

#[test]
fn journals_are_no_cases_and_none_of_a_living_run_is_removed() {
    let folder = folder_of("two_bugs");
    fuzz(&folder, &["--runs", "100", "--seed", "1"]);
    use_function(&folder, "two_bugs", "right");
    let found = "corpora/group-advantage/found";
    for name in ["in-flight-ours-cpu-f64-a1.yaml", "in-flight-ours-00000000-cpu-f64-b2.journal"] {
        folder.write(&format!("{found}/{name}"), "");
    }
    let replay = ["replay", "corpora", "--manifest", "shakedown.yaml", "--prune"];
    let ran = folder.run(&replay);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("removed") && !ran.stdout.contains("in-flight"), "{}", ran.stdout);
    assert_eq!(found_in(&folder).len(), 1, "the old journal");
    assert!(folder.path(found).join("in-flight-ours-00000000-cpu-f64-b2.journal").is_file());
}

#[test]
#[cfg(unix)]
fn links_in_a_circle_and_pipes_are_no_trap() {
    let folder = folder_of("two_bugs");
    fuzz(&folder, &["--runs", "100", "--seed", "1"]);
    let found = folder.path("corpora/group-advantage/found");
    std::os::unix::fs::symlink(folder.path("corpora"), found.join("again")).unwrap();
    std::os::unix::fs::symlink(&found, found.join("itself.yaml")).unwrap();
    let made = Command::new("mkfifo").arg(found.join("pipe.yaml")).status().unwrap();
    assert!(made.success());
    let count = found_in(&folder).len() - 2;
    let mut replay = folder.command(&["replay", "corpora", "--manifest", "shakedown.yaml"]);
    let mut replay = replay.stdout(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while replay.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < Duration::from_secs(60), "{}", replay.kill().is_ok());
        thread::sleep(Duration::from_millis(20));
    }
    let ran = replay.wait_with_output().unwrap();
    let text = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(text.matches("still failing ").count(), count, "{text}");
    let (ran, _) = fuzz(&folder, &["--runs", "5", "--seed", "1"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
}

#[test]
fn a_component_may_have_a_long_name() {
    let folder = folder_of("right");
    let name = "é".repeat(300);
    use_function(&folder, "name: ours", &format!("name: {name}"));
    let ran = folder.run(&["fuzz", "--runs", "5"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn what_is_found_stands_once_in_the_folder_and_goes_when_it_is_fixed() {
    let folder = folder_of("two_bugs");
    let (_, report) = fuzz(&folder, &["--runs", "300", "--seed", "1"]);
    let found = || {
        let entries = fs::read_dir(folder.path("corpora/group-advantage/found")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "yaml")).count()
    };
    assert_eq!(found(), report.component("ours").heads().len());
    let replay = ["replay", "corpora", "--manifest", "shakedown.yaml", "--prune"];
    let ran = folder.run(&replay);
    assert_eq!((ran.code, ran.stdout.contains("removed")), (1, false), "{}", ran.stdout);

    let manifest = fs::read_to_string(folder.path("shakedown.yaml")).unwrap();
    folder.write("shakedown.yaml", manifest.replace(":two_bugs", ":advantages"));
    let before = found();
    let ran = folder.run(&replay);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert_eq!(ran.stdout.matches("removed").count(), before);
    assert_eq!(found(), 0);
}

#[test]
fn a_bug_is_one_file_that_names_what_it_breaks_besides() {
    let folder = folder_of("no_baseline_and_raises");
    let (ran, report) = fuzz(&folder, &["--runs", "300", "--seed", "1"]);
    let ours = report.component("ours");
    let heads = ours.heads();
    assert!(heads.len() > 1 && ours.findings.len() > heads.len(), "{}", ran.stdout);
    assert!(ran.stdout.contains(&format!(" {} findings", heads.len())), "{}", ran.stdout);
    let files: BTreeSet<_> = heads.iter().map(|head| head.case_file.clone().unwrap()).collect();
    assert_eq!((files.len(), found_in(&folder).len()), (heads.len(), heads.len()));
    for head in heads {
        let file = fs::read_to_string(folder.path(head.case_file.as_ref().unwrap())).unwrap();
        assert!(file.contains(&format!("\ninvariant: {}\n", head.invariant)), "{file}");
        let also = file.lines().find(|line| line.starts_with("also: ")).unwrap_or_default();
        for id in ours.also(head.bug).into_iter().filter(|id| *id != head.invariant) {
            assert!(also.contains(id), "{id} is not in {file}");
        }
        let mut of_bug = ours.findings.iter().filter(|one| one.bug == head.bug);
        assert!(of_bug.all(|one| one.case_file == head.case_file && one.replay == head.replay));
    }
}

#[test]
fn another_invariant_that_a_known_bug_breaks_is_no_new_finding() {
    let folder = folder_of("no_baseline_and_raises");
    use_function(&folder, "  places:", "  skip: {zero-sum: later}\n  places:");
    let (first, report) = fuzz(&folder, &["--runs", "300", "--seed", "1"]);
    assert_eq!(first.code, 1, "{}", first.stdout);
    assert!(report.component("ours").findings.iter().all(|one| one.invariant != "zero-sum"));
    let count = found_in(&folder).len();
    use_function(&folder, "  skip: {zero-sum: later}\n", "");
    let (second, _) = fuzz(&folder, &["--runs", "300", "--seed", "1"]);
    assert_eq!((second.code, found_in(&folder).len()), (0, count), "{}", second.stdout);
    let files = found_in(&folder).into_iter().map(|path| fs::read_to_string(path).unwrap());
    let named = |text: String| {
        text.lines().any(|line| line.starts_with("also: ") && line.contains("zero-sum"))
    };
    assert!(files.into_iter().any(named), "no case file names `zero-sum`");
}

#[test]
fn a_corpus_made_small_does_all_that_it_did_and_stays_as_it_is() {
    let folder = folder_of("advantages");
    fuzz(&folder, &["--runs", "400", "--seed", "3"]);
    let seeds = folder.path("corpora/group-advantage/seeds");
    let names = || {
        let entries = fs::read_dir(&seeds).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<BTreeSet<_>>()
    };
    let before = names();
    let once = folder.run(&["fuzz", "ours", "--minimise"]);
    let small = names();
    let twice = folder.run(&["fuzz", "ours", "--minimise"]);
    assert_eq!((once.code, twice.code), (0, 0), "{}{}", once.stderr, twice.stderr);
    assert!(small.is_subset(&before) && small.len() < before.len());
    assert_eq!(names(), small);
    let events = |ran: &Ran| ran.stdout.split(", ").last().unwrap().to_owned();
    assert_eq!(events(&once), events(&twice));
}

#[test]
fn two_jobs_share_a_corpus_and_report_a_bug_once() {
    let folder = folder_of("two_bugs");
    let (ran, report) = fuzz(&folder, &["ours", "--runs", "200", "--jobs", "2", "--seed", "1"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let ours = report.component("ours");
    assert!(ours.cases > 300, "{} cases", ours.cases);
    let all: BTreeSet<_> = ours
        .findings
        .iter()
        .map(|f| (&f.invariant, f.diagnosis.first().map(|d| &d.fault)))
        .collect();
    assert_eq!(all.len(), ours.findings.len());
}

#[test]
fn planted_bugs_are_found_and_references_hold() {
    let folder = Folder::new();
    let ran = folder.run(&["fuzz", "group-advantage/fault/baseline-missing", "--runs", "50"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("the bug `baseline-missing`"), "{}", ran.stdout);
    let ran = folder.run(&["fuzz", "group-advantage", "--runs", "200"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stdout.contains("4 passed, 0 failed, 0 findings"), "{}", ran.stdout);
}

#[test]
fn what_cannot_be_fuzzed_is_said() {
    let folder = folder_of("advantages");
    let fails = |arguments: &[&str], words: &str| {
        let ran = folder.run(arguments);
        assert_eq!(ran.code, 2, "{}", ran.stdout);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    };
    fails(&["fuzz", "our"], "unknown component `our`, expected one of `ours`, `group-advantage`");
    fails(&["fuzz", "group-advantage/fault/baseline-missin"], "did you mean `baseline-missing`");
    let empty = Folder::new();
    let ran = empty.run(&["fuzz"]);
    assert_eq!((ran.code, ran.stderr.contains("there is no shakedown.yaml here")), (2, true));
}

#[test]
fn a_component_that_cannot_be_loaded_is_no_quiet_night() {
    let folder = folder_of("missing");
    let (ran, report) = fuzz(&folder, &["--runs", "10"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert_eq!(report.component("ours").status, Status::Error);
}

#[test]
fn a_corpus_is_left_alone_where_the_component_does_not_load() {
    let folder = folder_of("missing");
    folder.write("corpora/group-advantage/seeds/one", "some bytes");
    let ran = folder.run(&["fuzz", "ours", "--minimise"]);
    assert_eq!((ran.code, ran.stderr.contains("nothing was removed")), (2, true), "{}", ran.stderr);
    assert!(folder.path("corpora/group-advantage/seeds/one").is_file());
}
