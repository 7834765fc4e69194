//! Malformed manifests and case files: every one is refused at once, with path, line and column
//! where there is one, what was expected and found, and the nearest known name.
//!
//! Each entry of a snapshot is what is wrong, the line that the error points to, and the error.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::folder::Folder;
use crate::manifests::{MANIFEST, Malformed, changed, text, wrong_words};
use crate::snapshot::assert_snapshot;

fn manifests() -> Vec<Malformed> {
    let change = |what, from, to| changed(MANIFEST, what, from, to);
    let mut manifests = wrong_words();
    manifests.extend([
        // YAML.
        text("empty file", ""),
        text("only a word", "hello\n"),
        text("only a comment, which does not end", "# components"),
        text("a list", "- version: 1\n"),
        text("two documents", format!("{MANIFEST}---\n{MANIFEST}")),
        change("tab for spaces", "    contract", "\tcontract"),
        change("no indentation", "  arrays", "arrays"),
        change("open bracket", "[cpu/f64, cpu/f32]", "[cpu/f64"),
        change("open quote", "trainer\"", "trainer"),
        change("alias without an anchor", "[cpu/f64, cpu/f32]", "*everywhere"),
        change("not UTF-8", "name: rloo", "name: rl\u{0}").not_utf8(),
        text("a program", b"\x7fELF\x02\x01\x01\0\0\0".to_vec()),
        // Explosives.
        text("a billion laughs at the top", laughs("")),
        change("a billion laughs in an option", "{epsilon: 1.0e-4,", &laughs_inside("epsilon")),
        text("an anchor inside itself", "version: 1\ncomponents: &a [*a]\n"),
        change("a name without end", "name: rloo", &format!("name: {}", "rloo".repeat(250_000))),
        change("brackets without end", "[cpu/f64, cpu/f32]", &"[".repeat(1_000_000)),
        change("braces without end", "[cpu/f64, cpu/f32]", &"{a: ".repeat(300_000)),
    ]);
    manifests
}

const CASE: &str = r#"schema: 1
contract: group-advantage
invariant: zero-sum
component: grpo
place: cpu/f32
why: "found on a Monday"
options: {epsilon: 1.0e-4}
case:
  rewards: [0.0, 1.0]
  groups: [0, 0]
"#;

fn case_files() -> Vec<Malformed> {
    let change = |what, from, to| changed(CASE, what, from, to);
    vec![
        // Keys.
        change("unknown key", "why:", "reason:"),
        change("missing schema", "schema: 1\n", ""),
        change("missing contract", "contract: group-advantage\n", ""),
        text("missing case", "schema: 1\ncontract: group-advantage\n"),
        text("cut in a key", "schema: 1\nconst"),
        change("key given twice", "component:", "why: twice\ncomponent:"),
        change("unknown input", "groups:", "group:"),
        change("missing input", "  groups: [0, 0]\n", ""),
        change("input given twice", "groups: [0, 0]", "rewards: [0, 0]"),
        change("input whose name is a number", "groups:", "7:"),
        text("a manifest", MANIFEST),
        // Names.
        change("unknown schema", "schema: 1", "schema: 2"),
        change("unknown contract", "group-advantage", "group-advantages"),
        change("unknown invariant", "zero-sum", "zero-sums"),
        change("unknown place", "cpu/f32", "cpu32"),
        change("unknown option", "epsilon:", "eps:"),
        change("option out of range", "1.0e-4", "-1.0"),
        // Arrays.
        change("text for a number", "1.0]", "one]"),
        change("nothing for a number", "1.0]", "null]"),
        change("NaN in the spelling of Python", "1.0]", "nan]"),
        change("fraction for an integer", "[0, 0]", "[0, 0.5]"),
        change("integer of more than 64 bits", "[0, 0]", "[0, 9223372036854775808]"),
        change("list for a number", "1.0]", "[1.0]]"),
        change("number for a list", "[0.0, 1.0]", "1.0"),
        change("lists in lists", "[0.0, 1.0]", "[[0.0], [1.0, 2.0]]"),
        change("list for the case", "  rewards: [0.0, 1.0]\n  groups: [0, 0]", "  [0.0, 1.0]"),
        change("no inputs at all", "  rewards: [0.0, 1.0]\n  groups: [0, 0]\n", ""),
        // Well-formed, but not of the contract.
        change("inputs of different length", "[0.0, 1.0]", "[0.0, 1.0, 2.0]"),
        change("inputs of no length", "[0.0, 1.0]\n  groups: [0, 0]", "[]\n  groups: []"),
        change("NaN where it is not allowed", "1.0]", ".nan]"),
        change("reward out of range", "1.0]", "1.0e+9]"),
        // Explosives.
        change("a billion laughs", "  rewards: [0.0, 1.0]\n", &laughs("  ")),
        change("brackets without end", "[0.0, 1.0]", &"[".repeat(1_000_000)),
    ]
}

