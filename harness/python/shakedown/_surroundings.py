"""What surrounds the components: a run, its configuration, its data set."""

from __future__ import annotations

import html
import json
import os
import subprocess
import tempfile

from . import _command
from ._errors import Broken, EngineError, UsageError, brief


class Diagnosis:
    """What was found out; true where nothing above a note was found."""

    def __init__(self, text: str, page: str, diagnosis: dict) -> None:
        self.text = text
        """For people, as the command prints it."""
        self.html = page
        """The same as one page that loads nothing."""
        self._diagnosis = diagnosis
        self.subjects: list[dict] = diagnosis["subjects"]
        """One for each run, configuration or data set, as in the JSON report."""
        self.findings: list[dict] = [it for one in self.subjects for it in one["findings"]]
        """All findings, by stage, severity and first step; notes too."""

    @property
    def json(self) -> dict:
        """The report in the schema `shakedown/diagnosis/1`."""
        return self._diagnosis

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

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        page = html.escape(self.html, quote=True)
        style = "width:100%;height:40em;border:0"
        return f'<iframe srcdoc="{page}" sandbox style="{style}"></iframe>'


Diagnosis.__module__ = "shakedown"


@brief
def check_run(run, *, config=None, names=None, only=(), skip=None, name=None) -> Diagnosis:
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
    config,
    *,
    library=None,
    call=None,
    processes=None,
    context=None,
    only=(),
    skip=None,
    name=None,
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
    data, *, eval=None, config=None, tokenizer=None, show_text=False, only=(), skip=None, name=None
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


def _is_path(value) -> bool:
    return isinstance(value, (str, os.PathLike))


def _call(config, call):
    """What takes the fields of a configuration: the class of an object says so."""
    if call or isinstance(config, dict) or _is_path(config):
        return call
    return type(config).__name__


class _Given:
    """What the command is given: paths as they are, all else through files of our own."""

    def __init__(self):
        self.arguments = []
        self.folder = tempfile.TemporaryDirectory(prefix="shakedown-")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def file(self, value, name, write):
        """The path of a value that is one, or of a file with what it holds."""
        if _is_path(value):
            return os.fspath(value)
        path = self.path(f"{name}.json")
        with open(path, "w", encoding="utf-8") as to:
            write(value, to)
        return path

    def subject(self, value, name, write):
        self.arguments.append(self.file(value, "given", write))
        if not _is_path(value):
            self.option("--name", name)

    def option(self, name, value):
        if value is not None:
            self.arguments.append(f"{name}={value}")

    def settings(self, names):
        for metric, name in (names or {}).items():
            self.option("--set", f"{metric}={name}")

    def config(self, config):
        if config is not None:
            self.option("--config", self.file(config, "config", _fields))
            self.option("--call", None if _is_path(config) else _call(config, None))

    def run(self, verb, only, skip):
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


def _rows(rows, to):
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


def _fields(config, to):
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


def _plain(value):
    """What JSON has for a value that it does not know: numbers of numpy and torch, enums, paths."""
    for convert in ("tolist", "item"):
        if hasattr(value, convert):
            return getattr(value, convert)()
    if hasattr(value, "items"):
        return dict(value)
    inner = getattr(value, "value", None)
    return inner if isinstance(inner, (str, int, float)) else str(value)
