"""One check: starts the engine, and answers its calls in this process, in this thread."""

from __future__ import annotations

import contextlib
import faulthandler
import functools
import importlib.util
import json
import math
import operator
import os
import random
import select
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import typing
import unittest
import warnings
from collections import abc

from . import _command, _context, _report, _serve, _stub
from ._errors import EngineError, UsageError
from ._settings import SETTINGS, Settings

if typing.TYPE_CHECKING:
    import types

    from ._contract import Function

# That of `signal` makes an enumeration of what it gives, which takes longer than all else here.
getsignal = getattr(signal, "_signal", signal).getsignal

STATE = ".shakedown"
LAST_WORDS = 2000  # bytes of the engine's standard error
FIRST = 6  # times its limit that the first call may take: it may import and compile
LONGEST_IMPORT = 120  # seconds after which it is shown where an import hangs


def check(
    contract: str, options: dict[str, object], own_settings: Settings, function: Function
) -> _report.Report:
    """Checks a function and gives the report."""
    here = _context.here()
    settings: Settings = {**SETTINGS, **here.defaults, **own_settings, **here.overrides}
    arrays = settings["arrays"] or first_library()
    places = os.environ.get("SHAKEDOWN_PLACES", "").split(",")
    places = [place for place in places if place] or settings["places"] or ["cpu/f32"]
    target, location = where(function)
    name = settings["name"] or here.name or target.rpartition(":")[2]
    component: dict[str, object] = {
        "name": name,
        "contract": contract,
        "target": target,
        "signature": settings["signature"],
        "places": list(places),
        "tolerance": settings["tolerance"],
        "options": options,
        "skip": settings["skip"],
        "known": settings["known"],
    }
    if settings["answer_columns"]:
        component["answer_columns"] = list(settings["answer_columns"])
    if settings["columns"]:
        component["columns"] = settings["columns"]
    if settings["names"]:
        component["args"] = settings["names"]
    if settings["batch"]:
        component["batch"] = settings["batch"]
    folder = os.path.relpath(here.folder or os.getcwd())
    manifest: dict[str, object] = {
        "version": 1,
        "python": {"arrays": arrays},
        "corpora": os.path.normpath(os.path.join(folder, here.corpora)),
        "components": [component],
    }
    job: dict[str, object] = {
        "manifest": yaml_of(manifest, contract),
        "cases": settings["cases"],
        "seed": settings["seed"],
        "only": list(settings["only"]),
        "state": state_in(folder),
        "replay": here.replay(),
        "location": location,
    }
    if settings["time"] is not None and settings["time"] != math.inf:
        job["time_ms"] = round(1000 * settings["time"])
    if here.fuzz:
        job["fuzz_ms"] = round(1000 * here.fuzz)
    if settings["examples"]:
        job["examples"] = yaml(settings["examples"], f"{contract}: examples")
    if here.case:
        job["case"] = os.path.abspath(here.case)
    with Engine() as engine, as_alone(settings["seed"], arrays), _stub.installed(settings["stub"]):
        host = Isolated if settings["isolate"] else Host
        with host(function, settings["timeout"]) as served:
            try:
                report = _report.parsed(engine.run(job, served), served.finals)
            except UsageError as error:
                why = str(error).replace("args: ", "names: ", 1)  # as manifests call them
                raise UsageError(f"{contract}: {why}") from None
    report.add_warnings(served.warnings)
    here.tell(report)
    return report


def first_library() -> str:
    """The first library of arrays that can be imported."""
    for name in ("torch", "numpy"):
        if name in sys.modules or importlib.util.find_spec(name):
            return name
    return "list"


def where(function: typing.Any) -> tuple[str, list[object] | None]:
    """A function as the target of a manifest, and the file and line of it."""
    source = _serve.source_of(function)
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    name = getattr(inner, "__qualname__", None) or type(inner).__qualname__
    name = name.replace("<locals>.", "")
    file = os.path.relpath(source["file"]) if source else getattr(inner, "__module__", "unknown")
    location = [source["file"], int(source["line"])] if source else None
    return f"python:{file}:{name}", location


