//! What manifests say of Python components besides their target: constructors, objects made once,
//! environments, modules that are not there, columns.

use std::fs;

use serde_json::Value as Json;

use crate::folder::Folder;

const TRAINER: &str = r#"
import functools
import math
import os


def advantages(rewards, groups, epsilon=1e-4):
    out = [0.0] * len(rewards)
    for group in set(groups):
        rows = [row for row, other in enumerate(groups) if other == group]
        mean = math.fsum(rewards[row] for row in rows) / len(rows)
        squares = math.fsum((rewards[row] - mean) ** 2 for row in rows)
        deviation = math.sqrt(squares / max(len(rows) - 1, 1))
        for row in rows:
            out[row] = (rewards[row] - mean) / (deviation + epsilon)
    return out


class Trainer:
    """`shift` is a bug where it is not 0."""

    def __init__(self, shift=0.0):
        self.shift = shift
        self.made = lambda rewards, groups: advantages(rewards, groups)

    def advantages(self, rewards, groups, epsilon):
        return [one + self.shift for one in advantages(rewards, groups, epsilon)]

    async def awaited(self, rewards, groups, epsilon):
        return self.advantages(rewards, groups, epsilon)

    @classmethod
    def of_class(cls, rewards, groups, epsilon):
        return cls().advantages(rewards, groups, epsilon)

    @staticmethod
    def static(rewards, groups, epsilon):
        return advantages(rewards, groups, epsilon)

    __call__ = advantages


class Needy(Trainer):
    def __init__(self, config):
        super().__init__(config["shift"])


class Other:
    def __init__(self, shift):
        self.shift = shift


fixed = functools.partial(advantages, epsilon=1.0)
made = Trainer()


def objects():
    with open("calls", "a") as file:
        file.write(f"{os.getpid()}\n")
    return {"config": {"shift": 0.0}, "scorer": Trainer(), "unused": None}


def with_scorer(rewards, groups, scorer):
    return scorer.advantages(rewards, groups, 1e-4)


def with_all(rewards, groups, **others):
    return others["scorer"].advantages(rewards, groups, others["epsilon"])


def with_scorr(rewards, groups, scorr):
    return scorr(rewards, groups, 1e-4)


def no_objects():
    return [1]


def broken_objects():
    raise OSError("no such tokenizer")


def given_twice():
    return {"rewards": [1.0]}
"#;

/// A manifest of components of `group-advantage`, each with a name, a target and more.
fn group_advantages(components: &[(&str, &str, &str)]) -> String {
    let head = "version: 1\npython: {arrays: list}\ncomponents:\n";
    let one = |(name, target, more): &(&str, &str, &str)| {
        let fixed = "contract: group-advantage, options: {scale: std, epsilon: 1.0e-4}";
        format!("- {{name: {name}, target: 'python:{target}', {fixed}{more}}}\n")
    };
    head.to_owned() + &components.iter().map(one).collect::<String>()
}

/// The components of the report, in the order of the manifest.
fn check(folder: &Folder, manifest: &str) -> Vec<Json> {
    folder.write("shakedown.yaml", manifest);
    let ran = folder.run(&["check", "--cases", "16", "--json", "report.json"]);
    assert!(ran.code < 3, "nothing was checked: {}", ran.stderr);
    let text = fs::read_to_string(folder.path("report.json"));
    let text = text.unwrap_or_else(|error| panic!("{error}\n{}{}", ran.stdout, ran.stderr));
    let report: Json = serde_json::from_str(&text).unwrap();
    report["components"].as_array().unwrap().clone()
}

#[track_caller]
fn assert_status(component: &Json, status: &str) {
    let (found, reason) = (&component["status"], &component["reason"]);
    assert_eq!(found, status, "{}: {reason} {:#}", component["name"], component["findings"]);
}

#[track_caller]
fn assert_refused(component: &Json, words: &str) {
    assert_status(component, "error");
    let reason = component["reason"].as_str().unwrap();
    assert!(reason.contains(words), "{}: expected {words:?} in {reason}", component["name"]);
}

