"""Answers the engine's calls to one Python function, as PROTOCOL.md says.

As a program it imports the function by itself, in a process that the engine has started. As a
module of the package it serves a function of the process that it was imported in.
"""

from __future__ import annotations

import os
import sys

STANDARD: list[str] = []
if __name__ == "__main__":
    if sys.path[0] in ("", os.path.dirname(os.path.abspath(sys.argv[0]))):
        del sys.path[0]  # this file's own folder is not the user's
    # A file of the user may be named like a standard module: until all that is needed here has
    # been imported, the standard library comes first. `os` was imported when Python started.
    STANDARD.append(os.path.dirname(os.__file__))
    STANDARD.append(os.path.join(STANDARD[0], "lib-dynload"))
    sys.path[:0] = STANDARD

import contextlib
import copy
import ctypes
import difflib
import faulthandler
import functools
import gc
import importlib
import importlib.machinery
import importlib.util
import inspect
import json
import math
import mmap
import select
import signal
import struct
import threading
import traceback
import types
import warnings
import zlib

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

TYPE_CHECKING = False  # as in `typing`, which nothing here needs when it runs
if TYPE_CHECKING:
    import typing

    import torch

    Meta = dict[str, str]  # the metadata of a message
    Shape = tuple[int, ...]
    Encoded = tuple[str, Shape, bytes]  # dtype, shape, raw
    Tensor = tuple[str, str, Shape, bytes]  # name, dtype, shape, raw
    Reply = tuple[Meta] | tuple[Meta, list[Tensor]]
    Named = dict[str, typing.Any]  # values of the user by name
    Arrays = typing.Union["Lists", "Torch"]
    Trace = typing.Callable[[types.FrameType, str, typing.Any], typing.Any]  # for `sys.settrace`
    # What a module, a function or an array of the user's has is asked for at run time.
    Function = typing.Any
    Array = typing.Any

VERSION = "1"
HEADER_LIMIT = 100_000_000  # bytes, the limit of the safetensors crate
HEADERS_KEPT = 512
TRACEBACK_LINES = 20
SMALLEST_LIMIT = 1 << 24  # bytes that a reply may always have
REPLY_BYTES_EACH = 64  # bytes that a reply may have for each byte of its request
LARGEST_REST = 1 << 16  # bytes of what a header holds besides texts
LONGEST_TEXT = 1000  # characters of a message, and of a line of a traceback

# What the message in flight is doing, so that the parent knows what a dead child owed.
TORN, IDLE, BUSY, DONE = range(4)

NUMBERS = {bool, int, float}

# What torch says where CUDA cannot be used: not built in, no driver, no GPU, after a fork.
NO_CUDA = [
    "Torch not compiled with CUDA",
    "Found no NVIDIA driver",
    "No CUDA GPUs are available",
    "Cannot re-initialize CUDA in forked subprocess",
]

# Name on the wire: bytes of one item, code of `struct`, name in torch and numpy.
DTYPES: dict[str, tuple[int, str | None, str]] = {
    "F64": (8, "d", "float64"),
    "F32": (4, "f", "float32"),
    "F16": (2, "e", "float16"),
    "BF16": (2, None, "bfloat16"),
    "I64": (8, "q", "int64"),
    "I32": (4, "i", "int32"),
    "I16": (2, "h", "int16"),
    "I8": (1, "b", "int8"),
    "U8": (1, "B", "uint8"),
    "BOOL": (1, "?", "bool"),
}
ON_THE_WIRE = {name: wire for wire, (_, _, name) in DTYPES.items()}
# Integers that are not on the wire, and what holds their numbers there.
WIDER = {"uint16": "int32", "uint32": "int64", "uint64": "int64"}


def main() -> None:
    if sys.argv[-3:-2] == ["nursery"]:
        words, module = sys.argv[-2].split(), sys.argv[-1]
        del sys.argv[-3:]
        nursery(words, module)  # comes back in each worker that it forks
    # The user's code must neither print into the replies nor read the requests, not even from C.
    wire = Wire(os.dup(0), os.dup(1))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    # A line printed before a segfault should still be seen.
    stdout: typing.Any = sys.stdout
    stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    prefer_to_be_killed()
    try:
        request = wire.receive()
        if request is None or request[0].kind == "stop":
            leave(0)
        if hasattr(os, "fork") and request[0].meta.get("fork") == "false":
            supervise_once(wire, request[0])
        else:
            threading.Thread(target=leave_with_the_reader, args=(wire,), daemon=True).start()
            component = introduce(wire, request[0])
            # This thread, and the one that watches; what others do would not go on in a child.
            is_alone = threading.active_count() <= 2
            if hasattr(os, "fork") and is_alone and component.arrays.can_fork():
                wire.supervised = True
                supervise(wire, component)
            else:
                serve(wire, component)
    except Refused as refused:
        wire.send(refused.reply)
        wire.state[0] = DONE
        leave(2)
    except ConnectionError:  # the harness has gone
        pass
    wire.state[0] = DONE
    leave(0)


def nursery(words: list[str], module: str) -> None:
    """Imports what many components need, and forks a worker for each that the harness asks for.

    The harness gives it a socket as standard input. No component is made or called here, so that
    what one of them does to its modules or its process stays its own.
    """
    import _socket  # not `socket`, of which a user may have another

    control = _socket.socket(fileno=os.dup(0))
    flush()
    for stream in range(3):  # they were pipes, and not this, when Python looked at them
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    prefer_to_be_killed()
    if "compile" not in words:
        os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
    imports = [word for word in words if word in ("torch", "numpy")]
    try:
        with Watched(control.fileno()):
            for name in imports:
                importlib.import_module(name)
            PRELOADED.extend(imports)
            if module:
                import_for_all(**json.loads(module))
    except BaseException:
        os._exit(1)  # a worker that imports it by itself will say what is wrong
    torch = sys.modules.get("torch")
    if threading.active_count() > 1 or (torch and torch.cuda.is_initialized()):
        os._exit(1)  # neither survives a fork
    gc.collect()
    gc.freeze()  # keeps the imported modules out of the collections of the workers
    while True:
        request, passed, *_ = control.recvmsg(64, _socket.CMSG_SPACE(12))
        if not request:
            os._exit(0)  # the harness has gone; its workers see to themselves
        what, *process = request.decode().split()
        if what == "fork":
            files = struct.unpack("3i", passed[0][2])
            answer: int | str = fork_worker(files)
            if answer == 0:
                control.close()
                return
            for file in files:
                os.close(file)
        else:
            answer = end_of(int(process[0]), 0 if what == "wait" else os.WNOHANG)
        control.sendall(f"{answer}\n".encode())


# The libraries that the nursery had imported before it forked this process, where it had not seen
# to it that they are those of the component.
PRELOADED: list[str] = []


def import_for_all(where: str, path: list[str], arrays: str) -> None:
    """Imports the module of several components, as each of them would.

    What is seeded there must stay so, and `fork_worker` seeds anew: such a module is not for all.
    """
    folders = [*path, *folder_of(where)]
    if shadows(folders) or has_others(folders, arrays):
        raise ImportError("what was imported before is another module here")
    PRELOADED.clear()
    before = chance()
    array_library(arrays, "cpu").note_compiled()
    look_in(path)
    module_at(where)
    if chance() != before:
        raise ImportError("the import seeds what is random, or draws from it")


# What torch.compile has made: told to compile nothing, it gives back what it was given.
COMPILED: list[object] = []


def chance() -> list[object]:
    """The states of the generators of random numbers that are seeded anew in each worker."""
    # From NumPy 2 on it is imported when it is first asked for.
    numpy = getattr(sys.modules.get("numpy"), "random", None)
    torch: typing.Any = sys.modules.get("torch")
    states: list[object] = []
    if numpy:
        kind, keys, *rest = numpy.get_state()
        states += [kind, keys.tolist(), rest]
    if hasattr(torch, "default_generator"):
        states.append(torch.default_generator.get_state().tolist())
    return states


def has_others(path: list[str], arrays: str | None) -> bool:
    """Whether these folders have a module that would be here instead, had nothing been imported."""
    names = {arrays} if arrays in PRELOADED else {name.partition(".")[0] for name in sys.modules}
    files = {name: getattr(sys.modules.get(name), "__file__", None) for name in names}
    return any(origin_in(path, name) not in (None, files[name]) for name in names)


def fork_worker(files: tuple[int, ...]) -> int:
    """Forks a worker that has these files as its standard streams: 0 there, else its number."""
    flush()
    with warnings.catch_warnings():  # as in `supervise`
        warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)
        worker = os.fork()
    if worker:
        try:
            os.setpgid(worker, worker)  # whichever of both is first
        except OSError:
            pass
        return worker
    os.setpgid(0, 0)
    for stream, file in enumerate(files):
        os.dup2(file, stream)
    for file in files:
        os.close(file)
    # Chance is another one in each process, as if it had been started; `random` sees to itself.
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if hasattr(sys.modules.get("torch"), "default_generator"):
        sys.modules["torch"].default_generator.seed()
    return 0


def end_of(process: int, options: int) -> str:
    """How a worker ended, in words; `running` where it has not."""
    try:
        done, status = os.waitpid(process, options)
    except ChildProcessError:
        return "it ended"
    if not done:
        return "running"
    code = os.waitstatus_to_exitcode(status)
    return f"exit status {code}" if code >= 0 else f"killed by signal {-code}"


class Watched:
    """While an import runs, the end of the harness is the end of this process."""

    def __init__(self, control: int) -> None:
        self.control = control
        self.ended, self.end = os.pipe()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self) -> None:
        poll = select.poll()
        poll.register(self.control, select.POLLHUP)
        poll.register(self.ended, select.POLLIN)
        if poll.poll()[0][0] != self.ended:
            os._exit(0)

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        os.write(self.end, b".")
        self.thread.join()  # before anything is forked
        os.close(self.ended)
        os.close(self.end)


def introduce(wire: Wire, load: Header) -> Component:
    """The component that is to be loaded, once the harness has been told so."""
    component = Component(load)
    wire.send(component.loaded())
    return component


def serve(wire: Wire, component: Component) -> None:
    """Answers calls until `stop` or the end of the requests."""
    own = os.getpid()
    component.limit_memory()
    wire.state[0] = IDLE
    while True:
        request = wire.receive()
        if request is None or request[0].kind == "stop":
            return
        if "follow" in request[0].meta and component.coverage:
            with component.coverage:
                reply = component.call(*request)
            reply[0]["ran"] = component.coverage.text()
        else:
            reply = component.call(*request)
        if os.getpid() != own:  # the user's code forked, and both halves came back
            os._exit(0)
        wire.send(*reply)
        if "last" in reply[0]:
            return


