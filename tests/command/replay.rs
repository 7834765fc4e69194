//! `shakedown replay`: what is said of kept cases, by whom, and what is removed.

use std::fs;
use std::time::Instant;

use crate::folder::{Folder, Ran};

const FOUND: &str = "corpora/group-advantage/found";

/// A manifest with one component of group-advantage.
fn manifest(name: &str, target: &str, options: &str) -> String {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python");
    format!(
        "version: 1\npython: {{arrays: list, path: [\"{here}\"]}}\ncomponents:\n- name: {name}\n  \
         contract: group-advantage\n  target: {target}\n  options: {options}\n  \
         places: [cpu/f64]\n"
    )
}

fn replay(folder: &Folder, more: &[&str]) -> Ran {
    folder.run(&[&["replay", "corpora", "--manifest", "manifest.yaml"], more].concat())
}

fn cases(folder: &Folder) -> usize {
    let entries = fs::read_dir(folder.path(FOUND)).into_iter().flatten().flatten();
    let ends = |path: std::path::PathBuf| path.extension().is_some_and(|end| end == "yaml");
    entries.filter(|entry| ends(entry.path())).count()
}

/// A case of a component in `found`, of a constant group.
fn case(head: &str, options: &str) -> String {
    format!(
        "schema: 1\ncontract: group-advantage\ninvariant: oracle\n{head}options: {options}\n\
         case:\n  rewards: [2.0]\n  groups: [0]\n"
    )
}