/// Nine keys, each of which stands for nine times the one before.
fn laughs(indent: &str) -> String {
    let mut text = format!("{indent}a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (before, key) in ('a'..='h').zip('b'..='i') {
        let aliases = [format!("*{before}"), ", ".to_owned()].concat().repeat(9);
        let _ = writeln!(text, "{indent}{key}: &{key} [{}]", aliases.trim_end_matches(", "));
    }
    text
}

/// The same, all of it in the value of one option.
fn laughs_inside(option: &str) -> String {
    let mut value = "&a [x, x, x, x, x, x, x, x, x]".to_owned();
    for (before, key) in ('a'..='h').zip('b'..='i') {
        value = format!("&{key} [{value}{}]", format!(", *{before}").repeat(8));
    }
    format!("{{{option}: {value},")
}

impl Malformed {
    /// The same with each NUL as a byte that UTF-8 does not have.
    fn not_utf8(mut self) -> Malformed {
        self.bytes.iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = 0xff);
        self
    }

    /// What the command says of the file: at once, and with the expected exit code.
    fn told(&self, folder: &Folder, name: &str, arguments: &[&str]) -> String {
        folder.write(name, &self.bytes);
        let began = Instant::now();
        let ran = folder.run(arguments);
        let took = began.elapsed();
        assert!(took < Duration::from_secs(5), "{} took {took:?}", self.what);
        let told = [ran.stdout, ran.stderr].concat();
        assert!(matches!(ran.code, 2 | 3), "{}: {} {told}", self.what, ran.code);
        assert!(told.len() < 1000, "{}: an error of {} bytes", self.what, told.len());
        format!("# {}\n{}{told}", self.what, self.line(&told).unwrap_or_default())
    }

    /// The line that an error points to, with a mark below its column.
    fn line(&self, told: &str) -> Option<String> {
        let mut parts = told.split(':').skip(2);
        let line: usize = parts.next()?.parse().ok()?;
        let column: usize = parts.next()?.parse().ok()?;
        let text = String::from_utf8_lossy(&self.bytes);
        let text = text.lines().nth(line - 1).unwrap_or("");
        let shown: String =
            text.chars().take(90).map(|c| if c == '\t' { '→' } else { c }).collect();
        let cut = if shown.len() < text.len() && !text.contains('\t') { "…" } else { "" };
        let mark = if column > 90 { String::new() } else { " ".repeat(column - 1) + "^" };
        Some(format!("{line:>4} | {shown}{cut}\n     | {mark}\n"))
    }
}

#[test]
fn every_malformed_manifest_is_refused() {
    let folder = Folder::new();
    let arguments = ["check", "manifest.yaml", "--cases", "1"];
    folder.write("manifest.yaml", MANIFEST);
    assert_eq!(folder.run(&arguments).code, 0, "the good manifest is good");
    let told: Vec<String> = manifests()
        .iter()
        .map(|malformed| malformed.told(&folder, "manifest.yaml", &arguments))
        .collect();
    assert_snapshot("malformed", "manifests", &told.join("\n"));
}

#[test]
fn every_malformed_case_file_is_refused() {
    let folder = Folder::new();
    let arguments = ["replay", "case.yaml", "--manifest", "manifest.yaml"];
    let manifest = "version: 1\ncomponents:\n- name: grpo\n  contract: group-advantage\n  \
                    target: builtin:group-advantage/reference\n";
    folder.write("manifest.yaml", manifest);
    folder.write("case.yaml", CASE);
    assert_eq!(folder.run(&arguments).code, 0, "the good case is good");
    let told: Vec<String> = case_files()
        .iter()
        .map(|malformed| malformed.told(&folder, "case.yaml", &arguments))
        .collect();
    assert_snapshot("malformed", "case_files", &told.join("\n"));
}