def supervise(wire: Wire, component: Component) -> None:
    """Lets a forked child serve, and forks another when it dies: no second import of torch."""
    woken = woken_by_children()
    gc.freeze()  # keeps the imported modules out of the child's collections
    while True:
        code = in_child(wire, woken, lambda: serve(wire, component))
        if code is None:
            return
        if wire.state[0] == DONE:
            leave(code)
        if wire.state[0] == TORN:
            complain(f"died in the middle of a message, {death(code)}")
            leave(1)
        if wire.state[0] == BUSY:
            wire.send(died(code))
        else:
            complain(f"died between two calls, {death(code)}")


def supervise_once(wire: Wire, load: Header) -> None:
    """Lets a forked child import and serve, so that nothing of the user's is ever forked. This
    process ends with it: another child would have to import again."""
    code = in_child(wire, woken_by_children(), lambda: serve(wire, introduce(wire, load)))
    if code is None:
        return
    if wire.state[0] == DONE:
        leave(code)
    if wire.state[0] == TORN and wire.requests == 1:
        end_like(code)  # it died of the import
    if wire.state[0] == BUSY:
        wire.send({**died(code), "last": "true"})
        leave(0)
    complain(f"died, {death(code)}")
    leave(1)


def woken_by_children() -> int:
    """A pipe that can be read when a child has ended."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake)
    return woken


def in_child(wire: Wire, woken: int, work: typing.Callable[[], None]) -> int | None:
    """Does something in a forked child: None there, once it is done, else how the child ended."""
    # Python 3.12 warns of threads here; whatever the import started, only this thread goes on.
    warnings.filterwarnings("ignore", ".*fork", DeprecationWarning)
    parent = os.getpid()
    wire.state[0] = TORN  # until the child serves: one that dies of the fork is not replaced
    flush()
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        die_with(parent)
        work()
        return None
    return wait(child, woken, wire.sink)


def end_like(code: int) -> typing.NoReturn:
    """Ends this process as another one ended."""
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    leave(code)


def wait(child: int, woken: int, sink: int) -> int:
    """Waits for the child and gives its exit code; leaves with it when nobody reads replies."""
    poll = select.poll()
    poll.register(woken, select.POLLIN)
    poll.register(sink, 0)  # errors only: the reader has gone
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        for ready, _ in poll.poll():
            if ready == sink:
                os.kill(child, signal.SIGKILL)
                leave(0)
            os.read(ready, 512)


def leave_with_the_reader(wire: Wire) -> None:
    """An import or a call that hangs must not outlive the harness, nor keep its GPU."""
    if hasattr(select, "poll"):  # not on Windows
        poll = select.poll()
        poll.register(wire.sink, 0)  # errors only: the reader has gone
        poll.poll()
        if not wire.supervised:
            os._exit(0)


def leave(code: int) -> typing.NoReturn:
    """Ends at once: exit handlers and leftover threads of the user's code must not delay it."""
    flush()
    os._exit(code)


def flush() -> None:
    try:
        sys.stdout.flush()
    except Exception:
        pass  # the user's code has closed or replaced it


def complain(text: str) -> None:
    os.write(2, f"shakedown worker: the process that serves the calls {text}\n".encode())


def taken_memory() -> int | None:
    """The size of this process's memory in bytes, or None where it cannot be limited."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[0]) * resource.getpagesize()
    except (OSError, AttributeError):
        return None  # not Linux


def prefer_to_be_killed() -> None:
    """When memory runs out the kernel should take the component, not the harness."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    except OSError:
        pass  # not Linux


def die_with(parent: int) -> None:
    """A hanging call must not outlive the parent; only Linux can promise this."""
    if sys.platform == "linux":
        PR_SET_PDEATHSIG = 1
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


class Refused(Exception):
    """The harness asked for what cannot be had; the worker leaves after saying so."""

    def __init__(self, problem: str, message: str, error: BaseException | None = None) -> None:
        self.reply: Meta = {"kind": "refused", "problem": problem, "message": message}
        if error is not None:
            self.reply["traceback"] = user_traceback(error)


class Malformed(Exception):
    """The function returned what is not an output of the contract."""


class TooLarge(Exception):
    """An output is larger than any reply may be."""


class Header:
    """The parsed header of one message: metadata, and where each tensor lies in the data."""

    def __init__(self, raw: bytes) -> None:
        try:
            entries = json.loads(raw)
            self.meta: Meta = entries.pop("__metadata__", {})
            self.kind = self.meta.get("kind")
            self.tensors: list[tuple[str, str, Shape, int, int]] = []
            for name, entry in entries.items():
                dtype, shape = entry["dtype"], tuple(entry["shape"])
                begin, end = entry["data_offsets"]
                if end - begin != math.prod(shape) * DTYPES[dtype][0]:
                    raise ValueError(f"`{name}`: {end - begin} bytes for {dtype} {list(shape)}")
                self.tensors.append((name, dtype, shape, begin, end))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Refused("bad-request", f"a header was not understood: {error!r}") from None
        self.size = max((end for *_, end in self.tensors), default=0)
        self.reply_limit = max(SMALLEST_LIMIT, REPLY_BYTES_EACH * (8 + len(raw) + self.size))
        self.nested = any("." in name for name, *_ in self.tensors)
        self.raw = raw
        self.parsed: dict[str, typing.Any] = {}

    def field(self, name: str) -> typing.Any:
        """A metadata value that is JSON."""
        if name in self.parsed:
            return self.parsed[name].copy()
        try:
            value = json.loads(self.meta[name])
        except KeyError:
            raise Refused("bad-request", f"the `{self.kind}` message lacks `{name}`") from None
        except ValueError as error:
            raise Refused("bad-request", f"`{name}` is not JSON: {error}") from None
        # Many calls have the same header. What is in a list or a dict here may be written to.
        if isinstance(value, (dict, list)):
            items = value.values() if isinstance(value, dict) else value
            if not any(isinstance(item, (dict, list)) for item in items):
                self.parsed[name] = value.copy()
        return value

    def options(self) -> dict[str, typing.Any]:
        """The options of a call. The keys of a table are integers, for which JSON has texts."""
        options: dict[str, typing.Any] = self.field("options")
        for name, value in options.items():
            if isinstance(value, dict) and all(key.isdigit() for key in value):
                options[name] = {int(key): item for key, item in value.items()}
        return options


class Wire:
    """Messages in and out: each one safetensors blob, with no other framing."""

    def __init__(self, source: int, sink: int) -> None:
        self.source = open(source, "rb", buffering=1 << 16)
        self.sink = sink
        self.headers: dict[bytes, Header] = {}
        self.supervised = False  # whether `supervise` looks after the end of the harness
        # Shared with forked children: the state, and from byte 8 on how many requests have come.
        self.state = mmap.mmap(-1, 16)

    @property
    def requests(self) -> int:
        """How many requests have come, to this process or another one of ours."""
        return int.from_bytes(self.state[8:], "little")

    @requests.setter
    def requests(self, count: int) -> None:
        self.state[8:] = count.to_bytes(8, "little")

    def receive(self) -> tuple[Header, bytes] | None:
        """The header and the data of the next request, or None at the end."""
        prefix = self.source.read(8)
        if not prefix:
            return None
        self.state[0] = TORN
        length = int.from_bytes(prefix, "little")
        if length > HEADER_LIMIT:
            raise Refused("bad-request", f"a header of {length} bytes; {HEADER_LIMIT} are allowed")
        raw = self.source.read(length)
        header = self.headers.get(raw)
        if header is None:
            header = Header(raw)
            if len(self.headers) == HEADERS_KEPT:
                self.headers.clear()
            self.headers[raw] = header
        data = self.source.read(header.size)
        if len(data) < header.size:
            raise Refused("bad-request", f"{len(data)} of {header.size} bytes, then the end")
        self.requests += 1
        self.state[0] = BUSY
        return header, data

    def send(self, meta: Meta, tensors: typing.Iterable[Tensor] = ()) -> None:
        """Writes one reply; `tensors` are (name, dtype, shape, raw)."""
        meta["number"] = str(self.requests - 1)
        reply = message(meta, tensors)
        self.state[0] = TORN
        write_all(self.sink, reply)
        self.state[0] = IDLE


