"""The ranks of data-parallel training, as threads of this process."""

from __future__ import annotations

import operator
import typing

from ._errors import UsageError, brief

if typing.TYPE_CHECKING:
    import torch

Result = typing.TypeVar("Result")
Given = typing.Any  # an argument: a tensor, whose rows are dealt to the ranks, or any other value


def ranks(n: int) -> Ranks:
    """`n` ranks of data-parallel training, as threads of this process.

    In each of them torch.distributed is initialised, and its collectives work as in `n` processes.
    One rank runs at a time, so results do not vary. Ranks that would wait for each other forever
    are a `CollectiveMismatch`, which names the line of each.
    """
    try:
        size = operator.index(n)
    except TypeError:
        size = 0
    if size < 1 or isinstance(n, bool):
        raise UsageError(f"ranks: expected a number of ranks, 1 or more, found {n!r}")
    return Ranks(size)


class Ranks:
    """Calls functions on several ranks. `shakedown.ranks(4)` makes it."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __repr__(self) -> str:
        return f"shakedown.ranks({self.size})"

    @brief
    def run(self, function: typing.Callable[[int], Result]) -> list[Result]:
        """Calls `function(rank)` on every rank: the results by rank.

        Where ranks raise, the exception of the first of them is raised.
        """
        return self._run(function)

    def _run(self, function: typing.Callable[[int], Result]) -> list[Result]:
        try:
            from . import _process_group
        except ImportError as error:
            raise UsageError(f"ranks: torch.distributed is needed: {error}") from None
        return _process_group.Run(self.size).call(function)

    @brief
    def mean(
        self, function: typing.Callable[..., Given], *args: Given, **kwargs: Given
    ) -> torch.Tensor:
        """The mean over the ranks of a loss, each on its own rows: what training minimises.

        The rows of every tensor are dealt to the ranks in order, as equally as can be; a rank may
        get none. Other values are given to every rank. The gradient is the mean of those of the
        ranks, as DistributedDataParallel applies it.
        """
        from . import _rank_loss

        shards = self._shards("mean", args, kwargs)
        losses = self._run(lambda rank: _rank_loss.of(function, *shards[rank]))
        return _rank_loss.mean(losses)

    @brief
    def gather(
        self, function: typing.Callable[..., torch.Tensor], *args: Given, **kwargs: Given
    ) -> torch.Tensor:
        """The rows that the ranks return, each for its own rows, in order and without gradients.

        The arguments are those of `mean`.
        """
        import torch

        shards = self._shards("gather", args, kwargs)

        def rows(rank: int) -> torch.Tensor:
            own, named = shards[rank]
            found = function(*own, **named)
            if not isinstance(found, torch.Tensor) or found.dim() == 0:
                raise UsageError(f"gather: expected a tensor with rows, found {found!r}")
            return found

        with torch.no_grad():
            return torch.cat(self._run(rows))

    def _shards(
        self, name: str, args: tuple[Given, ...], kwargs: dict[str, Given]
    ) -> list[tuple[tuple[Given, ...], dict[str, Given]]]:
        """The arguments of each rank."""
        import torch

        def has_rows(given: Given) -> bool:
            return isinstance(given, torch.Tensor) and given.dim() > 0

        given = [*args, *kwargs.values()]
        sizes = {len(it) for it in given if has_rows(it)}
        if len(sizes) != 1:
            found = " and ".join(map(str, sorted(sizes))) or "no tensor"
            hint = "take a tensor that every rank has whole from outside the function"
            raise UsageError(
                f"{name}: expected tensors with equal numbers of rows, found {found}; {hint}"
            )
        n = self.size
        dealt = [it.tensor_split(n) if has_rows(it) else [it] * n for it in given]
        return [(own[: len(args)], dict(zip(kwargs, own[len(args) :]))) for own in zip(*dealt)]