#[test]
fn what_is_no_file_of_a_sensible_size_is_refused() {
    let folder = Folder::new();
    folder.write("folder/file", "");
    let sparse = std::fs::File::create(folder.path("sparse.yaml")).unwrap();
    sparse.set_len(100_000_000).unwrap();
    let mut paths = vec!["missing.yaml", "missing/manifest.yaml", "folder", "sparse.yaml"];
    if cfg!(unix) {
        paths.push("/dev/zero");
    }
    let mut told = String::new();
    for path in paths {
        for verb in ["check", "replay", "shrink"] {
            let began = Instant::now();
            let ran = folder.run(&[verb, path]);
            assert!(began.elapsed() < Duration::from_secs(5), "{verb} {path}");
            assert_eq!((ran.code, &*ran.stdout), (2, ""), "{verb} {path}");
            if verb == "check" {
                let _ = writeln!(told, "# {path}\n{}", ran.stderr);
            } else if (verb, path) == ("replay", "folder") {
                // It takes folders, but this one has nothing for it.
                assert_eq!(ran.stderr, "error: folder: there is no case file in this folder\n");
            } else {
                assert!(told.ends_with(&format!("{}\n", ran.stderr)), "{verb} {path}");
            }
        }
    }
    assert_snapshot("malformed", "files", &told);
}

#[test]
fn errors_have_a_place_where_the_yaml_library_names_none() {
    let folder = Folder::new();
    // Lines that end as on old machines; a key that is no text.
    let documents = format!("{MANIFEST}---\nversion: 1\n").replace('\n', "\r");
    let key = CASE.replace("groups:", "~:");
    for (verb, text, expected) in [
        ("check", documents, "1:1: expected one document, found another after `---`"),
        ("replay", key, "9:3: case: unknown key `null`, expected one of `rewards`, `groups`"),
    ] {
        folder.write("file.yaml", text);
        let ran = folder.run(&[verb, "file.yaml"]);
        assert_eq!((ran.code, ran.stderr), (2, format!("error: file.yaml:{expected}\n")));
    }
}

#[test]
fn a_malformed_regression_is_an_error_and_a_malformed_journal_is_none() {
    let folder = Folder::new();
    folder.write("manifest.yaml", MANIFEST);
    let arguments = ["check", "manifest.yaml", "--cases", "1"];
    let journal_file = "corpora/group-advantage/found/in-flight-grpo-a47142f1-cpu-f64-a1.journal";
    for journal in ["", "schema: 1\ncontract: group-adv", "\0\0\0", "\u{7f}\0\0\0\0\0\0\0{"] {
        folder.write(journal_file, journal);
        assert_eq!(folder.run(&arguments).code, 0);
        assert!(!folder.path(journal_file).exists(), "it was read");
    }
    let regression = "corpora/group-advantage/regressions/old.yaml";
    folder.write(regression, CASE.replace("1.0]", "one]"));
    let ran = folder.run(&arguments);
    let expected = format!(
        "could not run\n    {regression}:9:18: case.rewards[1]: expected a number, found \"one\"\n"
    );
    assert_eq!((ran.code, &*ran.stderr), (2, ""));
    assert!(ran.stdout.contains(&expected), "{}", ran.stdout);
}

#[test]
fn a_case_that_would_never_be_checked_is_an_error() {
    let (arguments, regressions) =
        (["check", "manifest.yaml", "--cases", "1"], "corpora/group-advantage/regressions");
    let ran_with = |name: &str, text: &str| {
        let folder = Folder::new();
        folder.write("manifest.yaml", MANIFEST);
        folder.write(name, text);
        folder.run(&arguments)
    };
    for stray in ["corpora/old.yaml", "corpora/old.yml", "corpora/group-advantage/old.yaml"] {
        let ran = ran_with(stray, CASE);
        let expected = format!("{stray}: this case is never checked: move it to {regressions}\n");
        assert_eq!((ran.code, ran.stdout.contains(&expected)), (2, true), "{}", ran.stdout);
    }
    let ran = ran_with(&format!("{regressions}/old.yml"), &CASE.replace("1.0]", "one]"));
    let expected = format!("{regressions}/old.yml:9:18: case.rewards[1]: expected a number");
    assert_eq!((ran.code, ran.stdout.contains(&expected)), (2, true), "{}", ran.stdout);
    // Of another contract, or no case at all.
    for harmless in [CASE.replace("group-advantage", "gae"), "notes: none\n".to_owned()] {
        assert_eq!(ran_with("corpora/old.yaml", &harmless).code, 0);
    }
}

#[test]
#[cfg(unix)]
fn a_link_to_a_case_that_is_gone_is_an_error() {
    let folder = Folder::new();
    folder.write("manifest.yaml", MANIFEST);
    let regressions = "corpora/group-advantage/regressions";
    folder.write(&format!("{regressions}/README.md"), "");
    let link = folder.path(&format!("{regressions}/gone.yaml"));
    std::os::unix::fs::symlink("nowhere.yaml", link).unwrap();
    let ran = folder.run(&["check", "manifest.yaml", "--cases", "1"]);
    let expected = format!("cannot read {regressions}/gone.yaml");
    assert_eq!((ran.code, ran.stdout.contains(&expected)), (2, true), "{}", ran.stdout);
}