def write_all(sink: int, data: bytes) -> None:
    """Writes all of it: a pipe takes a part at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(sink, rest) :]


as_json = json.JSONEncoder(ensure_ascii=False).encode  # `dumps` would make it anew each time


def message(meta: Meta, tensors: typing.Iterable[Tensor] = ()) -> bytes:
    """The bytes of one message; `tensors` are (name, dtype, shape, raw)."""
    header: dict[str, object] = {"__metadata__": meta}
    at = 0
    # The widest items first, so that every buffer is aligned to its dtype.
    tensors = sorted(tensors, key=lambda tensor: -DTYPES[tensor[1]][0])
    for name, dtype, shape, raw in tensors:
        offsets = (at, at := at + len(raw))
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
    # `replace`: a lone surrogate in a message must not make the reply unreadable.
    text = as_json(header).encode("utf-8", "replace")
    text += b" " * (-len(text) % 8)
    return b"".join([struct.pack("<Q", len(text)), text, *(raw for *_, raw in tensors)])


class Component:
    """The user's function, and how to hand it inputs and read what it returns."""

    def __init__(self, load: Header, function: Function = None) -> None:
        """Finds the function that the engine names, or serves the one that is given."""
        if load.kind != "load" or load.meta.get("shakedown") != VERSION:
            got = f"`{load.kind}` of version {load.meta.get('shakedown')}"
            raise Refused("bad-request", f"expected `load` of version {VERSION}, got {got}")
        self.memory_mb: int | None = load.field("memory_mb") if "memory_mb" in load.meta else None
        self.inputs: list[str] = load.field("inputs")
        self.options: list[str] = load.field("options")
        self.outputs: list[str] = load.field("outputs")
        optional = load.field("optional") if "optional" in load.meta else []
        self.required = [name for name in self.outputs if name not in optional]
        self.texts: list[str] = load.field("texts") if "texts" in load.meta else []
        self.compiles = load.meta.get("compile") == "true"
        leaves = load.field("leaves") if "leaves" in load.meta else []
        self.leaves = list(dict.fromkeys(leaf.partition(".")[0] for leaf in leaves))
        self.noted: list[str] = []  # what replies have said of gradients
        self.shadows: dict[str, str] = {}
        self.passed_on: tuple[type[BaseException], ...] = ()
        self.error: BaseException | None = None
        self.objects: Named = {}
        self.is_given = function is not None
        self.arrays: Arrays
        self.function: Function
        if function is None:
            self.find(load)
        else:
            self.arrays = array_library(load.meta.get("arrays"), load.meta.get("device", "cpu"))
            self.function = instance_of(function, Constructor(load))
        self.source = source_of(self.function)
        self.gradless = without_gradients(self.function)
        self.is_compiled = uses_compiled(self.function)
        names: dict[str, str] = load.field("args") if "args" in load.meta else {}
        columns = columns_of(load)
        signature = load.meta.get("signature", "by-name")
        known = [*self.inputs, *self.options]
        given = names_given(signature, columns, known)
        theirs = [names.get(name, name) for name in given]
        self.function = with_its_signature(self.function, theirs)
        self.function = with_objects(self.function, self.objects, theirs)
        ours = {theirs: name for name, theirs in names.items()}
        self.fixed = {ours.get(n, n): value for n, value in set_by_hand(self.function).items()}
        if names:
            self.function = with_our_names(self.function, names)
        if "batch" in load.meta:
            self.function = by_groups(self.function, load.field("batch"), self.inputs)
        self.kept = kept_defaults(self.function, [*given, *self.fixed])
        self.function = in_signature(self.function, signature, columns)
        self.positional, self.keywords = bind(
            self.function, self.inputs, self.options, self.fixed, self.objects
        )
        self.takes_anything = takes_anything(self.function)
        self.coverage: Traced | Monitored | None = None
        if load.meta.get("coverage") == "true":
            own = own_folders(self.function, load.meta["target"], load.field("path"))
            self.coverage = Monitored(own) if hasattr(sys, "monitoring") else Traced(own)

    def find(self, load: Header) -> None:
        """Imports the library of arrays and the function that the engine names."""
        arrays, device = load.meta.get("arrays"), load.meta.get("device", "cpu")
        if "stub" in load.meta:
            sys.meta_path.append(Stubs(load.field("stub")))
        where = load.meta.get("target", "").partition(":")[2].rpartition(":")[0]
        path = [*load.field("path"), *folder_of(where)]
        self.shadows = shadows(path)
        if self.shadows:
            import_the_late_ones()
        # The user's own torch, where there is one, comes before that of the interpreter.
        # Compilation takes minutes, and a compiled function is to do what the function does.
        if not self.compiles:
            os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")
        is_own = origin_in(path, arrays or "") is not None
        if PRELOADED and has_others(path, arrays):
            raise Refused("not-forked", "a module that was imported before is another one here")
        library = None if is_own else array_library(arrays, device)
        look_in(load.field("path"))
        self.arrays = library or array_library(arrays, device)
        self.arrays.note_compiled()
        try:
            if "setup" in load.meta:
                self.objects = set_up(load.meta["setup"])
            constructor = Constructor(load, self.objects)
            self.function = find_function(load.meta.get("target", ""), constructor)
        except Refused as refused:
            if refused.reply["problem"] == "import-raised":
                refused.reply["message"] += self.arrays.hint(refused.__context__)
                if self.shadows:
                    refused.reply["message"] += f" ({shadowed(self.shadows)})"
            raise

    def loaded(self) -> Meta:
        return {
            "kind": "loaded",
            "python": sys.version.split()[0],
            "arrays": self.arrays.version,
            "autograd": json.dumps(self.arrays.autograd),
            "takes": json.dumps([] if self.takes_anything else self.positional + self.keywords),
            "pid": str(os.getpid()),
            "notes": json.dumps(self.notes()),
            **self.source,
        }

    def notes(self) -> list[str]:
        """What a reader of the report should know of how the function is run."""
        notes = [shadowed(self.shadows)] if self.shadows else []
        if self.kept:
            keeps = ", ".join(f"`{name}` keeps its default {value}" for name, value in self.kept)
            notes.append(f"{keeps}: neither an input nor an option of the contract")
        fixed = [name for name in self.fixed if name in (*self.inputs, *self.options)]
        if fixed:
            stays = ", ".join(f"`{name}` stays {shown(self.fixed[name])}" for name in fixed)
            notes.append(f"{stays}, as functools.partial says: the contract's is not handed over")
        if self.gradless and self.leaves and self.arrays.autograd:
            notes.append(f"`{self.gradless}` is around the function: its output has no gradient")
        if self.memory_mb is not None and taken_memory() is None:
            notes.append("`memory_mb` has no effect: this system does not say how much is taken")
        if self.is_compiled and self.compiles:
            notes.append("torch.compile is on: each call may take as long as `load_timeout_ms`")
        elif self.is_compiled:
            how = "" if self.is_given else "; `python: {compile: true}` compiles it"
            notes.append(f"what torch.compile would compile runs as it is written{how}")
        return notes

    def limit_memory(self) -> None:
        """From now on this process may take so much more memory than it has, and no more."""
        taken = taken_memory()
        if self.memory_mb is not None and taken is not None:
            limit = taken + (self.memory_mb << 20)
            highest = resource.getrlimit(resource.RLIMIT_AS)[1]
            limit = limit if highest == resource.RLIM_INFINITY else min(limit, highest)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    def call(self, header: Header, data: bytes) -> Reply:
        """Calls the function once; gives the metadata and the tensors of the reply."""
        if header.kind != "call":
            raise Refused("bad-request", f"expected `call` or `stop`, got `{header.kind}`")
        with self.arrays.with_gradients():
            reply = self.answer(header, data)
        lost = self.arrays.lost()
        if lost:
            return ({"kind": "died", "how": "device", "message": lost, "last": "true"},)
        return reply

    def answer(self, header: Header, data: bytes) -> Reply:
        given, tensors, leaves = self.given(header, data)
        options = header.options()
        missing = [name for name in self.options if name not in options]
        if missing:
            raise Refused("bad-request", f"the call lacks the option `{missing[0]}`")
        if "required" in header.meta:
            self.required = header.field("required")
        values = {**options, **given}
        self.error, step = None, ""
        grads: Named = {}
        try:
            result = self.run(values)
            own, notes = self.own_gradients(result, leaves)
            named = {n: counted(v) for n, v in self.name(result).items()}
            self.arrays.must_hold({**named, **own})
            meta, replies = encode_all(named, self.texts, header.reply_limit)
            if any(f"grad_{name}" not in own for name in leaves):
                step = "in backward: "
                first = self.required[:1] or [name for name in self.outputs if name in named]
                self.arrays.backward(named.get(first[0]) if first else None)
            grads = {name: leaf.grad for name, leaf in leaves.items() if f"grad_{name}" not in own}
            given_back = {f"grad_{n}": grad for n, grad in grads.items() if grad is not None}
            room = header.reply_limit - sum(len(raw) for *_, raw in replies)
            if given_back or own:
                replies += encode_all({**given_back, **own}, (), room)[1]
        except self.passed_on:
            raise
        except Malformed as malformed:
            return ({"kind": "malformed", "message": cut(str(malformed))},)
        except SystemExit as error:  # its code may be a number, a message or nothing
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
            return (died(code & 0xFF),)
        except BaseException as error:
            self.error = error
            return (raised(error, step, self.arrays.hint(error)),)
        lists = {
            "no_grad": [name for name, grad in grads.items() if grad is None],
            "changed": self.changed(header, data, tensors, given),
            "notes": notes,
        }
        self.noted += notes
        meta.update((name, json.dumps(names)) for name, names in lists.items() if names)
        return meta, replies

    def run(self, values: Named) -> typing.Any:
        with contextlib.nullcontext() if self.compiles else self.arrays.as_written():
            while True:
                try:
                    result = self.function(
                        *[values.get(name) for name in self.positional],
                        **{name: values.get(name) for name in self.keywords},
                    )
                    return finished(result)
                except TypeError as error:
                    if not self.takes_less(error):
                        raise

    def takes_less(self, error: TypeError) -> bool:
        """Whether a function of `**kwargs` hands them over to one that does not take them all: an
        option, which from now on it does not get."""
        words = str(error).split("'")
        if not self.takes_anything or "unexpected keyword argument" not in words[0]:
            return False
        name = words[1]
        is_option = name in self.options and name in self.keywords
        if is_option:
            self.keywords.remove(name)
        return is_option

    def given(self, header: Header, data: bytes) -> tuple[Named, Named, Named]:
        """The inputs of a call, its tensors by name, and those that shall get a gradient."""
        tensors, leaves = self.read(header, data)
        given = nest(tensors) if header.nested else dict(tensors)
        if "texts" in header.meta:
            given.update(header.field("texts"))
        return given, tensors, leaves

    def read(self, header: Header, data: bytes) -> tuple[Named, Named]:
        """The tensors of a call by name, and those of them that shall get a gradient."""
        try:
            tensors = {
                name: (self.arrays.read if shape else plain)(dtype, shape, data[begin:end])
                for name, dtype, shape, begin, end in header.tensors
            }
            grad = header.meta.get("grad")
            names = grad.split(",") if grad and self.arrays.autograd else []
            leaves = {name: tensors[name].requires_grad_() for name in names}
            # As in a training run, where log-probabilities come from a model: a leaf could not be
            # written to, and whether an input is changed is a question of its own.
            tensors.update((name, self.arrays.computed(leaf)) for name, leaf in leaves.items())
            return tensors, leaves
        except Exception as error:
            raise Refused("bad-request", f"cannot read the inputs of a call: {error!r}") from None

    def name(self, result: typing.Any) -> Named:
        """What the function returned, by the names of the outputs."""
        # Metrics beside the value are not judged: they may be of anything.
        if type(result) is tuple and len(result) > 1 and hasattr(result[-1], "keys"):
            result = result[:-1] if len(result) > 2 else result[0]
        fields = self.fields(result)
        if fields is not None:
            missing = [name for name in self.required if name not in fields]
            if missing:
                has = ", ".join(f"`{key}`" for key in fields) or "nothing"
                what = "a dict" if hasattr(result, "keys") else a(result)
                raise Malformed(f"returned {what} without `{missing[0]}` (it has {has})")
            named = {name: fields[name] for name in self.outputs if name in fields}
            return {n: v for n, v in named.items() if v is not None or n in self.required}
        # With one required output a list is its value, as `[0.5, 0.25]` would be ambiguous.
        if isinstance(result, (tuple, list) if len(self.required) > 1 else tuple):
            for names in (self.outputs, self.required):
                if len(names) == len(result) > 1:
                    return dict(zip(names, result))
        if len(self.required) == 1:
            return {self.required[0]: result}
        # Where any output will do, a value alone is the first one.
        if not self.required and not isinstance(result, tuple):
            return {self.outputs[0]: result}
        size = f" of {len(result)}" if isinstance(result, (tuple, list)) else ""
        expected = ", ".join(f"`{name}`" for name in self.required or self.outputs)
        raise Malformed(f"returned {a(result)}{size}, expected a dict or a tuple of {expected}")

    def fields(self, result: typing.Any) -> Named | None:
        """The values of a result by name; None where it has none."""
        if hasattr(result, "_asdict"):  # a named tuple
            named: Named = result._asdict()
            return named
        if hasattr(result, "keys"):
            return {key: result[key] for key in result.keys()}  # noqa: SIM118 - no dict
        if hasattr(type(result), "__dataclass_fields__"):
            fields = type(result).__dataclass_fields__
            return {name: getattr(result, name) for name in fields if hasattr(result, name)}
        attributes: Named = getattr(result, "__dict__", {})
        is_record = any(name in attributes for name in self.outputs)
        return attributes if is_record or isinstance(result, types.SimpleNamespace) else None

    def own_gradients(self, result: typing.Any, leaves: Named) -> tuple[Named, list[str]]:
        """The gradients among what the function returned: those that are asked for, by the names
        of the reply, and what the report should say of them all."""
        if type(result) is tuple and len(result) == 2 and hasattr(result[-1], "keys"):
            result = result[0]  # before its metrics
        fields = self.fields(result)
        if not fields:
            return {}, []
        fields = {n: fields[f"grad_{n}"] for n in self.inputs if f"grad_{n}" in fields}
        fields = {name: value for name, value in fields.items() if value is not None}
        own = {f"grad_{leaf}": found_at(leaf, fields) for leaf in leaves}
        own = {name: value for name, value in own.items() if value is not None}
        notes = [self.note_on(name) for name in fields if leaves or not self.may_ask(name)]
        return own, [note for note in notes if note not in self.noted]

    def may_ask(self, name: str) -> bool:
        """Whether calls may ask for the gradient by an input."""
        return self.arrays.autograd and name in self.leaves

    def note_on(self, name: str) -> str:
        """What the report should say of a gradient by an input that the function returned."""
        what = f"`grad_{name}`, which the function returns"
        if name not in self.leaves:
            known = ", ".join(f"`grad_{leaf}`" for leaf in self.leaves) or "no gradient"
            return f"shakedown does not check {what}: the contract has {known}"
        if not self.arrays.autograd:
            return f"shakedown does not check {what}: that needs `arrays: torch`"
        return f"shakedown checks {what}, and does not ask autograd for it"

    def changed(self, header: Header, data: bytes, tensors: Named, given: Named) -> list[str]:
        """The inputs that no longer are what the message said."""
        names = []
        for name, dtype, shape, begin, end in header.tensors:
            if not shape:
                continue  # Python's own numbers cannot be changed
            try:
                changed = self.arrays.changed(tensors[name], dtype, shape, data[begin:end])
            except Exception:
                changed = True  # it cannot even be read any more
            if changed:
                names.append(name)
        if "texts" in header.meta:
            texts = header.field("texts").items()
            names += [name for name, text in texts if given[name] != text]
        if header.nested:
            names += [name for name, tree in nest(tensors).items() if not same(tree, given[name])]
        return names