#[test]
fn methods_objects_and_classes_are_components() {
    let folder = Folder::new();
    folder.write("trainer.py", TRAINER);
    let right = [
        ("method", "trainer.py:Trainer.advantages", ""),
        ("method-init", "trainer.py:Trainer.advantages", ", init: {shift: 0}"),
        ("awaited", "trainer.py:Trainer.awaited", ", init: {}"),
        ("of-class", "trainer.py:Trainer.of_class", ""),
        ("static", "trainer.py:Trainer.static", ""),
        ("class", "trainer.py:Trainer", ""),
        ("object", "trainer.py:made", ""),
        ("method-of-object", "trainer.py:made.advantages", ""),
        ("of-constructor", "trainer.py:Trainer.made", ", init: {shift: 1}"),
        ("needy", "trainer.py:Needy", ", init: {config: {shift: 0}}"),
        ("module", "trainer:Needy.awaited", ", init: {config: {shift: 0}}"),
    ];
    let wrong = [
        ("wrong-method", "trainer.py:Trainer.advantages", ", init: {shift: 1}"),
        ("wrong-class", "trainer.py:Trainer", ", init: {shift: 1}"),
        ("fixed", "trainer.py:fixed", ""),
    ];
    let report = check(&folder, &group_advantages(&[&right[..], &wrong].concat()));
    for component in &report[..right.len()] {
        assert_status(component, "pass");
        let source = component["source"]["file"].as_str().unwrap_or_default();
        assert!(source.ends_with("trainer.py"), "{}", component["name"]);
    }
    for component in &report[right.len()..] {
        assert_status(component, "fail");
    }
    let warnings = report.last().unwrap()["warnings"].to_string();
    assert!(warnings.contains("`epsilon` stays 1.0, as functools.partial says"), "{warnings}");
}

/// Functions that take groups in their own way, right ones and one that mixes them up.
const IN_GROUPS: &str = r#"
import torch


def of_arrays(rewards, groups):
    assert rewards.dim() == 2 and groups.shape == rewards.shape
    return rewards - rewards.mean(1, keepdim=True)


def transposed(rewards):
    return (rewards - rewards.mean(1, keepdim=True)).flip(1)


def of_lists(rewards):
    return [[one - sum(own) / len(own) for one in own] for own in rewards]


def of_one(rewards):
    assert isinstance(rewards, torch.Tensor) and rewards.dim() == 1
    return {"advantages": rewards - rewards.mean()}
"#;

#[test]
fn groups_come_as_arrays_as_lists_or_one_at_a_time() {
    let folder = Folder::new();
    folder.write("grouped.py", IN_GROUPS);
    let component = |name: &str, function: &str, batch: &str, layout: &str| {
        format!(
            "  - name: {name}\n    contract: group-advantage\n    batch: {batch}\n    \
             target: python:grouped.py:{function}\n    \
             options: {{scale: none, layout: {layout}}}\n",
        )
    };
    let manifest = [
        component("arrays", "of_arrays", "groups", "contiguous"),
        component("lists", "of_lists", "lists", "any"),
        component("lists-of-one-size", "of_lists", "lists", "contiguous"),
        component("one", "of_one", "group", "any"),
        component("transposed", "transposed", "groups", "contiguous"),
    ];
    let report = check(&folder, &format!("version: 1\ncomponents:\n{}", manifest.concat()));
    for component in &report[..4] {
        assert_status(component, "pass");
    }
    assert_status(&report[4], "fail");

    for (component, why) in [
        (
            component("any", "of_arrays", "groups", "any"),
            "it needs `options: {layout: contiguous}`",
        ),
        (
            "  - {name: loss, contract: returns, target: 'python:a.py:f', batch: group}\n"
                .to_owned(),
            "the rows of returns are in no groups",
        ),
    ] {
        folder.write("shakedown.yaml", format!("version: 1\ncomponents:\n{component}"));
        let ran = folder.run(&["check"]);
        assert!(ran.stderr.contains(why), "{}: {}", ran.code, ran.stderr);
    }
}

