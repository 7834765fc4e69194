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
import sys
import time
import typing

from safetensors.torch import save_file
from torch import Tensor

from .. import _command
from .._errors import Broken
from .._report import Json, Report, Said

log = logging.getLogger("shakedown")

MOST_LOGGED = 3
"""Different explanations that are logged of what contradicts one contract."""
WAITING = 64
"""Batches that wait for their check at the most."""
LONGEST_CHECK_S = 120
LONGEST_LINE = 400
NEEDS_COMPONENT = ("keep ", "replay ", "warning ")
"""How lines of a report begin that speak about calls."""
POLLED_S = 0.5
"""How long a check is not asked again whether it has ended."""
LOOP = """\
import json, subprocess, sys

for line in sys.stdin:
    file, limit, *words = json.loads(line)
    with open(file, "wb") as text:
        streams = {"stdin": subprocess.DEVNULL, "stdout": text, "stderr": text}
        try:
            code = subprocess.run(words, timeout=limit, **streams).returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            text.write(str(error).encode())
            code = 2
    print(code, flush=True)
"""
"""The side process: it runs one command after the other, and prints how each ended.

One process for each check would cost the training more, and so would looking for files that this
one writes: at low priority it may hold their folder for long.
"""


class Batch(typing.NamedTuple):
    """The inputs and outputs of one stage, under the names of its contract."""

    contract: str
    step: int
    place: str
    """Device and dtype: the dtype decides the tolerance."""
    tensors: dict[str, Tensor]
    options: dict[str, typing.Any]
    note: str = ""
    """What else is known, should the batch contradict its contract."""


class Contradiction(typing.NamedTuple):
    """A batch that contradicts its contract."""

    contract: str
    step: int
    file: str
    """Holds the batch."""
    report: Report
    diagnosis: Json | None
    """The simplest explanation of the cut batch or of the whole."""
    text: str
    """For people: the report, and the command that checks the batch again."""


@dataclasses.dataclass
class Check:
    """A batch that is written down, and the process that checks it."""

    contract: str
    step: int
    place: str
    file: str
    note: str
    cut: Report | None = None
    """What is wrong with the cut batch: the whole one may explain it better."""

    def words(self, file: str) -> list[str]:
        """The command that checks this batch at that path."""
        words = ["check-batch", file, "--contract", self.contract, "--place", self.place]
        # Rows that depend on each other are not cut apart.
        return words if self.cut is None else [*words, "--option", "rows=batch"]

    def remove(self) -> None:
        for ending in ("", ".txt", ".json"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.file + ending)


class Side:
    """The side process, at low priority."""

    def __init__(self, folder: str) -> None:
        nice = shutil.which("nice")
        lowest = [nice, "-n", "19"] if nice else []
        pipe = subprocess.PIPE
        words = [*lowest, sys.executable, "-c", LOOP]
        self._process = subprocess.Popen(
            words, cwd=folder, stdin=pipe, stdout=pipe, start_new_session=True
        )
        assert self._process.stdin and self._process.stdout
        self._to, self._from = self._process.stdin, self._process.stdout
        os.set_blocking(self._from.fileno(), False)

    def run(self, text: str, words: list[str]) -> None:
        """Runs a command that prints into this file."""
        with contextlib.suppress(BrokenPipeError):  # it has died: `ended` says so
            self._to.write(json.dumps([text, LONGEST_CHECK_S, *words]).encode() + b"\n")
            self._to.flush()

    def ended(self) -> int | None:
        """How the command ended, if it has; 2 where the side process died."""
        said = self._from.read(16)
        return None if said is None else int(said or 2)

    def close(self) -> None:
        """Waits for the command that still runs."""
        self._process.communicate()