class Coverage:
    """Which lines and branches of the user's own files ran in one call."""

    def __init__(self, own: list[str]) -> None:
        self.own = own
        self.files: dict[str, bool] = {}
        self.places: dict[tuple[types.CodeType, int | None, int | None], int] = {}
        self.ran: set[int] = set()

    def is_own(self, file: str) -> bool:
        known = self.files.get(file)
        if known is None:
            path = os.path.abspath(file)
            inside = [path[len(folder) :] for folder in self.own if path.startswith(folder)]
            libraries = ("site-packages", "dist-packages")
            known = any(not any(name in rest for name in libraries) for rest in inside)
            self.files[file] = known
        return known

    def note(self, code: types.CodeType, begin: int | None, end: int | None) -> None:
        """Notes a line (`end` is None) or a way from one place to another."""
        key = (code, begin, end)
        place = self.places.get(key)
        if place is None:
            # The same in every process that runs this version of the file.
            name = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}:{begin}:{end}"
            place = self.places[key] = zlib.crc32(name.encode())
        self.ran.add(place)

    def text(self) -> str:
        return ",".join(map(str, self.ran))


class Traced(Coverage):
    """By `sys.settrace`: a branch is a way from one line to the next."""

    def __enter__(self) -> None:
        self.ran.clear()
        sys.settrace(self.enter)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def enter(self, frame: types.FrameType, event: str, _: object) -> Trace | None:
        if not self.is_own(frame.f_code.co_filename):
            return None
        before: int | None = None

        def step(frame: types.FrameType, event: str, _: object) -> Trace:
            nonlocal before
            if event == "line":
                line = frame.f_lineno
                self.note(frame.f_code, line, None)
                self.note(frame.f_code, before, line)
                before = line
            return step

        return step


class Monitored(Coverage):
    """By `sys.monitoring`, which costs nothing outside the user's files."""

    def __init__(self, own: list[str]) -> None:
        super().__init__(own)
        system: typing.Any = sys
        self.monitoring = monitoring = system.monitoring
        free = [tool for tool in range(6) if monitoring.get_tool(tool) is None]
        if not free:
            raise Refused("coverage", "all tools of sys.monitoring are taken")
        self.tool, events = free[-1], monitoring.events
        monitoring.use_tool_id(self.tool, "shakedown")
        ways = [getattr(events, name, 0) for name in ("BRANCH_LEFT", "BRANCH_RIGHT")]
        ways = [way for way in ways if way] or [events.BRANCH]  # two kinds since Python 3.14
        self.local = events.LINE | sum(ways)
        for way in ways:
            monitoring.register_callback(self.tool, way, self.note)
        line = lambda code, line: self.note(code, line, None)
        monitoring.register_callback(self.tool, events.LINE, line)
        monitoring.register_callback(self.tool, events.PY_START, self.enter)

    def __enter__(self) -> None:
        self.ran.clear()
        self.monitoring.set_events(self.tool, self.monitoring.events.PY_START)

    def __exit__(self, *_: object) -> None:
        self.monitoring.set_events(self.tool, 0)

    def enter(self, code: types.CodeType, _: int) -> object:
        if self.is_own(code.co_filename):
            self.monitoring.set_local_events(self.tool, code, self.local)
        return self.monitoring.DISABLE


def own_folders(function: Function, target: str, path: list[str]) -> list[str]:
    """Where the user's code is: the folder of the file or package, and the path of the manifest."""
    where = target.partition(":")[2].rpartition(":")[0]
    if where.endswith(".py"):
        folders = [os.path.dirname(os.path.abspath(where))]
    else:
        package = sys.modules[where.partition(".")[0]]
        folders = list(getattr(package, "__path__", []))
        folders = folders or [os.path.dirname(getattr(package, "__file__", None) or "")]
    return [os.path.join(os.path.abspath(folder), "") for folder in [*folders, *path] if folder]


def plain(dtype: str, shape: Shape, raw: bytes) -> typing.Any:
    """An input of no dimension: a Python int, float or bool."""
    if dtype == "BF16":  # the upper half of a float32
        dtype, raw = "F32", b"\0\0" + raw
    return struct.unpack(f"<{DTYPES[dtype][1]}", raw)[0]


class Lists:
    """Inputs as nested lists of Python numbers."""

    version = "list"
    autograd = False
    # Asked for only where there is autograd.
    computed: typing.Callable[[Array], Array]
    backward: typing.Callable[[object], None]

    def __init__(self, device: str) -> None:
        if device != "cpu":
            name = type(self).__name__.lower()
            raise Refused("device-missing", f"`{name}` arrays live on `cpu`, not on `{device}`")

    def can_fork(self) -> bool:
        return True

    def must_hold(self, named: Named) -> None:
        """Refuses outputs that are elsewhere than the inputs."""

    def lost(self) -> str:
        """Why this process can use its device no more; nothing, as a rule."""
        return ""

    def note_compiled(self) -> None:
        """Notes what is compiled from now on."""

    def with_gradients(self) -> typing.ContextManager[object]:
        """In it, gradients are kept, whatever another call or a test has left behind."""
        return contextlib.nullcontext()

    def as_written(self) -> typing.ContextManager[object]:
        """In it, what was compiled runs as it is written."""
        return contextlib.nullcontext()

    def hint(self, error: BaseException | None) -> str:
        """What an exception does not say of itself; nothing, as a rule."""
        return ""

    def read(self, dtype: str, shape: Shape, raw: bytes) -> typing.Any:
        size, code, _ = DTYPES[dtype]
        return fold(list(struct.unpack(f"<{len(raw) // size}{code}", raw)), shape)

    def changed(self, value: typing.Any, dtype: str, shape: Shape, raw: bytes) -> bool:
        # The text of a float is exact, and the same for every NaN.
        return repr(value) != repr(self.read(dtype, shape, raw))


class Numpy(Lists):
    """Inputs as `numpy.ndarray`."""

    def __init__(self, device: str) -> None:
        import numpy

        super().__init__(device)
        self.numpy = numpy
        self.version = f"numpy {numpy.__version__}"

    def read(self, dtype: str, shape: Shape, raw: bytes) -> Array:
        # A buffer of its own, so that it is aligned and may be written to.
        return self.numpy.frombuffer(bytearray(raw), dtype=DTYPES[dtype][2]).reshape(shape)

    def changed(self, array: Array, dtype: str, shape: Shape, raw: bytes) -> bool:
        return encode_array(array) != (dtype, shape, raw)


