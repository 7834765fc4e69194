"""What a check says."""

from __future__ import annotations

import html
import json
import types
import typing

from ._errors import Broken, UsageError, brief

Json = dict[str, typing.Any]


class Final(typing.Protocol):
    """The last call on the smallest case of a finding."""

    invariant: str
    error: BaseException | None

    def inputs(self) -> dict[str, object]:
        """What the function got, made anew."""

    def again(self) -> object:
        """Calls the function."""


class Finding:
    """One invariant that does not hold."""

    def __init__(self, entry: Json, final: Final | None) -> None:
        self.invariant: str = entry["invariant"]
        self.bug: int = entry["bug"]
        self.claim: str = entry["claim"]
        self.found: str = entry["found"]
        self.case: Json = entry["case"]
        """The smallest case, by the name of the input."""
        self.output: Json | None = entry["output"]
        self.expected: Json = entry["expected"]
        self.diagnosis: list[Json] = entry["diagnosis"]
        self.case_file: str | None = entry["case_file"]
        self._final = final

    @property
    def inputs(self) -> dict[str, object]:
        """What the function got for the smallest case."""
        __tracebackhide__ = True
        return self._needed().inputs()

    @property
    def error(self) -> BaseException | None:
        """What the function raised there, if it did."""
        return self._final.error if self._final else None

    def call(self) -> object:
        """Calls the function again on the smallest case: for a breakpoint."""
        __tracebackhide__ = True
        return self._needed().again()

    @brief
    def _needed(self) -> Final:
        if self._final is None:
            raise UsageError(f"{self.invariant}: there was no call on the smallest case")
        return self._final

    def __repr__(self) -> str:
        return f"<Finding {self.invariant}: {self.found.splitlines()[0]}>"


class Said:
    """What the command says, in three forms."""

    def __init__(self, text: str, page: str, report: Json) -> None:
        self.text = text
        """For people, as the command prints it."""
        self.html = page
        """The same as one page that loads nothing."""
        self._report = report

    @property
    def json(self) -> Json:
        """The same in its JSON schema, `shakedown/report/1` or `shakedown/diagnosis/1`."""
        return self._report

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        page = html.escape(self.html, quote=True)
        style = "width:100%;height:40em;border:0"
        return f'<iframe srcdoc="{page}" sandbox style="{style}"></iframe>'


class Report(Said):
    """What a check says; true where everything holds."""

    def __init__(self, text: str, page: str, report: Json, finals: typing.Sequence[Final]) -> None:
        super().__init__(text, page, report)
        components = report["components"]
        self.name: str = components[0]["name"]
        self.contract: str = components[0]["contract"]
        self.places: list[str] = [one["place"] for one in components]
        statuses = [one["status"] for one in components]
        order = ["fail", "error", "pass", "skipped"]
        self.status: str = min(statuses, key=order.index)
        """`pass`, `fail`, `error` or `skipped`."""
        self.reason: str | None = components[statuses.index(self.status)]["reason"]
        self.cases: int = sum(one["cases"] for one in components)
        self.calls: int = sum(one["calls"] for one in components)
        self.warnings: list[str] = [text for one in components for text in one["warnings"]]
        self.invariants: list[Json] = [it for one in components for it in one["invariants"]]
        self.findings: list[Finding] = []
        rest = list(finals)
        for entry in [finding for one in components for finding in one["findings"]]:
            final = next((one for one in rest if one.invariant == entry["invariant"]), None)
            if final:
                rest.remove(final)
            self.findings.append(Finding(entry, final))

    @classmethod
    def read(cls, path: str, text: str) -> Report:
        """The report in a file of the command, which printed the text."""
        with open(path, encoding="utf-8") as file:
            return cls(text, "", json.load(file), [])

    def add_warnings(self, warnings: list[str]) -> None:
        """What is to be known of the check besides."""
        self.warnings += warnings
        self._report["components"][0]["warnings"] += warnings

    def __bool__(self) -> bool:
        return self.status == "pass"

    def verify(self) -> None:
        """Raises what is wrong: Broken for findings, UsageError where nothing could be checked."""
        __tracebackhide__ = True
        if self.status == "fail":
            broken = Broken(self)
            error = self.findings[0].error if self.findings else None
            if error is not None:
                broken.__cause__ = error.__cause__
                raise broken.with_traceback(_of_the_user(error.__traceback__))
            raise broken
        if self.status == "error":
            raise UsageError(f"{self.contract}: {self.name}: {self.reason}")
        if self.status == "skipped":
            raise Skipped(self)

    def __repr__(self) -> str:
        return f"<Report of {self.name} at {self.places}: {self.status}>"


class Skipped(UsageError):
    """The place is not here, or no invariant applies."""

    def __init__(self, report: Report) -> None:
        super().__init__(f"{report.contract}: {report.name}: {report.reason}")
        self.report = report


Finding.__module__ = Report.__module__ = "shakedown"


def _of_the_user(trace: types.TracebackType | None) -> types.TracebackType | None:
    """The part of a traceback that begins in the function under test."""
    here = __package__
    while trace and trace.tb_frame.f_globals.get("__package__") == here:
        trace = trace.tb_next
    return trace


def parsed(message: dict[str, str], finals: typing.Sequence[Final]) -> Report:
    """The report in the engine's last message."""
    return Report(message["text"], message["html"], json.loads(message["report"]), finals)
