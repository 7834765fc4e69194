//! `shakedown init` in fresh training repositories, and what was written there at work.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::folder::{Folder, Ran};
use crate::snapshot::assert_snapshot;

/// Runs `init` with more arguments.
fn init(folder: &Folder, arguments: &[&str]) -> Ran {
    folder.run(&[&["init"], arguments].concat())
}

/// Runs `init`, which must succeed.
fn init_well(folder: &Folder, arguments: &[&str]) -> Ran {
    let ran = init(folder, arguments);
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{}", ran.stdout);
    ran
}

fn assert_refused(ran: &Ran, words: &str) {
    assert_eq!((ran.code, &*ran.stdout), (2, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains(words), "expected {words:?} in:\n{}", ran.stderr);
}

/// Every file of the folder with its text, but for what checks leave behind.
fn files(folder: &Folder) -> BTreeMap<String, String> {
    let root = folder.path("");
    let mut found = BTreeMap::new();
    let mut open = vec![root.clone()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            let left_behind = ["found", ".shakedown", "__pycache__", "Cargo.lock"];
            if left_behind.iter().any(|name| entry.file_name() == *name) {
                continue;
            } else if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(&root).unwrap().display().to_string();
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// A repository: `.git` says where workflows go.
fn repository(files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new();
    folder.write(".git/HEAD", "ref: refs/heads/main\n");
    for (name, text) in files {
        folder.write(name, text);
    }
    folder
}

fn assert_a_second_run_changes_nothing(folder: &Folder, arguments: &[&str]) {
    let before = files(folder);
    let ran = init_well(folder, arguments);
    assert_eq!(files(folder), before);
    assert!(ran.stdout.contains("Nothing was changed"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("  wrote ") && !ran.stdout.contains("  kept "), "{}", ran.stdout);
}

// ---- Python.

/// A reward function of TRL that takes a gold answer anywhere in the answer for the answer.
const PLANTED: &str = r#"
import re


def exact_reward(prompts, completions, answer, **kwargs):
    scores = []
    for text, gold in zip(completions, answer):
        found = re.search(r"<answer>(.*?)</answer>", text, re.DOTALL)
        scores.append(1.0 if found and gold in found.group(1) else 0.0)
    return scores
"#;

/// The same, right: the answer is the whole of the last answer, and there is a gold one.
const RIGHT: &str = r#"
import re

FORM = r"<reasoning>\n.*?\n</reasoning>\n<answer>\n(.*?)\n</answer>\s*"


def exact_reward(prompts, completions, answer, **kwargs):
    scores = []
    for text, gold in zip(completions, answer):
        found = re.fullmatch(FORM, text, re.DOTALL)
        said = found.group(1).strip() if found else ""
        scores.append(1.0 if said and said == gold.strip() else 0.0)
    return scores
"#;

#[test]
fn a_planted_bug_in_a_reward_function_is_found_by_what_init_writes() {
    let folder = repository(&[
        ("pyproject.toml", "[project]\nname = \"trainer\"\n"),
        ("trainer/__init__.py", ""),
        ("trainer/rewards.py", PLANTED),
        ("trainer/losses.py", "def dpo(policy_chosen):\n    return policy_chosen\n"),
        ("tests/test_rewards.py", "def other_reward(completions, **kwargs):\n    return []\n"),
    ]);
    let ran = init_well(&folder, &["python", "--manifest"]);
    let filled = "Filled in: `exact_reward` (trainer/rewards.py:5) as reward-function.";
    assert!(ran.stdout.contains(filled), "{}", ran.stdout);
    assert!(!ran.stdout.contains("other_reward"), "a test is no component:\n{}", ran.stdout);

    let (ran, report) = check(&folder);
    assert_eq!(ran.code, 1, "{}\n{}", ran.stdout, ran.stderr);
    assert_eq!((&report["name"], &report["status"]), (&"exact_reward".into(), &"fail".into()));
    let mut findings = report["findings"].as_array().expect("there are findings").iter();
    let found = findings.find(|finding| finding["invariant"] == "candidates");
    let case = found.expect("five candidates are found")["case_file"].as_str().expect("a file");

    let why = ["adopt", case, "--why", "the gold answer among others", "--name", "candidates"];
    let adopted = folder.run(&why);
    assert_eq!(adopted.code, 0, "{}", adopted.stderr);
    folder.write("trainer/rewards.py", RIGHT);
    let kept = "corpora/reward-function/regressions/candidates.yaml";
    let replayed = folder.run(&["replay", kept, "--manifest", "shakedown.yaml"]);
    assert_eq!(replayed.code, 0, "{}{}", replayed.stdout, replayed.stderr);
    assert!(replayed.stdout.starts_with("fixed"), "{}", replayed.stdout);
    let (ran, _) = check(&folder);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);

    assert_a_second_run_changes_nothing(&folder, &["python", "--manifest"]);
}

/// Checks with what `init` wrote, and gives the report of the one component.
fn check(folder: &Folder) -> (Ran, serde_json::Value) {
    let ran = folder.run(&["check", "shakedown.yaml", "--json", "report.json"]);
    let path = folder.path("report.json");
    let text = fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("no report: {error}\n{}{}", ran.stdout, ran.stderr));
    fs::remove_file(path).unwrap();
    let mut report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["components"].as_array().map(Vec::len), Some(1), "{text}");
    (ran, report["components"][0].take())
}

/// GRPO of one group of plain numbers.
const ONE_GROUP: &str = "
import statistics


def compute_advantages(scores, eps=1e-4):
    if len(scores) == 1:
        return [0.0]
    mean, deviation = statistics.fmean(scores), statistics.stdev(scores)
    return [(score - mean) / (deviation + eps) for score in scores]
";

/// RLOO of equal groups in adjacent rows.
const EQUAL_GROUPS: &str = "
def rloo_advantages(rewards, num_generations):
    advantages = []
    for start in range(0, len(rewards), num_generations):
        group = rewards[start : start + num_generations]
        for row, reward in enumerate(group):
            others = [other for at, other in enumerate(group) if at != row]
            advantages.append(reward - sum(others) / len(others) if others else 0.0)
    return advantages
";

/// Discounted returns under names of its own.
const OTHER_NAMES: &str = "
def discounted_returns(rewards, response_mask, discount=0.9, verbose=False):
    returns = []
    for row, counts in zip(rewards, response_mask):
        after, of_row = 0.0, []
        for reward, counted in reversed(list(zip(row, counts))):
            after = reward + discount * after if counted else after
            of_row.insert(0, after if counted else 0.0)
        returns.append(of_row)
    return returns
";

/// A reward of one completion.
const ONE_ROW: &str = r#"
import re

FORM = r"<reasoning>\n.*?\n</reasoning>\n<answer>\n(.*?)\n</answer>\s*"


def math_score(response, ground_truth):
    found = re.fullmatch(FORM, response, re.DOTALL)
    said = found.group(1).strip() if found else ""
    return float(bool(said) and said == ground_truth.strip())
"#;

#[test]
fn every_adapter_lets_a_right_function_pass() {
    for (function, contract, source) in [
        ("compute_advantages", "group-advantage", ONE_GROUP),
        ("rloo_advantages", "group-advantage", EQUAL_GROUPS),
        ("discounted_returns", "returns", OTHER_NAMES),
        ("math_score", "reward-function", ONE_ROW),
    ] {
        let folder = repository(&[("src/my_code.py", source), ("setup.py", "exit(3)\n")]);
        let ran = init_well(&folder, &[]);
        let filled = format!("Filled in: `{function}` (src/my_code.py:");
        assert!(ran.stdout.contains(&filled), "{}", ran.stdout);
        let adapters = fs::read_to_string(folder.path("shakedown_adapters.py")).unwrap();
        // Names alone need none.
        let is_adapted = adapters.contains(&format!("from my_code import {function}"));
        assert_eq!(is_adapted, function != "discounted_returns", "{adapters}");
        let (ran, report) = check(&folder);
        assert_eq!(ran.code, 0, "{adapters}\n{}\n{}", ran.stdout, ran.stderr);
        assert_eq!((&report["name"], &report["contract"]), (&function.into(), &contract.into()));
        assert_a_second_run_changes_nothing(&folder, &["python"]);
    }
}

/// GRPO on arrays, of one group and of equal groups; `DDOF` is how the library names the divisor.
const ON_ARRAYS: [(&str, &str); 2] = [
    (
        "compute_advantages",
        "
def compute_advantages(rewards, eps=1e-4):
    if len(rewards) == 1:
        return 0 * rewards
    return (rewards - rewards.mean()) / (rewards.std(DDOF=1) + eps)
",
    ),
    (
        "grpo_advantages",
        "
def grpo_advantages(rewards, num_generations, eps=1e-4):
    if num_generations == 1:
        return 0 * rewards
    groups = rewards.reshape(-1, num_generations)
    centred = groups - groups.mean(1)[:, None]
    return (centred / (groups.std(1, DDOF=1)[:, None] + eps)).reshape(-1)
",
    ),
];

#[test]
fn every_adapter_on_arrays_lets_a_right_function_pass() {
    for (library, ddof) in [("numpy", "ddof"), ("torch", "correction")] {
        let mut python = Command::new(shakedown::host::process::default_interpreter());
        let python = python.args(["-c", &format!("import {library}")]).output();
        if !python.is_ok_and(|output| output.status.success()) {
            println!("left out: Python has no {library}");
            continue;
        }
        for (function, source) in ON_ARRAYS {
            let source = format!("import {library}\n\n{}", source.replace("DDOF", ddof));
            let folder = repository(&[("code/arrays.py", &source), ("setup.cfg", "")]);
            init_well(&folder, &[]);
            let manifest = fs::read_to_string(folder.path("shakedown.yaml")).unwrap();
            assert!(manifest.contains(&format!("arrays: {library}\n")), "{manifest}");
            let (ran, report) = check(&folder);
            assert_eq!(ran.code, 0, "{manifest}\n{}\n{}", ran.stdout, ran.stderr);
            assert_eq!(report["name"], function);
        }
    }
}

#[test]
fn defaults_become_options_and_the_rest_becomes_comments() {
    let folder = repository(&[
        ("a.py", OTHER_NAMES),
        ("b.py", "async def kl(log_probs, ref_logps):\n    return 0\n"),
        ("broken.py", "def reward(:\n"),
    ]);
    let ran = init_well(&folder, &[]);
    let manifest = fs::read_to_string(folder.path("shakedown.yaml")).unwrap();
    assert!(manifest.contains("options: {gamma: 0.9}"), "{manifest}");
    if shakedown::contracts::IDS.contains(&"kl-estimate") {
        let also = "# also found: `kl` (b.py:1) looks like kl-estimate";
        assert!(manifest.contains(also), "{manifest}");
    }
    assert!(ran.stdout.contains("Not read: broken.py: "), "{}", ran.stdout);
}

#[test]
fn a_python_repository_without_a_known_function_gets_an_example_that_passes() {
    let folder = repository(&[("train.py", "print('imported')\nexit(3)\n")]);
    let ran = init_well(&folder, &[]);
    assert!(ran.stdout.contains("No function looks like a component"), "{}", ran.stdout);
    let (ran, report) = check(&folder);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    assert_eq!(report["contract"], "group-advantage");
    assert_a_second_run_changes_nothing(&folder, &[]);
}

#[test]
fn without_an_interpreter_an_example_is_written_and_the_reason_said() {
    let folder = repository(&[("rewards.py", PLANTED)]);
    let command = |arguments: &[&str]| {
        let mut command = folder.command(arguments);
        command.env("VIRTUAL_ENV", folder.path("no-such-environment"));
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let said = command(&["init"]);
    assert!(said.contains("Its files were not read: cannot start the interpreter"), "{said}");
    assert!(said.contains("an example is, in shakedown_adapters.py"), "{said}");
}

#[test]
fn a_module_of_the_repository_is_never_imported() {
    // Each of these would be found before the module of Python that the scan imports.
    let names = ["json.py", "ast.py", "os.py", "sitecustomize.py", "rewards.py"];
    let write = "open('imported', 'w')\n";
    let folder = repository(&names.map(|name| (name, write)));
    init_well(&folder, &[]);
    assert!(!folder.path("imported").exists());
}

// ---- Tests for pytest.

/// What pytest says of the tests that were written, with the package of this checkout.
fn pytest(folder: &Folder, arguments: &[&str]) -> Option<(bool, String)> {
    let python = shakedown::host::process::default_interpreter();
    let has = Command::new(&python).args(["-c", "import pytest"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        println!("left out: Python has no pytest");
        return None;
    }
    let mut command = Command::new(python);
    command.args(["-m", "pytest", "-q", "-p", "shakedown.pytest_plugin"]).args(arguments);
    command.args(["-p", "no:cacheprovider", "--shakedown-cases", "24"]);
    command.env("PYTHONPATH", Path::new(CHECKOUT).join("harness/python"));
    command.env("SHAKEDOWN_BIN", env!("CARGO_BIN_EXE_shakedown"));
    let output = command.current_dir(folder.path("")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    Some((output.status.success(), said + &String::from_utf8_lossy(&output.stderr)))
}

/// Components of every form, and what only looks like one.
const SOURCES: [(&str, &str); 7] = [
    ("src/trainer/__init__.py", ""),
    ("src/trainer/groups.py", ONE_GROUP),
    ("src/trainer/rloo.py", EQUAL_GROUPS),
    ("src/trainer/rewards.py", ONE_ROW),
    ("src/trainer/trl.py", RIGHT),
    (
        "src/trainer/classes.py",
        r#"
import re
from abc import abstractmethod

FORM = r"<reasoning>\n.*?\n</reasoning>\n<answer>\n(.*?)\n</answer>\s*"


class MathVerifier:
    def __init__(self, strict=True):
        self.strict = strict

    async def __call__(self, response, ground_truth):
        return self.score(response, ground_truth)

    def score(self, response, ground_truth):
        found = re.fullmatch(FORM, response, re.DOTALL)
        said = found.group(1).strip() if found else ""
        return float(bool(said) and said == ground_truth.strip())


class DiscountedReturns:
    def __init__(self, discount=0.9):
        self.discount = discount

    def compute(self, rewards, response_mask):
        returns = []
        for row, counts in zip(rewards, response_mask):
            after, of_row = 0.0, []
            for reward, counted in reversed(list(zip(row, counts))):
                after = reward + self.discount * after if counted else after
                of_row.insert(0, after if counted else 0.0)
            returns.append(of_row)
        return returns


class ClippedReturns(DiscountedReturns):
    """Gives more than the output."""

    def __init__(self, discount=0.9):
        super().__init__(discount)

    def forward(self, rewards, response_mask):
        return self.compute(rewards, response_mask), {"mean": 0.0}

    __call__ = forward


class ModelReward:
    def __init__(self, model):
        self.model = model

    def __call__(self, prompts, completions):
        return self.model(prompts, completions)


class Base:
    @abstractmethod
    def score(self, response, ground_truth):
        return 0.0
"#,
    ),
    (
        "src/trainer/looks.py",
        r#"
def log_rewards(rewards, groups):
    print(rewards, groups)


def plot_advantages(rewards, groups):
    return "advantages.png"


def reward_of_config(completions, answers):
    return completions.config.reward


def mean_advantages(rewards, groups):
    return [sum(rewards) / len(rewards)]


def advantage_rows(rewards, groups):
    yield from rewards


def kl_penalty(log_probs, ref_log_probs):
    raise NotImplementedError
"#,
    ),
];

#[test]
fn in_a_repository_with_pytest_tests_are_written_that_pass() {
    let folder = repository(&SOURCES);
    folder.write("pyproject.toml", "[project]\nname = \"trainer\"\n[tool.pytest.ini_options]\n");
    let ran = init_well(&folder, &[]);
    let written = fs::read_to_string(folder.path("tests/test_contracts.py")).unwrap();
    let names = ["compute_advantages", "rloo_advantages", "math_score", "exact_reward"];
    for name in
        [&names[..], &["MathVerifier", "DiscountedReturns.compute", "ClippedReturns"]].concat()
    {
        let filled = format!("Filled in: `{name}` (src/trainer/");
        assert!(ran.stdout.contains(&filled), "{filled}\n{}", ran.stdout);
    }
    for (name, why) in [
        ("plot_advantages", "returned a str for `advantages`"),
        ("reward_of_config", "raised AttributeError: "),
        ("mean_advantages", "gives `advantages` of shape [1], expected [2]"),
    ] {
        let left_out = format!("Left out: `{name}`");
        let line = ran.stdout.lines().find(|line| line.starts_with(&left_out));
        assert!(line.is_some_and(|line| line.contains(why)), "{name}\n{}", ran.stdout);
        assert!(!written.contains(name), "{written}");
    }
    for name in ["log_rewards", "advantage_rows", "kl_penalty", "Base"] {
        assert!(!ran.stdout.contains(&format!("`{name}")) && !written.contains(name), "{name}");
    }
    assert!(written.contains("the constructor of `ModelReward` requires `model`"), "{written}");
    assert!(written.contains(".check(ModelReward(model=...))"), "{written}");
    assert!(
        !folder.path("shakedown.yaml").exists() && !folder.path("src/trainer/__pycache__").exists()
    );
    if let Some((passes, said)) = pytest(&folder, &["tests"]) {
        assert!(passes && said.contains("7 passed"), "{said}\n{written}");
    }
    assert_a_second_run_changes_nothing(&folder, &[]);
}

#[test]
fn a_planted_bug_is_found_by_the_tests_that_init_writes() {
    let folder = repository(&[("requirements-dev.txt", "pytest>=8\n"), ("mine.py", PLANTED)]);
    init_well(&folder, &[]);
    if let Some((passes, said)) = pytest(&folder, &[]) {
        assert!(
            !passes && said.contains("reward · tests/test_contracts.py::test_exact_reward"),
            "{said}"
        );
    }
}

#[test]
fn without_a_component_the_tests_have_an_example_that_passes() {
    let folder =
        repository(&[("train.py", "print('imported')\nexit(3)\n"), ("pytest.ini", "[pytest]\n")]);
    let ran = init_well(&folder, &[]);
    assert!(ran.stdout.contains("No function is a component for sure"), "{}", ran.stdout);
    if let Some((passes, said)) = pytest(&folder, &[]) {
        assert!(passes && said.contains("1 passed"), "{said}");
    }
    assert_a_second_run_changes_nothing(&folder, &[]);
}

/// A reward function that is right, and reads the form of GSM8K or of none.
fn reads(mark: &str) -> String {
    format!(
        "import re\n\n\ndef exact_reward(completions, answer, **kwargs):\n    scores = []\n    \
         for text, gold in zip(completions, answer):\n        \
         found = re.fullmatch(r'(?s).*\\n{mark} (.*)', text)\n        \
         said = found.group(1).strip() if found and text.count('{mark}') == 1 else ''\n        \
         scores.append(1.0 if said and said == gold.strip() else 0.0)\n    return scores\n"
    )
}

#[test]
fn the_form_that_a_reward_function_reads_is_found_or_asked_for() {
    let folder = repository(&[("mine.py", &reads("####")), ("pytest.ini", "[pytest]\n")]);
    init_well(&folder, &[]);
    let written = fs::read_to_string(folder.path("tests/test_contracts.py")).unwrap();
    assert!(written.contains(r#"template="{reasoning}\n#### {answer}""#), "{written}");
    if let Some((passes, said)) = pytest(&folder, &[]) {
        assert!(passes && said.contains("1 passed"), "{said}\n{written}");
    }

    let folder = repository(&[("mine.py", &reads("FINAL")), ("pytest.ini", "[pytest]\n")]);
    let ran = init_well(&folder, &[]);
    let asked = "it gives a right answer no more than a wrong one in any usual form: say yours in \
                 `template`";
    assert!(ran.stdout.contains(asked), "{}", ran.stdout);
    let written = fs::read_to_string(folder.path("tests/test_contracts.py")).unwrap();
    assert!(written.contains(asked) && !written.contains("\ndef test_exact_reward"), "{written}");
}

/// A trainer that only a model and a configuration make.
const TRAINER: &str = "
import math
import statistics


class Trainer:
    def __init__(self, model, config):
        self.model, self.epsilon = model, config.epsilon

    def _advantages(self, rewards, groups):
        found = []
        for reward, group in zip(rewards, groups):
            own = [r for r, g in zip(rewards, groups) if g == group]
            std = statistics.stdev(own) if len(own) > 1 else 1.0
            found.append((reward - statistics.fmean(own)) / (std + self.epsilon))
        return found

    def _scaled_advantages(self, rewards, groups):
        return [one * self.scale for one in self._advantages(rewards, groups)]

    def step(self, batch):
        std = statistics.stdev(batch.rewards)
        batch.advantages = [(reward - batch.mean) / (std + 1e-4) for reward in batch.rewards]
        ratio = math.exp(batch.log_probs - batch.old_log_probs)
        clipped = self.clip(ratio, 1 - self.low, 1 + self.high)
        print(min(ratio, clipped))
";

/// A plain object replaces an instance of which a method only reads options; what is computed
/// between other lines is named, with the function that it would be and the command that adds it.
#[test]
fn methods_are_called_on_a_stand_in_and_steps_between_other_lines_are_named() {
    let folder = repository(&[("mine.py", TRAINER), ("pytest.ini", "[pytest]\n")]);
    let ran = init_well(&folder, &[]);
    let written = fs::read_to_string(folder.path("tests/test_contracts.py")).unwrap();
    let call = "Trainer._advantages(SimpleNamespace(epsilon=epsilon), rewards=rewards, groups=";
    assert!(written.contains(call), "{written}\n{}", ran.stdout);
    for said in [
        "Filled in: `Trainer._advantages` (mine.py:10) as group-advantage.",
        "Between other lines: group-advantage (mine.py:23, in `Trainer.step`). Move it into a \
         function `group_advantage(rewards, groups)`, then: shakedown init --add \
         mine.py:group_advantage",
        "Between other lines: policy-loss (mine.py:25, in `Trainer.step`).",
    ] {
        assert!(ran.stdout.contains(said), "{said}\n{}", ran.stdout);
    }
    // Where it calls others of its methods, no stand-in has them.
    assert!(!written.contains("Trainer._scaled_advantages(Simple"), "{written}");
    if let Some((passes, said)) = pytest(&folder, &[]) {
        assert!(passes && said.contains("1 passed"), "{said}\n{written}");
    }
    // What it does otherwise than declared, and right, is a convention.
    let other = TRAINER.replace(" / (std + self.epsilon)", "");
    let folder = repository(&[("mine.py", &other), ("pytest.ini", "[pytest]\n")]);
    let ran = init_well(&folder, &[]);
    let asked = "as group-advantage, under `scale: none`, as it behaves: is that meant?\n";
    assert!(ran.stdout.contains(asked), "{}", ran.stdout);
    if let Some((passes, said)) = pytest(&folder, &[]) {
        assert!(passes && said.contains("1 passed"), "{said}");
    }
    // As it says.
    let moved = "\n\ndef group_advantage(rewards, groups):\n    return Trainer._advantages(\
                 type('', (), {'epsilon': 1e-4}), rewards, groups)\n";
    folder.write("mine.py", format!("{TRAINER}{moved}"));
    let ran = init_well(&folder, &["--add", "mine.py:group_advantage"]);
    assert!(ran.stdout.contains("changed  tests/test_contracts.py"), "{}", ran.stdout);
}

/// GRPO on a matrix, whose rows are groups.
const MATRIX: &str = "
import statistics


def grpo_advantages(rewards, eps=1e-4):
    out = []
    for group in rewards:
        mean = statistics.fmean(group)
        deviation = statistics.stdev(group) if len(group) > 1 else 0.0
        out.append([(reward - mean) / (deviation + eps) for reward in group])
    return out
";

#[test]
fn groups_may_be_the_rows_of_a_matrix() {
    let folder = repository(&[("mine.py", MATRIX), ("pytest.ini", "[pytest]\n")]);
    let (_, arrays) = ON_ARRAYS[1];
    let arrays = arrays.replace("rewards, num_generations, eps", "rewards, eps");
    let arrays = arrays.replace("num_generations == 1", "rewards.shape[1] == 1");
    let arrays = arrays.replace("    groups = rewards.reshape(-1, num_generations)\n", "");
    let arrays = arrays.replace("groups", "rewards").replace(".reshape(-1)", "");
    folder.write("other.py", format!("import numpy\n\n{}", arrays.replace("DDOF", "ddof")));
    let ran = init_well(&folder, &[]);
    assert!(ran.stdout.contains("Filled in: `grpo_advantages` (mine.py:"), "{}", ran.stdout);
    let written = fs::read_to_string(folder.path("tests/test_contracts.py")).unwrap();
    assert!(written.contains("layout=\"contiguous\""), "{written}");
    let alias = "from other import grpo_advantages as other_grpo_advantages\n";
    assert!(written.contains(alias) || !ran.stdout.contains("(other.py"), "{written}");
    if let Some((passes, said)) = pytest(&folder, &[]) {
        assert!(passes, "{said}\n{written}");
    }
}

#[test]
fn add_adds_one_function_and_no_other() {
    let folder = repository(&SOURCES);
    folder.write("tests/conftest.py", "");
    let add = |target: &str| init(&folder, &["--add", target]);
    let ran = add("src/trainer/groups.py:compute_advantages");
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{}", ran.stdout);
    let written = || fs::read_to_string(folder.path("tests/test_contracts.py")).unwrap();
    assert_eq!(written().matches("@shakedown.contract(").count(), 1, "{}", written());
    let ran = add("./src/trainer/classes.py:MathVerifier.score");
    assert!(ran.stdout.contains("changed  tests/test_contracts.py: a test of"), "{}", ran.stdout);
    assert_eq!(written().matches("@shakedown.contract(").count(), 2, "{}", written());
    let before = written();
    let again = add("src/trainer/classes.py:MathVerifier.score");
    assert_eq!((again.code, written()), (0, before), "{}", again.stderr);
    if let Some((passes, said)) = pytest(&folder, &["tests"]) {
        assert!(passes && said.contains("2 passed"), "{said}");
    }
    for (target, words) in [
        ("src/trainer/group.py:f", "did you mean `src/trainer/groups.py`?"),
        (
            "src/trainer/groups.py:advantages",
            "unknown function `advantages`, expected `compute_advantages`",
        ),
        ("src/trainer/groups.py", "expected FILE:FUNCTION, found `src/trainer/groups.py`"),
        ("src/trainer/looks.py:plot_advantages", "returned a str for `advantages`"),
        ("src/trainer/classes.py:ModelReward", "requires `model`"),
    ] {
        assert_refused(&add(target), words);
    }
}

#[test]
fn add_adds_one_function_to_a_manifest() {
    let folder = repository(&SOURCES[..6]);
    init_well(&folder, &["python"]);
    let read = |name: &str| fs::read_to_string(folder.path(name)).unwrap();
    let before = read("shakedown.yaml");
    init_well(&folder, &["--add", "src/trainer/rloo.py:rloo_advantages"]);
    init_well(&folder, &["--add", "src/trainer/classes.py:DiscountedReturns.compute"]);
    let after = read("shakedown.yaml");
    assert!(after.starts_with(before.trim_end()), "{after}");
    assert!(after.contains("args: {mask: response_mask}"), "{after}");
    let ran = folder.run(&["check", "--cases", "24"]);
    assert_eq!(ran.code, 0, "{}{}\n{after}", ran.stdout, ran.stderr);
    init_well(&folder, &["--add", "src/trainer/rloo.py:rloo_advantages"]);
    assert_eq!(read("shakedown.yaml"), after);
}

// ---- Rust.

const CHECKOUT: &str = env!("CARGO_MANIFEST_DIR");

/// `cargo test --test shakedown` as a user runs it. What is compiled is kept from run to run, and
/// without debug info: the library is compiled once more here, and only its code is needed.
fn cargo_test(folder: &Folder, arguments: &[&str]) -> Output {
    // The versions that are on this machine.
    fs::copy(Path::new(CHECKOUT).join("Cargo.lock"), folder.path("Cargo.lock")).unwrap();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("init");
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--offline", "--test", "shakedown"]).args(arguments);
    for name in ["SHAKEDOWN_PLACES", "SHAKEDOWN_CASES", "SHAKEDOWN_SEED"] {
        command.env_remove(name);
    }
    command.env("CARGO_TARGET_DIR", target).env("CARGO_PROFILE_DEV_DEBUG", "0");
    command.env("CARGO_INCREMENTAL", "0").current_dir(folder.path(""));
    command.output().expect("cargo starts")
}

fn package(name: &str) -> String {
    format!(
        "# ours\n[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n\
         [features] # none yet\n"
    )
}

/// GRPO with the mean left out where `baseline` is `0.0`.
fn grpo(baseline: &str) -> String {
    format!(
        "//! Advantages.\n\n\
         /// GRPO.\n\
         pub fn grpo_advantages(rewards: &[f64], group_ids: &[i64], eps: f64) -> Vec<f64> {{\n\
         \x20   let advantage = |row: usize| {{\n\
         \x20       let same = (0..rewards.len()).filter(|other| group_ids[*other] == \
         group_ids[row]);\n\
         \x20       let group: Vec<f64> = same.map(|row| rewards[row]).collect();\n\
         \x20       if group.len() == 1 {{\n            return 0.0;\n        }}\n\
         \x20       let mean = group.iter().sum::<f64>() / group.len() as f64;\n\
         \x20       let squares: f64 = group.iter().map(|r| (r - mean).powi(2)).sum();\n\
         \x20       let deviation = (squares / (group.len() - 1) as f64).sqrt();\n\
         \x20       (rewards[row] - {baseline}) / (deviation + eps)\n\
         \x20   }};\n\
         \x20   (0..rewards.len()).map(advantage).collect()\n}}\n"
    )
}

const LIBRARY: &str = "//! A trainer.\n\npub mod advantages;\nmod hidden;\n";
const HIDDEN: &str = "pub fn grpo_hidden(rewards: &[f64]) -> Vec<f64> {\n    rewards.to_vec()\n}\n";

/// Functions of every other form that is filled in, each right.
const FORMS: [(&str, &str); 5] = [
    (
        "one-group",
        "pub fn advantages(rewards: Vec<f32>, eps: f32) -> Vec<f32> {
            let count = rewards.len() as f64;
            if rewards.len() == 1 {
                return vec![0.0];
            }
            let mean = rewards.iter().map(|r| f64::from(*r)).sum::<f64>() / count;
            let squares: f64 = rewards.iter().map(|r| (f64::from(*r) - mean).powi(2)).sum();
            let by = (squares / (count - 1.0)).sqrt() + f64::from(eps);
            rewards.iter().map(|r| ((f64::from(*r) - mean) / by) as f32).collect()
        }",
    ),
    (
        "equal-groups",
        "pub fn rloo_advantages(rewards: &[f64], group_size: usize) -> Vec<f64> {
            let group = |group: &[f64]| {
                let others = |row: usize| (0..group.len()).filter(move |other| *other != row);
                let mean = |row: usize| {
                    others(row).map(|other| group[other]).sum::<f64>() / (group.len() - 1) as f64
                };
                let one = |row: usize| if group.len() == 1 { 0.0 } else { group[row] - mean(row) };
                (0..group.len()).map(one).collect::<Vec<f64>>()
            };
            rewards.chunks(group_size).flat_map(group).collect()
        }",
    ),
    (
        "one-completion",
        "pub mod inner {
            pub fn answer_score(response: &str, gold: &str) -> f32 {
                let inside = response
                    .strip_prefix(\"<reasoning>\\n\")
                    .and_then(|rest| rest.split_once(\"\\n</reasoning>\\n<answer>\\n\"))
                    .and_then(|(_, rest)| rest.trim_end().strip_suffix(\"\\n</answer>\"));
                let said = inside.map(str::trim).filter(|said| !said.is_empty());
                f32::from(u8::from(said == Some(gold.trim())))
            }
        }",
    ),
    (
        "all-completions",
        "pub fn length_reward(completions: &[String]) -> Vec<f64> {
            completions.iter().map(|text| 1.0 / (1.0 + text.len() as f64)).collect()
        }",
    ),
    ("nothing", "pub fn advantages(rewards: &std::path::Path) -> usize { rewards.iter().count() }"),
];

#[test]
fn a_planted_bug_in_a_rust_function_is_found_by_what_init_writes() {
    let manifest = package("my-trainer");
    let folder = repository(&[
        ("Cargo.toml", &manifest),
        ("src/lib.rs", LIBRARY),
        ("src/hidden.rs", HIDDEN),
        ("src/advantages.rs", &grpo("0.0")),
    ]);
    let arguments = ["--path", CHECKOUT];
    let ran = init_well(&folder, &arguments);
    let filled = "`my_trainer::advantages::grpo_advantages` (src/advantages.rs:4)";
    assert!(ran.stdout.contains(&format!("Filled in: {filled}")), "{}", ran.stdout);
    assert!(!ran.stdout.contains("grpo_hidden"), "it cannot be called:\n{}", ran.stdout);
    let changed = fs::read_to_string(folder.path("Cargo.toml")).unwrap();
    let (before, line) = changed.split_once("\n[dev-dependencies]\n").expect("a table was added");
    assert_eq!(before, manifest.trim_end_matches('\n').to_owned() + "\n");
    let path = Path::new(CHECKOUT).canonicalize().unwrap();
    let path = path.display();
    let dependency = format!("shakedown = {{ path = \"{path}\", default-features = false }}\n");
    assert_eq!(line, dependency);

    let failing = cargo_test(&folder, &[]);
    let said = String::from_utf8_lossy(&failing.stdout).into_owned()
        + &String::from_utf8_lossy(&failing.stderr);
    assert!(!failing.status.success(), "{said}");
    assert!(said.contains("zero-sum") && said.contains("baseline-missing"), "{said}");
    assert!(folder.path("corpora/group-advantage/found").is_dir());

    folder.write("src/advantages.rs", grpo("mean"));
    let passing = cargo_test(&folder, &[]);
    assert!(passing.status.success(), "{}", String::from_utf8_lossy(&passing.stdout));

    assert_a_second_run_changes_nothing(&folder, &arguments);
}

#[test]
fn every_form_of_a_rust_function_gets_a_test_that_compiles_and_passes() {
    let names: Vec<String> = FORMS.iter().map(|(name, _)| format!("{name:?}")).collect();
    let members = format!("[workspace]\nresolver = \"2\"\nmembers = [{}]\n", names.join(", "));
    let folder = repository(&[("Cargo.toml", &members)]);
    for (name, source) in FORMS {
        folder.write(&format!("{name}/Cargo.toml"), package(name));
        folder.write(&format!("{name}/src/lib.rs"), source);
        let ran = init_well(&folder, &["--dir", name, "--path", CHECKOUT]);
        assert_eq!(ran.stdout.contains("Filled in: "), name != "nothing", "{}", ran.stdout);
    }
    // One workflow serves the repository; the packages that come later are told so.
    assert!(folder.path(".github/workflows/shakedown.yml").exists());
    let ran = cargo_test(&folder, &["--workspace"]);
    let said =
        String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    assert_eq!(said.matches("test result: ok. 1 passed").count(), FORMS.len(), "{said}");
    assert!(!said.contains("(test \"shakedown\") generated"), "a warning of a suite:\n{said}");
}

#[test]
fn a_program_without_a_library_gets_an_example() {
    let manifest = package("program");
    let folder = repository(&[("Cargo.toml", &manifest), ("src/main.rs", "fn main() {}\n")]);
    let ran = init_well(&folder, &[]);
    assert!(ran.stdout.contains("The package has no library"), "{}", ran.stdout);
    let manifest = fs::read_to_string(folder.path("Cargo.toml")).unwrap();
    let source = concat!("git = \"", env!("CARGO_PKG_REPOSITORY"), "\"");
    assert!(manifest.contains(source), "{manifest}");
    assert_a_second_run_changes_nothing(&folder, &[]);
}

// ---- What it looks like.

/// What was printed, then the files of these names.
fn shown(ran: &Ran, folder: &Folder, names: &[&str]) -> String {
    let file =
        |name: &&str| format!("\n==== {name}\n{}", fs::read_to_string(folder.path(name)).unwrap());
    ran.stdout.clone() + &names.iter().map(file).collect::<String>()
}

#[test]
fn what_is_written_into_a_python_repository() {
    let folder = repository(&[("src/trainer.py", ONE_GROUP), ("requirements.txt", "")]);
    folder.write("src/rewards.py", "async def answer_score(response, gold):\n    return 1.0\n");
    let ran = init_well(&folder, &[]);
    let names = [
        "shakedown.yaml",
        "shakedown_adapters.py",
        "corpora/README.md",
        ".github/workflows/shakedown.yml",
    ];
    assert_snapshot("init", "python", &shown(&ran, &folder, &names));
}

#[test]
fn what_is_written_into_a_repository_with_pytest() {
    let folder = repository(&SOURCES);
    folder.write("setup.cfg", "[tool:pytest]\n");
    let ran = init_well(&folder, &[]);
    assert_snapshot("init", "pytest", &shown(&ran, &folder, &["tests/test_contracts.py"]));
}

#[test]
fn what_is_imported_is_said_before_and_takes_no_longer_than_its_time() {
    let function = "def grpo_advantages(rewards, groups, epsilon=1e-4):\n    return rewards\n";
    let slow = format!("import time\ntime.sleep(600)\n{function}");
    let folder = repository(&[("conftest.py", ""), ("a.py", &slow), ("b.py", &slow)]);
    let started = std::time::Instant::now();
    let ran = init_well(&folder, &["--time", "2s"]);
    let took = started.elapsed().as_secs();
    assert!(took < 60, "it took {took} s:\n{}", ran.stdout);
    let said = "Imports and calls 2 functions of this repository, for 2 s at most (--time):\n  \
                `grpo_advantages` (a.py:3)\n";
    assert!(ran.stdout.starts_with(said), "{}", ran.stdout);
    assert!(ran.stdout.contains("it was not tried, as --time was over"), "{}", ran.stdout);
}

#[test]
fn what_is_written_into_a_rust_package() {
    let manifest = package("my-trainer");
    let folder = repository(&[("Cargo.toml", &manifest), ("src/lib.rs", LIBRARY)]);
    folder.write("src/advantages.rs", grpo("mean"));
    folder.write(".config/nextest.toml", "# ours\n");
    let ran = init_well(&folder, &[]);
    let names = ["tests/shakedown.rs", "Cargo.toml", ".github/workflows/shakedown.yml"];
    assert_snapshot("init", "rust", &shown(&ran, &folder, &names));
}

// ---- What was there.

#[test]
fn files_that_are_there_are_kept_byte_for_byte() {
    let suite = "// our own\n";
    let manifest = package("ours") + "\n[dev-dependencies]\nshakedown = \"0.1\"\n";
    let there = [
        ("Cargo.toml", &*manifest),
        ("src/lib.rs", ""),
        ("pyproject.toml", ""),
        ("tests/shakedown.rs", suite),
        (".config/nextest.toml", suite),
        (".github/workflows/shakedown.yml", suite),
        ("corpora/README.md", suite),
        ("corpora/group-advantage/regressions/.gitkeep", suite),
        ("shakedown.yaml", suite),
        ("shakedown_adapters.py", suite),
    ];
    for (kind, kept) in [("rust", 5), ("python", 5)] {
        let folder = repository(&there);
        let before = files(&folder);
        let ran = init_well(&folder, &[kind]);
        assert_eq!(files(&folder), before);
        assert_eq!(ran.stdout.matches("  kept  ").count(), kept, "{}", ran.stdout);
        assert!(ran.stdout.contains("Nothing was changed"), "{}", ran.stdout);
        assert!(ran.stdout.contains("to add by hand"), "{}", ran.stdout);
    }
}

#[test]
fn the_kind_of_a_folder_must_be_clear() {
    let refused = |files: &[(&str, &str)], arguments: &[&str], words: &str| {
        let folder = repository(files);
        let before = self::files(&folder);
        assert_refused(&init(&folder, arguments), words);
        assert_eq!(self::files(&folder), before);
    };
    let (rust, python) = (package("p"), "[project]\n");
    let both = [("Cargo.toml", &*rust), ("pyproject.toml", python)];
    refused(&[], &[], "neither Cargo.toml nor pyproject.toml");
    refused(&both, &[], "both Cargo.toml and pyproject.toml: name one, `shakedown init rust`");
    refused(&[], &["rust"], "cannot read ./Cargo.toml");
    refused(&[], &["--dir", "elsewhere"], "elsewhere is not a folder");
    refused(&[("a.py", "")], &["--path", "x"], "--path is for Rust");
    refused(&both, &["rust", "--add", "x"], "--manifest and --add are for Python");
    refused(&[("Cargo.toml", "[package\n")], &[], "Cargo.toml:1:9: ");
    refused(
        &[("Cargo.toml", "[workspace]\nmembers = [\"a\", \"b\"]\n")],
        &[],
        "`shakedown init rust --dir MEMBER` (members: `a`, `b`)",
    );
    refused(&both[..1], &["--path", "."], "expected a checkout of shakedown, found `p`");
    for kind in ["rust", "python"] {
        let folder = repository(&both);
        init_well(&folder, &[kind]);
        assert_eq!(folder.path("shakedown.yaml").exists(), kind == "python");
        assert_eq!(folder.path("tests/shakedown.rs").exists(), kind == "rust");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = repository(&[("a.py", ""), ("corpora", "a file in the place of the folder")]);
    let ran = init(&folder, &[]);
    assert_refused(&ran, "cannot make ./corpora: ");
}

#[cfg(unix)]
#[test]
fn a_read_only_folder_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = repository(&[("a.py", "")]);
    let mode = |bits| fs::set_permissions(folder.path(""), fs::Permissions::from_mode(bits));
    mode(0o555).unwrap();
    if fs::write(folder.path("probe"), "").is_ok() {
        mode(0o755).unwrap();
        println!("left out: this user may write into read-only folders");
        return;
    }
    let ran = init(&folder, &[]);
    mode(0o755).unwrap();
    assert_refused(&ran, "cannot write ./shakedown.yaml: Permission denied");
}

// ---- The workflow.

/// The workflow that `init` writes for a package or a repository in the folder `inside`.
fn workflow(kind: &str, inside: &str) -> (String, serde_json::Value) {
    let folder = repository(&[]);
    folder.write(&format!("{inside}/Cargo.toml"), package("p"));
    folder.write(&format!("{inside}/rewards.py"), PLANTED);
    init_well(&folder, &[kind, "--dir", inside]);
    let text = fs::read_to_string(folder.path(".github/workflows/shakedown.yml")).unwrap();
    let parsed =
        shakedown::value::yaml::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    (text, parsed)
}

#[test]
fn the_workflow_is_yaml_runs_at_night_and_pins_its_actions() {
    for kind in ["rust", "python"] {
        let (text, parsed) = workflow(kind, ".");
        assert!(parsed["on"]["schedule"][0]["cron"].is_string(), "{text}");
        let on = parsed["on"].as_object().expect("it says when it runs");
        assert!(on.contains_key("pull_request") && on.contains_key("workflow_dispatch"), "{text}");
        let jobs = parsed["jobs"].as_object().expect("there are jobs");
        for step in jobs.values().flat_map(|job| job["steps"].as_array().unwrap()) {
            if let Some(action) = step["uses"].as_str() {
                let (_, version) = action.split_once('@').expect("a version");
                let number = version.strip_prefix('v').and_then(|text| text.parse::<u32>().ok());
                assert!(number.is_some(), "{action}");
            }
        }
        let nightly =
            jobs.values().filter(|job| job["if"] != "github.event_name == 'pull_request'");
        assert_eq!(nightly.count(), 1, "{text}");
    }
}

#[test]
fn the_workflow_of_a_folder_in_a_repository_works_in_that_folder() {
    for kind in ["rust", "python"] {
        let (text, parsed) = workflow(kind, "training/grpo");
        assert_eq!(parsed["defaults"]["run"]["working-directory"], "training/grpo", "{text}");
        assert!(text.contains("  training/grpo/corpora/*/found/*.yaml"), "{text}");
    }
}

#[test]
fn every_option_that_the_workflow_gives_to_the_command_exists() {
    let (text, _) = workflow("python", ".");
    let lines = text.lines().filter_map(|line| line.split_once("shakedown "));
    let folder = Folder::new();
    let mut verbs = Vec::new();
    for (before, call) in
        lines.filter(|(before, _)| before.trim_end().ends_with("run:") || before.trim().is_empty())
    {
        let verb = call.split_whitespace().next().expect("a verb");
        let help = folder.run(&[verb, "--help"]);
        assert_eq!(help.code, 0, "{before}shakedown {call}");
        let call = call.split('|').next().expect("the first of a pipe");
        for option in call.split_whitespace().filter(|word| word.starts_with("--")) {
            assert!(help.stdout.contains(option), "shakedown {verb} has no {option}");
        }
        verbs.push(verb);
    }
    assert_eq!(verbs, ["replay", "check", "fuzz", "fuzz", "replay"]);
}