class Torch:
    """Inputs as `torch.Tensor`."""

    autograd = True

    def __init__(self, device: str) -> None:
        import torch

        torch.set_num_threads(1)  # the tensors are small
        self.torch: typing.Any = torch  # much of it has no types
        self.version = f"torch {torch.__version__}"
        self.dtypes = {wire: getattr(torch, name) for wire, (_, _, name) in DTYPES.items()}
        self.device = device
        try:
            torch.empty(1, device=device)
        except Exception as error:
            what = f"{self.version} cannot use the device `{device}`: {error}"
            raise Refused("device-missing", what) from None

    def can_fork(self) -> bool:
        # The import of the user's code may have used threads or the GPU. Neither survives a fork:
        # a child that still counts on the threads waits for them for ever.
        self.torch.set_num_threads(1)
        return self.device == "cpu" and not self.torch.cuda.is_initialized()

    def read(self, dtype: str, shape: Shape, raw: bytes) -> Array:
        if not raw:
            return self.torch.empty(shape, dtype=self.dtypes[dtype], device=self.device)
        tensor = self.torch.frombuffer(bytearray(raw), dtype=self.dtypes[dtype]).view(shape)
        return tensor if self.device == "cpu" else tensor.to(self.device)

    def changed(self, tensor: torch.Tensor, dtype: str, shape: Shape, raw: bytes) -> bool:
        is_alike = tensor.dtype is self.dtypes[dtype] and tensor.shape == shape
        if is_alike and tensor.is_cpu and tensor.is_contiguous() and not tensor.is_neg():
            return ctypes.string_at(tensor.data_ptr(), len(raw)) != raw
        return encode_tensor(tensor) != (dtype, shape, raw)

    def must_hold(self, named: Named) -> None:
        for name, value in named.items():
            # A number by itself goes with tensors of any device.
            if isinstance(value, self.torch.Tensor) and value.dim():
                if str(value.device) != self.device:
                    what = f"`{name}` is on {value.device}, expected {self.device}"
                    raise Malformed(f"{what}, where the inputs are")

    def lost(self) -> str:
        # A kernel fails later than the call that launched it, and all later ones fail with it.
        if not self.torch.cuda.is_initialized():
            return ""
        try:
            self.torch.cuda.synchronize()
        except Exception as error:
            return f"{type(error).__name__}: {text_of(error)}".splitlines()[0]
        return ""

    def note_compiled(self) -> None:
        compile = self.torch.compile

        @functools.wraps(compile)
        def noted(*args: typing.Any, **kwargs: typing.Any) -> typing.Any:
            COMPILED.append(compile(*args, **kwargs))
            return COMPILED[-1]

        self.torch.compile = noted

    def with_gradients(self) -> typing.ContextManager[object]:
        kept: typing.ContextManager[object] = self.torch.enable_grad()
        return kept

    def as_written(self) -> typing.ContextManager[object]:
        # Nothing was compiled where torch has not imported its compiler.
        is_there = "torch._dynamo" in sys.modules and hasattr(self.torch.compiler, "set_stance")
        eager: typing.Callable[[], typing.ContextManager[object]]
        eager = lambda: self.torch.compiler.set_stance("force_eager")
        return eager() if is_there else contextlib.nullcontext()

    def hint(self, error: BaseException | None) -> str:
        if self.device == "cpu" and any(words in text_of(error) for words in NO_CUDA):
            own = "the component moves tensors to CUDA itself, while this place is the CPU"
            return f" ({own}: it should follow the device of its inputs)"
        return ""

    def computed(self, leaf: torch.Tensor) -> torch.Tensor:
        """The same numbers as a result of the leaf, whose own `.grad` can be asked for too."""
        copy = leaf.clone()
        copy.retain_grad()
        return copy

    def backward(self, loss: object) -> None:
        if isinstance(loss, self.torch.Tensor) and loss.requires_grad:
            loss.sum().backward()


def array_library(name: str | None, device: str) -> Arrays:
    kinds: dict[str, typing.Callable[[str], Arrays]]
    kinds = {"torch": Torch, "numpy": Numpy, "list": Lists}
    if name not in kinds:
        raise Refused("bad-request", f"`arrays` is `{name}`, expected one of {', '.join(kinds)}")
    try:
        return kinds[name](device)
    except Refused:
        raise
    except Exception as error:
        where = f"{sys.executable} (Python {sys.version.split()[0]})"
        raise Refused("arrays-missing", f"{where} cannot import {name}: {error}", error) from None


def find_function(target: str, constructor: Constructor) -> Function:
    """The function that `python:FILE.py:FUNCTION` or `python:MODULE:FUNCTION` names: also a method,
    or an object that can be called, of a class of which an instance is made."""
    where, _, name = target.partition(":")[2].rpartition(":")
    if not target.startswith("python:") or not where or not name:
        forms = "`python:FILE.py:FUNCTION` or `python:MODULE:FUNCTION`"
        raise Refused("bad-request", f"target `{target}`, expected {forms}")
    where = os.path.abspath(where) if where.endswith(".py") else where
    try:
        found = module_at(where)
        where = getattr(found, "__file__", None) or where
        for part in name.split("."):
            if isinstance(found, type) and is_of_instances(found, part, constructor):
                found = constructor.make(found)
            if not hasattr(found, part):
                known = [key for key in dir(found) if not key.startswith("_")]
                what = f"`{part}` is not in {where}{nearest(part, known)}"
                raise Refused("function-missing", what)
            found = getattr(found, part)
    except Refused:
        raise
    except BaseException as error:  # a script may call exit() when it is imported
        what = f"importing {where} raised {type(error).__name__}: {text_of(error)}"
        raise Refused("import-raised", what, error) from None
    if not callable(found):
        raise Refused("not-callable", f"`{name}` in {where} is {a(found)}, expected a function")
    found = instance_of(found, constructor)
    if constructor.values is not None and not constructor.is_used:
        what = f"`init` is given, and `{name}` in {where} is {a(found)}: only a class takes it"
        if isinstance(found, type):
            what = f"`{name}` in {where} has no `__call__`: a target is `…:{name}.METHOD`"
        raise Refused("signature", what)
    return found


def is_of_instances(kind: type, name: str, constructor: Constructor) -> bool:
    """Whether an attribute of a class needs an instance: a plain method, a property, or what only
    the constructor makes."""
    try:
        attribute = inspect.getattr_static(kind, name)
    except AttributeError:
        return constructor.values is not None and not hasattr(kind, name)
    is_own = isinstance(attribute, (staticmethod, classmethod, type))
    return not is_own and hasattr(type(attribute), "__get__")


def instance_of(found: typing.Any, constructor: Constructor) -> typing.Any:
    """An instance in the place of a class whose instances can be called."""
    if not isinstance(found, type) or not any("__call__" in vars(kind) for kind in found.__mro__):
        return found
    return constructor.make(found)


class Constructor:
    """Makes the instance of a class that a target names."""

    def __init__(self, load: Header, objects: Named | None = None) -> None:
        self.values: Named | None = load.field("init") if "init" in load.meta else None
        self.objects, self.device = objects or {}, load.meta.get("device", "cpu")
        self.is_used = False

    def make(self, kind: typing.Any) -> typing.Any:
        name = name_of(kind)
        values = dict(self.values or {})
        names, rest = parameters_of(kind)
        unknown = [key for key in values if key not in names and not rest]
        if unknown:
            near = nearest(unknown[0], list(names))
            raise Refused("signature", f"init: `{name}` has no parameter `{unknown[0]}`{near}")
        values = {**{n: v for n, v in self.objects.items() if n in names}, **values}
        missing = [key for key, required in names.items() if required and key not in values]
        if missing:
            what = f"`{name}` is a class, and its constructor requires `{missing[0]}`"
            near = nearest(missing[0], list(self.objects))
            remedy = "give it by `init` or `setup` in a manifest, or give an object in Python"
            raise Refused("signature", f"{what}{near}: {remedy}")
        self.is_used = True
        try:
            made = kind(**values)
        except BaseException as error:
            what = f"making a `{name}` raised {type(error).__name__}: {text_of(error)}"
            raise Refused("setup-raised", what, error) from None
        if is_module(made) and self.device != "cpu":
            made.to(self.device)
        return made


def is_module(value: object) -> bool:
    torch: typing.Any = sys.modules.get("torch")
    return bool(torch) and isinstance(value, getattr(torch.nn, "Module", ()))


def with_its_signature(function: Function, given: list[str]) -> Function:
    """A function that says what it takes, where it leaves that to another: a `torch.nn.Module` to
    its `forward`, as the `apply` of a `torch.autograd.Function`; a wrapper to what it wraps."""
    by_position = False
    if is_module(function):
        module: Function = getattr(function, "_orig_mod", function)  # under torch.compile
        inner = module.forward
    elif forward_of(function):
        inner, by_position = forward_of(function), True
    else:
        inner = wrapped_in(function, given)
    if inner is None:
        return function

    @functools.wraps(inner)
    def as_said(*args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        return function(*args, **kwargs)

    if by_position:
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)
        parameters = list(inspect.signature(inner).parameters.values())
        torch = sys.modules["torch"]
        if function.__self__.setup_context is torch.autograd.Function.setup_context:
            del parameters[0]  # the context
        parameters = [p.replace(kind=kinds[1]) if p.kind is kinds[0] else p for p in parameters]
        as_said.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return as_said


def forward_of(function: Function) -> Function | None:
    """What computes the value where a function is the `apply` of a `torch.autograd.Function`."""
    torch: typing.Any = sys.modules.get("torch")
    kind: typing.Any = getattr(function, "__self__", None)
    is_node = torch and isinstance(kind, type) and issubclass(kind, torch.autograd.Function)
    return kind.forward if is_node and function.__name__ == "apply" else None


def wrapped_in(function: Function, given: list[str]) -> Function | None:
    """What a function of `*args, **kwargs` wraps without saying so: what it names that takes some
    of what is given, where that is one function."""
    for _ in range(10):  # a wrapper may be wrapped itself
        *_, inner = unwrapped(function)
        if not takes_anything(function) or not hasattr(inner, "__code__"):
            return None
        found = [it for it in named_in(inner, inner.__code__) if callable(it) and it is not inner]
        fitting = [it for it in found if set(parameters_of(it)[0]) & set(given)]
        if len(fitting) == 1:
            return fitting[0]
        found = [it for it in found if takes_anything(it) and hasattr(it, "__code__")]
        if fitting or len(found) != 1:
            return None
        [function] = found
    return None


def takes_anything(function: Function) -> bool:
    """Whether it takes `**kwargs`, and names nothing that it takes."""
    names, rest = parameters_of(function)
    return rest and not names


def set_up(target: str) -> Named:
    """The objects that the function of `setup` makes, by name."""
    no_load: typing.Any = types.SimpleNamespace(meta={})
    make = find_function(target, Constructor(no_load))
    try:
        objects = finished(make())
    except BaseException as error:
        what = f"setup: `{target}` raised {type(error).__name__}: {text_of(error)}"
        raise Refused("setup-raised", what, error) from None
    if not isinstance(objects, dict) or not all(isinstance(name, str) for name in objects):
        what = f"setup: `{target}` returned {a(objects)}, expected a dict of objects by name"
        raise Refused("setup-raised", what)
    return objects


def with_objects(function: Function, objects: Named, given: list[str]) -> Function:
    """The function with those of the objects of `setup` that it takes."""
    twice = [name for name in objects if name in given]
    if twice:
        what = f"setup gives `{twice[0]}`, which the contract gives already"
        raise Refused("signature", f"{what}; it is for other parameters")
    names, rest = parameters_of(function)
    mine = {name: value for name, value in objects.items() if rest or name in names}
    return functools.partial(function, **mine) if mine else function


