"""Bugs planted into the source of trainers: one line is replaced by another."""

import functools
import os
import pathlib
import sys
import types

import pytest
from trl.trainer import grpo_trainer

TRL = pathlib.Path(grpo_trainer.__file__)
ROOT = TRL.parents[1]
SFT, DPO = TRL.with_name("sft_trainer.py"), TRL.with_name("dpo_trainer.py")
REWARD = TRL.with_name("reward_trainer.py")
KTO_OF_TRL = TRL.with_name("kto_trainer.py")
CPO_OF_TRL = ROOT / "experimental" / "cpo" / "cpo_trainer.py"
ORPO_OF_TRL = ROOT / "experimental" / "orpo" / "orpo_trainer.py"
BY_HAND = pathlib.Path(__file__).with_name("by_hand.py")
SFT_BY_HAND = BY_HAND.with_name("by_hand_sft.py")
DPO_BY_HAND = BY_HAND.with_name("by_hand_dpo.py")
REWARD_BY_HAND = BY_HAND.with_name("by_hand_reward.py")
KTO_BY_HAND = BY_HAND.with_name("by_hand_kto.py")
CRITIC_BY_HAND = BY_HAND.with_name("by_hand_critic.py")

CASES = 8 if os.environ.get("SHAKEDOWN_NIGHT") == "1" else 1
TIME = 60


@functools.cache
def read(path):
    return path.read_text(encoding="utf-8")


def planted(path, right, wrong, times=1):
    """The module at a path with `wrong` in the place of `right`, which is there so many times."""
    source = read(path)
    assert source.count(right) == times, f"found {source.count(right)} times: {right}"
    name = "planted_by_hand"
    if ROOT in path.parents:
        name = ".".join(["trl", *path.parent.relative_to(ROOT).parts, "planted"])
    module = types.ModuleType(name)
    module.__file__ = str(path)
    module.__package__ = name.rpartition(".")[0]
    sys.modules[name] = module  # dataclasses look their module up here
    exec(compile(source.replace(right, wrong), str(path), "exec"), vars(module))
    return module


def must_be_found(where, name, contract, function, unnamed):
    """The check fails, and says which known bug it is, where that is one and named yet."""
    report = contract.settings(cases=CASES, time=TIME).report(function)
    assert report.status == "fail", report.text
    told = [it["fault"] for finding in report.findings for it in finding.diagnosis]
    is_named = any(name in it for it in told)
    assert is_named or " " in name or (where, name) in unnamed, report.text


def by_day(table, names):
    """The names of a table's bugs; all but these are left to the nights."""
    return [
        name if name in names else pytest.param(name, marks=pytest.mark.night) for name in table
    ]
