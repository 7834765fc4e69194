"""What this package raises."""

from __future__ import annotations

import functools
import typing

if typing.TYPE_CHECKING:
    from ._report import Said

Call = typing.TypeVar("Call", bound=typing.Callable[..., typing.Any])


class Broken(AssertionError):
    """An invariant does not hold. The message is the text of the report."""

    def __init__(self, report: Said) -> None:
        super().__init__("\n" + report.text.rstrip("\n"))
        self.report = report


class UsageError(ValueError):
    """Something was asked for that cannot be had: a name that is not known, a value out of range,
    a function that cannot be called, a check that checked nothing."""


class EngineError(RuntimeError):
    """The command is missing, of another version, or dead: with its last words."""


class CollectiveMismatch(RuntimeError):
    """Ranks that would wait for each other forever: one skips a collective, calls another one, or
    calls it with another shape, dtype, reduction or root. The message has the line of each rank."""


def brief(function: Call) -> Call:
    """The function, whose errors end in the line that calls it: none of the frames inside it."""

    @functools.wraps(function)
    def called(*args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        __tracebackhide__ = True
        try:
            return function(*args, **kwargs)
        except (UsageError, EngineError, CollectiveMismatch) as error:
            raise error.with_traceback(None) from None

    return typing.cast(Call, called)


for public in (Broken, UsageError, EngineError, CollectiveMismatch):
    public.__module__ = "shakedown"
