"""Finds the command, which is the engine of this package."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import typing
from importlib import metadata

from ._errors import EngineError

NAME = "shakedown.exe" if os.name == "nt" else "shakedown"
DISTRIBUTION = "shakedown-rl"


def places() -> typing.Iterator[str]:
    """Where the command may be, the likeliest first."""
    here = os.path.dirname(os.path.abspath(__file__))
    yield sysconfig.get_path("scripts")
    yield sysconfig.get_path("scripts", vars={"base": sys.base_prefix})
    for parent in (os.path.dirname(here), os.path.dirname(os.path.dirname(here))):
        yield os.path.join(parent, "bin")  # `pip install --target`, `--prefix`
    for parents in (3, 4):  # PREFIX/lib/python3.x/site-packages/shakedown
        yield os.path.join(os.path.abspath(os.path.join(here, *[".."] * parents)), "bin")
    scheme = "nt_user" if os.name == "nt" else "posix_user"
    if scheme in sysconfig.get_scheme_names():
        yield sysconfig.get_path("scripts", scheme)


def find() -> str:
    """The path of the command.

    Raises EngineError where there is none.
    """
    given = os.environ.get("SHAKEDOWN_BIN")
    if given:
        if not os.path.isfile(given):
            raise EngineError(f"SHAKEDOWN_BIN is {given}, which is no file")
        return given
    searched = list(dict.fromkeys(places()))
    for folder in searched:
        path = os.path.join(folder, NAME)
        if os.access(path, os.X_OK) and os.path.isfile(path) and is_a_program(path):
            return path
    on_path = shutil.which("shakedown")
    if on_path and is_a_program(on_path):
        return on_path
    folders = ", ".join([*searched, "PATH"])
    how = f"reinstall {DISTRIBUTION} or set SHAKEDOWN_BIN"
    raise EngineError(f"there is no command `shakedown` in: {folders}; {how}")


def is_a_program(path: str) -> bool:
    """Whether it is the engine and no script of the same name: another package is called so."""
    with open(path, "rb") as file:
        return file.read(2) != b"#!"


def version() -> str | None:
    """The version of this package; None where it runs from a checkout."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return None