def set_by_hand(function: Function) -> Named:
    """The arguments that functools.partial has set by name."""
    return function.keywords if isinstance(function, functools.partial) else {}


class Stubs:
    """Finds modules that are not there, last of all that are asked."""

    def __init__(self, names: typing.Iterable[str]) -> None:
        self.names = tuple(names)
        self.made: list[StubModule] = []

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name in self.names or name.startswith(tuple(f"{stub}." for stub in self.names)):
            loader: typing.Any = self
            return importlib.machinery.ModuleSpec(name, loader, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> StubModule:
        self.made.append(StubModule(spec.name))
        return self.made[-1]

    def exec_module(self, module: types.ModuleType) -> None:
        pass


class StubModule(types.ModuleType):
    """A module that has everything."""

    def __getattr__(self, name: str) -> Stub:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(f"{self.__name__}.{name}")


class Stub:
    """Something of a module that is not there: it can be named, and not be called."""

    def __init__(self, name: str) -> None:
        self.__dict__["__name__"] = self.__dict__["__qualname__"] = name

    def __getattr__(self, name: str) -> typing.Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub(f"{self.__name__}.{name}")

    def __call__(self, *args: object, **kwargs: object) -> typing.NoReturn:
        module = self.__name__.partition(".")[0]
        what = f"`{self.__name__}` was called, and `{module}` is not there"
        raise ModuleNotFoundError(f"{what}: `stub` only lets it be imported", name=module)

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type]:
        name = self.__name__

        def __init__(*args: object, **kwargs: object) -> None:
            Stub(name)()

        return (type(name.rpartition(".")[2], (), {"__init__": __init__}),)

    def __repr__(self) -> str:
        return f"<stub {self.__name__}>"

    # In annotations.
    def __getitem__(self, _: object) -> Stub:
        return self

    def __or__(self, _: object) -> Stub:
        return self

    __ror__ = __or__

    def __instancecheck__(self, _: object) -> bool:
        return False

    __subclasscheck__ = __instancecheck__


def folder_of(where: str) -> list[str]:
    """The folder that is searched for `FILE.py`, in a list; none for the name of a module."""
    return [os.path.dirname(os.path.abspath(where))] if where.endswith(".py") else []


def look_in(folders: list[str]) -> None:
    """From now on the user's modules come first, and the standard library where Python has it."""
    while STANDARD:
        sys.path.remove(STANDARD.pop())
    sys.path[:0] = [folder for folder in folders if folder not in LOOKED_IN]
    LOOKED_IN.extend(folders)


LOOKED_IN: list[str] = []  # the folders that were put in front of `sys.path`


def origin_in(folders: list[str], name: str) -> str | None:
    """The file of the module of a name in these folders, or None; a plain folder is none."""
    found = importlib.machinery.PathFinder.find_spec(name, folders)
    return found.origin if found else None


def shadows(folders: list[str]) -> dict[str, str]:
    """The files and packages in these folders that are named like standard modules, by name."""
    standard = getattr(sys, "stdlib_module_names", ())  # since Python 3.10
    found: dict[str, str] = {}
    for folder in folders:
        try:
            files = sorted(os.listdir(folder or "."))
        except OSError:
            continue
        for file in files:
            path = os.path.join(folder, file)
            package = os.path.join(path, "__init__.py")
            name = file[: -len(".py")] if file.endswith(".py") else file
            if name in standard and (name != file or os.path.isfile(package)):
                found.setdefault(name, path if name != file else package)
    return found


def shadowed(files: dict[str, str]) -> str:
    """A sentence about the files of `shadows`: which of two modules an import gives."""
    won: list[str] = []
    lost: list[str] = []
    for name, path in files.items():
        try:
            spec: typing.Any = importlib.util.find_spec(name)
            origin = spec.origin
        except Exception:
            origin = None
        first = origin is not None and os.path.abspath(origin) == os.path.abspath(path)
        (won if first else lost).append(f"`{min(path, os.path.relpath(path), key=len)}`")
    parts = []
    if won:
        parts.append(f"{', '.join(won)}: shadows the standard module of that name for every import")
    if lost:
        parts.append(f"{', '.join(lost)}: the standard module of that name is imported instead")
    return "; ".join(parts) + " (another file name avoids this)"


def import_the_late_ones() -> None:
    """What Python and this file import when they first need it."""
    for name in ("asyncio", "linecache", "tokenize", "tracemalloc"):
        try:
            importlib.import_module(name)
        except ImportError:
            pass  # not every Python has it


def module_at(where: str) -> types.ModuleType:
    """The module in `FILE.py`, or of a name."""
    return import_file(os.path.abspath(where)) if where.endswith(".py") else import_module(where)


IMPORTED: dict[str, types.ModuleType] = {}  # the modules of files that were imported here, by path


def import_file(path: str) -> types.ModuleType:
    if path in IMPORTED:
        return IMPORTED[path]
    folder, file = os.path.split(path)
    if not os.path.isfile(path):
        files = os.listdir(folder) if os.path.isdir(folder) else []
        here = "" if files else f" ({folder} is not a folder)"
        known = [name for name in files if name.endswith(".py")]
        raise Refused("file-missing", f"there is no file {path}{here}{nearest(file, known)}")
    sys.path.insert(0, folder)
    stem = file[: -len(".py")]
    standard = getattr(sys, "stdlib_module_names", ())
    taken = stem in sys.modules or stem in standard
    name = f"shakedown_{stem}" if taken else stem  # never replace, say, `json`
    spec: typing.Any = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their module up here
    spec.loader.exec_module(module)
    IMPORTED[path] = module
    return module


def import_module(name: str) -> types.ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):  # not an import of its own
            what = f"{sys.executable} has no module `{error.name}`; searched {sys.path}"
            raise Refused("module-missing", what) from None
        raise


def bind(
    function: Function, inputs: list[str], options: list[str], fixed: Named, objects: Named
) -> tuple[list[str], list[str]]:
    """The names that the function takes by position and by keyword."""
    known = [name for name in (*inputs, *options) if name not in fixed]
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):  # written in C: its parameters seldom have our names
        return list(inputs), []
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        keywords = list(known)
    else:
        keywords = [p.name for p in parameters if p.name in known]
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    unknown = [p.name for p in named if p.default is p.empty and p.name not in known]
    if unknown:
        names = ", ".join(f"`{name}`{nearest(name, [*known, *objects])}" for name in unknown)
        which = f"inputs: {', '.join(inputs)}; options: {', '.join(options) or 'none'}"
        which += f"; of setup: {', '.join(objects)}" if objects else ""
        what = f"`{name_of(function)}` requires {names}, which is neither an input nor an option"
        raise Refused("signature", f"{what} ({which})")
    positional = []
    for p in named:
        if p.kind is not p.POSITIONAL_ONLY or p.name not in known:
            break  # what follows an unknown default cannot be reached by position
        positional.append(p.name)
    only = {p.name for p in named if p.kind is p.POSITIONAL_ONLY}
    return positional, [name for name in keywords if name not in only]


def with_our_names(function: Function, names: dict[str, str]) -> Function:
    """A function that takes inputs and options by names of its own, as one that takes ours."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        raise Refused("signature", f"`{name_of(function)}` does not say what it takes") from None
    ours = {theirs: name for name, theirs in names.items()}
    rest = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    unknown = [theirs for theirs in ours if theirs not in signature.parameters and not rest]
    if unknown:
        near = nearest(unknown[0], list(signature.parameters))
        what = f"`{name_of(function)}` has no parameter `{unknown[0]}`{near}"
        raise Refused("signature", what)

    @functools.wraps(function)
    def renamed(*args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        return function(*args, **{names.get(name, name): v for name, v in kwargs.items()})

    parameters = [p.replace(name=ours.get(p.name, p.name)) for p in signature.parameters.values()]
    takes = signature.replace(parameters=parameters)
    renamed.__signature__ = takes  # type: ignore[attr-defined]
    return renamed


def by_groups(function: Function, batch: str, inputs: list[str]) -> Function:
    """A function that takes groups as arrays `[B, G, …]`, as lists or one at a time, as one that
    takes rows, each with the number of its group."""
    signature = inspect.signature(function)
    parameters = dict(signature.parameters)
    rest = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    asks = "groups" in parameters or rest
    if not asks:
        parameters["groups"] = inspect.Parameter("groups", inspect.Parameter.KEYWORD_ONLY)

    @functools.wraps(function)
    def of_rows(*args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        named = {**dict(zip(parameters, args)), **kwargs}
        groups = places_of(named["groups"])
        kwargs = {name: value for name, value in kwargs.items() if asks or name != "groups"}

        def call(of: typing.Callable[[Array], typing.Any]) -> typing.Any:
            def taken(name: str, value: typing.Any) -> typing.Any:
                return of(value) if name in inputs else value

            given = [taken(name, value) for name, value in zip(parameters, args)]
            return finished(function(*given, **{n: taken(n, value) for n, value in kwargs.items()}))

        if batch == "group":
            given = [call(functools.partial(part, rows=own)) for own in groups]
            return back(given, groups, merged)
        if batch == "lists":
            given = call(lambda value: [as_list(part(value, own)) for own in groups])
            return back([given], groups, lambda lists: merged(lists[0]))
        given = call(lambda value: in_arrays(value, len(groups)))
        return back([given], groups, lambda arrays: flat(arrays[0], len(groups)))

    takes = signature.replace(parameters=list(parameters.values()))
    of_rows.__signature__ = takes  # type: ignore[attr-defined]
    return of_rows


def places_of(groups: Array) -> list[list[int]]:
    """Where the rows of each group stand, in the order in which groups first appear."""
    places: dict[typing.Any, list[int]] = {}
    for place, group in enumerate(as_list(groups)):
        places.setdefault(group, []).append(place)
    return list(places.values())


def as_list(array: Array) -> typing.Any:
    return array.tolist() if hasattr(array, "tolist") else array


def part(value: Array, rows: list[int]) -> Array:
    """Some rows of an array."""
    return value[rows] if hasattr(value, "shape") else [value[row] for row in rows]


def in_arrays(value: Array, groups: int) -> Array:
    """Rows as an array of groups of one size."""
    if hasattr(value, "shape"):
        return value.reshape((groups, -1, *value.shape[1:]))
    size = len(value) // groups
    return [value[at * size : (at + 1) * size] for at in range(groups)]


def flat(value: Array, groups: int) -> Array:
    """The rows of an array of groups. What has no rows of groups stays as it is."""
    if not hasattr(value, "shape"):
        return merged(value) if isinstance(value, list) else value
    is_of_groups = len(value.shape) > 1 and value.shape[0] == groups
    return value.reshape((-1, *value.shape[2:])) if is_of_groups else value


def merged(parts: typing.Any) -> Array:
    """The rows of all groups, one after the other, where they are not so already."""
    first = parts[0]
    if hasattr(parts, "shape") or not hasattr(first, "__len__"):
        return parts
    if hasattr(first, "new_empty"):
        import torch

        return torch.cat(list(parts))
    if hasattr(first, "shape"):
        import numpy

        return numpy.concatenate(list(parts))
    return [row for own in parts for row in own]


def back(
    given: list[typing.Any],
    groups: list[list[int]],
    joined: typing.Callable[[list[typing.Any]], Array],
) -> typing.Any:
    """What calls gave, joined and in the order of the rows again, by its names where it has any."""
    if hasattr(given[0], "_asdict"):
        given = [one._asdict() for one in given]
    if isinstance(given[0], dict):
        return {key: back([one[key] for one in given], groups, joined) for key in given[0]}
    if isinstance(given[0], tuple):
        return tuple(back(list(one), groups, joined) for one in zip(*given))
    if given[0] is None:
        return None
    rows = joined(given)
    order = [place for own in groups for place in own]
    if order == sorted(order):
        return rows
    at = sorted(range(len(order)), key=order.__getitem__)
    return part(rows, at)


def finished(result: typing.Any) -> typing.Any:
    """What a function gave, also where it is a coroutine."""
    if type(result) is not types.CoroutineType:
        if not hasattr(type(result), "__await__"):
            return result
        result = awaited(result)
    import asyncio  # slow to import, and few functions need it

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(result)
    # A loop runs in this thread already, as in a notebook: the coroutine gets one of its own.
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1).submit(asyncio.run, result).result()


async def awaited(result: typing.Awaitable[typing.Any]) -> typing.Any:
    return await result


# The names under which reward functions of TRL receive the column with the gold answers.
ANSWER_COLUMNS = ["answer", "answers", "solution", "ground_truth", "target", "label", "gold"]
# And those that get it where a function asks for them by name.
CALLED_LIKE_ANSWERS = [
    *ANSWER_COLUMNS,
    *["solutions", "ground_truths", "targets", "labels", "golds", "reference", "references"],
    *["gold_answer", "gold_answers", "gold_solution", "gt", "gt_answer", "gt_answers"],
    *["correct_answer", "correct_answers", "expected_answer", "expected_answers"],
    *["final_answer", "final_answers", "true_answer", "true_answers"],
    *["reference_answer", "reference_answers", "reference_solution", "reference_solutions"],
]
TRL_GIVES = ["prompts", "completions", "completion_ids"]
VERL_GIVES = ["data_source", "solution_str", "ground_truth", "extra_info"]


def in_signature(function: Function, signature: str, columns: Named) -> Function:
    """A reward function with the signature of a library, as one with the contract's names."""
    if signature == "by-name":
        return function
    if signature == "verl":
        return verl(function)
    if signature in ("trl", "trl-chat"):
        return trl(function, signature == "trl-chat", columns)
    raise Refused("bad-request", f"unknown signature `{signature}`")


