"""Sessions of pytest that somebody ends: nothing of the engine stays behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

SLOW = """
import os, pathlib, time
import shakedown

@shakedown.contract("group-advantage").settings(arrays="list", timeout=60)
def test_slow(rewards, groups):
    pathlib.Path("began").write_text(str(os.getpid()))
    time.sleep(0.2)
    return rewards
"""


def wait_until(what, holds):
    limit = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < limit, f"waited 60 s until {what}"
        time.sleep(0.05)


def engines(parent):
    """The engines that a session has started, by number."""
    listed = subprocess.check_output(["ps", "-A", "-o", "pid=,ppid=,args="], text=True)
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [int(pid) for pid, above, args in rows if above == str(parent) and " drive" in args]


def is_running(pid):
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    state = shown.stdout.strip()
    return bool(state) and not state.startswith("Z")


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_engine_outlives_the_session(tmp_path, ended_by):
    (tmp_path / "test_slow.py").write_text(SLOW)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "shakedown.pytest_plugin", "-q"]
    with open(tmp_path / "output", "w") as output:
        # What was begun in the background of a shell is deaf to Ctrl-C, and its children are.
        session = subprocess.Popen(
            command,
            cwd=tmp_path,
            stdout=output,
            stderr=output,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        wait_until("the component is called", (tmp_path / "began").exists)
        started = engines(session.pid)
        assert started
        session.send_signal(ended_by)
        code = session.wait(60)
    assert code == 2 if ended_by == signal.SIGINT else code == -ended_by
    if ended_by == signal.SIGINT:
        assert "KeyboardInterrupt" in (tmp_path / "output").read_text()
    wait_until("the engine ends", lambda: not any(map(is_running, started)))


WITHOUT = "nothing was judged; --shakedown-allow-skipped lets that pass"
ELSEWHERE = """
    @shakedown.contract("group-advantage").settings(places=["cuda/f32"])
    def test_advantages(rewards, groups):
        return trainer.advantages(rewards, groups)
"""


def test_an_exit_in_a_component_is_a_finding(repository):
    tests = """
        import os

        @shakedown.contract("group-advantage")
        def test_leaves(rewards, groups):
            os._exit(0)

        def test_child():
            child = os.fork()
            if child == 0:
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    """
    result = repository(tests).runpytest_subprocess()
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*exit status 0*"])
    assert result.ret == 1


def test_a_component_does_not_end_the_session_as_if_it_had_passed(repository):
    tests = """
        @shakedown.contract("group-advantage")
        def test_ends(rewards, groups):
            pytest.exit("enough", returncode=0)
    """
    result = repository(tests).runpytest_subprocess()
    result.stdout.fnmatch_lines(["ERROR: checks that did not end: test_trainer.py::test_ends"])
    assert result.ret == 1


def test_a_component_cannot_take_away_what_is_raised(repository):
    tests = """
        import shakedown._report

        @shakedown.contract("group-advantage")
        def test_silent(rewards, groups):
            shakedown._report.Report.verify = lambda self: None
            return rewards
    """
    result = repository(tests).runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*✗*"])
    assert result.ret == 1


def test_a_test_that_is_to_fail_may(repository):
    tests = """
        @pytest.mark.xfail(strict=True)
        @shakedown.contract("group-advantage")
        def test_wrong(rewards, groups):
            return rewards
    """
    result = repository(tests).runpytest()
    result.assert_outcomes(xfailed=1)
    assert result.ret == 0


@pytest.mark.parametrize("workers", [[], ["-n1"]], ids=["here", "xdist"])
def test_a_session_whose_checks_are_all_skipped_does_not_pass(repository, workers):
    if workers:
        pytest.importorskip("xdist")
    session = repository(f"{ELSEWHERE}\n    def test_other():\n        pass\n")
    result = session.runpytest_subprocess("-rs", *workers)
    result.assert_outcomes(skipped=1, passed=1)
    result.stdout.fnmatch_lines([f"ERROR: {WITHOUT}"])
    result.stdout.fnmatch_lines(["SKIPPED*cuda*"])
    assert result.ret == 1
    assert session.runpytest_subprocess("--shakedown-allow-skipped", *workers).ret == 0
    session.makeini("[pytest]\nshakedown_allow_skipped = true\n")
    assert session.runpytest_subprocess(*workers).ret == 0


def test_a_component_that_skips_every_call_is_not_judged(repository):
    tests = """
        @shakedown.contract("group-advantage")
        def test_skips(rewards, groups):
            pytest.skip("later")
    """
    result = repository(tests).runpytest()
    result.stdout.fnmatch_lines([f"ERROR: {WITHOUT}"])
    assert result.ret == 1


def test_one_invariant_of_a_component_that_always_raises_is_an_error(repository):
    tests = """
        contract = shakedown.PolicyUpdate(beta=0.1)

        @contract.settings(only=["closer-with-beta"], cases=8, arrays="list")
        def test_raises(logits, rewards):
            raise RuntimeError("always")
    """
    result = repository(tests).runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*nothing was checked*closer-with-beta*RuntimeError: always*"])
