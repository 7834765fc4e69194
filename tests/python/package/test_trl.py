"""Functions of an installed TRL, tested as in its own test folder: a base class, workers."""

import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("trl")
pytest.importorskip("xdist")

# As TRL's `tests/testing_utils.py` and `tests/conftest.py` have it.
TESTING_UTILS = """
    import pytest
    import torch


    class TrlTestCase:
        @pytest.fixture(autouse=True)
        def set_tmp_dir(self, tmp_path):
            self.tmp_dir = str(tmp_path)
"""
CONFTEST = """
    import gc

    import pytest


    @pytest.fixture(autouse=True)
    def cleanup_gpu():
        yield
        gc.collect()
"""
TESTS = r"""
    import os

    import pytest
    import shakedown
    from testing_utils import TrlTestCase
    from trl.rewards import accuracy_reward, think_format_reward
    from trl.trainer.utils import entropy_from_logits, selective_log_softmax

    CHAT = {"signature": "trl-chat", "cases": 24}
    BOXED = "{reasoning} \\boxed{{answer}}"


    class TestSelectiveLogSoftmax(TrlTestCase):
        @pytest.mark.parametrize("temperature", [1.0, 0.7])
        @shakedown.TokenLogProbs().settings(places=["cpu/f32", "cpu/f64"])
        def test_contract(self, logits, tokens, temperature):
            assert os.path.isdir(self.tmp_dir)
            return selective_log_softmax(logits, tokens, temperature)


    class TestEntropyFromLogits(TrlTestCase):
        @pytest.mark.parametrize("chunk_size", [1, 128])
        @shakedown.TokenEntropy(neg_inf="nan")
        def test_contract(self, chunk_size, logits):
            return entropy_from_logits(logits, chunk_size)


    class TestRewards(TrlTestCase):
        def test_think_format_reward(self):
            form = "<think>{reasoning}</think>{answer}"
            shakedown.RewardFunction(judges="format", template=form).settings(**CHAT).check(
                think_format_reward
            )

        def test_accuracy_reward(self):
            boxed = shakedown.RewardFunction(template=BOXED, unscored="allow")
            boxed.settings(**CHAT).check(accuracy_reward)
"""


def run(folder, *arguments):
    """The outcome of pytest in a folder like TRL's `tests`."""
    files = {"testing_utils.py": TESTING_UTILS, "conftest.py": CONFTEST, "test_contracts.py": TESTS}
    for name, text in files.items():
        (folder / name).write_text(textwrap.dedent(text).lstrip())
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("SHAKEDOWN_PLACES", None)
    command = [sys.executable, "-m", "pytest", "-p", "shakedown.pytest_plugin", "-p", "xdist"]
    command += ["--strict-markers", "--durations=5", *arguments]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return ran.stdout + ran.stderr


@pytest.mark.night
def test_they_hold_under_its_base_class_and_two_workers(tmp_path):
    output = run(tmp_path, "-n", "2")
    assert "8 passed" in output, output
    assert "8 checks" in output and "0 bugs" in output, output


def test_the_division_of_halves_by_a_temperature_is_found(tmp_path):
    chosen = "TestSelectiveLogSoftmax and 0.7"
    output = run(tmp_path, "--shakedown-places", "cpu/bf16", "-k", chosen)
    assert "1 failed" in output and "`log-softmax-in-half-precision`" in output, output
