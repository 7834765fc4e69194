"""The plugin of pytest. Until it meets a contract or a manifest, it imports what pytest does.

It looks for functions that a contract made into tests, and asks nothing of other objects.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import sys
import types
import typing

import pytest

from . import _context

if typing.TYPE_CHECKING:
    import pathlib

    from ._contract import Contract, Decorated
    from ._report import Json, Report
    from ._settings import Settings

# Options of the command line, which are keys of the ini file too.
OPTIONS = [
    ("cases", int, "random cases for each check"),
    ("seed", int, "of the random cases"),
    ("time", float, "seconds for the cases of each check, or inf"),
    ("places", str, "where to check: cpu/f32,cuda/bf16"),
]
MINE: pytest.StashKey[Mine] = pytest.StashKey()
CHECKED: pytest.StashKey[list[Report]] = pytest.StashKey()
# Exceptions that end a check without a finding.
PASSES_ON = (pytest.skip.Exception, pytest.xfail.Exception, pytest.exit.Exception)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("shakedown", "contracts of RL post-training components")
    for name, _, what in OPTIONS:
        group.addoption(f"--shakedown-{name}", metavar=name.upper(), help=what)
        parser.addini(f"shakedown_{name}", help=what)
    what = "call components in forked children, which may crash or hang"
    group.addoption("--shakedown-isolate", action="store_true", default=None, help=what)
    parser.addini("shakedown_isolate", type="bool", default=False, help=what)
    what = "check this case and no other, in the selected tests of its contract"
    group.addoption("--shakedown-case", metavar="FILE", help=what)
    what = "search for so long in each check, guided by what the component does: 30s, 10m"
    group.addoption("--shakedown-fuzz", metavar="TIME", help=what)
    what = "write one JSON report of all checks, for `shakedown merge-reports`"
    group.addoption("--shakedown-report", metavar="FILE", help=what)
    what = "pass also where no check could judge anything, all of them skipped"
    group.addoption("--shakedown-allow-skipped", action="store_true", default=None, help=what)
    parser.addini("shakedown_allow_skipped", type="bool", default=False, help=what)
    what = "the folder of kept cases, from the root folder"
    parser.addini("shakedown_corpora", default="corpora", help=what)
    what = "collect `shakedown.yaml` files too"
    parser.addini("shakedown_manifest", type="bool", default=False, help=what)


def pytest_configure(config: pytest.Config) -> None:
    mine = config.stash[MINE] = Mine(config)
    config.pluginmanager.register(mine)


class Mine:
    """What the plugin knows of a session, and what it says at its end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.folder = str(config.rootpath)
        found: dict[str, typing.Any] = {}
        for name, kind, _ in OPTIONS:
            text = config.getoption(f"shakedown_{name}") or config.getini(f"shakedown_{name}")
            if text:
                found[name] = self.value(name, kind, text)
        if config.getoption("shakedown_isolate") or config.getini("shakedown_isolate"):
            found["isolate"] = True
        self.case = config.getoption("shakedown_case")
        self.contract = contract_of(self.case) if self.case else None
        # On the command line means before the code, in the ini file after it.
        given = [name for name in found if config.getoption(f"shakedown_{name}", None)]
        self.fuzz = seconds(config.getoption("shakedown_fuzz"))
        self.corpora = config.getini("shakedown_corpora")
        self.reports: list[Json] = []  # of all checks, as JSON, also from the workers of xdist
        self.begun: set[str] = set()  # decorated tests that have not ended
        self.ended = 0  # decorated tests that have
        option = "shakedown_allow_skipped"
        self.allows_skipped = config.getoption(option) or config.getini(option)
        after = {n: v for n, v in found.items() if n not in given}
        before = {n: v for n, v in found.items() if n in given}
        self.defaults = typing.cast("Settings", after)
        self.overrides = typing.cast("Settings", before)

    def value(self, name: str, kind: type, text: str) -> typing.Any:
        if name == "places":
            return text.split(",")
        try:
            return kind(text)
        except ValueError:
            why = f"expected a number, found `{text}`"
            raise pytest.UsageError(f"shakedown_{name}: {why}") from None

    def from_here(self, item: pytest.Item) -> str:
        """The test as it is named in the folder that pytest was called in."""
        _, separator, name = item.nodeid.partition("::")
        return os.path.relpath(item.path, self.config.invocation_params.dir) + separator + name

    def context(self, item: pytest.Item) -> _context.Context:
        """Where a check in this test runs."""
        return _context.Context(
            folder=self.folder,
            corpora=self.corpora,
            overrides=self.overrides,
            defaults=self.defaults,
            name=item.nodeid,
            replay=functools.partial(self.replay, item),
            case=self.case,
            fuzz=self.fuzz,
            passes_on=PASSES_ON,
            tell=functools.partial(self.tell, item),
        )

    def replay(self, item: pytest.Item) -> str:
        """How to run a test again on a case, `{file}`."""
        return f"pytest {quoted(self.from_here(item))} --shakedown-case {{file}}"

    def tell(self, item: pytest.Item, report: Report) -> None:
        item.stash.setdefault(CHECKED, []).append(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if issubclass(type(report), pytest.TestReport) and report.when == "call":
            self.reports += vars(report).get("shakedown", [])
            self.ended += vars(report).get("shakedown_decorated", False)
            self.begun.discard(report.nodeid)

    def components(self) -> list[Json]:
        return [one for report in self.reports for one in report["components"]]

    def unjudged(self) -> str | None:
        """Why the session cannot pass, where its tests do."""
        if self.begun:
            return f"checks that did not end: {', '.join(sorted(self.begun))}"
        if (
            self.ended
            and not self.allows_skipped
            and not sum(it["cases"] for it in self.components())
        ):
            return "nothing was judged; --shakedown-allow-skipped lets that pass"
        return None

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.exitstatus == 0 and self.unjudged() and not hasattr(self.config, "workerinput"):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        path = self.config.getoption("shakedown_report")
        if path is None or not self.reports or hasattr(self.config, "workerinput"):
            return
        import json

        whole = {**self.reports[0], "components": self.components()}
        whole["elapsed_ms"] = sum(report["elapsed_ms"] for report in self.reports)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(whole, file, indent=2, ensure_ascii=False)
            file.write("\n")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        components, unjudged = self.components(), self.unjudged()
        if not components and not unjudged:
            return
        bugs = sum(len({finding["bug"] for finding in one["findings"]}) for one in components)
        known = sum(it["status"] == "known" for one in components for it in one["invariants"])
        warnings = [(one["name"], text) for one in components for text in one["warnings"]]
        cases = sum(one["cases"] for one in components)
        words = [counted(len(components), "check"), counted(cases, "case"), counted(bugs, "bug")]
        words += [f"{known} known"] if known else []
        words += [counted(len(warnings), "warning")] if warnings else []
        terminalreporter.write_sep("-", "shakedown")
        terminalreporter.write_line(", ".join(words))
        if unjudged:
            terminalreporter.write_line(f"ERROR: {unjudged}", red=True)
        for one in [one for one in components if one.get("cut") == "time"]:
            done = f"{one['cases']} of {counted(one['planned'], 'case')}"
            terminalreporter.write_line(f"{one['name']}: its time was over after {done}")
        if "P" in terminalreporter.reportchars:  # with -rA
            for name, text in warnings:
                terminalreporter.write_line(f"{name}: {text}")


def seconds(text: str | None) -> float | None:
    """A time such as 30s, 10m or 1h in seconds."""
    units = {"ms": 1e-3, "s": 1, "m": 60, "h": 3600}
    number = (text or "").rstrip("msh")
    try:
        if text is None:
            return None
        time = float(number) * units[text[len(number) :] or "s"]
        if time > 0:
            return time
        raise ValueError
    except (KeyError, ValueError):
        why = f"expected a time such as 30s, 10m or 1h, found `{text}`"
        raise pytest.UsageError(f"--shakedown-fuzz: {why}") from None


def counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


def contract_of(path: str) -> str:
    """The contract of a case file."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line for line in file if line.startswith("contract:")]
    except OSError as error:
        raise pytest.UsageError(f"--shakedown-case: {error}") from None
    if not lines:
        raise pytest.UsageError(f"--shakedown-case: {path} is no case file")
    return lines[0].partition(":")[2].strip()


def decorated(obj: typing.Any) -> Decorated | None:
    """What a contract has put on its test, else None. It runs no code of other objects.

    Mocks, proxies and lazy modules answer to any name, and say that they are of any class.
    """
    home = sys.modules.get("shakedown._contract")
    if type(obj) in (classmethod, staticmethod):
        obj = obj.__func__
    if home is None or type(obj) is not types.FunctionType:
        return None
    found = obj.__dict__.get("shakedown")
    return found if type(found) is home.Decorated else None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> None:
    test = decorated(obj)
    if test is None:
        return
    function = getattr(obj, "__func__", obj)
    # Here all marks are known: of the function, of its class, of its module.
    marks = [*getattr(function, "pytestmark", ()), *collector.iter_markers("parametrize")]
    names: list[str] = []
    for mark in marks:
        if mark.name == "parametrize":
            argnames = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
            split = argnames.split(",") if isinstance(argnames, str) else argnames
            names += [one.strip() for one in split]
    options = test.contract.option_names()
    names = [one for one in dict.fromkeys(names) if one in options]
    twice = [one for one in names if one in test.contract.options]
    if twice:
        why = f"the option `{twice[0]}` is parametrised, and given to the contract too"
        raise collector.CollectError(f"{name}: {why}")
    test.parametrised.update(names)
    test.has_places = len(places_of(test, collector.config.stash[MINE])) > 1
    add_parameters(test, function, [*names, *(["place"] if test.has_places else [])])


def places_of(test: Decorated, mine: Mine) -> list[str]:
    asked: list[str] | None = [
        one for one in os.environ.get("SHAKEDOWN_PLACES", "").split(",") if one
    ]
    asked = asked or mine.overrides.get("places") or test.contract._settings.get("places")
    return asked or mine.defaults.get("places") or []


def add_parameters(test: Decorated, function: typing.Any, names: list[str]) -> None:
    signature = test.signatures.setdefault(function, inspect.signature(function))
    missing = [name for name in names if name not in signature.parameters]
    more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in missing]
    function.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *more])


def pytest_collect_file(file_path: pathlib.Path, parent: pytest.Collector) -> ManifestFile | None:
    if file_path.name != "shakedown.yaml":
        return None
    config = parent.config
    named = [config.invocation_params.dir / one.partition("::")[0] for one in config.args]
    if config.getini("shakedown_manifest") or file_path in named:
        return ManifestFile.from_parent(parent, path=file_path)
    return None


class ManifestFile(pytest.File):
    """A manifest: an item for each component and place."""

    def collect(self) -> typing.Iterator[Component]:
        from . import _cases
        from ._errors import EngineError, UsageError

        try:
            listed = _cases.ask("list", "--manifest", str(self.path), "--json")
        except (UsageError, EngineError) as error:
            raise self.CollectError(str(error)) from None
        asked = self.config.stash[MINE].overrides.get("places")
        for component in listed["components"]:
            for place in asked or component["places"]:
                name = f"{component['name']}[{place}]"
                yield Component.from_parent(self, name=name, component=component, place=place)


class Component(pytest.Item):
    """A component of a manifest at a place, checked by the command in a process of its own."""

    def __init__(self, *, component: Json, place: str, **kwargs: typing.Any) -> None:
        super().__init__(**kwargs)
        self.component, self.place = component, place

    def runtest(self) -> None:
        import subprocess
        import tempfile

        from . import _command
        from ._errors import UsageError
        from ._report import Report

        settings: typing.Mapping[str, typing.Any] = self.config.stash[MINE].overrides
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.json")
            command = [_command.find(), "check", str(self.path), "--json", path]
            command += [f"--component={self.component['name']}", f"--places={self.place}"]
            for name in ("cases", "seed"):
                command += [f"--{name}={settings[name]}"] if name in settings else []
            if settings.get("time", math.inf) < math.inf:
                command.append(f"--time={settings['time']}s")
            environment = {n: v for n, v in os.environ.items() if n != "SHAKEDOWN_PLACES"}
            ran = subprocess.run(command, capture_output=True, text=True, env=environment)
            if not os.path.exists(path):
                raise UsageError(ran.stderr.strip().replace("error: ", "", 1))
            report = Report.read(path, ran.stdout)
        self.stash.setdefault(CHECKED, []).append(report)
        report.verify()

    def reportinfo(self) -> tuple[pathlib.Path, int, str]:
        return self.path, self.component["line"] - 1, self.name


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    test = decorated(metafunc.function)
    if test and test.has_places and "place" in metafunc.fixturenames:
        metafunc.parametrize("place", places_of(test, metafunc.config.stash[MINE]))


def contract_of_item(item: pytest.Item) -> Contract | None:
    """The contract of a decorated test. `item.function` would make an instance of its class."""
    if not issubclass(type(item), pytest.Function):
        return None
    function: typing.Any = item
    owner = getattr(function.parent, "obj", None)
    test = decorated(inspect.getattr_static(owner, function.originalname, None))
    return test.contract if test else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mine = config.stash[MINE]
    if mine.case is None:
        return
    kept: list[pytest.Item] = []
    others: list[pytest.Item] = []
    for item in items:
        contract = contract_of_item(item)
        (kept if contract and contract.id == mine.contract else others).append(item)
    if not kept:
        why = f"no selected test has the contract {mine.contract} of {mine.case}"
        raise pytest.UsageError(f"--shakedown-case: {why}")
    config.hook.pytest_deselected(items=others)
    items[:] = kept


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> typing.Iterator[None]:
    """Lets the fixtures of a test import what the test may."""
    contract = contract_of_item(item)
    modules = contract._settings.get("stub") if contract else None
    if not modules:
        yield
        return
    from . import _stub

    with _stub.installed(modules):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> typing.Iterator[None]:
    mine = item.config.stash[MINE]
    if contract_of_item(item):
        mine.begun.add(item.nodeid)
    with _context.within(mine.context(item)):
        yield


def pytest_enter_pdb() -> None:
    _context.here().is_debugged = True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> typing.Generator[None, typing.Any, None]:
    outcome = yield
    report = outcome.get_result()
    is_decorated = report.when == "call" and bool(contract_of_item(item))
    if is_decorated:
        report.shakedown_decorated = True
    if CHECKED in item.stash and report.when == "call":
        checked = item.stash[CHECKED]
        wrong = [one for one in checked if one.status in ("fail", "error")]
        if is_decorated and report.passed and wrong:  # whatever became of what it raised
            report.outcome, report.longrepr = "failed", wrong[0].text.strip("\n")
        # This goes with the report from a worker of xdist to the session.
        report.shakedown = [one.json for one in checked]
        for invariant in [it for one in checked for it in one.invariants]:
            reason = f": {invariant['reason']}" if invariant.get("reason") else ""
            said = (f"shakedown {invariant['id']}", invariant["status"] + reason)
            item.user_properties.append(said)  # for JUnit
    if call.excinfo is not None:
        show_error(item, call.excinfo.value, report)


def show_error(item: pytest.Item, error: typing.Any, report: pytest.TestReport) -> None:
    """Says what is wrong in the words of shakedown, where it is shakedown that says it."""
    if type(error).__name__ == "FixtureLookupError" and (contract := contract_of_item(item)):
        report.sections.append(("shakedown", wrong_name(contract, error)))
    if "shakedown._errors" not in sys.modules:
        return
    from ._errors import Broken, EngineError, UsageError
    from ._report import Skipped

    if issubclass(type(error), Broken):
        raised = any(getattr(finding, "error", None) for finding in error.report.findings[:1])
        if not raised:  # else the traceback ends in the user's own line, and in this text
            report.longrepr = error.report.text.strip("\n")
    elif issubclass(type(error), Skipped):
        report.outcome = "skipped"
        path, line, _ = item.location
        report.longrepr = (str(path), (line or 0) + 1, f"Skipped: {error.report.reason}")
    elif issubclass(type(error), (UsageError, EngineError)) and is_ours(item):
        report.longrepr = f"{type(error).__name__}: {error}"  # no line of the test has called us


def is_ours(item: pytest.Item) -> bool:
    """Whether the item calls nothing but a check."""
    return bool(contract_of_item(item)) or isinstance(item, Component)


def wrong_name(contract: Contract, error: typing.Any) -> str:
    """Which inputs there are, for a parameter that is neither one nor a fixture."""
    import difflib

    text = f"the inputs of {contract.id} are {', '.join(contract.inputs)}"
    near = difflib.get_close_matches(str(error.argname), contract._given(), 1)
    return text + (f"; did you mean `{near[0]}`?" if near else "")
