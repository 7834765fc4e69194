"""Contracts with their options, as checks and as decorators of tests."""

from __future__ import annotations

import copy
import functools
import inspect
import typing

from ._errors import UsageError, brief
from ._settings import SETTINGS, Settings, problem, unknown
from ._stub import must_be_modules

if typing.TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy
    from typing_extensions import Self, Unpack

    from ._report import Report

Function = typing.Callable[..., object]


class Contract:
    """A contract with its options: `shakedown.PolicyLoss(clip_low=0.2)`, or by its name,
    `shakedown.contract("policy-loss", clip_low=0.2)`.

    As a decorator it makes a test of a function that gets the inputs and options that it names and
    returns the outputs: a value, a tuple in their order, or a dict. Its other parameters are
    fixtures, set up once for the whole check. A test of a whole trainer takes a `puppet` instead of
    inputs, and returns nothing.
    """

    id: typing.ClassVar[str]
    inputs: typing.ClassVar[tuple[str, ...]]
    options: dict[str, object]
    """The options as they were written; the others have the contract's defaults."""
    _settings: Settings

    @brief
    def __new__(cls, *args: object, **options: object) -> Self:
        if cls is Contract:
            raise UsageError("Contract is made by `shakedown.contract(NAME)` or by its own class")
        if args:
            raise UsageError(f"{cls.id}: options are keyword arguments, found {args[0]!r}")
        for name in options:
            if name not in cls.option_names():
                raise UsageError(f"{cls.id}: options: {unknown('key', name, cls.option_names())}")
        self = super().__new__(cls)
        self.options = options
        self._settings = {}
        return self

    @classmethod
    def option_names(cls) -> list[str]:
        """The names of all options of the contract."""
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Contract) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, str, str]:
        return self.id, repr(sorted(self.options.items())), repr(sorted(self._settings.items()))

    def __repr__(self) -> str:
        def written(values: typing.Mapping[str, object]) -> str:
            return ", ".join(f"{name}={value!r}" for name, value in values.items())

        settings = f".settings({written(self._settings)})" if self._settings else ""
        return f"shakedown.{type(self).__name__}({written(self.options)}){settings}"

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (type(self), self.options, self._settings)

    @brief
    def settings(self, **settings: Unpack[Settings]) -> Self:
        """The same contract, checked in another way: a copy.

        places: list[str]           where, one test for each: `["cpu/f32", "cuda/bf16"]`; the
                                    default is `cpu/f32`, or what SHAKEDOWN_PLACES says
        cases: int = 256            random cases after the corners
        seed: int = 0               of the random cases
        time: float | None = 30     seconds for the cases, and as long again for shrinking and
                                    diagnosing; the report says for how many cases they sufficed
        tolerance: float = 1.0      a factor on every tolerance, which the report mentions
        skip, known: dict[str, str] invariant -> why it is left out, or why it is expected to fail
        only: list[str]             these invariants and no others
        arrays: "torch" | "numpy" | "list" | None   what the function gets; None: torch where it
                                    can be imported, else numpy, else lists
        signature: "by-name" | "trl" | "trl-chat" | "verl"   of a reward function
        answer_columns: list[str]   the columns with the gold answers, under `trl` and `trl-chat`
        columns: dict               under the same, others: `"answers"`, `"prompts"` or a value
        names: dict[str, str]       an input or option -> the function's own name for it
        batch: "groups" | "lists" | "group" | None   how the function takes groups: arrays
                                    `[B, G, …]`, lists of lists, one at a time; None: as rows,
                                    each with the number of its group
        examples: list[dict]        cases to begin with, values by the name of the input
        timeout: float | None = 10  seconds that a call may take, the first one six times as long
        isolate: bool = False       calls in a forked child, which may crash or hang
        stub: list[str]             modules that may be missing, while the test and its fixtures
                                    run; `shakedown.stub` is for the imports of its file
        name: str | None            in reports; the default is the test's or the function's
        """
        for name, given in settings.items():
            if name in self.option_names() and name not in SETTINGS:
                how = f"shakedown.{type(self).__name__}({name}=…)"
                raise UsageError(f"{self.id}: settings: `{name}` is an option: {how}")
            if name not in SETTINGS:
                raise UsageError(f"{self.id}: settings: {unknown('key', name, list(SETTINGS))}")
            why = problem(name, {**SETTINGS}[name], given)
            if why:
                raise UsageError(f"{self.id}: settings: {name}: {why}")
        must_be_modules(f"{self.id}: settings: stub", settings.get("stub", []))
        other = copy.copy(self)
        other._settings = {**self._settings, **settings}
        return other

    def _with(self, options: dict[str, object]) -> Self:
        """The same with more options, none of which is given already."""
        twice = [name for name in options if name in self.options]
        if twice:
            why = "is parametrised, and given to the contract too"
            raise UsageError(f"{self.id}: options: `{twice[0]}` {why}")
        return _again(type(self), {**self.options, **options}, self._settings)

    @brief
    def check(self, function: Function) -> Report:
        """Checks a function and gives the report.

        Raises Broken unless every invariant holds.
        """
        __tracebackhide__ = True
        report = self.report(function)
        report.verify()
        return report

    @brief
    def report(self, function: Function) -> Report:
        """Checks a function and gives the report, whatever it says."""
        from . import _drive

        if self._is_of_trainers():
            from . import _puppet

            if _puppet.is_led(function):
                function = _puppet.component(function, self)
        return _drive.check(self.id, self.options, self._settings, function)

    @brief
    def cases(self, n: int = 256, seed: int = 0, place: str = "cpu/f32") -> list[dict[str, object]]:
        """Cases by the name of the input: the corners first, then `n` drawn."""
        from . import _cases

        return _cases.cases(self.id, self.options, self._settings, n, seed, place)

    @brief
    def strategy(
        self, n: int = 256, seed: int = 0, place: str = "cpu/f32"
    ) -> SearchStrategy[dict[str, object]]:
        """A strategy of Hypothesis that gives these cases, and shrinks towards the simplest."""
        from hypothesis import strategies

        from . import _cases

        how = self.id, self.options, self._settings, n, seed, place
        return strategies.sampled_from(_cases.cases(*how, simplest_first=True))

    def _is_of_trainers(self) -> bool:
        """Whether whole trainers are checked, which may ask for a `puppet`."""
        return self.id.endswith("-step")

    def _given(self) -> list[str]:
        """The names by which a function may ask for something of the contract."""
        own = [*self.inputs, *self.option_names()]
        if self._is_of_trainers():
            own.append("puppet")
        signature = self._settings.get("signature", "by-name")
        if signature == "by-name":
            return own
        from . import _serve

        columns = [*self._settings.get("answer_columns", []), *self._settings.get("columns", {})]
        return _serve.names_given(signature, columns, own)

    def __call__(self, function: Function) -> typing.Callable[..., None]:
        """Makes a test of a function."""

        @functools.wraps(function)
        def test(*args: object, **kwargs: typing.Any) -> None:
            __tracebackhide__ = True
            contract = self
            options = {name: kwargs.pop(name) for name in decorated.parametrised & {*kwargs}}
            if options:
                contract = contract._with(options)
            if decorated.has_places:
                contract = contract.settings(places=[kwargs.pop("place")])
            contract.check(functools.partial(function, *args, **kwargs))

        given = {*self._given(), *self._settings.get("names", {}).values()}
        parameters = inspect.signature(function).parameters.values()
        wanted = [p for p in parameters if p.name not in given and p.default is p.empty]
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        wanted = [p for p in wanted if p.kind not in kinds]
        test.__signature__ = inspect.Signature(wanted)  # type: ignore[attr-defined]
        test.shakedown = decorated = Decorated(self)  # type: ignore[attr-defined]
        return test


class Decorated:
    """What a decorated test is called with beside its fixtures: the plugin of pytest sets it.

    `functools.wraps` gives the same object to a function around the test, which pytest then sees.
    A test that classes inherit is called with what is parametrised in each of them.
    """

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.parametrised: set[str] = set()  # options, in any of the classes
        self.has_places = False
        # Of the functions that pytest sees, without these parameters.
        self.signatures: dict[object, inspect.Signature] = {}


Kind = typing.TypeVar("Kind", bound=Contract)


def _again(kind: type[Kind], options: dict[str, object], settings: Settings) -> Kind:
    made = kind(**options)
    return made.settings(**settings) if settings else made