def columns_of(load: Header) -> Named:
    """The columns of a reward function: the name of each, and what it gets."""
    columns = load.field("columns") if "columns" in load.meta else {}
    answers = load.field("answer_columns") if "answer_columns" in load.meta else []
    return {**columns, **dict.fromkeys(answers, "answers")}


def names_given(signature: str, columns: typing.Iterable[str], known: list[str]) -> list[str]:
    """The names by which a function gets something under a signature."""
    if signature == "verl":
        return VERL_GIVES
    if signature in ("trl", "trl-chat"):
        return [*TRL_GIVES, *CALLED_LIKE_ANSWERS, *columns]
    return known


def kept_defaults(function: Function, given: list[str]) -> list[tuple[str, str]]:
    """The parameters that nothing is given for, each with its default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return []
    free = [p for p in parameters if p.default is not p.empty and p.name not in given]
    return [(p.name, shown(p.default)) for p in free]


def shown(default: object) -> str:
    try:
        text = " ".join(repr(default).split())
    except Exception:
        text = a(default)
    return text if len(text) <= 40 else f"{text[:40]}…"


def source_of(function: Function) -> dict[str, str]:
    """The file and the line where a function is written; nothing where it is not in Python."""
    *_, innermost = unwrapped(function)
    code = getattr(innermost, "__code__", None)
    if not isinstance(code, types.CodeType) or not os.path.isfile(code.co_filename):
        return {}
    return {"file": os.path.abspath(code.co_filename), "line": str(code.co_firstlineno)}


def unwrapped(function: Function) -> typing.Iterator[Function]:
    """The function and what it wraps, from the outside to the inside."""
    for _ in range(100):  # what wraps it may be wrapped itself
        yield function
        inner = forward_of(function) or getattr(function, "__wrapped__", None)
        inner = inner or getattr(function, "__func__", None)
        inner = inner or getattr(function, "_torchdynamo_orig_callable", None)
        inner = inner or (function.func if isinstance(function, functools.partial) else None)
        if inner is None and is_module(function):
            inner = getattr(function, "_orig_mod", None) or function.forward
        if inner is None and not hasattr(function, "__code__") and not isinstance(function, type):
            inner = getattr(type(function), "__call__", None)  # noqa: B004 - its code
        if inner is None or not callable(inner):
            return
        function = inner


def is_compiled(function: Function) -> bool:
    """Whether torch.compile made it."""
    return (
        any(function is made for made in COMPILED)
        or hasattr(function, "_torchdynamo_orig_callable")
        or (is_module(function) and hasattr(function, "_orig_mod"))
    )


def uses_compiled(function: Function) -> bool:
    """Whether torch.compile made it, or what it names, or what that names in the same module."""
    seen: set[types.CodeType] = set()
    rest = list(unwrapped(function))
    while rest:
        function = rest.pop()
        if is_compiled(function):
            return True
        code = getattr(function, "__code__", None)
        if not isinstance(code, types.CodeType) or code in seen:
            continue
        seen.add(code)
        for found in named_in(function, code):
            if not inspect.isroutine(found) and not is_module(found):
                continue
            if is_compiled(found) or found.__module__ == function.__module__:
                rest.extend(unwrapped(found))
    return False


def named_in(function: Function, code: types.CodeType) -> typing.Iterator[typing.Any]:
    """What the names in a function's code mean: globals, those of its closure, attributes."""
    imported = [
        one for one in map(function.__globals__.get, code.co_names) if inspect.ismodule(one)
    ]
    places: list[typing.Mapping[str, typing.Any]] = [function.__globals__, *map(vars, imported)]
    with contextlib.suppress(ValueError):  # where one of its closure has no value yet
        places.append(inspect.getclosurevars(function).nonlocals)
    own = getattr(function, "__self__", None)
    if own is not None:
        theirs = vars(type(own)).items()
        methods = {n: types.MethodType(f, own) for n, f in theirs if inspect.isfunction(f)}
        places += [methods, getattr(own, "__dict__", {}), getattr(own, "_modules", {})]
    for names in places:
        yield from (names[name] for name in (*code.co_names, *code.co_freevars) if name in names)


def without_gradients(function: Function) -> str | None:
    """What of torch is around a function and keeps gradients away: `torch.no_grad`, or None."""
    torch: typing.Any = sys.modules.get("torch")
    for wrapper in unwrapped(function) if torch else ():
        if not getattr(wrapper, "__globals__", {}).get("__name__", "").startswith("torch."):
            continue
        for value in inspect.getclosurevars(wrapper).nonlocals.values():
            context = getattr(value, "__self__", value)
            if isinstance(context, torch.no_grad) or context is torch.no_grad:
                return "torch.no_grad"
            if isinstance(context, torch.inference_mode) and context.mode:
                return "torch.inference_mode"
            if isinstance(context, torch.set_grad_enabled) and not context.mode:
                return "torch.set_grad_enabled(False)"
    return None


def trl(function: Function, chat: bool, columns: Named) -> Function:
    """`f(prompts, completions, **columns) -> scores`, of strings or of lists of messages."""
    names, rest = parameters_of(function)
    answers = [name for name in CALLED_LIKE_ANSWERS if name not in columns]
    unknown = [name for name, required in names.items() if required]
    unknown = [name for name in unknown if name not in (*TRL_GIVES, *answers, *columns)]
    if unknown:
        near = nearest(unknown[0], [*TRL_GIVES, *answers, *columns])
        what = f"requires `{unknown[0]}`{near}"
        known = "TRL gives prompts, completions, completion_ids and columns"
        remedy = f"`answer_columns: [{unknown[0]}]` if it holds the gold answers"
        remedy += f", else a default, or `columns: {{{unknown[0]}: …}}` in a manifest"
        raise Refused("signature", f"`{name_of(function)}` {what}; {known}: {remedy}")
    mine = [name for name in answers if name in names]
    mine += [name for name in ANSWER_COLUMNS if rest and name not in (*mine, *columns)]

    def column(what: typing.Any, texts: dict[str, list[str]]) -> list[typing.Any]:
        if isinstance(what, str):
            return list(texts[what])
        value = what["value"] if isinstance(what, dict) else what
        return [copy.deepcopy(value) for _ in texts["completions"]]

    def message(role: str, text: str) -> str | list[dict[str, str]]:
        return [{"role": role, "content": text}] if chat else text

    def rewards(prompts: list[str], completions: list[str], answers: list[str]) -> typing.Any:
        texts = {"prompts": prompts, "completions": completions, "answers": answers}
        values = {
            "prompts": [message("user", prompt) for prompt in prompts],
            "completions": [message("assistant", completion) for completion in completions],
            "completion_ids": [list(completion.encode()) for completion in completions],
            **{column: list(answers) for column in mine},
            **{name: column(what, texts) for name, what in columns.items()},
        }
        return function(**{name: value for name, value in values.items() if rest or name in names})

    return rewards