#[test]
fn no_case_is_called_fixed_by_another_component_than_that_it_was_found_on() {
    let folder = Folder::new();
    let reference = "builtin:group-advantage/reference";
    folder.write("manifest.yaml", manifest("right", reference, "{}"));
    folder.write(&format!("{FOUND}/gone.yaml"), case("component: gone\nplace: cpu/f64\n", "{}"));
    folder.write(&format!("{FOUND}/batch.yaml"), case("recorded: step.safetensors\n", "{}"));
    folder.write(&format!("{FOUND}/nobody.yaml"), case("place: cpu/f64\n", "{}"));
    let planted = "component: group-advantage/fault/singleton-keeps-its-reward\nplace: cpu/f64\n";
    let fault = case("component: group-advantage/reference\nplace: cpu/f64\n", "{}");
    folder.write(&format!("{FOUND}/builtin.yaml"), fault);
    let ran = replay(&folder, &["--prune"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    for line in [
        "not judged     corpora/group-advantage/found/batch.yaml · right · cpu/f64: found on the \
         outputs recorded in step.safetensors\n",
        "not judged     corpora/group-advantage/found/gone.yaml · right · cpu/f64: found on the \
         component `gone`, which the manifest does not have\n",
        "not judged     corpora/group-advantage/found/nobody.yaml · right · cpu/f64: it names no \
         component that it was found on\n",
        "fixed          corpora/group-advantage/found/builtin.yaml · group-advantage/reference · \
         cpu/f64\n",
        "1 fixed, 3 not judged\n",
    ] {
        assert!(ran.stdout.contains(line), "{line}{}", ran.stdout);
    }
    assert_eq!(cases(&folder), 3, "only what was judged is removed: {planted}");
    let none = folder.run(&["replay", &format!("{FOUND}/batch.yaml")]);
    assert_eq!(none.code, 3, "nothing was checked: {}", none.stdout);
    assert!(none.stdout.starts_with("not judged "), "{}", none.stdout);
}

#[test]
fn a_journal_is_no_case_and_a_folder_without_cases_is_no_success() {
    let folder = Folder::new();
    let reference = "builtin:group-advantage/reference";
    folder.write("manifest.yaml", manifest("ours", reference, "{}"));
    let of_ours = case("component: ours\nplace: cpu/f64\n", "{}");
    let journal = format!("{FOUND}/in-flight-ours.yaml");
    folder.write(&journal, &of_ours);
    folder.write(&format!("{FOUND}/one.yaml"), &of_ours);
    let ran = replay(&folder, &[]);
    assert!(ran.stdout.ends_with("1 fixed\n") && !ran.stdout.contains("in-flight"), "{ran:?}");
    let ran = folder.run(&["replay", &journal]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("a journal is no case"), "{ran:?}");
    fs::create_dir(folder.path("empty")).unwrap();
    let ran = folder.run(&["replay", "empty"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("there is no case file in this folder"), "{ran:?}");
}

#[test]
fn what_an_option_excuses_since_is_no_failure() {
    let folder = Folder::new();
    let wrong = "builtin:group-advantage/fault/singleton-keeps-its-reward";
    let before = "{singleton: zero, scale: none}";
    folder.write("manifest.yaml", manifest("ours", wrong, before));
    let head = "component: ours\nplace: cpu/f64\n";
    folder.write(&format!("{FOUND}/one.yaml"), case(head, before));
    let ran = replay(&folder, &[]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.ends_with("\n1 still failing\n"), "{}", ran.stdout);
    folder.write("manifest.yaml", manifest("ours", wrong, "{singleton: avoid, scale: none}"));
    let ran = replay(&folder, &["--prune"]);
    let line =
        format!("excused by singleton: avoid {FOUND}/one.yaml · ours · cpu/f64\n1 excused\n");
    assert_eq!((ran.code, &*ran.stdout), (0, &*line), "{}", ran.stderr);
    assert_eq!(cases(&folder), 1);
    // Of two that have changed it names the one that does.
    let two = "{singleton: avoid, scale: none, epsilon: 0.5}";
    folder.write("manifest.yaml", manifest("ours", wrong, two));
    let ran = replay(&folder, &[]);
    assert_eq!((ran.code, &*ran.stdout), (0, &*line), "{}", ran.stderr);
}

#[test]
fn a_finding_names_the_option_that_would_excuse_it() {
    let folder = Folder::new();
    let said = |fault: &str| {
        let target = format!("builtin:group-advantage/fault/{fault}");
        folder.write("manifest.yaml", manifest("ours", &target, "{scale: none}"));
        let check = ["check", "manifest.yaml", "--cases", "32", "--only", "ours/oracle"];
        let ran = folder.run(&check);
        assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
        ran.stdout.contains("the option `singleton: avoid` would excuse it")
    };
    assert!(said("singleton-keeps-its-reward"));
    assert!(!said("baseline-missing"), "it is wrong everywhere");
    assert!(!said("groups-strided"), "its smallest case has a group of one, others have not");
}

#[test]
fn a_component_is_started_once_for_all_its_cases() {
    let folder = Folder::new();
    folder.write(
        "started.py",
        "import os\nopen('started.txt', 'a').write('once\\n')\n\n\
         def advantages(rewards, groups):\n    return [0.0 for _ in rewards]\n",
    );
    let text = manifest("ours", "python:started:advantages", "{scale: none}");
    folder.write("manifest.yaml", text.replace("path: [", "path: [., "));
    let head = "component: ours\nplace: cpu/f64\n";
    for number in 0..6 {
        let text = case(head, "{scale: none}").replace("2.0", &format!("{number}.0"));
        folder.write(&format!("{FOUND}/case-{number}.yaml"), text);
    }
    let began = Instant::now();
    let ran = replay(&folder, &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.ends_with("\n6 fixed\n"), "{}", ran.stdout);
    let started = fs::read_to_string(folder.path("started.txt")).unwrap();
    assert_eq!(started.lines().count(), 1, "in {:?}", began.elapsed());
}

#[test]
fn what_fails_only_after_other_calls_says_so_and_is_not_called_fixed() {
    let folder = Folder::new();
    folder.write(
        "caching.py",
        "seen = {}\n\n\
         def advantages(rewards, groups):\n    \
             groups = seen.setdefault(len(rewards), groups)\n    \
             of = {g: [r for r, h in zip(rewards, groups) if g == h] for g in groups}\n    \
             return [r - sum(of[g]) / len(of[g]) for r, g in zip(rewards, groups)]\n",
    );
    let text = manifest("ours", "python:caching:advantages", "{scale: none}");
    folder.write("manifest.yaml", text.replace("path: [", "path: [., "));
    let ran = folder.run(&["check", "manifest.yaml"]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("wrong      only after other calls"), "{}", ran.stdout);
    assert!(cases(&folder) > 0, "{}", ran.stdout);
    let kept = cases(&folder);
    let ran = replay(&folder, &["--prune"]);
    assert!(ran.stdout.contains("it failed only after other calls"), "{}", ran.stdout);
    assert_eq!(cases(&folder), kept, "{}", ran.stdout);
}

#[test]
fn what_is_random_is_not_said_to_depend_on_other_calls() {
    let folder = Folder::new();
    folder.write(
        "noisy.py",
        "import random\n\n\
         def advantages(rewards, groups):\n    \
             of = {g: [r for r, h in zip(rewards, groups) if g == h] for g in groups}\n    \
             off = random.choice([0.0, 1.0])\n    \
             return [r + off - sum(of[g]) / len(of[g]) for r, g in zip(rewards, groups)]\n",
    );
    let text = manifest("ours", "python:noisy:advantages", "{scale: none}");
    folder.write("manifest.yaml", text.replace("path: [", "path: [., "));
    let ran = folder.run(&["check", "manifest.yaml"]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains(" deterministic"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("only after other calls"), "{}", ran.stdout);
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_file() {
    let folder = Folder::new();
    let bom = |text: String| format!("\u{feff}{text}");
    folder.write("manifest.yaml", bom(manifest("ours", "builtin:group-advantage/reference", "{}")));
    folder.write(&format!("{FOUND}/one.yaml"), bom(case("component: ours\n", "{}")));
    let ran = replay(&folder, &[]);
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{}", ran.stdout);
    let check = ["check", "manifest.yaml", "--cases", "1", "--json", "report.json"];
    assert_eq!(folder.run(&check).code, 0);
    let report = fs::read_to_string(folder.path("report.json")).unwrap();
    folder.write("report.json", bom(report));
    let merged = folder.run(&["merge-reports", "report.json"]);
    assert_eq!(merged.code, 0, "{}", merged.stderr);
}

#[test]
fn files_of_any_size_and_lines_of_any_number_are_no_trap() {
    let folder = Folder::new();
    folder.write(
        "manifest.yaml",
        manifest("ours", "builtin:group-advantage/fault/baseline-missing", "{}"),
    );
    let check = ["check", "manifest.yaml", "--cases", "8", "--json", "report.json"];
    assert_eq!(folder.run(&check).code, 1);
    let report = fs::read_to_string(folder.path("report.json")).unwrap();
    assert!(report.contains("\"line\": 4"), "{report}");
    folder.write("far.json", report.replace("\"line\": 4", "\"line\": 9223372036854775808"));
    let merged = folder.run(&["merge-reports", "far.json", "--sarif", "far.sarif"]);
    assert_eq!(merged.code, 1, "{}", merged.stderr);
    for (name, arguments, limit) in [
        ("large.json", vec!["merge-reports"], "268435456 bytes, found 5000000000"),
        (
            "large.safetensors",
            vec!["check-batch", "--contract", "group-advantage"],
            "2147483648 bytes, found 5000000000",
        ),
    ] {
        fs::File::create(folder.path(name)).unwrap().set_len(5_000_000_000).unwrap();
        let ran = folder.run(&[&arguments[..], &[name]].concat());
        let expected = format!("error: {name}: expected at most {limit}\n");
        assert_eq!((ran.code, &*ran.stderr), (2, &*expected));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn reports_and_batches_are_read_in_pieces() {
    const LARGE: usize = 192 << 20;
    let folder = Folder::new();
    folder.write(
        "manifest.yaml",
        manifest("ours", "builtin:group-advantage/fault/baseline-missing", "{}"),
    );
    let check = ["check", "manifest.yaml", "--cases", "8", "--json", "report.json"];
    assert_eq!(folder.run(&check).code, 1);
    let mut report = vec![b' '; LARGE];
    report.extend(fs::read(folder.path("report.json")).unwrap());
    folder.write("large.json", report);
    // A list of what the file holds that does not fit what it holds.
    let header = r#"{"rewards":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    folder.write("large.st", [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat());
    let large = fs::OpenOptions::new().write(true).open(folder.path("large.st")).unwrap();
    large.set_len(LARGE as u64).unwrap();
    let batch = vec!["check-batch", "--contract", "group-advantage", "large.st"];
    for (arguments, code) in [(vec!["merge-reports", "large.json"], 1), (batch, 2)] {
        // Memory for less than the file, besides what is mapped.
        let limited = std::process::Command::new("sh")
            .args(["-c", "ulimit -d 131072 && exec \"$0\" \"$@\""])
            .arg(env!("CARGO_BIN_EXE_shakedown"))
            .args(&arguments)
            .current_dir(folder.path(""))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&limited.stderr);
        assert_eq!(limited.status.code(), Some(code), "{arguments:?}: {said}");
        let refused = "expected a safetensors file";
        assert!(code == 1 || said.starts_with(&format!("error: large.st: {refused}")), "{said}");
    }
}

#[test]
fn a_regression_keeps_inside_its_folder() {
    let folder = Folder::new();
    folder.write(&format!("{FOUND}/one.yaml"), case("component: ours\n", "{}"));
    let one = format!("{FOUND}/one.yaml");
    for name in ["../../x", "/tmp/x", "..", "a/b", "", "a\\b"] {
        let ran = folder.run(&["adopt", &one, "--why", "so", "--name", name]);
        assert_eq!(ran.code, 2, "{name}: {}", ran.stdout);
        let words = format!("--name: expected the name of a file, found `{name}`");
        assert!(ran.stderr.contains(&words), "{}", ran.stderr);
    }
    let ran = folder.run(&["adopt", &one, "--why", "so", "--name", "v1.2"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(folder.path("corpora/group-advantage/regressions/v1.2.yaml").is_file());
}

#[test]
fn a_case_is_never_written_over_another() {
    let folder = Folder::new();
    let wrong = "builtin:group-advantage/fault/baseline-missing";
    folder.write("manifest.yaml", manifest("ours", wrong, "{}"));
    let check = ["check", "manifest.yaml", "--cases", "8", "--only", "ours/oracle"];
    assert_eq!(folder.run(&check).code, 1);
    let entry = fs::read_dir(folder.path(FOUND)).unwrap().flatten();
    let mut entry = entry.filter(|entry| entry.path().extension().is_some_and(|e| e == "yaml"));
    let path = entry.next().unwrap().path();
    let other = case("component: other\n", "{}");
    fs::write(&path, &other).unwrap();
    assert_eq!(folder.run(&check).code, 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), other);
    assert_eq!(cases(&folder), 2);
    assert_eq!(folder.run(&check).code, 1);
    assert_eq!(cases(&folder), 2, "the same case has the same name");
}

#[test]
fn other_invariants_that_a_bug_broke_are_replayed_where_that_is_asked_for() {
    let folder = Folder::new();
    let planted = "builtin:group-advantage/fault/singleton-keeps-its-reward";
    folder.write("manifest.yaml", manifest("grpo", planted, "{}"));
    let head = "also: [singleton, odd, zero-sum]\ncomponent: grpo\nplace: cpu/f64\n";
    folder.write(&format!("{FOUND}/one.yaml"), case(head, "{}"));
    let short = replay(&folder, &[]);
    assert!(!short.stdout.contains("singleton breaks"), "{}", short.stdout);
    let ran = replay(&folder, &["--verbose"]);
    assert_eq!(ran.code, short.code, "{}{}", ran.stdout, ran.stderr);
    for line in [
        "               singleton breaks: row 0 is alone in its group",
        "               odd holds\n",
        "               zero-sum says nothing about this case\n",
        "1 still failing\n",
    ] {
        assert!(ran.stdout.contains(line), "{line:?} is not in {}", ran.stdout);
    }
}
