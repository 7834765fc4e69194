"""Bugs planted into the source of trainers: one line is replaced by another."""

import functools
import pathlib
import sys
import types

from trl.trainer import grpo_trainer

TRL = pathlib.Path(grpo_trainer.__file__)
SFT, DPO = TRL.with_name("sft_trainer.py"), TRL.with_name("dpo_trainer.py")
BY_HAND = pathlib.Path(__file__).with_name("by_hand.py")
SFT_BY_HAND = BY_HAND.with_name("by_hand_sft.py")
DPO_BY_HAND = BY_HAND.with_name("by_hand_dpo.py")


@functools.cache
def read(path):
    return path.read_text(encoding="utf-8")


def planted(path, right, wrong, times=1):
    """The module at a path with `wrong` in the place of `right`, which is there so many times."""
    source = read(path)
    assert source.count(right) == times, f"found {source.count(right)} times: {right}"
    name = "trl.trainer.planted" if path.parent == TRL.parent else "planted_by_hand"
    module = types.ModuleType(name)
    module.__file__ = str(path)
    module.__package__ = name.rpartition(".")[0]
    sys.modules[name] = module  # dataclasses look their module up here
    exec(compile(source.replace(right, wrong), str(path), "exec"), vars(module))
    return module
