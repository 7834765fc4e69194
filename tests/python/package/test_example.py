"""The training repository in `targets/training`: right as it is, and wrong with a planted bug."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

pytest.importorskip("torch")

ROOT = pathlib.Path(__file__).resolve().parents[3]
TRAINING = ROOT / "targets" / "training"
RUNS = ROOT / "harness" / "python" / "shakedown" / "pages" / "runs.md"
# For each bug the tests that fail, and the name that shakedown has for it.
BUGS = {
    "epsilon-of-one": ({"test_group_advantages"}, "epsilon-swallows-the-signal"),
    "biased-deviation": ({"test_group_advantages"}, "biased-for-unbiased-deviation"),
    "eos-left-out": ({"test_completion_mask"}, "eos-left-out"),
    "mean-of-row-means": ({"test_policy_loss"}, "sequence-mean-called-token-mean"),
    "ratio-upside-down": (
        {"test_policy_loss", "test_training_improves_the_reward", "test_the_run_is_sound"},
        "ratio-inverted",
    ),
    "substring-is-right": ({"test_correctness"}, "substring-partial-credit"),
    "temperature-forgotten": ({"test_token_log_probs"}, "temperature-not-applied"),
}
SHOWN = "epsilon-of-one"  # in the README of the folder, as it is printed


def run(bug, *arguments, folder=TRAINING):
    """The tests of the repository, in a pytest of their own."""
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PLANTED_BUG": bug}
    environment.pop("SHAKEDOWN_PLACES", None)
    command = [sys.executable, "-m", "pytest", "-p", "shakedown.pytest_plugin"]
    command += ["--shakedown-cases", "8", *arguments]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return ran.returncode, ran.stdout + ran.stderr


def test_without_a_bug_all_tests_pass():
    code, output = run("", "targets/training", folder=ROOT)
    assert code == 0, output
    assert re.search(r"^12 checks, \d+ cases, 0 bugs", output, re.MULTILINE), output


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found_where_it_is_and_named(bug):
    tests, name = BUGS[bug]
    code, output = run(bug, "--shakedown-places", "cpu/f32")
    assert code == 1, output
    failed = set(re.findall(r"^FAILED \S+::(\w+)", output, re.MULTILINE))
    assert failed == tests, output
    assert f"`{name}`" in output
    if bug == SHOWN:
        text = (TRAINING / "README.md").read_text(encoding="utf-8")
        assert text.split("```text\n")[1].split("```")[0].strip() in output


def test_every_bug_of_the_switch_is_tried():
    code = "import planted; print(*planted.BUGS)"
    listed = subprocess.check_output([sys.executable, "-c", code], cwd=TRAINING, text=True)
    assert listed.split() == list(BUGS)


def test_the_page_shows_what_is_said_of_a_run_that_does_not_learn(tmp_path):
    log = tmp_path / "run.jsonl"
    environment = {**os.environ, "PLANTED_BUG": "ratio-upside-down"}
    command = [sys.executable, "train.py", str(log)]
    subprocess.run(command, cwd=TRAINING, env=environment, check=True, capture_output=True)
    page = RUNS.read_text(encoding="utf-8")
    shown = re.search(r"^\$ shakedown (check-run .*)\n((?:.|\n)*?)^```", page, re.MULTILINE)
    command = [os.environ.get("SHAKEDOWN_BIN", "shakedown"), *shlex.split(shown[1])]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 1, ran.stderr
    assert ran.stdout == shown[2]


def test_the_readme_shows_what_is_said_of_a_planted_bug():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = readme.split("```text\n")[1].split("```")[0].splitlines()
    command = [os.environ.get("SHAKEDOWN_BIN", "shakedown"), "check", "targets/planted.yaml"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 1, ran.stderr
    assert len(shown) > 3
    assert [line for line in shown if line.partition("…")[0] not in ran.stdout] == []
