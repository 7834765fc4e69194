"""Batches of a live run, written down and checked in a side process."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import json
import logging
import os
import shutil
import subprocess
import typing

from safetensors.torch import save_file
from torch import Tensor

from .. import _command
from .._errors import Broken
from .._report import Report

log = logging.getLogger("shakedown")

WAITING = 64
"""Batches that wait for their check at the most."""
LONGEST_CHECK_S = 120.0


class Batch(typing.NamedTuple):
    """The inputs and outputs of one stage, under the names of its contract."""

    contract: str
    step: int
    tensors: dict[str, Tensor]
    options: dict[str, object]
    place: str
    """Device and dtype, which decide the tolerance."""


class Contradiction(typing.NamedTuple):
    """A batch that contradicts its contract."""

    batch: str
    """The file of the batch."""
    contract: str
    step: int
    report: Report
    command: str
    """Checks the batch again."""


@dataclasses.dataclass
class Check:
    """A batch that is written down, and the process that checks it."""

    contract: str
    step: int
    place: str
    file: str
    process: subprocess.Popen[bytes] | None = None
    unnamed: Report | None = None
    """What contradicts in the cut batch, where it has no name: the whole batch may have one."""


class Checks:
    """Checks batches one by one with `shakedown check-batch`, at low priority.

    `add` and `poll` do not wait; `finish` does. With `stop`, `poll` and `finish` raise Broken
    for the first contradiction.
    """

    def __init__(self, folder: str, stop: bool) -> None:
        self._folder, self._stop = folder, stop
        self._command = [*_lowest_priority(), _command.find(), "check-batch"]
        self._waiting: collections.deque[Check] = collections.deque()
        self._running: Check | None = None
        self._added = 0
        self.checked: collections.Counter[str] = collections.Counter()
        """How many batches were checked, by contract."""
        self.wrong: collections.Counter[str] = collections.Counter()
        """How many of them contradict it."""
        self.dropped = 0
        """Batches that were not checked, as too many waited."""
        self.contradictions: list[Contradiction] = []
        """One for each bug: the first."""

    def add(self, batch: Batch) -> None:
        """Writes a batch down; `poll` starts its check when those before it have ended."""
        if len(self._waiting) == WAITING:
            self.dropped += 1
            return
        self._added += 1
        os.makedirs(self._folder, exist_ok=True)
        name = f"step-{batch.step}-{batch.contract}-{self._added}.safetensors"
        file = os.path.join(self._folder, name)
        tensors = {n: it.detach().cpu().contiguous().clone() for n, it in batch.tensors.items()}
        save_file(tensors, file, metadata={"options": json.dumps(batch.options)})
        self._waiting.append(Check(batch.contract, batch.step, batch.place, file))

    def poll(self) -> None:
        """Judges a check that has ended, and starts the next."""
        running = self._running
        if running is not None:
            assert running.process is not None
            if running.process.poll() is None:
                return
            self._running = None
            self._judge(running, running.process.returncode)
        if self._running is None and self._waiting:
            self._start(self._waiting.popleft())

    def finish(self) -> None:
        """Waits for the checks that are left."""
        self.poll()
        while self._running is not None:
            process = self._running.process
            assert process is not None
            try:
                process.wait(LONGEST_CHECK_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self.poll()

    def _start(self, check: Check) -> None:
        words = [*self._command, *_arguments(check, os.path.basename(check.file))]
        words += ["--json", os.path.basename(check.file) + ".json"]
        with open(check.file + ".txt", "wb") as text:
            check.process = subprocess.Popen(
                words, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=text, stderr=text
            )
        self._running = check

    def _judge(self, check: Check, code: int) -> None:
        with open(check.file + ".txt", encoding="utf-8") as said:
            text = said.read()
        report = Report.read(check.file + ".json", text) if code == 1 else None
        is_named = report is not None and any(it.diagnosis for it in report.findings)
        if report is not None and not is_named and check.unnamed is None:
            check.unnamed = report
            self._start(check)
            return
        if report is None and check.unnamed is None and code != 0:
            where = f"{check.contract} at step {check.step}"
            log.warning("not checked: %s: %s", where, text.strip() or f"it took {LONGEST_CHECK_S} s")
            return
        self.checked[check.contract] += 1
        found = report if is_named else check.unnamed
        if found is not None:
            if not is_named:
                check.unnamed = None  # the command that shows it cuts the batch
            self._keep(check, found)
        else:
            _remove(check)

    def _keep(self, check: Check, report: Report) -> None:
        """Tells the first contradiction of each bug, and counts the others."""
        self.wrong[check.contract] += 1
        if any(_bug(it.report) == _bug(report) for it in self.contradictions):
            _remove(check)
            return
        command = " ".join(["shakedown check-batch", *_arguments(check, check.file)])
        found = Contradiction(check.file, check.contract, check.step, report, command)
        self.contradictions.append(found)
        if self._stop:
            raise Broken(report)
        log.warning("step %d\n%s    again      %s", check.step, report.text, command)


def _arguments(check: Check, file: str) -> list[str]:
    words = [file, "--contract", check.contract, "--place", check.place]
    # Rows that depend on each other are not cut apart.
    return words if check.unnamed is None else [*words, "--option", "rows=batch"]


def _bug(report: Report) -> tuple[object, ...]:
    """What two contradictions by one bug have in common."""
    first = report.findings[0]
    named = [it["told"] for it in first.diagnosis]
    return report.contract, *(named or [first.invariant])


def _remove(check: Check) -> None:
    for ending in ("", ".txt", ".json"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(check.file + ending)


def _lowest_priority() -> list[str]:
    nice = shutil.which("nice")
    return [nice, "-n", "19"] if nice else []