class Checks:
    """Checks batches one by one with `shakedown check-batch`, at low priority.

    `add` and `poll` do not wait; `finish` does. With `stop`, `poll` and `finish` raise Broken for
    the first contradiction.
    """

    def __init__(self, folder: str, stop: bool) -> None:
        self._folder, self._stop = os.path.abspath(folder), stop
        self._command = _command.find()
        self._side: Side | None = None
        self._waiting: collections.deque[Check] = collections.deque()
        self._running: Check | None = None
        self._added = 0
        self._next_poll = 0.0
        self.checked: collections.Counter[str] = collections.Counter()
        """How many batches were checked, by contract."""
        self.wrong: collections.Counter[str] = collections.Counter()
        """How many of them contradict it."""
        self.refused: collections.Counter[str] = collections.Counter()
        """Batches that could not be checked, by contract."""
        self.dropped = 0
        """Batches that were not checked, as too many waited."""
        self.contradictions: list[Contradiction] = []
        """One for each explanation: the first."""

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
        self._waiting.append(Check(batch.contract, batch.step, batch.place, file, batch.note))

    def poll(self) -> None:
        """Judges a check that has ended, and starts the next; seldom, as it is called often."""
        now = time.monotonic()
        if now >= self._next_poll:
            self._next_poll = now + POLLED_S
            self._poll()

    def _poll(self) -> None:
        if self._running is not None and self._side is not None:
            code = self._side.ended()
            if code is None:
                return
            check, self._running = self._running, None
            self._judge(check, code)
        if self._running is None and self._waiting:
            self._start(self._waiting.popleft())

    def finish(self) -> None:
        """Waits for the checks that are left."""
        try:
            self._poll()
            while self._running is not None:
                time.sleep(0.01)
                self._poll()
        finally:
            if self._side is not None:
                self._side.close()
                self._side = None

    def _start(self, check: Check) -> None:
        self._side = self._side or Side(self._folder)
        self._running = check
        name = os.path.basename(check.file)
        words = [self._command, *check.words(name), "--json", f"{name}.json"]
        self._side.run(f"{name}.txt", words)

    def _judge(self, check: Check, code: int) -> None:
        text = "the side process has ended"
        with (
            contextlib.suppress(FileNotFoundError),
            open(f"{check.file}.txt", encoding="utf-8") as said,
        ):
            text = said.read()
        report = Report.read(f"{check.file}.json", text) if code == 1 else None
        if check.cut is not None:
            self._keep(check, check.cut, report)
        elif report is not None:
            check.cut = report
            self._start(check)
        elif code == 0:
            self.checked[check.contract] += 1
            check.remove()
        else:
            self._refuse(check, text.strip())

    def _refuse(self, check: Check, reason: str) -> None:
        """Logs the first batch that could not be checked, and counts the others."""
        self.refused[check.contract] += 1
        if self.refused[check.contract] == 1:
            log.warning("not checked: %s at step %d: %s", check.contract, check.step, reason)
        check.remove()

    def _keep(self, check: Check, cut: Report, whole: Report | None) -> None:
        """Logs the first contradiction of each explanation, and counts the others."""
        self.checked[check.contract] += 1
        self.wrong[check.contract] += 1
        reports = [cut] if whole is None else [cut, whole]  # a report of failures is false
        found = [it for one in reports for finding in one.findings for it in finding.diagnosis]
        simplest = min(found, key=lambda it: len(it["told"]), default=None)
        known = [it.diagnosis for it in self.contradictions if it.contract == check.contract]
        is_known = simplest is None or simplest["told"] in [it["told"] for it in known if it]
        if known and is_known or len(known) == MOST_LOGGED:
            check.remove()
            return
        check.cut = None
        text = "\n".join(self._lines(check, cut, simplest))
        wrong = Contradiction(check.contract, check.step, check.file, cut, simplest, text)
        self.contradictions.append(wrong)
        if self._stop:
            raise Broken(Said(text, "", cut.json))
        log.warning(text)

    def _lines(self, check: Check, cut: Report, simplest: Json | None) -> typing.Iterator[str]:
        """What is said of a contradiction, without what needs a component to call."""
        yield f"step {check.step}"
        *lines, _ = cut.text.rstrip().splitlines()
        for line in lines:
            if not line.lstrip().startswith(NEEDS_COMPONENT):
                yield line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} …"
        if simplest and simplest["told"] not in cut.text:
            name = f" [{simplest['fault']}]" if simplest["fault"] else ""
            yield f"    as a whole as if {simplest['told']}: {simplest['summary']}{name}"
        if check.note:
            yield f"    note       {check.note}"
        for finding in cut.findings[:1]:
            yield f"    kept       {self._folder}/{finding.case_file}"
        yield f"    again      shakedown {' '.join(check.words(check.file))}"
