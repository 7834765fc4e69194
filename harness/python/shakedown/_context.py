"""Where a check runs. The plugin of pytest sets it, in each test; the check reads it."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import typing

if typing.TYPE_CHECKING:
    from ._report import Report
    from ._settings import Settings


def by_hand() -> str:
    """How a case is checked again outside pytest."""
    return "call `check` again with `examples`"


def no_settings() -> Settings:
    return {}


@dataclasses.dataclass
class Context:
    """What a check takes from where it runs."""

    folder: str | None = None
    """Holds `.shakedown` and `corpora`; None: the working folder."""
    corpora: str = "corpora"
    overrides: Settings = dataclasses.field(default_factory=no_settings)
    """Settings that come before those in the code."""
    defaults: Settings = dataclasses.field(default_factory=no_settings)
    """Settings that come after them."""
    name: str | None = None
    """Of the test."""
    replay: typing.Callable[[], str] = by_hand
    """How a case is checked again; `{file}` is the case."""
    case: str | None = None
    """A case file: this case and no other."""
    fuzz: float | None = None
    """Seconds to search for, in place of a number of cases."""
    passes_on: tuple[type[BaseException], ...] = ()
    """Exceptions that end a check, besides those of Python itself."""
    is_debugged: bool = False
    """A debugger is in a call: no limit applies."""
    tell: typing.Callable[[Report], None] = lambda report: None
    """What is done with every report."""


_HERE: contextvars.ContextVar[Context] = contextvars.ContextVar("shakedown")
# For threads, which begin without a context: that of the test that runs, if one does.
_OF_THREADS = [Context()]


def here() -> Context:
    """Where this check runs."""
    return _HERE.get(_OF_THREADS[-1])


@contextlib.contextmanager
def within(context: Context) -> typing.Iterator[None]:
    """Checks in it run there."""
    token = _HERE.set(context)
    _OF_THREADS.append(context)
    try:
        yield
    finally:
        _OF_THREADS.pop()
        _HERE.reset(token)