def state_in(folder: str) -> str:
    """The folder of findings and journals, which git does not see."""
    state = os.path.normpath(os.path.join(folder, STATE))
    ignore = os.path.join(state, ".gitignore")
    if not os.path.exists(ignore):
        os.makedirs(state, exist_ok=True)
        with open(ignore, "w", encoding="utf-8") as file:
            file.write("*\n")
    return state


def yaml_of(manifest: dict[str, object], contract: str) -> str:
    """A manifest of one component as YAML."""
    try:
        return yaml(manifest, "")
    except UsageError as error:
        why = str(error).replace("components[0].", "")
        raise UsageError(f"{contract}: {why}") from None


def yaml(value: typing.Any, where: str) -> str:
    """A value as YAML: JSON, with the numbers that JSON lacks and with integers as keys."""
    if isinstance(value, abc.Mapping):
        keys = [yaml_key(key, where) for key in value]
        inside = f"{where}." if where else ""
        items = [yaml(item, f"{inside}{key}") for key, item in value.items()]
        return "{" + ", ".join(map("{}: {}".format, keys, items)) + "}"
    if isinstance(value, abc.Sequence) and not isinstance(value, (str, bytes)):
        items = [yaml(item, f"{where}[{index}]") for index, item in enumerate(value)]
        return "[" + ", ".join(items) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if hasattr(value, "tolist"):
        return yaml(value.tolist(), where)
    try:
        return json.dumps(value)
    except TypeError:
        kinds = "a number, a text, a list or a dict"
        raise UsageError(f"{where}: expected {kinds}, found {value!r}") from None


def yaml_key(key: typing.Any, where: str) -> str:
    """A key as YAML: a text, or an integer of Python, numpy or torch."""
    if isinstance(key, str):
        return json.dumps(key)
    try:
        if not isinstance(key, bool):
            return str(operator.index(key))
    except TypeError:
        pass
    raise UsageError(f"{where}: expected a text or an integer as key, found {key!r}")


class Engine:
    """The command, which asks on its standard output and hears on its standard input."""

    def __enter__(self) -> Engine:
        self.path = _command.find()
        self.stderr = tempfile.TemporaryFile()
        pipes: dict[str, typing.Any]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.stderr}
        try:
            process: typing.Any = subprocess.Popen([self.path, "drive"], **pipes)
        except OSError as error:
            raise EngineError(f"cannot start {self.path}: {error}") from None
        self.process: subprocess.Popen[bytes] = process
        self.stdin: typing.IO[bytes] = process.stdin
        self.stdout: typing.IO[bytes] = process.stdout
        self.calls = 0
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.stdin.close()
        self.stdout.close()
        self.stderr.close()

    def run(self, job: dict[str, object], served: Host) -> _serve.Meta:
        """Does a job: the texts of the engine's last message."""
        wire = _serve.Wire(os.dup(self.stdout.fileno()), self.stdin.fileno())
        with contextlib.closing(wire.source):
            try:
                first = {"kind": "job", "shakedown": _serve.VERSION, "job": json.dumps(job)}
                first["version"] = _command.version() or ""
                _serve.write_all(wire.sink, _serve.message(first))
                return self.answer(wire, served)
            except (BrokenPipeError, _serve.Refused) as error:
                raise self.died(error) from None

    def answer(self, wire: _serve.Wire, served: Host) -> _serve.Meta:
        while True:
            request = wire.receive()
            if request is None:
                raise self.died()
            kind = request[0].kind
            if kind == "report":
                return request[0].meta
            if kind == "refused":
                kinds = {"bad-job": UsageError, "other-version": EngineError}
                raise kinds[request[0].meta["problem"]](request[0].meta["message"])
            if kind == "load":
                wire.requests = 1  # it is counted anew
                reply = served.load(request[0])
            else:
                self.calls += 1
                reply = served.call(*request)
            wire.send(*reply)

    def died(self, error: Exception | None = None) -> EngineError:
        """What is known of the end of the engine."""
        if isinstance(error, _serve.Refused):
            why = f"said what is no message: {error.reply['message']}"
        else:
            code = self.process.wait()
            why = "ended" if code == 0 else f"ended ({_serve.death(code)})"
        self.stderr.seek(0, os.SEEK_END)
        self.stderr.seek(max(0, self.stderr.tell() - LAST_WORDS))
        words = self.stderr.read().decode("utf-8", "replace").strip()
        words = f":\n{words}" if words else ""
        return EngineError(f"the engine {why} after {self.calls} calls{words}")


