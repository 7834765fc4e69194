"""Tests of whole trainers: they take a puppet, and what happened to it is the answer."""

from __future__ import annotations

import functools
import inspect
import typing

from ._errors import UsageError

if typing.TYPE_CHECKING:
    from ._contract import Contract, Function


def is_led(function: Function) -> bool:
    """Whether a function takes a `puppet`."""
    try:
        return "puppet" in inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C
        return False


def component(function: Function, contract: Contract) -> Function:
    """A function of the inputs of a step contract: it calls the given one with a puppet for the
    case, and returns what was observed.

    Options that the given function does not name are those of the contract: they do not change
    from case to case.
    """
    try:
        from .trainers.puppet import seeded
        from .trainers.puppets import BY_CONTRACT
    except ImportError as error:
        raise UsageError(f"{contract.id}: `puppet` needs torch and transformers: {error}") from None

    kind = BY_CONTRACT[contract.id]
    inputs = [*kind.axes]
    needed = {*inspect.signature(kind).parameters} - {*inputs, "prompts"}
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    bound = function.keywords if isinstance(function, functools.partial) else {}
    declared = inspect.signature(type(contract)).parameters.values()
    options = {**{p.name: p.default for p in declared}, **contract.options}
    ours = {theirs: name for name, theirs in contract._settings.get("names", {}).items()}
    named = {name: ours.get(name, name) for name in inspect.signature(function).parameters}
    named = {n: o for n, o in named.items() if n not in bound and o in (*inputs, *options)}

    @functools.wraps(inner)
    def led(**given: object) -> dict[str, object]:
        __tracebackhide__ = True
        in_force = options | {ours.get(name, name): value for name, value in given.items()}
        case = [in_force.get(name) for name in inputs]
        puppet = kind(*case, **{name: in_force[name] for name in needed})
        with seeded(0):  # it may shuffle rows
            function(puppet=puppet, **{name: given[name] for name in named})
        return dict(puppet.outputs())

    by_name = inspect.Parameter.KEYWORD_ONLY
    names = dict.fromkeys([*inputs, *named])
    parameters = [inspect.Parameter(name, by_name) for name in names]
    led.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return led
