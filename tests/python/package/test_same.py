"""The same findings whoever runs a component: the command, this process, a forked child."""

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import pytest

import shakedown

FOLDER = Path(__file__).parents[1]


def loaded(name):
    spec = importlib.util.spec_from_file_location(f"same_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# What ends or deafens a process, and is a finding only where that is a child.
IN_A_CHILD = ["leaves", "segfaults", "kills_itself", "raises_and_segfaults"]
IN_A_CHILD += ["raises_what_is_no_exception"]
HERE = ["raises", "raises_without_words", "raises_a_novel", "recurses", "exhausts_memory", "exits"]
HERE += ["hangs", "nothing", "nested", "ragged", "too_short", "a_number", "a_string", "strings"]
HERE += ["complex_numbers", "another_name", "a_set", "a_huge_integer", "not_a_number"]
HERE += ["infinite", "changes_its_inputs", "drops_an_input_row", "counts_its_calls"]
HERE += ["right"]
FLAGS = ["booleans", "integers", "bytes_", "floats", "counts"]
SIGNATURES = [("plain", "trl"), ("chat", "trl-chat"), ("compute_score", "verl")]

COMPONENTS = [(name, "bad", "group-advantage", {}, "by-name") for name in HERE + IN_A_CHILD]
COMPONENTS += [(name, "flags", "completion-mask", {}, "by-name") for name in FLAGS]
JUDGES = {"judges": "correctness"}
COMPONENTS += [(name, "signatures", "reward-function", JUDGES, how) for name, how in SIGNATURES]
# Those that answer may do so slowly: the machine is busy.
SETTINGS = {"cases": 32, "arrays": "list"}


def timeout_s(name):
    return 0.5 if name == "hangs" else 10.0


@pytest.fixture(scope="module")
def by_the_command(tmp_path_factory):
    by_name = {}
    for timeout in {timeout_s(name) for name, *_ in COMPONENTS}:
        by_name.update(reported(tmp_path_factory.mktemp("command"), timeout))
    return by_name


def reported(folder, timeout):
    """What the command reports of the components that have this much time, by name."""
    components = [
        {
            "name": name,
            "contract": contract,
            "target": f"python:{FOLDER / module}.py:{name}",
            "options": options,
            "signature": signature,
        }
        for name, module, contract, options, signature in COMPONENTS
        if timeout_s(name) == timeout
    ]
    python = {"arrays": "list", "timeout_ms": int(1000 * timeout)}
    manifest = {"version": 1, "python": python, "components": components}
    (folder / "shakedown.yaml").write_text(json.dumps(manifest))
    command = [os.environ["SHAKEDOWN_BIN"], "check", "--cases", "32", "--json", "report.json"]
    subprocess.run(command, cwd=folder, capture_output=True)
    report = json.loads((folder / "report.json").read_text())
    return {one["name"]: one for one in report["components"]}


def said(component):
    """What came of a component, without what differs from process to process."""
    found = {one["invariant"]: one["found"].splitlines()[0] for one in component["findings"]}
    return component["status"], found, component["cases"]


@pytest.mark.parametrize("isolate", [False, True], ids=["here", "isolated"])
@pytest.mark.parametrize("component", COMPONENTS, ids=lambda component: component[0])
def test_findings_are_the_same(component, isolate, by_the_command, tmp_path, monkeypatch):
    name, module, contract, options, signature = component
    if not isolate and name in IN_A_CHILD:
        pytest.skip("it would end this process")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(shakedown._context.here(), "folder", str(tmp_path))
    chosen = shakedown.contract(contract, **options)
    settings = {**SETTINGS, "timeout": timeout_s(name)}
    chosen = chosen.settings(isolate=isolate, signature=signature, **settings)
    report = chosen.report(getattr(loaded(module), name))
    assert said(report.json["components"][0]) == said(by_the_command[name])


def test_what_a_component_does_to_its_process_is_undone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bad = loaded("bad")
    contract = shakedown.GroupAdvantage().settings(**{**SETTINGS, "only": ["oracle"]})
    for name in ["goes_elsewhere", "sets_an_alarm", "forks", "prints"]:
        assert contract.check(getattr(bad, name)), name
        assert os.getcwd() == str(tmp_path)
