//! The schemas: what manifests and options may be is the same to editors, to Python and to the
//! parser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use arbitrary::Unstructured;
use serde_json::{Map, Value as Json, json};
use shakedown::contracts::{self, IDS};

use crate::folder::Folder;
use crate::manifests::{MANIFEST, wrong_words};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What the command prints, read as JSON.
fn printed(arguments: &[&str]) -> Json {
    let ran = Folder::new().run(arguments);
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{arguments:?}");
    serde_json::from_str(&ran.stdout).expect("it is JSON")
}

fn validator(schema: &Json) -> jsonschema::Validator {
    assert!(jsonschema::meta::is_valid(schema), "the schema is none");
    jsonschema::validator_for(schema).expect("the schema can be used")
}

/// YAML as editors hand it to the schema; `None` where it is none.
fn from_yaml(text: &[u8]) -> Option<Json> {
    serde_json::to_value(serde_yaml::from_slice::<serde_yaml::Value>(text).ok()?).ok()
}

/// A manifest of one component with some options.
fn with_options(contract: &str, options: Map<String, Json>) -> Json {
    let target = format!("builtin:{contract}/reference");
    let component =
        json!({"name": "one", "contract": contract, "target": target, "options": options});
    json!({"version": 1, "components": [component]})
}

#[track_caller]
fn assert_fits(validator: &jsonschema::Validator, instance: &Json, what: &str) {
    let errors: Vec<String> = validator
        .iter_errors(instance)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}\n{}", errors.join("\n"));
}

// ---- The schema of manifests.

#[test]
fn every_manifest_of_the_repository_fits_the_schema() {
    let validator = validator(&printed(&["schema"]));
    let mut manifests = Vec::new();
    let mut open = vec![root().join("targets")];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        for path in entries {
            match path.extension() {
                _ if path.is_dir() => open.push(path),
                Some(yaml) if yaml == "yaml" => manifests.push(path),
                _ => {}
            }
        }
    }
    let read = |path: &PathBuf| from_yaml(&fs::read(path).unwrap()).expect("it is YAML");
    let is_manifest = |text: &Json| text.get("components").is_some();
    manifests.retain(|path| is_manifest(&read(path)));
    assert!(manifests.len() >= 10, "{manifests:?}");
    for path in manifests {
        assert_fits(&validator, &read(&path), &path.display().to_string());
    }
}

#[test]
fn the_defaults_and_whatever_is_drawn_fit_the_schema() {
    let validator = validator(&printed(&["schema"]));
    for contract in contracts::all() {
        let id = contract.id();
        assert_fits(&validator, &with_options(id, contract.default_options().json()), id);
        for seed in 0..64_u8 {
            let bytes: Vec<u8> = (0..=255).map(|x: u8| x.wrapping_mul(seed) ^ seed).collect();
            let options = contract.draw_options(&mut Unstructured::new(&bytes)).unwrap();
            assert_fits(&validator, &with_options(id, options.json()), id);
        }
    }
}

#[test]
fn what_the_parser_refuses_does_not_fit_the_schema() {
    /// What only the parser sees: names that are not to be equal, and numbers in their order.
    const LEFT_TO_THE_PARSER: [&str; 2] =
        ["component name given twice", "reward range upside down"];
    let validator = validator(&printed(&["schema"]));
    assert_fits(&validator, &from_yaml(MANIFEST.as_bytes()).unwrap(), "the good manifest");
    for wrong in wrong_words() {
        let fits = from_yaml(&wrong.bytes).is_some_and(|manifest| validator.is_valid(&manifest));
        assert_eq!(fits, LEFT_TO_THE_PARSER.contains(&wrong.what), "{}", wrong.what);
    }
}

#[test]
fn an_empty_value_is_to_the_schema_what_it_is_to_the_parser() {
    let schema = printed(&["schema"]);
    let validator = validator(&schema);
    let keys = |of: &Json| of["properties"].as_object().unwrap().keys().cloned().collect();
    let of_python: Vec<String> = keys(&schema["definitions"]["python"]);
    let of_component: Vec<String> = keys(&schema["definitions"]["component"]);
    let folder = Folder::new();
    let component = "- {name: a, contract: returns, target: 'builtin:returns/reference'";
    let at_top = ["python", "corpora"].map(|key| format!("{key}:\ncomponents:\n{component}}}\n"));
    let of_python = of_python.iter().map(|key| format!("python: {{{key}: }}"));
    let of_python = of_python.map(|python| format!("{python}\ncomponents:\n{component}}}\n"));
    let mut of_component = of_component;
    of_component.retain(|key| !component.contains(&format!("{key}: ")));
    let of_component =
        of_component.iter().map(|key| format!("components:\n{component}, {key}: }}\n"));
    for manifest in at_top.into_iter().chain(of_python).chain(of_component) {
        is_accepted(&folder, &validator, &format!("version: 1\n{manifest}"));
    }
}

