"""Modules that are not installed here, and that a trainer imports."""

from __future__ import annotations

import contextlib
import sys
import typing

from ._errors import UsageError, brief


@contextlib.contextmanager
def installed(modules: typing.Iterable[str]) -> typing.Iterator[None]:
    """Lets modules be imported that are not there, and forgets them at the end."""
    from . import _serve

    stubs = _serve.Stubs(modules)
    sys.meta_path.append(stubs)
    try:
        yield
    finally:
        sys.meta_path.remove(stubs)
        for module in stubs.made:
            parent, _, name = module.__name__.rpartition(".")
            forget(module, module.__name__, sys.modules)
            forget(module, name, vars(sys.modules.get(parent, module)))


def forget(module: object, name: str, names: typing.MutableMapping[str, typing.Any]) -> None:
    """Takes a module out of names, where it is still the one that is called so."""
    if names.get(name) is module:
        del names[name]


@brief
def stub(*modules: str) -> typing.ContextManager[None]:
    """Lets modules be imported that are not installed, and whatever they have: what is imported
    from them can be named, subclassed and used in annotations, and raises when it is called.

        with shakedown.stub("flash_attn"):
            import trainer

    A module that is installed is imported as always. The setting `stub` does the same in a test.
    """
    must_be_modules("stub", modules)
    return installed(modules)


def must_be_modules(where: str, names: typing.Iterable[object]) -> None:
    """Refuses what cannot be the name of a module."""
    for name in names:
        if not isinstance(name, str) or not all(map(str.isidentifier, name.split("."))):
            raise UsageError(f"{where}: expected the name of a module, found {name!r}")