class Final:
    """The last call on the smallest case of a finding."""

    def __init__(
        self,
        component: _serve.Component,
        invariant: str,
        request: tuple[_serve.Header, bytes],
        error: BaseException | None,
    ) -> None:
        self.component, self.invariant = component, invariant
        self.request, self.error = request, error

    def inputs(self) -> dict[str, object]:
        """What the function got, made anew."""
        return self.component.given(*self.request)[0]

    def again(self) -> object:
        """Calls the function."""
        options = self.request[0].options()
        return self.component.run({**options, **self.inputs()})


class Host:
    """Serves a function in this process."""

    def __init__(self, function: Function, timeout: float | None) -> None:
        self.function, self.timeout = function, timeout
        self.finals: list[Final] = []
        self.warnings: list[str] = []
        self.component: _serve.Component
        self.is_called = False

    def __enter__(self) -> Host:
        self.alarm = Alarm()
        self.alarm.__enter__()
        os._exit = functools.partial(leave, os.getpid())
        if self.timeout is not None and not self.alarm.is_possible:
            what = "calls have no time limit: it needs the main thread, and a POSIX system"
            self.warnings.append(what)
        return self

    def __exit__(self, *_: object) -> None:
        os._exit = LEAVE
        self.alarm.__exit__()
        if self.alarm.was_taken:
            what = (
                "the component sets alarms of its own: a call that does has no time limit of ours"
            )
            self.warnings.append(what)

    def load(self, header: _serve.Header) -> _serve.Reply:
        """The reply to `load`."""
        try:
            self.component = _serve.Component(header, self.function)
            self.component.passed_on = passed_on()
            return (self.component.loaded(),)
        except _serve.Refused as refused:
            return (refused.reply,)

    def call(self, header: _serve.Header, data: bytes) -> _serve.Reply:
        """The reply to `call`."""
        reply, component = self.answer(header, data), self.component
        notes = json.loads(reply[0].pop("notes", "[]"))
        self.warnings += [note for note in notes if note not in self.warnings]
        if "final" in header.meta:
            invariant = header.meta["final"]
            self.finals.append(Final(component, invariant, (header, data), component.error))
        return reply

    def answer(self, header: _serve.Header, data: bytes) -> _serve.Reply:
        own, limit = os.getpid(), self.limit()
        try:
            with self.alarm.armed(limit):
                reply = self.component.call(header, data)
            if os.getpid() != own:  # the component forked, and both halves came back
                LEAVE(0)
            return reply
        except TimeUp:
            return (timed_out(limit),)
        except Foreign as foreign:
            raise foreign.error.with_traceback(foreign.__traceback__) from None

    def limit(self) -> float | None:
        """Seconds for the next call; None: no limit."""
        if self.timeout is None or is_debugged():
            return None
        is_first, self.is_called = not self.is_called, True
        return FIRST * self.timeout if is_first else self.timeout


LEAVE = os._exit


def leave(own: int, code: int) -> typing.NoReturn:
    """`os._exit` for a component, which would end the tests with it; not what it has forked."""
    if os.getpid() == own:
        raise SystemExit(code)
    LEAVE(code)


def timed_out(seconds: float | None) -> _serve.Meta:
    assert seconds is not None  # what has no limit ends by itself
    return {"kind": "timed-out", "limit_ms": str(round(1000 * seconds))}


def passed_on() -> tuple[type[BaseException], ...]:
    """The exceptions that are not the component's."""
    return (KeyboardInterrupt, unittest.SkipTest, TimeUp, Foreign, *_context.here().passes_on)


class TimeUp(BaseException):
    """A call takes too long."""


