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
