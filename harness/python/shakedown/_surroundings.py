"""What surrounds the components: a run, its configuration, its data set."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import typing

from . import _command
from ._errors import Broken, EngineError, UsageError, brief
from ._report import Json, Said


class Diagnosis(Said):
    """What was found out; true where nothing above a note was found."""

    def __init__(self, text: str, page: str, diagnosis: Json) -> None:
        super().__init__(text, page, diagnosis)
        self.subjects: list[Json] = diagnosis["subjects"]
        """One for each run, configuration or data set, as in the JSON report."""
        self.findings: list[Json] = [it for one in self.subjects for it in one["findings"]]
        """All findings, by stage, severity and first step; notes too."""

    @property
    def rules(self) -> list[str]:
        """The rules that found something above a note."""
        above = [it["rule"] for it in self.findings if it["severity"] != "note"]
        return list(dict.fromkeys(above))

    def __bool__(self) -> bool:
        return not self.rules

    def verify(self) -> None:
        """Raises Broken where something above a note was found."""
        __tracebackhide__ = True
        if not self:
            raise Broken(self)

    def __repr__(self) -> str:
        names = ", ".join(one["name"] for one in self.subjects)
        return f"<Diagnosis of {names}: {', '.join(self.rules) or 'nothing above a note'}>"


Diagnosis.__module__ = "shakedown"

Path = typing.Union[str, "os.PathLike[str]"]
# Rows or a configuration: whatever has the methods of one.
Anything = typing.Any
Names = typing.Union[str, typing.Iterable[str]]
Reasons = typing.Mapping[str, str]
Write = typing.Callable[[Anything, typing.TextIO], None]


@brief
def check_run(
    run: Path | Anything,
    *,
    config: Path | Anything | None = None,
    names: typing.Mapping[str, str] | None = None,
    only: Names = (),
    skip: Reasons | None = None,
    name: str | None = None,
) -> Diagnosis:
    """Says what is wrong with a run, by the metrics that it logged.

    run: the path of a log or of a run's folder, in any format that `shakedown check-run` reads;
        or its rows: `trainer.state.log_history`, a list of dictionaries, a data frame.
    config: what it was started with, as for `check_config`.
    names: what a metric is called in the log, `{"reward.mean": "my/score"}`.
    only, skip: the ids of rules, and ids with the reason why they are left out.
    name: what the report calls a run that is given as rows.
    """
    with _Given() as given:
        given.subject(run, name or "rows", _rows)
        given.config(config)
        given.settings(names)
        return given.run("check-run", only, skip)


@brief
def check_config(
    config: Path | Anything,
    *,
    library: str | None = None,
    call: str | None = None,
    processes: int | None = None,
    context: int | None = None,
    only: Names = (),
    skip: Reasons | None = None,
    name: str | None = None,
) -> Diagnosis:
    """Says what is wrong with a configuration, before anything runs.

    config: the path of a configuration or of a script; or a configuration: an object of TRL's, a
        dictionary, a dataclass, what an argument parser gave.
    library: the library that it is for, such as `verl`, or `unknown`, where its names do not say.
    call: what takes its fields, `GRPOConfig` or `verl`, where a dictionary does not say.
    processes, context: how many processes train, and how many tokens the model can take.
    """
    with _Given() as given:
        given.subject(config, name or _call(config, call) or "settings", _fields)
        given.option("--library", library)
        given.option("--call", None if _is_path(config) else _call(config, call))
        given.option("--processes", processes)
        given.option("--context", context)
        return given.run("check-config", only, skip)


@brief
def check_data(
    data: Path | Anything,
    *,
    eval: Path | Anything | None = None,
    config: Path | Anything | None = None,
    tokenizer: Path | None = None,
    show_text: bool = False,
    only: Names = (),
    skip: Reasons | None = None,
    name: str | None = None,
) -> Diagnosis:
    """Says what is wrong with a data set of prompts, answers or preferences.

    data: the path of JSON lines or parquet; or its rows: a `datasets.Dataset`, a list of
        dictionaries, a data frame.
    eval: the data set on which training is judged, in the same forms.
    config: the configuration that trains on it, as for `check_config`.
    tokenizer: the path of a tokenizer.json, to count lengths in its tokens.
    show_text: whether findings show the beginning of the texts that they are about.
    """
    with _Given() as given:
        given.subject(data, name or "rows", _rows)
        if eval is not None:
            given.option("--eval", given.file(eval, "eval", _rows))
        given.config(config)
        given.option("--tokenizer", tokenizer)
        given.arguments += ["--show-text"] if show_text else []
        return given.run("check-data", only, skip)


def _is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike))


def _call(config: Anything, call: str | None) -> str | None:
    """What takes the fields of a configuration: the class of an object says so."""
    if call or isinstance(config, dict) or _is_path(config):
        return call
    return type(config).__name__


class _Given:
    """What the command is given: paths as they are, all else through files of our own."""

    def __init__(self) -> None:
        self.arguments: list[str] = []
        self.folder = tempfile.TemporaryDirectory(prefix="shakedown-")

    def __enter__(self) -> _Given:
        return self

    def __exit__(self, *_: object) -> None:
        self.folder.cleanup()

    def path(self, name: str) -> str:
        return os.path.join(self.folder.name, name)

    def file(self, value: Anything, name: str, write: Write) -> str:
        """The path of a value that is one, or of a file with what it holds."""
        if _is_path(value):
            return os.fsdecode(value)
        path = self.path(f"{name}.json")
        with open(path, "w", encoding="utf-8") as to:
            write(value, to)
        return path

    def subject(self, value: Anything, name: str, write: Write) -> None:
        self.arguments.append(self.file(value, "given", write))
        if not _is_path(value):
            self.option("--name", name)

    def option(self, name: str, value: object) -> None:
        if value is not None:
            self.arguments.append(f"{name}={value}")

    def settings(self, names: typing.Mapping[str, str] | None) -> None:
        for metric, name in (names or {}).items():
            self.option("--set", f"{metric}={name}")

    def config(self, config: Anything) -> None:
        if config is not None:
            self.option("--config", self.file(config, "config", _fields))
            self.option("--call", None if _is_path(config) else _call(config, None))

    def run(self, verb: str, only: Names, skip: Reasons | None) -> Diagnosis:
        for rule in [only] if isinstance(only, str) else only:
            self.option("--only", rule)
        for rule, reason in (skip or {}).items():
            self.option("--skip", f"{rule}={reason}")
        report, page = self.path("report.json"), self.path("report.html")
        command = [_command.find(), verb, *self.arguments, "--json", report, "--html", page]
        done = subprocess.run(command, capture_output=True, encoding="utf-8")
        if done.returncode not in (0, 1, 3):
            error = done.stderr.strip()
            kind = UsageError if done.returncode == 2 else EngineError
            raise kind(error[7:] if error.startswith("error: ") else error)
        with open(report, encoding="utf-8") as file:
            diagnosis = json.load(file)
        with open(page, encoding="utf-8") as file:
            return Diagnosis(done.stdout, file.read(), diagnosis)


def _rows(rows: Anything, to: typing.TextIO) -> None:
    """Writes rows as JSON lines: of a data frame, of columns, or one after the other."""
    if hasattr(rows, "itertuples"):  # a data frame of pandas
        rows = rows.to_dict("records")
    elif hasattr(rows, "iter_rows"):  # of polars
        rows = rows.iter_rows(named=True)
    elif isinstance(rows, dict):
        rows = [dict(zip(rows, values)) for values in zip(*rows.values())]
    for row in rows:
        if not hasattr(row, "items"):
            raise UsageError(f"expected rows that are dictionaries, found {type(row).__name__}")
        json.dump({str(key): value for key, value in row.items()}, to, default=_plain)
        to.write("\n")


def _fields(config: Anything, to: typing.TextIO) -> None:
    """Writes the fields of a configuration as one JSON object."""
    if hasattr(config, "to_dict"):
        config = config.to_dict()
    elif not isinstance(config, dict):
        try:
            config = vars(config)
        except TypeError:
            kind = type(config).__name__
            raise UsageError(f"expected a configuration, found {kind}") from None
    json.dump({str(key): value for key, value in config.items()}, to, default=_plain)


def _plain(value: Anything) -> object:
    """What JSON has for a value that it does not know: numbers of numpy and torch, enums, paths."""
    for convert in ("tolist", "item"):
        if hasattr(value, convert):
            return getattr(value, convert)()
    if hasattr(value, "items"):
        return dict(value)
    inner = getattr(value, "value", None)
    return inner if isinstance(inner, (str, int, float)) else str(value)