class Foreign(BaseException):
    """What the alarm of somebody else raises in a call."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class Alarm:
    """A time limit by SIGALRM, which leaves that of others as it was.

    It interrupts loops, sleeps and regular expressions, also under `except Exception`; but no
    import, as what is imported by half breaks those who import it later.
    """

    def __init__(self) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        self.is_possible = is_main and hasattr(signal, "setitimer")
        self.is_armed = self.was_taken = False

    def __enter__(self) -> Alarm:
        if not self.is_possible:
            return self
        self.theirs: typing.Any = signal.getsignal(signal.SIGALRM)
        left, self.interval = signal.setitimer(signal.ITIMER_REAL, 0)
        self.theirs_at = time.monotonic() + left if left else math.inf
        signal.signal(signal.SIGALRM, self.rings)
        self.rest()
        return self

    def __exit__(self, *_: object) -> None:
        if not self.is_possible:
            return
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.theirs)
        if self.theirs_at < math.inf:
            left = max(self.theirs_at - time.monotonic(), 1e-6)
            signal.setitimer(signal.ITIMER_REAL, left, self.interval)

    @contextlib.contextmanager
    def armed(self, seconds: float | None) -> typing.Iterator[None]:
        """Raises TimeUp in what it surrounds, once it took so many seconds beside its imports."""
        if not self.is_possible or seconds is None:
            yield
            return
        self.is_armed, self.seconds = True, seconds
        self.began = self.imported = time.monotonic()
        if getsignal(signal.SIGALRM) != self.rings:  # the component has set its own
            self.was_taken = True
            signal.signal(signal.SIGALRM, self.rings)
        left = min(seconds, max(self.theirs_at - time.monotonic(), 1e-6))
        # Again and again, as the first one may fall into a bare `except`.
        signal.setitimer(signal.ITIMER_REAL, left, 0.2)
        try:
            yield
        finally:
            self.is_armed = False
            self.rest()

    def rest(self) -> None:
        """Between two calls only the limit of others applies."""
        left = self.theirs_at - time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, max(left, 1e-6) if left < math.inf else 0)

    def rings(self, number: int, frame: types.FrameType | None) -> None:
        if time.monotonic() >= self.theirs_at:
            self.theirs_at = math.inf
            if callable(self.theirs):
                self.call_theirs(number, frame)
        elif not self.is_armed or is_debugged():
            return
        elif imports(frame):
            self.imported = time.monotonic()
            if self.imported - self.began > LONGEST_IMPORT:
                self.began = math.inf  # once
                faulthandler.dump_traceback(all_threads=False)
        elif time.monotonic() - self.imported >= self.seconds:
            raise TimeUp

    def call_theirs(self, number: int, frame: types.FrameType | None) -> None:
        try:
            self.theirs(number, frame)
        except BaseException as error:
            if not self.is_armed:
                raise
            raise Foreign(error) from None


def imports(frame: types.FrameType | None) -> bool:
    """Whether a call of ours is in an import."""
    while frame and frame.f_code is not Host.answer.__code__:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def is_debugged() -> bool:
    """Whether somebody may stand in a call."""
    debugpy = sys.modules.get("debugpy")
    return _context.here().is_debugged or bool(debugpy and debugpy.is_client_connected())


class Isolated(Host):
    """Serves a function in forked children of this process, which may crash or hang."""

    def __enter__(self) -> Isolated:
        torch = sys.modules.get("torch")
        if not hasattr(os, "fork"):
            raise UsageError("isolate: there is no fork on this system")
        if torch and torch.cuda.is_initialized():
            raise UsageError("isolate: CUDA is initialised in this process, and does not fork")
        self.child: Child | None = None
        self.timeouts = 0  # in a row
        return self

    def __exit__(self, *_: object) -> None:
        self.end_child()

    def load(self, header: _serve.Header) -> _serve.Reply:
        if header.meta.get("device", "cpu") != "cpu":
            what = "isolate: a forked child has no CUDA"
            return ({"kind": "refused", "problem": "device-missing", "message": what},)
        return super().load(header)

    def answer(self, header: _serve.Header, data: bytes) -> _serve.Reply:
        if self.child is None:
            self.child = Child(self.component)
            self.is_called = self.timeouts > 1  # patience is over
        reply = self.child.ask(header, data, self.limit())
        if reply[0]["kind"] == "timed-out":
            self.timeouts += 1
        elif self.timeouts == 1:
            self.timeouts = 0
        if self.child.is_over:
            self.end_child()
        return reply

    def end_child(self) -> None:
        if self.child is not None:
            self.child.end()
            self.child = None


class Child:
    """A forked child that answers calls over two pipes."""

    def __init__(self, component: _serve.Component) -> None:
        self.is_over = False
        requests, ask = os.pipe()
        answer, replies = os.pipe()
        _serve.flush()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)
            self.process: int | None = os.fork()
        if self.process == 0:
            os.close(ask)
            os.close(answer)
            serve_in_child(component, requests, replies)  # does not come back
        os.close(requests)
        os.close(replies)
        self.ask_at, self.answer_at = ask, open(answer, "rb", buffering=0)

    def ask(self, header: _serve.Header, data: bytes, seconds: float | None) -> _serve.Reply:
        """The reply to a call, also where there is none."""
        raw = header.raw
        try:
            _serve.write_all(self.ask_at, struct.pack("<Q", len(raw)) + raw + data)
        except BrokenPipeError:
            return self.ended()
        poll = select.poll()
        poll.register(self.answer_at, select.POLLIN)
        if not poll.poll(None if seconds is None else 1000 * seconds):
            self.is_over = True
            return (timed_out(seconds),)
        reply = self.receive()
        return self.ended() if reply is None else reply

    def receive(self) -> tuple[_serve.Meta, list[_serve.Tensor]] | None:
        """A reply as `Wire.send` takes it."""
        prefix = self.read(8)
        if prefix is None:
            return None
        raw = self.read(struct.unpack("<Q", prefix)[0])
        if raw is None:
            return None
        header = _serve.Header(raw)
        data = self.read(header.size)
        if data is None:
            return None
        tensors = [(n, d, s, data[begin:end]) for n, d, s, begin, end in header.tensors]
        return header.meta, tensors

    def read(self, size: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < size:
            part = self.answer_at.read(size - len(parts))
            if not part:
                return None
            parts += part
        return bytes(parts)

    def ended(self) -> _serve.Reply:
        self.is_over = True
        assert self.process is not None
        _, status = os.waitpid(self.process, 0)
        self.process = None
        return (_serve.died(os.waitstatus_to_exitcode(status)),)

    def end(self) -> None:
        if self.process is not None:
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
        os.close(self.ask_at)
        self.answer_at.close()


def serve_in_child(component: _serve.Component, requests: int, replies: int) -> typing.NoReturn:
    """Answers calls until the parent has gone."""
    status = 1
    try:
        faulthandler.disable()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        component.passed_on = ()
        wire = _serve.Wire(requests, replies)
        while True:
            request = wire.receive()
            if request is None:
                status = 0
                break
            wire.send(*component.call(*request))
    finally:
        os._exit(status)


@contextlib.contextmanager
def as_alone(seed: int, arrays: str) -> typing.Iterator[None]:
    """Seeds what gives random numbers, holds torch to one thread, and puts all back."""
    if arrays == "torch":
        with contextlib.suppress(ImportError):
            importlib.import_module("torch")
    numpy, torch = sys.modules.get("numpy.random"), sys.modules.get("torch")
    states = random.getstate(), numpy and numpy.get_state(), torch and torch.get_rng_state()
    threads = torch and torch.get_num_threads()
    folder = os.getcwd()
    random.seed(seed)
    if numpy:
        numpy.seed(seed % 2**32)
    if torch:
        torch.default_generator.manual_seed(seed)
        torch.set_num_threads(1)
    try:
        yield
    finally:
        os.chdir(folder)
        random.setstate(states[0])
        if numpy:
            numpy.set_state(states[1])
        if torch:
            torch.set_rng_state(states[2])
            torch.set_num_threads(threads)
