"""A process group of torch.distributed whose ranks are threads that take turns."""

from __future__ import annotations

import contextlib
import os
import sys
import typing

import torch

# Binds the groups of its defaults when it is imported, so not in a rank.
import torch.distributed.nn.functional
from torch import distributed as dist
from torch.distributed import distributed_c10d as c10d

from ._errors import CollectiveMismatch, UsageError
from ._turns import Turns

if typing.TYPE_CHECKING:
    import types

NAME = "shakedown"
REDUCTIONS: dict[str, typing.Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "SUM": torch.add,
    "AVG": torch.add,
    "PRODUCT": torch.mul,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
    "BAND": torch.bitwise_and,
    "BOR": torch.bitwise_or,
    "BXOR": torch.bitwise_xor,
}
NOT_THE_USERS = ("torch", "accelerate", "shakedown", "threading")  # packages, in a stack

Options = typing.Any  # of a collective, as torch has them
TORCH: typing.Any = torch  # where its own types are in the way
Tensors = list[torch.Tensor]
Parts = typing.Sequence[typing.Optional[torch.Tensor]]
Function = typing.Callable[[int], typing.Any]


class Call(typing.NamedTuple):
    """What one rank brings to a collective."""

    name: str
    how: str  # the reduction, the root, or neither
    sent: Parts  # to each rank of the group
    into: Parts  # from each rank; where they are reduced one, the result
    line: tuple[str, int] | None  # where the user's code calls it; None: in a backward pass
    among: list[int] | None  # the ranks of the group, where it is not that of all

    def __str__(self) -> str:
        tensors = [tensor for tensor in [*self.sent, *self.into] if tensor is not None]
        of = f" of {written(tensors[0])}" if tensors else ""
        how = f" ({self.how})" if self.how else ""
        among = f" among ranks {self.among}" if self.among else ""
        return f"{self.name}{how}{of}{among} {place(self.line)}"

    def reduction(self) -> str | None:
        """The reduction, where values of several ranks become one."""
        name = self.how.partition(" ")[0]
        return name if name in REDUCTIONS else None


class Collective:
    """One collective of a group: the call of each of its ranks."""

    def __init__(self, ranks: typing.Sequence[int]) -> None:
        self.ranks = ranks
        self.calls: dict[int, Call] = {}
        self.is_done = False

    def finish(self) -> bool:
        """Writes what each rank gets, once all are there. Returns whether the calls fit."""
        calls = [self.calls[rank] for rank in self.ranks]
        if len({(call.name, call.how) for call in calls}) > 1:
            return False
        moved = [*moves(calls)]
        for into, values in moved:
            if any(it.shape != into.shape or it.dtype != into.dtype for it in values):
                return False
        with torch.no_grad():
            results = [reduced(values, calls[0].reduction()) for _, values in moved]
            for (into, _), result in zip(moved, results):
                into.data.copy_(result)  # as in the libraries, behind the back of autograd
        self.is_done = True
        return True


def moves(calls: list[Call]) -> typing.Iterator[tuple[torch.Tensor, list[typing.Any]]]:
    """The tensors into which a collective writes, each with the values for it."""
    for rank, call in enumerate(calls):
        arrived = [other.sent[rank] for other in calls]
        each = [arrived] if call.reduction() else [[value] for value in arrived]
        yield from ((into, values) for into, values in zip(call.into, each) if into is not None)


def reduced(values: list[torch.Tensor], reduction: str | None) -> torch.Tensor:
    """The values as one, in the order of their ranks."""
    result = values[0]
    for value in values[1:]:
        result = REDUCTIONS[reduction or ""](result, value.to(result.device))
    if reduction != "AVG":
        return result
    rounding = None if result.is_floating_point() or result.is_complex() else "trunc"
    return torch.div(result, len(values), rounding_mode=rounding)


def written(tensor: torch.Tensor) -> str:
    """The dtype and shape of a tensor: `float32 [2, 3]`."""
    return f"{str(tensor.dtype).partition('.')[2]} {list(tensor.shape)}"