/// Whether the parser and the schema accept a manifest, of which they must think alike.
#[track_caller]
fn is_accepted(folder: &Folder, validator: &jsonschema::Validator, manifest: &str) -> bool {
    folder.write("manifest.yaml", manifest);
    let ran = folder.run(&["list", "--manifest", "manifest.yaml"]);
    let fits = validator.is_valid(&from_yaml(manifest.as_bytes()).unwrap());
    assert_eq!(fits, ran.code == 0, "{manifest}{}", ran.stderr);
    fits
}

#[test]
fn what_only_some_components_may_have_is_so_to_the_schema_too() {
    let (folder, validator) = (Folder::new(), validator(&printed(&["schema"])));
    let is_accepted = |contract: &str, target: &str, more: &str| {
        let component = format!("{{name: a, contract: {contract}, target: {target}, {more}}}");
        is_accepted(&folder, &validator, &format!("version: 1\ncomponents: [{component}]\n"))
    };
    let [python, process] = ["'python:a.py:f'", "{process: [a]}"];
    for (contract, target, more, expected) in [
        ("returns", python, "args: {mask: m, gamma: discount}", true),
        ("returns", python, "args: {masks: m}", false),
        ("returns", process, "args: {mask: m}", false),
        ("returns", process, "args: {}", true),
        ("returns", "'builtin:returns/reference'", "args: {mask: m}", false),
        ("returns", python, "signature: by-name", true),
        ("returns", python, "signature: trl", false),
        ("reward-function", python, "signature: trl", true),
        ("reward-function", process, "signature: trl", false),
        ("reward-function", python, "signature: trl-chat, answer_columns: [gold]", true),
        ("reward-function", python, "signature: verl, answer_columns: [gold]", false),
        ("reward-function", python, "answer_columns: [gold]", false),
        ("reward-function", python, "answer_columns: []", true),
        ("reward-function", python, "signature: trl, columns: {a: answers, b: {value: x}}", true),
        ("reward-function", python, "signature: trl, columns: {a: 1, b: null, c: [x]}", true),
        ("reward-function", python, "signature: trl, columns: {a: x}", false),
        ("reward-function", python, "signature: verl, columns: {a: answers}", false),
        ("reward-function", python, "columns: {}", false),
        ("returns", python, "init: {a: {b: [1, x]}}, setup: 'python:a.py:f'", true),
        ("returns", python, "setup: 'python:f'", false),
        ("returns", python, "env: {A: 1, B: x, C: true}, stub: [a.b, _c, é]", true),
        ("returns", python, "env: {A: null}", false),
        ("returns", python, "env: {'': x}", false),
        ("returns", python, "stub: [a.b.]", false),
        ("returns", python, "stub: [1a]", false),
        ("returns", process, "env: {A: 1}", true),
        ("returns", process, "init: {}", false),
        ("returns", process, "setup: 'python:a.py:f'", false),
        ("returns", process, "stub: []", false),
        ("returns", "'builtin:returns/reference'", "env: {}", false),
        ("returns", python, "skip: {oracle: why}", true),
        ("returns", python, "skip: {oracles: why}", false),
        ("returns", python, "places: ['cuda:1/bf16']", true),
        ("returns", python, "places: ['cuda:x/bf16']", false),
    ] {
        assert_eq!(is_accepted(contract, target, more), expected, "{contract} {target} {more}");
    }
}

