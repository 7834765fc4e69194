"""The cases of a contract, as a component gets them."""

from __future__ import annotations

import functools
import json
import subprocess
import typing

from . import _command, _drive
from ._errors import UsageError
from ._report import Json
from ._settings import SETTINGS, Settings

FLOATS = {"f64": "float64", "f32": "float32", "bf16": "bfloat16", "f16": "float16"}


def cases(
    contract: str,
    options: dict[str, object],
    own_settings: Settings,
    n: int,
    seed: int,
    place: str,
    simplest_first: bool = False,
) -> list[dict[str, object]]:
    """The corners of a contract under its options, then `n` drawn cases, each by input."""
    arguments = ["--json", f"--cases={n}", f"--seed={seed}", f"--place={place}"]
    for name, given in options.items():
        where = f"{contract}: options.{name}"
        arguments.append(f"--option={name}={_drive.yaml(given, where)}")
    try:
        found = ask("cases", contract, *arguments)
    except UsageError as error:
        why = str(error).replace("--option: ", "options.", 1)  # as the command calls them
        raise UsageError(f"{contract}: {why}") from None
    records = found["cases"]
    if simplest_first:
        records = [records[index] for index in found["simplest_first"]]
    settings: Settings = {**SETTINGS, **own_settings}
    arrays = settings["arrays"] or _drive.first_library()
    make = functools.partial(value, arrays=arrays, place=place)
    fields = inputs(contract)
    return [{name: make(fields[name], it) for name, it in one.items()} for one in records]


def ask(*arguments: str) -> Json:
    """What the command prints, as JSON."""
    ran = subprocess.run([_command.find(), *arguments], capture_output=True, text=True)
    if ran.returncode != 0:
        raise UsageError(ran.stderr.strip().replace("error: ", "", 1))
    return typing.cast(Json, json.loads(ran.stdout))


@functools.cache
def inputs(contract: str) -> dict[str, Json]:
    """The inputs of a contract by name."""
    [found] = ask("list", contract, "--json")["contracts"]
    return {field["name"]: field for field in found["inputs"]}


def value(field: Json, found: typing.Any, arrays: str, place: str) -> object:
    """A value of a record as an array of the library, a text or a number."""
    if field["kind"] == "text":
        return found
    if field["kind"] == "list":
        items = {item["name"]: item for item in field["items"]}
        return [{k: value(items[k], v, arrays, place) for k, v in one.items()} for one in found]
    plain = numbers(found)
    if not isinstance(plain, list) or arrays == "list":
        return plain
    device, dtype = place.split("/")
    name = {"int": "int64", "bool": "bool"}.get(field["kind"]) or FLOATS[dtype]
    if arrays == "numpy":
        import numpy

        return numpy.array(plain, dtype=name).reshape(shape(plain, field))
    import torch

    made = torch.tensor(plain, dtype=getattr(torch, name), device=device)
    return made.reshape(shape(plain, field))


def numbers(found: typing.Any) -> typing.Any:
    """A nested list whose texts are the numbers that JSON lacks."""
    if isinstance(found, list):
        return [numbers(item) for item in found]
    return float(found) if isinstance(found, str) else found


def shape(plain: typing.Any, field: Json) -> list[int]:
    """The shape of a nested list, also where a dimension has nothing in it."""
    sizes = []
    while isinstance(plain, list):
        sizes.append(len(plain))
        plain = plain[0] if plain else None
    return sizes + [0] * ((field["ndim"] or len(sizes)) - len(sizes))