#[test]
fn a_constructor_that_does_not_fit_is_refused_with_the_nearest_name() {
    let folder = Folder::new();
    folder.write("trainer.py", TRAINER);
    let refused = [
        (
            "lacks",
            "trainer.py:Needy",
            "",
            "`Needy` is a class, and its constructor requires `config`",
        ),
        ("typo", "trainer.py:Trainer", ", init: {shfit: 1}", "did you mean `shift`?"),
        ("raises", "trainer.py:Needy", ", init: {config: {}}", "making a `Needy` raised KeyError"),
        ("no-class", "trainer.py:advantages", ", init: {shift: 1}", "only a class takes it"),
        ("no-call", "trainer.py:Other", ", init: {shift: 1}", "a target is `…:Other.METHOD`"),
        ("no-method", "trainer.py:Trainer.advantage", "", "(did you mean `advantages`?)"),
    ];
    let components = refused.map(|(name, target, more, _)| (name, target, more));
    let report = check(&folder, &group_advantages(&components));
    for (component, (_, _, _, words)) in report.iter().zip(refused) {
        assert_refused(component, words);
    }
}

#[test]
fn setup_makes_objects_once_in_each_process_and_gives_them_by_name() {
    let folder = Folder::new();
    folder.write("trainer.py", TRAINER);
    let setup = ", setup: 'python:trainer.py:objects'";
    let right = [
        ("function", "trainer.py:with_scorer", setup),
        ("all", "trainer.py:with_all", setup),
        ("constructor", "trainer.py:Needy", setup),
        ("nothing-of-it", "trainer.py:advantages", setup),
    ];
    let report = check(&folder, &group_advantages(&right));
    for component in &report {
        assert_status(component, "pass");
        assert_eq!(component["warnings"], serde_json::json!([]));
    }
    let calls = fs::read_to_string(folder.path("calls")).unwrap();
    assert_eq!(calls.lines().count(), right.len(), "{calls}");

    let of = |function: &str| format!(", setup: 'python:trainer.py:{function}'");
    let (list, broken, twice, none) =
        (of("no_objects"), of("broken_objects"), of("given_twice"), of("object"));
    let refused = [
        ("typo", "with_scorr", setup, "requires `scorr` (did you mean `scorer`?)"),
        ("typo", "with_scorr", setup, "of setup: config, scorer, unused"),
        ("list", "advantages", &list, "returned a list, expected a dict of objects by name"),
        ("broken", "advantages", &broken, "raised OSError: no such tokenizer"),
        ("twice", "advantages", &twice, "setup gives `rewards`, which the contract gives already"),
        ("none", "advantages", &none, "`object` is not in"),
    ];
    for (name, function, more, words) in refused {
        let target = format!("trainer.py:{function}");
        assert_refused(&check(&folder, &group_advantages(&[(name, &target, more)]))[0], words);
    }
}

#[test]
fn setup_env_and_stub_of_python_are_those_of_all_its_components() {
    let folder = Folder::new();
    folder.write("trainer.py", TRAINER);
    folder.write(
        "here.py",
        "import os\nimport not_there\nfrom trainer import *\n\
         assert os.environ['OF_ALL'] == '1'\nOWN = os.environ.get('OWN')\n\n\
         def own():\n    return {'scorer': made, 'own': OWN}\n\n\
         def mine(rewards, groups, scorer, own):\n    assert own == 'x'\n    \
         return with_scorer(rewards, groups, scorer)\n",
    );
    let of_all = "arrays: list, setup: 'python:trainer.py:objects', env: {OF_ALL: 1}, \
                  stub: [not_there]";
    let manifest = group_advantages(&[
        ("all", "here.py:with_scorer", ""),
        ("own", "here.py:mine", ", setup: 'python:here.py:own', env: {OWN: x}"),
    ]);
    let report = check(&folder, &manifest.replace("arrays: list", of_all));
    report.iter().for_each(|component| assert_status(component, "pass"));
}

