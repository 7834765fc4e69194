"""Checks by hand: `check`, `report`, settings, findings, errors."""

import asyncio
import copy
import functools
import inspect
import json
import os
import pickle
import random
import signal
import subprocess
import types

import pytest

import shakedown

RIGHT = {"scale": "std", "epsilon": 1e-4}


def right(rewards, groups, epsilon):
    """Advantages by plain numbers."""
    members = {}
    for row, group in enumerate(groups):
        members.setdefault(group, []).append(row)
    out = [0.0] * len(rewards)
    for rows in members.values():
        mean = sum(rewards[row] for row in rows) / len(rows)
        squares = sum((rewards[row] - mean) ** 2 for row in rows)
        deviation = (squares / max(len(rows) - 1, 1)) ** 0.5
        for row in rows:
            out[row] = (rewards[row] - mean) / (deviation + epsilon)
    return out


def swallowing(rewards, groups):
    return right(rewards, groups, epsilon=1.0)


@pytest.fixture
def contract(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return shakedown.GroupAdvantage(**RIGHT).settings(arrays="list")


def test_a_right_function_passes(contract):
    report = contract.check(right)
    assert report and report.status == "pass" and report.findings == []
    assert report.cases > 256 and report.calls > report.cases


def test_a_wrong_one_is_broken_with_the_bug_that_it_has(contract):
    with pytest.raises(shakedown.Broken) as caught:
        contract.check(swallowing)
    report = caught.value.report
    assert not report and report.status == "fail"
    [finding, *_] = report.findings
    assert finding.diagnosis[0]["fault"] == "epsilon-swallows-the-signal"
    assert "as if `epsilon` were 1.0" in str(caught.value)
    assert finding.inputs == {"rewards": [0.0, 1.0], "groups": [0, 0]}
    assert finding.call() == swallowing(**finding.inputs) == finding.output["advantages"]
    assert os.path.isfile(finding.case_file)


def test_a_report_does_not_raise_and_is_the_schema_of_the_command(contract):
    report = contract.report(swallowing)
    assert report.json["schema"] == "shakedown/report/1"
    assert report.html.startswith("<!DOCTYPE html>") and "sandbox" in report._repr_html_()
    assert json.loads(json.dumps(report.json)) == report.json


def test_the_findings_are_those_of_the_command(contract, tmp_path, monkeypatch):
    source = inspect.getsource(right) + "\n\n" + inspect.getsource(swallowing)
    (tmp_path / "mine.py").write_text(source)
    (tmp_path / "shakedown.yaml").write_text(
        "version: 1\npython: {arrays: list}\ncomponents:\n  - name: mine\n"
        "    contract: group-advantage\n    target: python:mine.py:swallowing\n"
        f"    options: {json.dumps(RIGHT)}\n"
    )
    command = [os.environ["SHAKEDOWN_BIN"], "check", "--json", "report.json"]
    assert subprocess.run(command, capture_output=True).returncode == 1
    theirs = json.loads((tmp_path / "report.json").read_text())["components"][0]
    monkeypatch.setattr(shakedown._context.here(), "folder", str(tmp_path))
    ours = contract.report(swallowing).json["components"][0]
    for report in (theirs, ours):
        for finding in report["findings"]:
            del finding["replay"], finding["case_file"]
    same = ["findings", "invariants", "classes", "cases", "calls"]
    assert [ours[key] for key in same] == [theirs[key] for key in same]


def test_isolated_findings_are_the_same(contract):
    ours = contract.report(swallowing).json["components"][0]
    isolated = contract.settings(isolate=True).report(swallowing).json["components"][0]
    keys = ["invariants", "cases", "calls"]
    assert [isolated[key] for key in keys] == [ours[key] for key in keys]


def test_an_isolated_crash_is_a_finding(contract):
    def crashes(rewards, groups):
        if len(rewards) > 2:
            os.kill(os.getpid(), 11)
        return right(rewards, groups, 1e-4)

    report = contract.settings(isolate=True).report(crashes)
    [finding] = report.findings
    assert finding.invariant == "does-not-crash" and "SIGSEGV" in finding.found
    assert len(finding.case["rewards"]) == 3


def test_settings_make_a_copy(contract):
    other = contract.settings(cases=8, seed=3)
    assert other != contract and "cases" not in repr(contract)
    assert other.report(right).cases < contract.report(right).cases
    assert copy.deepcopy(other) == other == pickle.loads(pickle.dumps(other))
    assert hash(other) == hash(copy.deepcopy(other))


def test_a_contract_is_shown_as_it_is_written():
    written = "shakedown.GroupAdvantage(scale='std', epsilon=0.0001).settings(seed=3)"
    assert repr(shakedown.contract("group-advantage", **RIGHT).settings(seed=3)) == written


def test_examples_come_first(contract):
    seen = []

    def notes(rewards, groups, epsilon):
        seen.append(list(rewards))
        return right(rewards, groups, epsilon)

    example = {"rewards": [0.25, 0.75, 0.5], "groups": [4, 4, 4]}
    contract.settings(examples=[example]).check(notes)
    assert seen[0] == example["rewards"]


def test_a_function_may_have_names_of_its_own(contract):
    def mine(scores, index, eps):
        return right(scores, index, eps)

    names = {"rewards": "scores", "groups": "index", "epsilon": "eps"}
    assert contract.settings(names=names).check(mine)


def test_skip_known_and_only(contract):
    wrong = [finding.invariant for finding in contract.report(swallowing).findings]
    assert contract.settings(skip=dict.fromkeys(wrong, "on purpose")).check(swallowing)
    assert contract.settings(known=dict.fromkeys(wrong, "on purpose")).check(swallowing)
    report = contract.settings(only=["zero-sum"]).check(swallowing)
    assert [one["id"] for one in report.invariants] == ["zero-sum"]


def test_what_gives_random_numbers_is_as_before(contract):
    def draws(rewards, groups, epsilon):
        random.random()
        return right(rewards, groups, epsilon)

    random.seed(7)
    before = random.getstate()
    contract.check(draws)
    assert random.getstate() == before


def test_several_places_are_checked_one_after_another(contract):
    report = contract.settings(places=["cpu/f32", "cpu/f64"]).check(right)
    assert report.places == ["cpu/f32", "cpu/f64"]


class Trainer:
    """What people have instead of a function."""

    def __init__(self, epsilon=1e-4):
        self.epsilon = epsilon

    def method(self, rewards, groups):
        return right(rewards, groups, self.epsilon)

    @classmethod
    def class_method(cls, rewards, groups):
        return right(rewards, groups, 1e-4)

    @staticmethod
    def static_method(rewards, groups):
        return right(rewards, groups, 1e-4)

    def __call__(self, rewards, groups):
        return right(rewards, groups, self.epsilon)


async def coroutine(rewards, groups, epsilon):
    await asyncio.sleep(0)
    return right(rewards, groups, epsilon)


FORMS = [
    Trainer().method,
    Trainer.class_method,
    Trainer.static_method,
    Trainer(),
    functools.partial(right, epsilon=1e-4),
    lambda rewards, groups, epsilon: right(rewards, groups, epsilon),
    coroutine,
]


@pytest.mark.parametrize("function", FORMS, ids=lambda function: type(function).__name__)
def test_whatever_can_be_called_is_a_component(contract, function):
    assert contract.settings(cases=32).check(function)


def test_a_coroutine_is_run_beside_a_loop_that_runs(contract):
    async def notebook():
        return contract.settings(cases=32).check(coroutine)

    assert asyncio.run(notebook())


# ---- Errors, word for word.


def test_unknown_names_are_errors_with_the_nearest_one(contract, tmp_path):
    def message(make):
        with pytest.raises(shakedown.UsageError) as caught:
            make()
        return str(caught.value)

    keys = ", ".join(f"`{name}`" for name in shakedown.GroupAdvantage.option_names())
    assert message(lambda: shakedown.GroupAdvantage(epsilom=1)) == (
        f"group-advantage: options: unknown key `epsilom`, expected one of {keys}"
        "; did you mean `epsilon`?"
    )
    assert message(lambda: shakedown.contract("group-advantages")) == (
        "unknown contract `group-advantages`; did you mean `group-advantage`?"
    )
    assert message(lambda: contract.settings(case=3)).endswith("did you mean `cases`?")
    assert message(lambda: contract.settings(epsilon=3)) == (
        "group-advantage: settings: `epsilon` is an option: shakedown.GroupAdvantage(epsilon=…)"
    )
    kinds = [
        ("places", "cpu/f32", "a list"),
        ("only", "oracle", "a list"),
        ("cases", "many", "int"),
        ("names", ["x"], "a dict"),
        ("timeout", "soon", "seconds above 0, or None"),
        ("stub", "flash_attn", "a list"),
    ]
    for name, value, kind in kinds:
        expected = f"group-advantage: settings: {name}: expected {kind}, found {value!r}"
        assert message(lambda: contract.settings(**{name: value})) == expected
    for name in ("flash-attn", "a.", "", 3):
        expected = f"stub: expected the name of a module, found {name!r}"
        assert message(lambda: shakedown.stub("right", name)) == expected
        said = message(lambda: contract.settings(stub=[name]))
        assert said == f"group-advantage: settings: {expected}"
    wrong = shakedown.GroupAdvantage(scale="sd").settings(arrays="list")
    assert message(lambda: wrong.check(right)).startswith(
        "group-advantage: options.scale: unknown value `sd`, expected one of `std`"
    )
    wrong = contract.settings(only=["oracles"])
    assert "did you mean `oracle`?" in message(lambda: wrong.check(right))
    silent = contract.settings(only=["zero-sum"])
    assert "no call gave an output" in message(lambda: silent.check(lambda rewards, groups: None))
    wrong = contract.settings(names={"reward": "x"})
    assert "did you mean `rewards`?" in message(lambda: wrong.check(right))
    wrong = contract.settings(names={"rewards": "reward"})
    assert "has no parameter `reward`" in message(lambda: wrong.check(right))
    wrong = contract.settings(places=["cpu/f31"])
    assert "f32" in message(lambda: wrong.check(right))
    wrong = contract.settings(examples=[{"rewards": [1.0], "group": [0]}])
    assert "examples[0]" in message(lambda: wrong.check(right))


PIECES = {0: "<pad>", 1: "<eos>", 2: "a"}


def decoded(tokens, vocabulary):
    return ["".join(vocabulary[token] for token in row if token > 1) for row in tokens]


@pytest.mark.parametrize("kind", ["int", "int64", "uint8", "mapping"])
def test_the_keys_of_an_option_may_be_integers(kind):
    vocabulary = types.MappingProxyType(PIECES)
    if kind != "mapping":
        make = int if kind == "int" else getattr(pytest.importorskip("numpy"), kind)
        vocabulary = {make(token): piece for token, piece in PIECES.items()}
    contract = shakedown.TokenDecoder(vocabulary=vocabulary, specials=(0, 1))
    contract = contract.settings(arrays="list", cases=8)
    assert contract.check(decoded).cases >= 8
    assert {token for case in contract.cases(8) for row in case["tokens"] for token in row} == {
        *PIECES
    }


def test_a_key_or_value_that_is_nothing_of_yaml_is_named():
    def message(**settings):
        vocabulary = settings.pop("vocabulary", PIECES)
        contract = shakedown.TokenDecoder(vocabulary=vocabulary, specials=(0, 1))
        with pytest.raises(shakedown.UsageError) as caught:
            contract.settings(arrays="list", **settings).check(decoded)
        return str(caught.value)

    keys = "token-decoder: options.vocabulary: expected a text or an integer as key, found "
    assert message(vocabulary={0.5: "a"}) == keys + "0.5"
    assert message(vocabulary={True: "a"}) == keys + "True"
    expected = "a number, a text, a list or a dict"
    assert message(vocabulary={0: {1}}) == (
        f"token-decoder: options.vocabulary.0: expected {expected}, found {{1}}"
    )
    assert message(examples=[{"tokens": {1}}]).startswith("token-decoder: examples[0].tokens: ")


def test_a_parameter_that_is_nothing_is_an_error(contract):
    with pytest.raises(shakedown.UsageError, match="requires `reward` .did you mean `rewards`"):
        contract.check(lambda reward, groups: [])


def test_a_component_with_alarms_of_its_own_is_warned_of(contract):
    def alarmed(rewards, groups, epsilon):
        signal.signal(signal.SIGALRM, lambda *_: None)
        return right(rewards, groups, epsilon)

    report = contract.check(alarmed)
    assert any("sets alarms of its own" in warning for warning in report.warnings)


def test_none_is_said_to_be_none(contract):
    report = contract.report(lambda rewards, groups: None)
    assert "returned None for `advantages`" in report.findings[0].found


def test_a_command_that_is_missing_or_another_is_an_error(contract, monkeypatch, tmp_path):
    monkeypatch.setenv("SHAKEDOWN_BIN", str(tmp_path / "nowhere"))
    with pytest.raises(shakedown.EngineError, match="SHAKEDOWN_BIN is .*nowhere, which is no file"):
        contract.check(right)
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\necho last words >&2\nkill -6 $$\n")
    other.chmod(0o755)
    monkeypatch.setenv("SHAKEDOWN_BIN", str(other))
    words = "the engine ended .SIGABRT. after 0 calls:\nlast words"
    with pytest.raises(shakedown.EngineError, match=words):
        contract.check(right)


def test_another_version_is_an_error(contract, monkeypatch):
    monkeypatch.setattr("shakedown._command.version", lambda: "0.0.1")
    with pytest.raises(shakedown.EngineError, match="the command is .*, the package 0.0.1"):
        contract.check(right)


# ---- Cases.


def test_cases_are_those_of_the_contract_as_arrays():
    contract = shakedown.GroupAdvantage(scale="none")
    plain = contract.settings(arrays="list").cases(8, seed=1)
    assert plain[0] == {"rewards": [0.0, 1.0], "groups": [0, 0]}
    assert plain == contract.settings(arrays="list").cases(8, seed=1) != plain[:-1]
    numpy = pytest.importorskip("numpy")
    arrays = contract.settings(arrays="numpy").cases(8, seed=1)
    assert arrays[0]["rewards"].dtype == numpy.float32 and arrays[0]["groups"].dtype == numpy.int64
    torch = pytest.importorskip("torch")
    tensors = contract.settings(arrays="torch").cases(8, seed=1, place="cpu/bf16")
    assert tensors[0]["rewards"].dtype == torch.bfloat16


@pytest.mark.parametrize("name", [c.id for c in shakedown._contracts.BY_ID.values()])
def test_every_contract_has_cases(name):
    pytest.importorskip("numpy")
    contract = shakedown.contract(name).settings(arrays="numpy")
    found = contract.cases(4)
    assert len(found) > 10 and all(set(case) <= set(contract.inputs) for case in found)


def test_hypothesis_finds_with_these_cases_and_shows_the_simplest():
    hypothesis = pytest.importorskip("hypothesis")
    contract = shakedown.GroupAdvantage(scale="none").settings(arrays="list")
    seen = []

    @hypothesis.settings(database=None, deadline=None, derandomize=True)
    @hypothesis.given(contract.strategy(64))
    def has_few(case):
        seen.append(len(case["rewards"]))
        assert len(case["rewards"]) < 4

    with pytest.raises(AssertionError):
        has_few()
    assert seen[-1] == 4


# ---- Classes.


def test_the_classes_are_what_the_command_says():
    import sys

    script = os.path.join(os.path.dirname(shakedown.__file__), "..", "generate.py")
    ran = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_type_checkers_name_the_nearest_option(tmp_path):
    import sys

    pytest.importorskip("mypy")
    uses = tmp_path / "uses.py"
    uses.write_text(
        "import shakedown\n"
        "right: shakedown.PolicyLoss = shakedown.PolicyLoss(clip_low=0.2)\n"
        "shakedown.PolicyLoss(clip_lo=0.2)\n"
        "shakedown.GroupAdvantage(scale='sd')\n"
    )
    folder = os.path.dirname(os.path.dirname(shakedown.__file__))
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", str(uses)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": folder},
    )
    lines = [line for line in ran.stdout.splitlines() if "uses.py" in line and "error" in line]
    assert len(lines) == 2, ran.stdout + ran.stderr
    words = 'uses.py:3: error: Unexpected keyword argument "clip_lo" for "PolicyLoss"; did you mean'
    assert words in lines[0] and '"clip_low"' in lines[0]
    assert 'uses.py:4: error: Argument "scale"' in lines[1]
