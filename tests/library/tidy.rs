//! Conventions as tests: every list is complete, every file is where a reader looks for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use shakedown::author::Doc;
use shakedown::contract::fault::Behaviour;
use shakedown::contracts::{self, IDS};
use shakedown::rules::{About, Rule};
use shakedown::runs::simulate::bug::Bug;
use shakedown::{datasets, runs, settings};

use crate::paths;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn names_in(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// All files below a folder of the repository that end in `extension`.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && name != "target" && name != "found" {
                open.push(path);
            } else if path.extension().is_some_and(|one| one == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_top_level_holds_what_the_readme_says() {
    let readme = read("README.md");
    for folder in ["harness", "targets", "corpora", "fuzz", "snapshots", "tests"] {
        assert!(readme.contains(&format!("| `{folder}/` |")), "README.md does not map {folder}");
        let text = read(format!("{folder}/README.md"));
        assert!(text.lines().count() <= 60, "{folder}/README.md has more than 60 lines");
    }
}

#[test]
fn every_contract_has_its_folder_and_its_places_elsewhere() {
    let contracts = root().join("harness/contracts");
    let listed: BTreeSet<String> = IDS.iter().map(|id| id.replace('-', "_")).collect();
    let is_folder = |name: &String| contracts.join(name).is_dir();
    let found: BTreeSet<String> = names_in(&contracts).into_iter().filter(is_folder).collect();
    assert_eq!(found, listed, "folders of harness/contracts against the list in mod.rs");

    let builtin = read("targets/builtin.yaml");
    for id in IDS {
        assert!(builtin.contains(&format!("builtin:{id}/reference")), "targets/builtin.yaml: {id}");
        let regressions = names_in(&root().join(format!("corpora/{id}/regressions")));
        assert!(regressions.len() >= 10, "{id} has {} regressions", regressions.len());
    }
}

#[test]
fn every_fuzz_target_is_of_a_contract_or_of_a_parser() {
    let parsers = read("harness/command/door/fuzz/parsers.rs");
    let parser = |line: &str| Some(line.strip_prefix("pub fn ")?.split('(').next()?.to_owned());
    let parsers: Vec<String> = parsers.lines().filter_map(parser).collect();
    let of_contracts = IDS.iter().map(|id| id.replace('-', "_"));
    let of_parsers = parsers.iter().map(|name| format!("parse_{name}"));
    let expected: BTreeSet<String> = of_contracts.chain(of_parsers).collect();

    let names = names_in(&root().join("fuzz/fuzz_targets"));
    let found: BTreeSet<String> =
        names.iter().map(|name| name.trim_end_matches(".rs").to_owned()).collect();
    assert_eq!(found, expected, "files of fuzz/fuzz_targets against contracts and parsers");
    let binaries = read("fuzz/Cargo.toml");
    for name in &expected {
        assert!(binaries.contains(&format!("name = \"{name}\"")), "fuzz/Cargo.toml: {name}");
        let target = read(format!("fuzz/fuzz_targets/{name}.rs"));
        assert!(target.lines().count() <= 4, "{name}.rs is longer than a target has to be");
        let seeds = format!("corpora/{}/seeds", name.replace('_', "-"));
        assert!(!names_in(&root().join(&seeds)).is_empty(), "{seeds} is empty");
    }
}

#[cfg(unix)]
#[test]
fn clusterfuzzlite_gets_every_fuzz_target_with_its_seeds() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    if std::process::Command::new("zip").arg("-v").output().is_err() {
        println!("left out: there is no `zip`");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let folder = |name: &str| {
        let path = scratch.path().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    };
    let (out, bin, source) = (folder("out"), folder("bin"), folder("src/shakedown"));
    symlink(root().join("corpora"), source.join("corpora")).unwrap();
    let manifest = read("fuzz/Cargo.toml");
    let names = manifest.lines().filter_map(|line| line.strip_prefix("name = \""));
    let targets: BTreeSet<&str> = names.skip(1).map(|name| name.trim_end_matches('"')).collect();
    // A cargo that lists the targets, and builds each of them in no time.
    let list: Vec<&str> = targets.iter().copied().collect();
    let built = "fuzz/target/$(rustc -vV | sed -n 's/^host: //p')/release";
    let cargo = format!(
        "#!/bin/sh\nset -e\ntargets='{}'\n[ \"$2\" = build ] || exec echo $targets\n\
         mkdir -p {built}\nfor target in $targets; do : > {built}/$target; done\n",
        list.join(" ")
    );
    fs::write(bin.join("cargo"), cargo).unwrap();
    fs::set_permissions(bin.join("cargo"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let ran = std::process::Command::new(root().join(".clusterfuzzlite/build.sh"))
        .envs([("PATH", Path::new(&path)), ("OUT", &out), ("SRC", &scratch.path().join("src"))])
        .output()
        .expect("the script can be run");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));

    let mut expected: BTreeSet<String> = targets.iter().map(|name| (*name).to_owned()).collect();
    for target in &targets {
        if root().join(format!("corpora/{}/seeds", target.replace('_', "-"))).is_dir() {
            expected.insert(format!("{target}_seed_corpus.zip"));
        }
    }
    for id in IDS {
        let zip = format!("{}_seed_corpus.zip", id.replace('-', "_"));
        assert!(expected.contains(&zip), "{id} has no target or no seeds");
    }
    assert_eq!(names_in(&out), expected);
}

#[test]
fn every_invariant_file_is_on_its_list() {
    for contract in contracts::all() {
        let folder = format!("harness/contracts/{}/invariants", contract.id().replace('-', "_"));
        for file in names_in(&root().join(&folder)) {
            let id = file.trim_end_matches(".rs").replace('_', "-");
            let listed = contract.invariant(&id);
            assert!(id == "mod" || listed.is_some(), "{folder}/{file} is on no list");
        }
    }
}

#[test]
fn every_invariant_says_what_why_when_not_and_shows_an_example() {
    for contract in contracts::all() {
        let mut seen = BTreeSet::new();
        for invariant in contract.invariants() {
            let (id, doc) = (format!("{}/{}", contract.id(), invariant.id), invariant.doc);
            assert!(seen.insert(invariant.id), "{id} is there twice");
            for heading in Doc::HEADINGS {
                assert!(!doc.section(heading).is_empty(), "{id}: ### {heading}");
            }
            assert!(doc.claim().len() <= 120, "{id}: the claim is long");
            let diff = doc.example().map(|example| example.diff).unwrap_or_default();
            let has = |mark| diff.iter().any(|line| line.starts_with(mark));
            assert!(has('-') && has('+'), "{id}: ### Example");
        }
    }
}

#[test]
fn every_fault_has_a_source_and_a_short_summary() {
    for contract in contracts::all() {
        let mut seen = BTreeSet::new();
        let planted = contract.faults().iter();
        let planted = planted.filter(|fault| matches!(fault.behaviour, Behaviour::Gives(_)));
        assert!(planted.count() >= 8, "{} has few faults", contract.id());
        for fault in contract.faults() {
            let (id, summary) = (format!("{}/{}", contract.id(), fault.id), fault.summary);
            assert!(seen.insert(fault.id), "{id} is there twice");
            assert!(!fault.source.is_empty() && !summary.is_empty(), "{id}");
            assert!(!summary.ends_with('.') && summary.len() <= 110, "{id}: {summary}");
            let gives = matches!(fault.behaviour, Behaviour::Gives(_));
            assert_eq!(gives, !fault.variants().is_empty(), "{id} does nothing");
        }
        let options = contract.option_docs();
        assert!(options.iter().all(|doc| doc.meaning.len() > 10), "{}", contract.id());
    }
}

/// The rules about what surrounds the components, by the folder in which their files are.
fn rules() -> [(&'static str, Vec<About>); 3] {
    [
        ("harness/lint/runs/rules", runs::rules::all().iter().map(Rule::about).collect()),
        ("harness/lint/settings/rules", settings::rules::all().iter().map(Rule::about).collect()),
        ("harness/lint/datasets/rules", datasets::rules::all().iter().map(Rule::about).collect()),
    ]
}

#[test]
fn every_file_with_a_rule_is_on_its_list() {
    for (folder, rules) in rules() {
        for file in names_in(&root().join(folder)) {
            let text = read(format!("{folder}/{file}"));
            let id = file.trim_end_matches(".rs").replace('_', "-");
            let listed = rules.iter().any(|rule| rule.id == id);
            assert_eq!(text.contains("const HEAD: Head<"), listed, "{folder}/{file}");
        }
    }
}

#[test]
fn every_rule_says_when_it_fires_what_it_may_be_and_what_to_do() {
    let all: BTreeSet<&str> = rules().iter().flat_map(|(_, rules)| rules).map(|r| r.id).collect();
    for (folder, rules) in rules() {
        for rule in rules {
            let id = format!("{folder}: {}", rule.id);
            for heading in ["Fires when", "Causes", "Next"] {
                assert!(!rule.doc.section(heading).is_empty(), "{id}: ### {heading}");
            }
            let summary = rule.doc.summary();
            assert!(summary.ends_with('.') && summary.len() <= 100, "{id}: {summary}");
            for explained in rule.explains {
                assert!(all.contains(explained), "{id} explains {explained}, which is no rule");
            }
            for (contract, invariants) in rule.contracts {
                let found = contracts::find(contract);
                let found = found.unwrap_or_else(|| panic!("{id}: there is no {contract}"));
                for invariant in *invariants {
                    let known = found.invariant(invariant).is_some();
                    assert!(known, "{id}: there is no {contract}/{invariant}");
                }
            }
        }
    }
}

#[test]
fn every_rule_about_runs_needs_metrics_that_there_are_and_catches_a_simulated_bug() {
    let known = runs::names::known();
    let is_metric = |id: &str| {
        known.iter().any(|metric| match metric.id.split_once('{') {
            Some((before, _)) => id.starts_with(before),
            None => metric.id == id,
        })
    };
    let is_setting = |id: &str| settings::fields::ids().any(|setting| setting == id);
    let bugs: BTreeSet<&str> = Bug::ALL.iter().map(|bug| bug.id()).collect();
    for rule in runs::rules::all() {
        for id in rule.head.needs {
            assert!(is_metric(id) || is_setting(id), "{}: there is no metric {id}", rule.id);
        }
        assert!(!rule.head.catches.is_empty(), "{} catches nothing", rule.id);
        for bug in rule.head.catches {
            assert!(bugs.contains(bug), "{}: there is no simulated bug {bug}", rule.id);
        }
    }
}

/// The crates of the library, each with its folders: a file imports from those in front of its own
/// only. What is in no folder stands above them. Between crates Cargo sees to it.
const LAYERS: [(&str, &[&str]); 5] = [
    ("core", &["value", "numeric", "generate", "contract", "laws"]),
    ("contracts", &[]),
    ("engine", &["host", "files", "report", "diagnosis"]),
    ("lint", &["report", "rules", "settings", "runs", "datasets"]),
    ("command", &["render", "door"]),
];

/// A file of one of the crates, and what it names of that crate.
struct Module {
    /// `["core", "value", "yaml", "reader"]`; `["core", "value", "yaml"]` of a `mod.rs`.
    path: paths::Path,
    names: BTreeSet<paths::Path>,
}

fn modules() -> Vec<Module> {
    let read = |file: PathBuf| {
        let name = file.strip_prefix(root().join("harness")).unwrap().with_extension("");
        let mut path: Vec<&str> = name.iter().map(|part| part.to_str().unwrap()).collect();
        if ["mod", "lib"].contains(path.last()?) {
            path.pop();
        }
        LAYERS.iter().any(|(own, _)| *own == path[0]).then(|| Module {
            path: path.iter().map(|part| (*part).to_owned()).collect(),
            names: paths::named(&fs::read_to_string(&file).unwrap(), &path),
        })
    };
    files("harness", "rs").into_iter().filter_map(read).collect()
}

#[test]
fn imports_go_down_the_layers() {
    let mut up = Vec::new();
    for Module { path, names } in modules() {
        let (_, layers) = LAYERS.iter().find(|(own, _)| *own == path[0]).unwrap();
        let layer = |path: &paths::Path| {
            let folder = path.get(1).and_then(|name| layers.iter().position(|one| one == name));
            folder.unwrap_or(layers.len())
        };
        let above = names.iter().filter(|name| layer(name) > layer(&path));
        up.extend(above.map(|name| format!("{} -> {}", path.join("::"), name.join("::"))));
    }
    assert!(up.is_empty(), "imports from above:\n{}", up.join("\n"));
}

#[test]
fn no_files_of_a_folder_import_each_other_in_a_circle() {
    let modules = modules();
    let known: BTreeSet<&paths::Path> = modules.iter().map(|module| &module.path).collect();
    let folders = known.iter().map(|path| path[..path.len() - 1].to_vec());
    let folders: BTreeSet<paths::Path> = folders.filter(|folder| !folder.is_empty()).collect();
    let mut circles = Vec::new();
    for folder in folders {
        // What stands in the folder itself: a file, or a folder with all that is in it. The
        // `lib.rs` of a crate and the `mod.rs` of a layer are files like others; that of a smaller
        // folder, and of a contract, holds its files together, and they may name it.
        let is_layer = folder.len() == 2 && folder[0] != "contracts";
        let place = |path: &[String]| -> Option<String> {
            let inside = path.strip_prefix(&folder[..])?;
            match inside.first() {
                Some(first)
                    if known.contains(&[&folder[..], std::slice::from_ref(first)].concat()) =>
                {
                    Some(first.clone())
                }
                _ => (folder.len() == 1 || is_layer).then(|| "mod".to_owned()),
            }
        };
        let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for Module { path, names } in &modules {
            let Some(from) = place(path) else { continue };
            let targets = names.iter().filter_map(|name| place(name)).filter(|to| *to != from);
            arrows.entry(from.clone()).or_default().extend(targets);
        }
        // What imports nothing that is left is in no circle, nor is what nothing imports.
        loop {
            let before = arrows.len();
            let from: BTreeSet<String> = arrows.keys().cloned().collect();
            let to: BTreeSet<String> = arrows.values().flatten().cloned().collect();
            arrows.retain(|one, targets| {
                targets.retain(|target| from.contains(target));
                !targets.is_empty() && to.contains(one)
            });
            if arrows.len() == before {
                break;
            }
        }
        let folder = folder.join("/");
        circles
            .extend(arrows.iter().map(|(one, targets)| format!("{folder}: {one} -> {targets:?}")));
    }
    assert!(circles.is_empty(), "{}", circles.join("\n"));
}

#[test]
fn paths_are_found_in_imports_and_in_code_but_not_in_texts_comments_or_tests() {
    let text = r###"
        //! crate::no::comment
        use crate::value::{self, yaml::{Document as D, Step}, *};
        use super::Done;
        mod child;
        const A: &str = "crate::no::text"; const B: char = '"'; const C: &str = r#"crate::no"#;
        fn f<'a>(x: &'a str) { child::g(); $crate::no::macro_name; self::child::h::<u8>() }
        #[cfg(test)]
        mod tests { use crate::no::test; fn g() {} }
        fn h() -> crate::host::builtin::Builtin { other::child::no() }
    "###;
    let found = paths::named(text, &["command", "door", "cli"]);
    let found: Vec<String> = found.iter().map(|path| path.join("::")).collect();
    let expected = [
        "command::door::Done",
        "command::door::cli::child::g",
        "command::door::cli::child::h",
        "command::host::builtin::Builtin",
        "command::value",
        "command::value::yaml::Document",
        "command::value::yaml::Step",
    ];
    assert_eq!(found, expected);
}

#[test]
fn nothing_cites_a_document_that_a_reader_cannot_open() {
    let private =
        ["training skill", "formulas", "seed grpo", "contracts.md", "design.md", "bugs.md"];
    for extension in ["rs", "md", "py", "yaml"] {
        for path in files("harness", extension) {
            let text = fs::read_to_string(&path).unwrap();
            for (index, line) in text.lines().enumerate() {
                let line = line.to_lowercase();
                let cited = private.iter().find(|word| line.contains(**word));
                assert!(cited.is_none(), "{}:{}: {cited:?}", path.display(), index + 1);
            }
        }
    }
}

#[test]
fn every_file_of_tests_is_in_a_binary() {
    let tests = files("tests", "rs");
    let others = [("harness", "toml"), ("targets", "toml"), ("harness", "rs")];
    let others = others.map(|(folder, extension)| files(folder, extension)).concat();
    let naming = tests.iter().chain(&others).map(read);
    let naming: String = naming.chain([read("Cargo.toml")]).collect();
    for path in &tests {
        // As a module of its folder's binary, or by a path, as in `path = "../support/report.rs"`.
        let module = format!("\nmod {};", path.file_stem().unwrap().display());
        let main = fs::read_to_string(path.with_file_name("main.rs")).unwrap_or_default();
        let [folder, file] = [path.parent().unwrap(), path].map(|one| one.file_name().unwrap());
        let is_named = naming.contains(&format!("{}/{}\"", folder.display(), file.display()));
        assert!(main.contains(&module) || is_named, "{} is in no test", path.display());
    }
    assert!(tests.len() > 40, "only {} files were found", tests.len());
}

#[test]
fn every_path_that_a_page_names_is_there() {
    let folders = ["harness", "targets", "tests", "fuzz", "corpora", "snapshots"];
    let pages = folders.map(|folder| files(folder, "md")).concat();
    let mut named = 0;
    for page in pages.into_iter().chain([root().join("README.md")]) {
        let text = fs::read_to_string(&page).unwrap();
        for path in text.split('`').skip(1).step_by(2) {
            let ours = folders.iter().any(|folder| path.starts_with(&format!("{folder}/")));
            let letter = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
            if ours && path.chars().all(letter) && !path.contains("ID") {
                named += 1;
                assert!(root().join(path).exists(), "{}: there is no {path}", page.display());
            }
        }
    }
    assert!(named > 30, "only {named} paths were found");
}

#[test]
fn every_rust_file_opens_with_a_sentence_and_keeps_the_line_width() {
    for folder in ["harness", "targets", "tests", "fuzz"] {
        for path in files(folder, "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let first = text.lines().next().unwrap_or("");
            let fuzz_target = folder == "fuzz";
            assert!(first.starts_with("//! ") || fuzz_target, "{}: {first}", path.display());
            let long = text.lines().position(|line| line.chars().count() > 100);
            let allowed = fuzz_target || long.is_none();
            assert!(allowed, "{}:{}", path.display(), long.unwrap_or(0) + 1);
        }
    }
}

#[test]
fn unsafe_code_stands_where_other_languages_are_called_and_where_a_file_is_memory() {
    let foreign = [
        "tensor/cuda.rs",
        "fuzz/engine.rs",
        "contract/coverage.rs",
        "yaml/events.rs",
        "files/batch.rs",
        "files/journal.rs",
    ];
    for path in files("harness", "rs") {
        let text = fs::read_to_string(&path).unwrap();
        let uses = ["unsafe {", "unsafe fn", "unsafe extern", "unsafe(", "unsafe_code"]
            .iter()
            .any(|word| text.contains(word));
        let allowed = foreign.iter().any(|known| path.ends_with(known));
        assert!(!uses || allowed || path.ends_with("lib.rs"), "{}", path.display());
    }
}
