"""A check in one call."""

from __future__ import annotations

import typing

from . import _contracts
from ._contract import Contract, Function
from ._errors import brief

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._report import Report
    from ._settings import Settings


@brief
def check(function: Function, contract: Contract | str, **settings: Unpack[Settings]) -> Report:
    """`contract.settings(**settings).check(function)`; the contract may be a name."""
    __tracebackhide__ = True
    chosen = _contracts.named(contract)() if isinstance(contract, str) else contract
    return chosen.settings(**settings).check(function)