#[test]
fn the_schema_has_the_keys_and_the_words_that_the_parser_knows() {
    let schema = printed(&["schema"]);
    let parser = fs::read_to_string(root().join("harness/engine/files/manifest.rs")).unwrap();
    let definitions = &schema["definitions"];
    for (name, part) in [
        ("File", &schema),
        ("PythonFile", &definitions["python"]),
        ("ComponentFile", &definitions["component"]),
    ] {
        let (_, fields) = parser.split_once(&format!("\nstruct {name} {{\n")).expect(name);
        let (fields, _) = fields.split_once("\n}").expect(name);
        let mut fields: Vec<&str> =
            fields.lines().filter_map(|line| Some(line.trim().split_once(": ")?.0)).collect();
        fields.retain(|field| field.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
        let properties = part["properties"].as_object().expect(name);
        let keys: Vec<&str> = properties.keys().map(String::as_str).collect();
        assert_eq!(fields, keys, "the fields of {name} against the keys of the schema");
    }
    let arrays = definitions["python"]["properties"]["arrays"]["enum"].as_array().unwrap().iter();
    let signature = &definitions["component"]["properties"]["signature"]["oneOf"];
    let signatures = signature.as_array().unwrap().iter().map(|one| &one["const"]);
    let words: [(&str, Vec<&Json>); 2] =
        [("arrays: list", arrays.collect()), ("tolerance: 2", signatures.collect())];
    for ((from, words), to) in words.into_iter().zip(["arrays: zzz", "signature: zzz"]) {
        let folder = Folder::new();
        folder.write("manifest.yaml", MANIFEST.replace(from, to));
        let words: Vec<&str> = words.into_iter().map(|word| word.as_str().unwrap()).collect();
        let expected = format!("expected one of `{}`", words.join("`, `"));
        let ran = folder.run(&["check", "manifest.yaml"]);
        assert!(ran.stderr.contains(&expected), "expected {expected} in {}", ran.stderr);
    }
}

#[test]
fn the_schema_is_kept_where_editors_look_for_it() {
    let kept = root().join("snapshots/shakedown.schema.json");
    let schema = Folder::new().run(&["schema"]).stdout;
    let is_kept = fs::read_to_string(&kept).is_ok_and(|text| text == schema);
    assert!(is_kept, "`cargo run -- schema > snapshots/shakedown.schema.json` writes it anew");
    let at = printed(&["schema"])["$id"].clone();
    let version = env!("CARGO_PKG_VERSION");
    let path = format!("/v{version}/snapshots/shakedown.schema.json");
    assert!(at.as_str().unwrap().ends_with(&path), "{at} is not the address of {path}");
}

// ---- The catalogue.

#[test]
fn the_catalogue_has_everything_of_every_contract() {
    let catalogue = printed(&["list", "--json"]);
    assert_eq!(catalogue["schema"], "shakedown/catalogue/1");
    let all = catalogue["contracts"].as_array().unwrap();
    let ids: Vec<&str> = all.iter().map(|contract| contract["id"].as_str().unwrap()).collect();
    assert_eq!(ids, IDS);
    for (contract, listed) in contracts::all().zip(all) {
        let id = contract.id();
        let defaults = contract.default_options().json();
        let options = listed["options"].as_array().unwrap();
        let given: Map<String, Json> = options
            .iter()
            .map(|option| (option["name"].as_str().unwrap().to_owned(), option["default"].clone()))
            .collect();
        assert_eq!(given, defaults, "{id}");
        for option in options {
            assert_fits(&validator(&option["schema"]), &option["default"], id);
        }
        let count = |key: &str| listed[key].as_array().unwrap().len();
        assert_eq!(count("invariants"), contract.invariants().len(), "{id}");
        assert_eq!(count("faults"), contract.faults().len(), "{id}");
        assert_eq!(count("classes"), contract.classes().len(), "{id}");
        let lists = ["inputs", "outputs", "options", "invariants", "faults", "classes"];
        for item in lists.iter().flat_map(|list| listed[*list].as_array().unwrap()) {
            let says = ["meaning", "claim", "summary"].iter().find_map(|key| item[*key].as_str());
            assert!(says.is_some_and(|says| !says.is_empty()), "{id}: {item} says nothing");
        }
        assert!(!listed["documentation"].as_str().unwrap().is_empty(), "{id}");
        for records in ["inputs", "outputs"] {
            let shapes = listed["shapes"][records].as_str().unwrap();
            assert!(!shapes.is_empty(), "{id}: no shapes of {records}");
        }
    }
    let one = printed(&["list", "returns", "--json"]);
    assert_eq!(one["contracts"].as_array().unwrap().len(), 1);
    let mask = &one["contracts"][0]["inputs"][1];
    let expected = json!({"name": "mask", "meaning": mask["meaning"], "kind": "bool", "ndim": 2,
                          "dimensions": ["N", "T"], "optional": false});
    assert_eq!(*mask, expected);
}

#[test]
fn a_list_says_what_its_items_are() {
    let listed = printed(&["list", "accumulated-loss", "--json"]);
    let inputs = listed["contracts"][0]["inputs"].as_array().unwrap();
    let list = inputs.iter().find(|input| input["kind"] == "list").expect("it has a list");
    let names: Vec<&Json> =
        list["items"].as_array().unwrap().iter().map(|item| &item["name"]).collect();
    assert!(names.contains(&&json!("token_losses")), "{names:?}");
}

#[test]
fn the_components_of_a_manifest_are_listed_with_their_contracts_and_places() {
    let folder = Folder::new();
    folder.write("manifest.yaml", MANIFEST);
    let ran = folder.run(&["list", "--manifest", "manifest.yaml", "--json"]);
    let listed: Json = serde_json::from_str(&ran.stdout).unwrap();
    let expected = json!({"schema": "shakedown/manifest/1", "components": [
        {"name": "grpo", "contract": "group-advantage", "places": ["cpu/f64", "cpu/f32"],
         "line": 6},
        {"name": "rloo", "contract": "group-advantage", "places": ["cpu/f32"], "line": 13},
    ]});
    assert_eq!(listed, expected);
    let ran = folder.run(&["list", "--manifest", "manifest.yaml"]);
    assert!(ran.stdout.starts_with("grpo   "), "{}", ran.stdout);
    assert_eq!(ran.stdout.lines().count(), 2);
    let ran = folder.run(&["list", "--manifest", "none.yaml", "--json"]);
    assert_eq!((ran.code, &*ran.stdout), (2, ""));
}

// ---- Cases.

#[test]
fn cases_are_the_corners_and_then_what_is_drawn() {
    let of = |more: &[&str]| printed(&[&["cases", "group-advantage", "--json"], more].concat());
    let few = of(&["--cases", "3"]);
    assert_eq!(few["schema"], "shakedown/cases/1");
    let cases = few["cases"].as_array().unwrap();
    assert_eq!(cases.len() as u64, few["corners"].as_u64().unwrap() + 3);
    assert_eq!(cases[0], json!({"rewards": [0.0, 1.0], "groups": [0, 0]}));
    let more = of(&["--cases", "8"]);
    assert_eq!(cases[..], more["cases"].as_array().unwrap()[..cases.len()]);
    let other = of(&["--cases", "3", "--seed", "1"]);
    assert_eq!(cases[..cases.len() - 3], other["cases"].as_array().unwrap()[..cases.len() - 3]);
    assert_ne!(cases[cases.len() - 3..], other["cases"].as_array().unwrap()[cases.len() - 3..]);

    let mut order: Vec<usize> = serde_json::from_value(few["simplest_first"].clone()).unwrap();
    let lengths = order.iter().map(|at| cases[*at]["rewards"].as_array().unwrap().len());
    assert!(lengths.is_sorted(), "{order:?}");
    order.sort_unstable();
    assert_eq!(order, (0..cases.len()).collect::<Vec<_>>());
}

#[test]
fn cases_follow_the_options_and_the_place() {
    let options = ["--option", "unscored=exclude", "--option", "reward_range=[0, 1]"];
    let arguments = [&["cases", "group-advantage", "--json", "--place", "cpu/bf16"], &options[..]];
    let drawn = printed(&arguments.concat());
    assert_eq!(
        (&drawn["place"], &drawn["options"]["unscored"]),
        (&json!("cpu/bf16"), &json!("exclude"))
    );
    let rewards = drawn["cases"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|case| case["rewards"].as_array().unwrap());
    let mut nans = 0;
    for reward in rewards {
        match reward.as_f64() {
            Some(x) => assert!((0.0..=1.0).contains(&x) && f64::from(half::bf16::from_f64(x)) == x),
            None => nans += usize::from(reward == "NaN"),
        }
    }
    assert!(nans > 0, "rewards that are NaN were declared");
    for (option, words) in [
        ("epsilom=1", "unknown option `epsilom`"),
        ("epsilon", "expected NAME=VALUE"),
        ("epsilon=x", "--option: epsilon: expected a number, found \"x\""),
        ("epsilon=-1", "--option: epsilon: expected a finite number ≥ 0, found -1"),
    ] {
        let ran = Folder::new().run(&["cases", "group-advantage", "--json", "--option", option]);
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{option}");
        assert!(ran.stderr.contains(words), "expected {words} in {}", ran.stderr);
    }
    let text = Folder::new().run(&["cases", "group-advantage", "--cases", "0"]).stdout;
    assert!(text.starts_with("rewards [0, 1]  groups [0, 0]\n"), "{text}");
}

// ---- The classes of Python.

#[test]
fn the_classes_of_python_are_what_the_catalogue_gives() {
    let generate = |more: &[&str]| {
        let mut command = Command::new("python3");
        command.arg(root().join("harness/python/generate.py")).args(more);
        command.env("SHAKEDOWN_BIN", env!("CARGO_BIN_EXE_shakedown"));
        command.output().expect("there is a python3")
    };
    let checked = generate(&["--check"]);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));

    let folder = Folder::new();
    let file = folder.path("_contracts.py");
    let written = generate(&["--output", file.to_str().unwrap()]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let text = fs::read_to_string(&file).unwrap();
    folder
        .write("_contracts.py", text.replacen("clip_low: float = 0.2", "clip_low: float = 0.3", 1));
    let checked = generate(&["--check", "--output", file.to_str().unwrap()]);
    let told = String::from_utf8_lossy(&checked.stdout);
    assert!(!checked.status.success() && told.contains("-        clip_low: float = 0.3"), "{told}");
}
