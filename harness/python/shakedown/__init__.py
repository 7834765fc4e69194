"""Property-based tests for RL post-training: contracts for the components of a trainer.

    import shakedown

    @shakedown.contract("group-advantage", baseline="mean", scale="std", epsilon=1e-4)
    def test_grpo_advantages(rewards, groups):
        return my_trainer.advantages(rewards, groups)

Each contract is a class too: `shakedown.GroupAdvantage(scale="std")`, with its options as keyword
arguments; `help(shakedown.GroupAdvantage)` says what they mean. What surrounds the components is
checked by `check_run`, `check_config` and `check_data`. Everything is imported when it is
first used.
"""

from __future__ import annotations

import importlib
import typing

if typing.TYPE_CHECKING:
    from ._check import check as check
    from ._contract import Contract as Contract
    from ._contracts import *  # noqa: F403
    from ._errors import Broken as Broken
    from ._errors import CollectiveMismatch as CollectiveMismatch
    from ._errors import EngineError as EngineError
    from ._errors import UsageError as UsageError
    from ._ranks import ranks as ranks
    from ._report import Finding as Finding
    from ._report import Report as Report
    from ._stub import stub as stub
    from ._surroundings import Diagnosis as Diagnosis
    from ._surroundings import check_config as check_config
    from ._surroundings import check_data as check_data
    from ._surroundings import check_run as check_run

HOMES = {
    "_check": ["check"],
    "_contract": ["Contract"],
    "_errors": ["Broken", "CollectiveMismatch", "EngineError", "UsageError"],
    "_ranks": ["ranks"],
    "_report": ["Finding", "Report"],
    "_stub": ["stub"],
    "_surroundings": ["Diagnosis", "check_config", "check_data", "check_run"],
}


def __getattr__(name: str) -> typing.Any:
    if name == "__version__":
        from ._command import version

        return version()
    for home, names in HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f".{home}", __name__), name)
    if not name.startswith("_"):
        contracts = importlib.import_module("._contracts", __name__)
        if name in contracts.__all__:
            return getattr(contracts, name)
    raise AttributeError(f"module `shakedown` has no attribute `{name}`")


def __dir__() -> list[str]:
    contracts = importlib.import_module("._contracts", __name__)
    return sorted([*sum(HOMES.values(), []), *contracts.__all__, "__version__"])