def line() -> tuple[str, int] | None:
    """The line of the user's code that runs."""
    frame: types.FrameType | None = sys._getframe()
    while frame is not None:
        if package(frame) not in NOT_THE_USERS:
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def in_user_code(error: BaseException) -> types.TracebackType | None:
    """The traceback of an error in a rank, from the user's function on."""
    first = error.__traceback__
    while first is not None and package(first.tb_frame) == NAME:
        first = first.tb_next
    return first or error.__traceback__


def package(frame: types.FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


def place(line: tuple[str, int] | None) -> str:
    if line is None:
        return "in the backward pass"
    path = os.path.relpath(line[0])
    return f"at {line[0] if path.startswith(os.pardir) else path}:{line[1]}"


class Work(dist.Work):
    """The handle of a collective."""

    def __init__(self, turns: Turns, collective: Collective, call: Call) -> None:
        super().__init__()
        self.turns, self.collective, self.call = turns, collective, call

    def wait(self, timeout: object = None) -> bool:
        if not self.collective.is_done:
            self.turns.wait_until(lambda: self.collective.is_done)
        return True

    def is_completed(self) -> bool:
        return self.wait()

    def get_future(self) -> typing.Any:
        self.wait()
        future: torch.futures.Future[Tensors] = torch.futures.Future()
        future.set_result([into for into in self.call.into if into is not None])
        return future


class Group(TORCH.distributed.ProcessGroup):  # type: ignore[misc]
    """A process group of one rank of a run."""

    def __init__(self, run: Run, rank: int, size: int, name: str, ranks: list[int]) -> None:
        super().__init__(rank, size)
        self.run, self.name_in_run, self.ranks = run, name, ranks
        self.calls = 0

    def getBackendName(self) -> str:  # noqa: N802
        return NAME

    @property
    def group_name(self) -> str:
        return self.name_in_run

    def _set_group_name(self, name: str) -> None:
        pass

    def shutdown(self) -> None:
        pass

    def join(self, name: str, sent: Parts, into: Parts, how: str = "") -> Work:
        """Takes part in the next collective of this group."""
        self.calls += 1
        among = self.ranks if len(self.ranks) < self.run.size else None
        call = Call(name, how, sent, into, line(), among)
        key = self.name_in_run, *self.ranks, self.calls
        rank = self.ranks[self.rank()]
        return Work(self.run.turns, self.run.joined(key, self.ranks, rank, call), call)

    def to_all(self, tensor: torch.Tensor) -> Parts:
        return [tensor] * self.size()

    def at(self, rank: int, tensor: torch.Tensor) -> Parts:
        """A tensor for one rank, nothing for the others."""
        return [tensor if other == rank else None for other in range(self.size())]

    def none(self) -> Parts:
        return [None] * self.size()

    def each(self, name: str, tensors: Tensors) -> Tensors:
        """Tensors, one for each rank."""
        if len(tensors) != self.size():
            expected = f"one tensor for each of {self.size()} ranks"
            raise UsageError(f"{name}: expected {expected}, found {len(tensors)}")
        return tensors

    # What torch.distributed calls.

    def allreduce(self, tensors: Tensors, opts: Options = None) -> Work:
        how = reduction_of(opts or c10d.AllreduceOptions())
        return [self.join("all_reduce", self.to_all(it), [it], how) for it in tensors][-1]

    allreduce_coalesced = allreduce

    def reduce(self, tensors: Tensors, opts: Options) -> Work:
        how = f"{reduction_of(opts)} to {opts.rootRank}"
        into = tensors if opts.rootRank == self.rank() else [None]
        return self.join("reduce", self.at(opts.rootRank, tensors[0]), into, how)

    def reduce_scatter(self, outputs: Tensors, inputs: list[Tensors], opts: Options = None) -> Work:
        sent = self.each("reduce_scatter", inputs[0])
        how = reduction_of(opts or c10d.ReduceScatterOptions())
        return self.join("reduce_scatter", sent, outputs, how)

    def _reduce_scatter_base(
        self, output: torch.Tensor, given: torch.Tensor, opts: Options
    ) -> Work:
        sent = given.view(self.size(), *output.shape).unbind()
        return self.join("reduce_scatter_tensor", sent, [output], reduction_of(opts))

    def reduce_scatter_tensor_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Options = None
    ) -> Work:
        opts = opts or c10d.ReduceScatterOptions()
        return [self._reduce_scatter_base(*pair, opts) for pair in zip(outputs, inputs)][-1]

    def broadcast(self, tensors: Tensors, opts: Options) -> Work:
        root = opts.rootRank
        sent = self.to_all(tensors[0]) if root == self.rank() else self.none()
        return self.join("broadcast", sent, self.at(root, tensors[0]), f"from {root}")

    def allgather(self, outputs: list[Tensors], inputs: Tensors, opts: Options = None) -> Work:
        into = self.each("all_gather", outputs[0])
        return self.join("all_gather", self.to_all(inputs[0]), into)

    def _allgather_base(
        self, output: torch.Tensor, given: torch.Tensor, opts: Options = None
    ) -> Work:
        into = output.view(self.size(), *given.shape).unbind()
        return self.join("all_gather_into_tensor", self.to_all(given), into)

    def allgather_into_tensor_coalesced(
        self, outputs: Tensors, inputs: Tensors, opts: Options = None
    ) -> Work:
        return [self._allgather_base(*pair) for pair in zip(outputs, inputs)][-1]

    def gather(self, outputs: list[Tensors], inputs: Tensors, opts: Options) -> Work:
        root = opts.rootRank
        into = self.each("gather", outputs[0]) if root == self.rank() else self.none()
        return self.join("gather", self.at(root, inputs[0]), into, f"to {root}")

    def scatter(self, outputs: Tensors, inputs: list[Tensors], opts: Options) -> Work:
        root = opts.rootRank
        sent = self.each("scatter", inputs[0]) if root == self.rank() else self.none()
        return self.join("scatter", sent, self.at(root, outputs[0]), f"from {root}")

    def alltoall(self, outputs: Tensors, inputs: Tensors, opts: Options = None) -> Work:
        sent, into = self.each("all_to_all", inputs), self.each("all_to_all", outputs)
        return self.join("all_to_all", sent, into)

    def alltoall_base(
        self,
        output: torch.Tensor,
        given: torch.Tensor,
        output_sizes: list[int] | None,
        input_sizes: list[int] | None,
        opts: Options = None,
    ) -> Work:
        def parts(tensor: torch.Tensor, sizes: list[int] | None) -> Tensors:
            sizes = list(sizes or [len(tensor) // self.size()] * self.size())
            return list(torch.split(tensor, sizes))

        sent, into = parts(given, input_sizes), parts(output, output_sizes)
        return self.join("all_to_all_single", sent, into)

    def barrier(self, opts: Options = None) -> Work:
        return self.join("barrier", self.none(), self.none())

    def send(self, *_: object) -> typing.NoReturn:
        raise UsageError("ranks: `send` and `recv` between two ranks are not emulated")

    recv = recv_anysource = send


def reduction_of(opts: Options) -> str:
    """The name of a reduction."""
    name: str = opts.reduceOp.op.name
    if name not in REDUCTIONS:
        raise UsageError(f"ranks: the reduction {name} is not emulated")
    return name


def made(options: Options, _: object) -> Group:
    """Makes a process group for the rank that runs."""
    run = Run.running
    if run is None:
        raise UsageError(f"the backend `{NAME}` is for the ranks of `shakedown.ranks`")
    ranks = options.global_ranks_in_group or list(range(options.group_size))
    return Group(run, options.group_rank, options.group_size, options.group_id, ranks)


dist.Backend.register_backend(NAME, made, extended_api=True, devices=["cpu", "cuda"])


def fresh() -> dict[str, object]:
    """What torch.distributed keeps in its module, as it is before there is any group."""
    dicts = ("_pg_map", "_pg_names", "_pg_group_ranks", "_pg_backend_config")
    return {
        **{name: {} for name in (*dicts, "_tags_to_pg", "_pg_to_tag")},
        "_world": c10d._World(),
        "_group_count": 0,
        "_backend": None,
        "_default_pg_init_method": None,
        "_is_barrier_after_init": lambda: 0,  # it would wait in C++
    }


def kept() -> dict[str, object]:
    """The same, as it is now."""
    return {name: getattr(c10d, name) for name in fresh()}


class Run:
    """One call of a function on all ranks."""

    running: typing.ClassVar[Run | None] = None

    def __init__(self, size: int) -> None:
        self.size = size
        self.turns = Turns(size, self.enter)
        self.store = TORCH.distributed.HashStore()
        self.open: dict[object, Collective] = {}  # which some of its ranks have not called
        self.disagreed: Collective | None = None
        self.states = [fresh() for _ in range(size)]
        self.rank: int | None = None  # whose state torch has; None: what was there before

    def call(self, function: Function) -> list[typing.Any]:
        """Its results by rank."""
        if Run.running:
            raise UsageError("ranks: called in a rank; ranks have no ranks of their own")
        with self.apart():
            self.turns.run(self.as_rank(function))
        if self.disagreed:
            raise mismatch([self.disagreed], self.disagreed.ranks)
        for turn in self.turns.turns:
            if turn.error:
                if hasattr(turn.error, "add_note"):
                    turn.error.add_note(f"raised on rank {turn.number} of {self.size}")
                raise turn.error.with_traceback(in_user_code(turn.error))
        if self.open:
            raise mismatch([*self.open.values()], range(self.size))
        return [turn.result for turn in self.turns.turns]

    def as_rank(self, function: Function) -> Function:
        """The function with a process group around it, and the caller's mode of autograd."""
        with_grad = torch.is_grad_enabled()

        def called(rank: int) -> typing.Any:
            one_thread = torch.autograd.set_multithreading_enabled(False)
            with torch.set_grad_enabled(with_grad), one_thread:
                dist.init_process_group(NAME, store=self.store, rank=rank, world_size=self.size)
                try:
                    return function(rank)
                finally:
                    # A thread that could not be ended in time comes too late.
                    if Run.running is self and dist.is_initialized():
                        dist.destroy_process_group()

        return called

    @contextlib.contextmanager
    def apart(self) -> typing.Iterator[None]:
        """Leaves torch.distributed as it was, whatever the ranks do."""
        theirs, hook = kept(), sys.excepthook
        isolate = TORCH._C._distributed_c10d._set_thread_isolation_mode
        try:
            Run.running = self
            isolate(True)
            yield
        finally:
            isolate(False)
            vars(c10d).update(theirs)
            c10d._update_default_pg(c10d._world.default_pg)
            sys.excepthook = hook
            Run.running = None

    def enter(self, rank: int) -> None:
        """Makes the state of a rank that of torch.distributed."""
        if self.rank is not None:
            self.states[self.rank] = kept()
        vars(c10d).update(self.states[rank])
        self.rank = rank

    def joined(self, key: object, ranks: list[int], rank: int, call: Call) -> Collective:
        """The collective that a rank calls; the last one of the group finishes it."""
        collective = self.open.setdefault(key, Collective(ranks))
        collective.calls[rank] = call
        if len(collective.calls) == len(ranks):
            if not collective.finish():
                self.disagreed = collective
                self.turns.stop()
            del self.open[key]
        return collective


def mismatch(collectives: list[Collective], ranks: typing.Iterable[int]) -> CollectiveMismatch:
    """The error of ranks that wait for each other: what each of them waits for."""
    waiting: dict[str, list[str]] = {}
    for rank in ranks:
        calls = (str(it.calls[rank]) for it in collectives if rank in it.calls)
        waiting.setdefault(next(calls, "has returned"), []).append(str(rank))
    each = [
        f"rank{'s' * (len(ranks) > 1)} {', '.join(ranks)}: {call}"
        for call, ranks in waiting.items()
    ]
    return CollectiveMismatch(f"the ranks do not call the same collective: {'; '.join(each)}")
