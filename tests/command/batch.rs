//! Recorded batches: what is read, what is refused and how, what is checked, cut and named.

use std::collections::HashMap;

use safetensors::tensor::{Dtype, TensorView};
use shakedown::author;
use shakedown::contracts;
use shakedown::contracts::group_advantage::{GroupAdvantageOutput, Options, Scale};
use shakedown::files::batch::{self, Batch};

use crate::folder::{Folder, Ran};
use crate::report::{self, InvariantStatus, Report, Status};

/// A tensor to write: name, dtype, shape, bytes.
type Tensor = (&'static str, Dtype, Vec<usize>, Vec<u8>);

fn f32s(name: &'static str, shape: &[usize], numbers: &[f32]) -> Tensor {
    (name, Dtype::F32, shape.to_vec(), numbers.iter().flat_map(|x| x.to_le_bytes()).collect())
}

fn i64s(name: &'static str, numbers: &[i64]) -> Tensor {
    let bytes = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    (name, Dtype::I64, vec![numbers.len()], bytes)
}

fn flags(name: &'static str, shape: &[usize], flags: &[bool]) -> Tensor {
    (name, Dtype::BOOL, shape.to_vec(), flags.iter().map(|flag| u8::from(*flag)).collect())
}

/// The bytes of a batch file.
fn file(tensors: &[Tensor], metadata: &[(&str, &str)]) -> Vec<u8> {
    let views = tensors.iter().map(|(name, dtype, shape, bytes)| {
        (*name, TensorView::new(*dtype, shape.clone(), bytes).expect("the bytes fill the shape"))
    });
    let metadata: HashMap<String, String> =
        metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    safetensors::serialize(views, Some(metadata)).expect("a batch can be written")
}

const REWARDS: [f32; 6] = [1.0, 0.0, 3.0, 5.0, 2.0, 2.5];
const GROUPS: [i64; 6] = [0, 0, 1, 1, 2, 2];

/// Rewards less the mean of their group of two.
const CENTRED: [f32; 6] = [0.5, -0.5, -1.0, 1.0, -0.25, 0.25];

fn parse(contract: &str, bytes: &[u8]) -> Result<Batch, shakedown::Error> {
    batch::parse(contracts::find(contract).expect("it is on the list"), bytes)
}

/// A batch of three groups of which `advantages` were recorded under `scale: none`.
fn grpo(advantages: &[f32]) -> Vec<u8> {
    let tensors = [
        f32s("rewards", &[6], &REWARDS),
        i64s("groups", &GROUPS),
        f32s("advantages", &[6], advantages),
    ];
    file(&tensors, &[("options", r#"{"scale": "none"}"#), ("format", "pt")])
}

/// Checks a batch in a folder of its own; the report, and what was printed.
fn check(bytes: &[u8], contract: &str, more: &[&str]) -> (Folder, Ran, Option<Report>) {
    let folder = Folder::new();
    folder.write("step.safetensors", bytes);
    folder.write(
        "manifest.yaml",
        "version: 1\ncomponents:\n  \
         - {name: right, contract: group-advantage, target: builtin:group-advantage/reference}\n  \
         - {name: wrong, contract: group-advantage, \
         target: builtin:group-advantage/fault/baseline-missing}\n  \
         - {name: returns, contract: returns, target: builtin:returns/reference}\n",
    );
    let mut arguments =
        vec!["check-batch", "step.safetensors", "--contract", contract, "--json", "report.json"];
    arguments.extend(more);
    let ran = folder.run(&arguments);
    let json = std::fs::read_to_string(folder.path("report.json")).ok();
    let report = json.map(|json| serde_json::from_str(&json).expect("the report is of schema 1"));
    (folder, ran, report)
}

/// What is said about a batch that cannot be checked.
fn refused(bytes: &[u8], contract: &str, more: &[&str]) -> String {
    let (_, ran, report) = check(bytes, contract, more);
    assert!(ran.code == 2 && report.is_none(), "{}{}", ran.stdout, ran.stderr);
    ran.stderr
}

#[test]
fn right_outputs_hold_and_what_one_call_cannot_say_is_named() {
    let (_, ran, report) = check(&grpo(&CENTRED), "group-advantage", &[]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let component = &report.unwrap().components[0];
    assert_eq!((component.name.as_str(), component.status), ("step.safetensors", Status::Pass));
    assert_eq!(component.place, "cpu/f32");
    let status = |id: &str| {
        let found = component.invariants.iter().find(|invariant| invariant.id == id);
        found.unwrap_or_else(|| panic!("{id}"))
    };
    for id in ["oracle", "finite", "well-formed", "zero-sum"] {
        assert_eq!(status(id).status, InvariantStatus::Pass, "{id}");
    }
    for id in ["row-split", "shift-invariant", "deterministic"] {
        assert_eq!(status(id).status, InvariantStatus::Skipped, "{id}");
        assert!(status(id).reason.as_ref().unwrap().contains("other calls"), "{id}");
        assert!(component.warnings.iter().any(|warning| warning.contains(id)), "{id}");
    }
    for id in ["does-not-raise", "inputs-unchanged", "within-time-limit", "does-not-crash"] {
        assert_eq!(status(id).status, InvariantStatus::Skipped, "{id}");
    }
}

#[test]
fn a_wrong_group_is_cut_out_of_the_batch_and_its_rows_are_named() {
    let mut advantages = CENTRED;
    advantages[2] = -1.5;
    let (folder, ran, report) = check(&grpo(&advantages), "group-advantage", &[]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let component = &report.unwrap().components[0];
    let ids: Vec<&str> = component.findings.iter().map(|one| one.invariant.as_str()).collect();
    assert!(ids.contains(&"zero-sum") && ids.contains(&"oracle"), "{ids:?}");
    for finding in &component.findings {
        let expected = serde_json::json!({"rewards": [3.0, 5.0], "groups": [1, 1]});
        assert_eq!(finding.case, expected, "{}", finding.invariant);
        assert!(finding.found.ends_with("rows [2, 3] of the batch"), "{}", finding.found);
        assert!(folder.path(finding.case_file.as_ref().unwrap()).is_file());
    }
}

#[test]
fn what_every_group_does_wrong_is_named_by_the_fault() {
    let more = ["--option", "scale=std"];
    let (_, ran, report) = check(&grpo(&CENTRED), "group-advantage", &more);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let component = &report.unwrap().components[0];
    let finding = component.findings.iter().find(|one| one.invariant == "declared-scale").unwrap();
    assert_eq!(finding.diagnosis[0].fault, "not-divided");
    let found = &finding.diagnosis[0];
    assert_eq!((found.matches, found.of, found.explains), (3, 3, 1.0), "one a group");
    assert!(
        ran.stdout.contains("the bug `not-divided`, the deviation is never divided by"),
        "{}",
        ran.stdout
    );
}

#[test]
fn rows_that_depend_on_each_other_are_not_cut() {
    let (_, _, report) = check(&grpo(&REWARDS), "group-advantage", &["--option", "rows=batch"]);
    let component = &report.unwrap().components[0];
    for finding in &component.findings {
        assert_eq!(finding.case["rewards"].as_array().unwrap().len(), 6, "{}", finding.invariant);
        assert_eq!(finding.shrink_calls, 0);
    }
}

#[test]
fn an_output_without_rows_keeps_the_batch_whole() {
    let log_probs = [-0.5, -1.0, -0.25, -2.0];
    let tensors = [
        f32s("log_probs", &[2, 2], &log_probs),
        f32s("old_log_probs", &[2, 2], &log_probs),
        f32s("advantages", &[2, 2], &[1.0, 1.0, -0.5, -0.5]),
        flags("mask", &[2, 2], &[true; 4]),
        f32s("loss", &[], &[17.0]),
    ];
    let (_, ran, report) = check(&file(&tensors, &[]), "policy-loss", &[]);
    let report = report.unwrap_or_else(|| panic!("{}{}", ran.stdout, ran.stderr));
    let finding = report.components[0].findings.iter().find(|one| one.invariant == "oracle");
    assert_eq!(finding.unwrap().case["mask"].as_array().unwrap().len(), 2);
    let gradient = report.components[0].invariants.iter().find(|one| one.id == "gradient");
    let why = gradient.unwrap().reason.as_ref().unwrap();
    assert!(why.contains("no gradient is recorded") || why.contains("does not apply"), "{why}");
}

#[test]
fn components_are_called_on_the_batch_and_checked_on_relations_too() {
    let tensors = [f32s("rewards", &[6], &REWARDS), i64s("groups", &GROUPS)];
    let more = ["--manifest", "manifest.yaml"];
    let (folder, ran, report) = check(&file(&tensors, &[]), "group-advantage", &more);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let report = report.unwrap();
    assert_eq!(report.components.len(), 2, "those of the contract");
    assert_eq!(report.component("right").status, Status::Pass);
    let wrong = report.component("wrong");
    assert_eq!(wrong.cases, 1);
    let finding = wrong.findings.iter().find(|one| one.invariant == "shift-invariant").unwrap();
    assert_eq!(finding.diagnosis[0].fault, "baseline-missing");
    assert!(finding.case["rewards"].as_array().unwrap().len() <= 2, "{}", finding.case);
    let case = finding.case_file.as_ref().unwrap();
    let replay = folder.run(&["replay", case, "--manifest", "manifest.yaml"]);
    assert_eq!(replay.code, 1, "{}{}", replay.stdout, replay.stderr);
    let only = [&more[..], &["--only", "right"]].concat();
    let (_, ran, report) = check(&file(&tensors, &[]), "group-advantage", &only);
    assert_eq!((ran.code, report.unwrap().components.len()), (0, 1), "{}", ran.stderr);
}

#[test]
fn both_what_was_recorded_and_what_a_component_gives_are_checked() {
    let more = ["--manifest", "manifest.yaml", "--only", "right"];
    let (_, ran, report) = check(&grpo(&CENTRED), "group-advantage", &more);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let names: Vec<String> = report.unwrap().components.into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["step.safetensors", "right"]);
}

/// A manifest of components of group-advantage: name, target, options.
fn manifest(components: &[(&str, &str, &str)]) -> String {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python");
    let mut text =
        format!("version: 1\npython: {{arrays: list, path: [\"{here}\"]}}\ncomponents:\n");
    for (name, target, options) in components {
        text.push_str(&format!(
            "- {{name: {name}, contract: group-advantage, target: \"{target}\", \
             options: {options}, places: [cpu/f64]}}\n"
        ));
    }
    text
}

#[test]
fn recorded_outputs_are_checked_under_the_options_of_the_component_that_gave_them() {
    let tensors = [
        f32s("rewards", &[6], &REWARDS),
        i64s("groups", &GROUPS),
        f32s("advantages", &[6], &CENTRED),
    ];
    let reference = "builtin:group-advantage/reference";
    let folder = Folder::new();
    folder.write("step.safetensors", file(&tensors, &[]));
    folder.write(
        "manifest.yaml",
        manifest(&[("none", reference, "{scale: none}"), ("std", reference, "{scale: std}")]),
    );
    let batch = ["check-batch", "step.safetensors", "--contract", "group-advantage"];
    let run = |more: &[&str]| folder.run(&[&batch, more].concat());
    assert_eq!(run(&[]).code, 1, "the default divides by σ");
    let ran = run(&["--manifest", "manifest.yaml", "--only", "none"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let ran = run(&["--manifest", "manifest.yaml", "--only", "std"]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let both = run(&["--manifest", "manifest.yaml"]);
    let words = "error: manifest.yaml: `none` and `std` have different options: say with --only \
                 which of them gave the recorded outputs, or the options with --option\n";
    assert_eq!((both.code, &*both.stderr), (2, words));
    let asked = run(&["--manifest", "manifest.yaml", "--option", "scale=none"]);
    assert_eq!(asked.code, 0, "{}{}", asked.stdout, asked.stderr);
}

#[test]
fn a_case_of_recorded_outputs_is_judged_by_no_component() {
    let mut advantages = CENTRED;
    advantages[2] = -1.5;
    let (folder, ran, report) = check(&grpo(&advantages), "group-advantage", &[]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    // One case of each bug is kept.
    let count = report.unwrap().components[0].heads().len();
    let ran = folder.run(&["replay", "corpora", "--manifest", "manifest.yaml", "--prune"]);
    let words = ": found on the outputs recorded in step.safetensors\n";
    assert!(ran.stdout.matches(words).count() >= count, "{}", ran.stdout);
    assert!(!ran.stdout.contains("fixed") && !ran.stdout.contains("removed"), "{}", ran.stdout);
}

#[test]
fn shrinking_keeps_to_one_bug_and_reports_the_other() {
    let count = 32;
    let rewards: Vec<f32> = (0..count).map(|row| (row % 5) as f32).collect();
    let groups: Vec<i64> = (0..count).map(|row| row / 4).collect();
    let tensors = [f32s("rewards", &[count as usize], &rewards), i64s("groups", &groups)];
    let folder = Folder::new();
    folder.write("step.safetensors", file(&tensors, &[]));
    let target = "python:nested:nan_where_there_is_one_row";
    folder.write("manifest.yaml", manifest(&[("ours", target, "{scale: none}")]));
    let (_, report) = report::run(
        &folder,
        &[
            "check-batch",
            "step.safetensors",
            "--contract",
            "group-advantage",
            "--manifest",
            "manifest.yaml",
        ],
    );
    let found: Vec<(usize, &str)> = report
        .component("ours")
        .findings
        .iter()
        .map(|finding| (finding.case["rewards"].as_array().unwrap().len(), &*finding.found))
        .collect();
    let of = |nan: bool| found.iter().filter(move |(_, found)| found.contains("NaN") == nan);
    assert!(of(false).count() > 0 && of(false).all(|(rows, _)| *rows > 1), "{found:?}");
    assert!(of(true).count() == 1 && of(true).all(|(rows, _)| *rows == 1), "{found:?}");
}

#[test]
fn options_are_those_of_the_file_unless_asked_otherwise() {
    let batch = parse("group-advantage", &grpo(&CENTRED)).unwrap();
    let base = batch.contract.default_options();
    let scale =
        |asked: &[batch::Choice]| batch.options(&base, asked).unwrap().typed::<Options>().scale;
    assert_eq!(scale(&[]), Scale::None);
    assert_eq!(scale(&[batch::choice(batch.contract, "scale=std").unwrap()]), Scale::Std);
    let asked = |text: &str| refused(&grpo(&CENTRED), "group-advantage", &["--option", text]);
    assert!(asked("epsilom=1").contains("unknown option `epsilom`"));
    assert!(asked("epsilom=1").contains("did you mean `epsilon`?"));
    assert!(asked("scale").contains("expected NAME=VALUE, found `scale`"));
    assert!(asked("scale=stf").contains("unknown value `stf`"), "{}", asked("scale=stf"));
    assert!(asked("epsilon=-1").contains("expected a finite number ≥ 0, found -1"));
    let wrong = file(&[], &[("options", r#"{"ddof": "one"}"#)]);
    let said = refused(&wrong, "group-advantage", &[]);
    assert!(said.contains("the inputs `rewards`, `groups` are missing"), "{said}");
}

#[test]
fn texts_stand_in_the_metadata() {
    let texts =
        r#"{"prompts": ["1 + 1?"], "completions": ["<answer>2</answer>"], "answers": ["2"]}"#;
    let rewards = f32s("rewards", &[1], &[0.0]);
    let (_, ran, report) = check(&file(&[rewards], &[("texts", texts)]), "reward-function", &[]);
    let report = report.unwrap_or_else(|| panic!("{}{}", ran.stdout, ran.stderr));
    assert!(report.components[0].invariants.iter().any(|one| one.cases > 0), "{}", ran.stdout);
    let said = refused(&file(&[], &[("text", texts)]), "reward-function", &[]);
    assert!(said.contains("__metadata__: unknown key `text`"), "{said}");
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_the_nearest_name_and_both_sizes() {
    let inputs = [f32s("rewards", &[6], &REWARDS), i64s("groups", &GROUPS)];
    let said = |tensors: &[Tensor]| refused(&file(tensors, &[]), "group-advantage", &[]);
    let nothing = said(&inputs);
    assert!(nothing.contains("step.safetensors: nothing to check: the file has no outputs"));
    assert!(nothing.contains("--manifest"), "{nothing}");
    let unknown = said(&[f32s("reward", &[6], &REWARDS)]);
    assert!(unknown.contains("`reward`") && unknown.contains("did you mean `rewards`?"));
    assert!(said(&inputs[..1]).contains("the input `groups` is missing"));
    let integers = said(&[i64s("rewards", &GROUPS), i64s("groups", &GROUPS)]);
    assert!(integers.contains(
        "`rewards`: expected a float tensor (F64, F32, F16 or BF16) of 1 dimension, found I64 of \
         shape [6]"
    ));
    let square = said(&[f32s("rewards", &[2, 3], &REWARDS), i64s("groups", &GROUPS)]);
    assert!(square.contains("of 1 dimension, found F32 of shape [2, 3]"), "{square}");
    let outside = [&inputs[..1], &[i64s("groups", &GROUPS[..3])]].concat();
    let outside = [&outside[..], &[f32s("advantages", &[6], &CENTRED)]].concat();
    let outside = said(&outside);
    assert!(outside.contains("outside the contract `group-advantage`: 6 rewards and 3 groups"));
    assert!(refused(b"no tensors", "group-advantage", &[]).contains("expected a safetensors file"));
    assert!(refused(&grpo(&CENTRED), "group-advantag", &[]).contains("did you mean"));
}

#[test]
fn recorded_outputs_of_another_length_are_not_well_formed() {
    let (_, ran, report) = check(&grpo(&CENTRED[..6]), "group-advantage", &["--place", "cpu/f64"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert_eq!(report.unwrap().components[0].place, "cpu/f64");
    let tensors = [
        f32s("rewards", &[6], &REWARDS),
        i64s("groups", &GROUPS),
        f32s("advantages", &[3], &CENTRED[..3]),
    ];
    let (_, ran, report) = check(&file(&tensors, &[]), "group-advantage", &[]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let findings = &report.unwrap().components[0].findings;
    assert_eq!(findings[0].invariant, "well-formed");
    assert!(findings[0].found.contains("has shape [3], expected [6]"), "{}", findings[0].found);
}

#[test]
fn an_output_may_be_written_with_its_prefix_and_says_the_dtype() {
    let bytes = CENTRED.iter().flat_map(|x| half::bf16::from_f32(*x).to_le_bytes()).collect();
    let advantages = ("output.advantages", Dtype::BF16, vec![6], bytes);
    let tensors = [f32s("rewards", &[6], &REWARDS), i64s("groups", &GROUPS), advantages];
    let batch = parse("group-advantage", &file(&tensors, &[])).unwrap();
    assert_eq!(batch.dtype, author::Dtype::Bf16);
    let recorded: &GroupAdvantageOutput = batch.recorded.as_ref().unwrap().typed();
    assert_eq!(recorded.advantages[2], -1.0);
}

#[test]
fn a_batch_of_production_size_is_cut_to_the_row_that_is_wrong() {
    let (rows, tokens) = (256, 256);
    let count = rows * tokens;
    let rewards: Vec<f32> = (0..count).map(|place| (place % 7) as f32 - 3.0).collect();
    let mut returns = rewards.clone();
    for row in 0..rows {
        for token in (0..tokens - 1).rev() {
            returns[row * tokens + token] += returns[row * tokens + token + 1];
        }
    }
    returns[200 * tokens + 17] += 1.0;
    let tensors = [
        f32s("rewards", &[rows, tokens], &rewards),
        flags("mask", &[rows, tokens], &vec![true; count]),
        f32s("returns", &[rows, tokens], &returns),
    ];
    let (_, ran, report) = check(&file(&tensors, &[]), "returns", &[]);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let component = &report.unwrap().components[0];
    let finding = component.findings.iter().find(|one| one.invariant == "oracle").unwrap();
    assert!(finding.found.contains("returns[0, 17]"), "{}", finding.found);
    assert!(finding.found.ends_with("rows [200] of the batch"), "{}", finding.found);
    assert!(finding.shrink_calls <= 20, "{} calls", finding.shrink_calls);
    assert!(ran.stdout.len() < 30_000, "{} characters are printed", ran.stdout.len());
}

#[test]
fn no_bytes_make_the_parser_panic() {
    let good = grpo(&CENTRED);
    for end in 0..good.len() {
        let _ = parse("group-advantage", &good[..end]);
        let _ = parse("returns", &good[..end]);
        let mut changed = good.clone();
        changed[end] ^= 0x5a;
        let _ = parse("group-advantage", &changed);
    }
    for shape in ["[4611686018427387904, 0]", "[0, 18446744073709551615, 3]", "[-1]"] {
        let header = format!(
            r#"{{"rewards": {{"dtype": "F32", "shape": {shape}, "data_offsets": [0, 0]}}}}"#
        );
        let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
        assert!(parse("group-advantage", &bytes).is_err(), "{shape}");
    }
}