def name_of(function: Function) -> str:
    """The name of a function, or of the class of an object."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__qualname__", None) or type(function).__qualname__


def verl(function: Function) -> Function:
    """`compute_score(data_source, solution_str, ground_truth, extra_info) -> score`, row by row."""
    given = VERL_GIVES
    names, rest = parameters_of(function)
    unknown = [name for name, required in names.items() if required and name not in given]
    if unknown:
        known = f"verl gives {', '.join(given)}"
        what = f"requires `{unknown[0]}`{nearest(unknown[0], given)}; {known}"
        raise Refused("signature", f"`{name_of(function)}` {what}")

    def score(prompt: str, completion: str, answer: str) -> typing.Any:
        row = ["shakedown", completion, answer, {"question": prompt}]
        values = {n: v for n, v in zip(given, row) if rest or n in names}
        result = finished(function(**values))
        if isinstance(result, dict):
            if "score" not in result:
                raise Malformed(f"returned a dict without `score` (it has {', '.join(result)})")
            result = result["score"]
        return result

    def rewards(prompts: list[str], completions: list[str], answers: list[str]) -> list[typing.Any]:
        return [score(*row) for row in zip(prompts, completions, answers)]

    return rewards


def parameters_of(function: Function) -> tuple[dict[str, bool], bool]:
    """The names of its parameters, each with whether it is required; whether it takes others."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return {}, True
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    rest = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return {p.name: p.default is p.empty for p in named}, rest


def encode_all(
    named: Named, text_outputs: typing.Collection[str], limit: int
) -> tuple[Meta, list[Tensor]]:
    """The metadata and the tensors of a `returned` reply."""
    replies: list[Tensor] = []
    texts: dict[str, list[str | None]] = {}
    kinds: dict[str, str] = {}
    room = limit
    for name, value in named.items():
        try:
            if name in text_outputs:
                texts[name], size = encode_texts(value, room)
            else:
                kinds[name], reply = encode(value, room)
                replies.append((name, *reply))
                size = len(reply[-1])
            room -= size
        except TooLarge as large:
            what = f"{large}, and a reply has at most {limit} bytes"
            raise Malformed(f"returned {a(value)} for `{name}`: {what}") from None
        except Exception as error:
            reason = str(error) if isinstance(error, Malformed) else repr(error)
            raise Malformed(f"returned {a(value)} for `{name}`: {reason}") from None
    meta = {"kind": "returned", "kinds": json.dumps(kinds)}
    if texts:
        meta["texts"] = json.dumps(texts)
        size = len(meta["texts"])
        if 2 * size > limit and len(json.dumps(meta["texts"])) > limit - LARGEST_REST:
            what = f"{size} bytes of texts, and a reply has at most {limit} bytes"
            raise Malformed(f"returned {what}, quotes in JSON counted")
    return meta, replies


def counted(value: typing.Any) -> typing.Any:
    """A value with all that it has yet to produce, where it is a generator, say."""
    return list(value) if hasattr(type(value), "__next__") else value


def encode(value: typing.Any, room: int) -> tuple[str, Encoded]:
    """The kind of an output, and its dtype, shape and raw bytes."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch and isinstance(value, torch.Tensor):
        must_fit(value.shape, size_of_item(str(value.dtype)[len("torch.") :]), room)
        return "tensor", encode_tensor(value)
    if numpy and isinstance(value, (numpy.ndarray, numpy.generic)):
        must_fit(value.shape, size_of_item(value.dtype.name), room)
        return "array", encode_array(value)
    if (
        not isinstance(value, (list, tuple))
        and not is_number(value)
        and not hasattr(value, "tolist")
    ):
        raise Malformed("expected an array or numbers")
    outer: list[int] = []
    item = value
    while isinstance(item, (list, tuple)):
        outer.append(len(item))
        item = item[0] if item else None
    must_fit(outer, 8, room)
    flat: list[float] = []
    shape = flatten(value, flat, room)
    return "list", ("F64", shape, struct.pack(f"<{len(flat)}d", *flat))


def must_fit(shape: typing.Sequence[int], item: int, room: int) -> None:
    """Refuses what is too large for a reply before anything is converted."""
    size = math.prod(shape) * item
    if size > room:
        raise TooLarge(f"shape {list(shape)} is {size} bytes")


def encode_tensor(tensor: torch.Tensor) -> Encoded:
    name = str(tensor.dtype)[len("torch.") :]
    dtype = wire_dtype(name)
    if tensor.is_sparse:
        tensor = tensor.to_dense()
    tensor = tensor.detach().cpu().contiguous().resolve_neg()
    if name in WIDER:
        tensor = tensor.to(getattr(sys.modules["torch"], WIDER[name]))
        must_be_signed(tensor, name)
    # `string_at` needs no numpy, knows bfloat16, and is the fastest way to the bytes.
    raw = ctypes.string_at(tensor.data_ptr(), tensor.nbytes) if tensor.nbytes else b""
    return dtype, tuple(tensor.shape), raw


def encode_array(array: Array) -> Encoded:
    name = array.dtype.name
    dtype = wire_dtype(name)
    if name in WIDER:
        array = array.astype(WIDER[name])
        must_be_signed(array, name)
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return dtype, array.shape, little.tobytes()


def wire_dtype(name: str) -> str:
    wire = ON_THE_WIRE.get(WIDER.get(name, name))
    if wire is None:
        known = ", ".join([*ON_THE_WIRE, *WIDER])
        raise Malformed(f"dtype {name}, expected one of {known}")
    return wire


def size_of_item(name: str) -> int:
    """How many bytes a number of a dtype takes on the wire."""
    return DTYPES[wire_dtype(name)][0]


def must_be_signed(array: Array, name: str) -> None:
    """Refuses numbers of a `uint64` that an `int64` does not hold, where they are negative."""
    if name == "uint64" and (array < 0).any():
        number = int(array.min()) + 2**64
        raise Malformed(f"{name} holds {number}, above the largest int64, {2**63 - 1}")


def encode_texts(value: typing.Any, room: int) -> tuple[list[str | None], int]:
    """A list of strings and nulls, and how many bytes it takes."""
    if hasattr(value, "tolist"):  # an array of strings
        must_fit(value.shape, 1, room)
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        raise Malformed("expected a list of strings")
    must_fit((len(value),), 1, room)
    size = 0
    for index, item in enumerate(value):
        if not isinstance(item, (str, type(None))):
            raise Malformed(f"expected a list of strings, item {index} is {a(item)}")
        (item or "").encode()  # refuses lone surrogates
        size += len(item or "none")
        if size > room:
            raise TooLarge(f"the texts up to item {index} are {size} bytes")
    return list(value), size


def flatten(value: typing.Any, flat: list[float], room: int) -> Shape:
    """Appends the numbers of a nested list to `flat` and gives its shape."""
    if hasattr(value, "tolist"):  # a tensor or array, perhaps of no dimension
        shape = getattr(value, "shape", None)
        shape = (len(value),) if shape is None and hasattr(value, "__len__") else shape or ()
        must_fit(shape, 8, room - 8 * len(flat))
        value = value.tolist()
    if is_number(value):
        flat.append(float(value))
        return ()
    if value is None:  # a reward that is not scorable
        flat.append(math.nan)
        return ()
    if not isinstance(value, (list, tuple)):
        raise Malformed(f"expected numbers, found {a(value)}")
    if 8 * (len(flat) + len(value)) > room:
        raise TooLarge(f"the numbers are more than {room // 8}")
    if value and NUMBERS.issuperset(map(type, value)):
        flat.extend(map(float, value))
        return (len(value),)
    shapes = [flatten(item, flat, room) for item in value]
    for index, shape in enumerate(shapes):
        if shape != shapes[0]:
            uneven = f"item 0 is {list(shapes[0])}, item {index} is {list(shape)}"
            raise Malformed(f"nested unevenly, {uneven}")
    return (len(shapes), *(shapes[0] if shapes else ()))


def is_number(value: object) -> bool:
    """Whether Python takes it for a real number, as it does `Fraction` and `Decimal`."""
    return hasattr(type(value), "__float__") and not hasattr(value, "tolist")


def fold(flat: list[typing.Any], shape: Shape) -> typing.Any:
    """The nested list of this shape."""
    if not shape:
        return flat[0]
    if len(shape) == 1:
        return flat
    step = math.prod(shape[1:])
    return [fold(flat[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


def nest(tensors: Named) -> Named:
    """Tensors named `batches.0.mask` as a list of dicts under `batches`."""
    tree: Named = {}
    for name, value in tensors.items():
        *parents, last = name.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[last] = value
    return {name: listed(node) for name, node in tree.items()}


def listed(node: typing.Any) -> typing.Any:
    if not isinstance(node, dict):
        return node
    if all(key.isdigit() for key in node):
        return [listed(node[key]) for key in sorted(node, key=int)]
    return {key: listed(value) for key, value in node.items()}


def found_at(name: str, tree: typing.Any) -> typing.Any:
    """What a name such as `batches.0.mask` means in a tree, or None."""
    for part in name.split("."):
        try:
            tree = tree[int(part) if part.isdigit() else part]
        except (KeyError, IndexError, TypeError):
            return None
    return tree


def same(tree: typing.Any, other: typing.Any) -> bool:
    """Whether two trees have the same form and the very same leaves."""
    if not isinstance(tree, (dict, list)):
        return tree is other
    kind: object = type(tree)
    if type(other) is not kind or len(tree) != len(other):
        return False
    if isinstance(tree, dict):
        return list(tree) == list(other) and all(map(same, tree.values(), other.values()))
    return all(map(same, tree, other))


def died(code: int) -> Meta:
    """The reply for a process that ended."""
    if code >= 0:
        return {"kind": "died", "how": "exit", "code": str(code)}
    return {"kind": "died", "how": "signal", "signal": str(-code), "name": death(code)}


def death(code: int) -> str:
    """How a process ended, in words: a negative code is a signal."""
    if code >= 0:
        return f"exit {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"  # a real-time signal has no name


def raised(error: BaseException, step: str, hint: str) -> Meta:
    return {
        "kind": "raised",
        "type": type(error).__name__,
        "message": step + text_of(error) + hint,
        "traceback": user_traceback(error),
    }


def user_traceback(error: BaseException) -> str:
    """The end of the traceback, without the frames of this file and of the import machinery."""
    trace = error.__traceback__
    while trace and (
        trace.tb_frame.f_globals is globals()
        or trace.tb_frame.f_globals.get("__name__", "").startswith("importlib")
    ):
        trace = trace.tb_next
    text = "".join(traceback.format_exception(type(error), error, trace, -TRACEBACK_LINES))
    return "\n".join(cut(line) for line in text.splitlines()[-TRACEBACK_LINES:])


def text_of(error: object) -> str:
    try:
        return cut(str(error))
    except Exception:
        return "(its message cannot be shown)"


def cut(text: str) -> str:
    """The text, or its beginning where it is very long: a tensor in a message has no end."""
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[:LONGEST_TEXT]}… ({len(text)} characters)"


def nearest(name: str, known: typing.Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f" (did you mean `{close[0]}`?)" if close else ""


def a(value: object) -> str:
    """The kind of a value, as a sentence needs it."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


if __name__ == "__main__":
    main()
