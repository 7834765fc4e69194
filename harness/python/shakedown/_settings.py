"""How a check is made: the settings that every contract takes."""

from __future__ import annotations

import difflib
import typing


class Settings(typing.TypedDict, total=False):
    """The settings of a check. `Contract.settings` says what they mean."""

    places: list[str] | None
    cases: int
    seed: int
    time: float | None
    tolerance: float
    skip: dict[str, str]
    known: dict[str, str]
    only: list[str]
    arrays: typing.Literal["torch", "numpy", "list"] | None
    signature: typing.Literal["by-name", "trl", "trl-chat", "verl"]
    answer_columns: list[str]
    columns: dict[str, typing.Any]
    names: dict[str, str]
    batch: typing.Literal["groups", "lists", "group"] | None
    examples: list[dict[str, typing.Any]]
    timeout: float | None
    isolate: bool
    stub: list[str]
    name: str | None


# Their defaults.
SETTINGS: Settings = {
    "places": None,
    "cases": 256,
    "seed": 0,
    "time": 30.0,
    "tolerance": 1.0,
    "skip": {},
    "known": {},
    "only": [],
    "arrays": None,
    "signature": "by-name",
    "answer_columns": [],
    "columns": {},
    "names": {},
    "batch": None,
    "examples": [],
    "timeout": 10.0,
    "isolate": False,
    "stub": [],
    "name": None,
}


def problem(name: str, default: object, given: object) -> str:
    """Why a setting cannot have a value; empty where it can."""
    if isinstance(default, list) or name == "places":
        kind, is_right = "a list", isinstance(given, (list, tuple))
    elif isinstance(default, dict):
        kind, is_right = "a dict", isinstance(given, dict)
    elif isinstance(default, (bool, int)):
        kind, is_right = type(default).__name__, isinstance(given, type(default))
    elif isinstance(default, float):
        is_right = given is None or isinstance(given, (int, float))
        kind = "a number"
        if name in ("time", "timeout"):
            kind = "seconds above 0, or None"
            is_right = given is None or (isinstance(given, (int, float)) and given > 0)
    else:
        return ""
    return "" if is_right else f"expected {kind}, found {given!r}"


def unknown(kind: str, name: str, known: typing.Sequence[str]) -> str:
    """What is said of a name that is not known: the nearest one, or all where they are few."""
    near = difflib.get_close_matches(name, known, 1)
    hint = f"; did you mean `{near[0]}`?" if near else ""
    listed = "`, `".join(known)
    expected = f", expected one of `{listed}`" if len(known) <= 14 else ""
    return f"unknown {kind} `{name}`{expected}{hint}"