#[test]
fn the_environment_is_set_before_imports_and_is_no_other_component_s() {
    let folder = Folder::new();
    folder.write("trainer.py", TRAINER);
    folder.write(
        "reads.py",
        "import os\nfrom trainer import advantages\nSEEN = os.environ.get('OF_TEST', 'nothing')\n\n\
         def one(rewards, groups):\n    assert SEEN == 'one', SEEN\n    \
         return advantages(rewards, groups)\n\n\
         def two(rewards, groups):\n    assert SEEN == '2', SEEN\n    \
         return advantages(rewards, groups)\n\n\
         def none(rewards, groups):\n    assert SEEN == 'nothing', SEEN\n    \
         return advantages(rewards, groups)\n",
    );
    let components = group_advantages(&[
        ("none", "reads.py:none", ""),
        ("one", "reads.py:one", ", env: {OF_TEST: one}"),
        ("two", "reads.py:two", ", env: {OF_TEST: 2}"),
        ("again", "reads.py:none", ""),
    ]);
    for manifest in [components.clone(), components.replace("list}", "list, fork: false}")] {
        check(&folder, &manifest).iter().for_each(|component| assert_status(component, "pass"));
    }
}

#[test]
fn a_stub_stands_for_a_module_that_is_not_there_until_it_is_called() {
    let folder = Folder::new();
    folder.write("trainer.py", TRAINER);
    folder.write("is_there.py", "value = 1e-4\n");
    folder.write(
        "uses.py",
        "from typing import Optional\n\
         import is_there\n\
         import no_engine.sampling as sampling\n\
         from no_engine import LLM, Params\n\
         from no_server.client import Client\n\
         from trainer import advantages\n\n\n\
         class Mine(LLM):\n    pass\n\n\n\
         def right(rewards, groups, engine: Optional[LLM] = None, \
         other: Params | None = None):\n    \
         assert not isinstance(rewards, LLM) and is_there.value == 1e-4\n    \
         return advantages(rewards, groups, is_there.value)\n\n\n\
         def calls(rewards, groups):\n    return sampling.Sampler.make(rewards)\n\n\n\
         def makes(rewards, groups):\n    return Mine(rewards)\n",
    );
    let stub = ", stub: [no_engine, no_server.client, no_server, is_there]";
    let report = check(
        &folder,
        &group_advantages(&[
            ("right", "uses.py:right", stub),
            ("calls", "uses.py:calls", stub),
            ("makes", "uses.py:makes", stub),
            ("without", "uses.py:right", ""),
        ]),
    );
    assert_status(&report[0], "pass");
    for (component, name) in
        [(&report[1], "no_engine.sampling.Sampler.make"), (&report[2], "no_engine.LLM")]
    {
        assert_status(component, "fail");
        let said = component["findings"].to_string();
        let expected = format!("`{name}` was called, and `no_engine` is not there");
        assert!(said.contains(&expected), "expected {expected:?} in {said}");
    }
    assert_refused(&report[3], "No module named 'no_engine'");
}

#[test]
fn columns_of_reward_functions_get_inputs_or_values() {
    let folder = Folder::new();
    folder.write(
        "rewards.py",
        "import re\n\n\
         FORM = r'<reasoning>\\n.*?\\n</reasoning>\\n<answer>\\n(.*?)\\n</answer>\\s*'\n\n\n\
         def score(completions, gold, asked, difficulty, task, tags, prompts, answer='none'):\n    \
         assert list(asked) == list(prompts) and set(answer) <= {'none'}\n    \
         assert difficulty == [3] * len(completions) and task == ['maths'] * len(completions)\n    \
         assert tags == [[1, 2]] * len(completions)\n    \
         scores = []\n    \
         for text, one in zip(completions, gold):\n        \
         found = re.fullmatch(FORM, text, re.DOTALL)\n        \
         said = found.group(1).strip() if found else ''\n        \
         scores.append(1.0 if said and said == one.strip() else 0.0)\n    \
         return scores\n",
    );
    let columns = "{gold: answers, asked: prompts, difficulty: 3, task: {value: maths}, \
                   tags: [1, 2], answer: {value: none}}";
    let manifest = |columns: &str| {
        format!(
            "version: 1\ncomponents:\n- {{name: score, contract: reward-function, signature: trl, \
             target: 'python:rewards.py:score', columns: {columns}, \
             options: {{judges: correctness, range: [0, 1]}}}}\n"
        )
    };
    assert_status(&check(&folder, &manifest(columns))[0], "pass");
    let few = &check(&folder, &manifest("{gold: answers, asked: prompts}"))[0];
    assert_refused(few, "or `columns: {difficulty: …}` in a manifest");
}
