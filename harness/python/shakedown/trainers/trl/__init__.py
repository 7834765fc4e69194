"""TRL's trainers, unmodified, as components; and their configurations as options.

config = GRPOConfig(loss_type="dapo", epsilon_high=0.28)
trl.contract(config).check(trl.GRPO(config, OurGRPOTrainer))
"""

from __future__ import annotations

from transformers import TrainingArguments
from trl.trainer.grpo_config import GRPOConfig

from ..._contract import Contract
from ..._contracts import BY_ID
from ..._errors import UsageError
from . import runs
from .cpo import CPO, ORPO
from .dpo import DPO
from .grpo import GRPO
from .kto import KTO
from .reward import RewardModel
from .rloo import RLOO
from .runs import Config, Options, Runs, as_typed, found, of_scripts, settings_of, to_write
from .sft import SFT
from .sweep import named, sweep
from .watch import watch

__all__ = [
    "ALL",
    "CPO",
    "DPO",
    "GRPO",
    "KTO",
    "ORPO",
    "RewardModel",
    "RLOO",
    "SFT",
    "as_typed",
    "contract",
    "found",
    "named",
    "of_scripts",
    "options_of",
    "runs_of",
    "runs_with",
    "settings_of",
    "sweep",
    "to_write",
    "watch",
]

ALL: dict[str, type[Runs]] = {
    "trl.GRPOTrainer": GRPO,
    "trl.RLOOTrainer": RLOO,
    "trl.SFTTrainer": SFT,
    "trl.DPOTrainer": DPO,
    "trl.RewardTrainer": RewardModel,
    "trl.KTOTrainer": KTO,
    "trl.CPOTrainer": CPO,
    "trl.ORPOTrainer": ORPO,
}
"""The supported trainers."""


def contract(config: Config = None, config_class: type[TrainingArguments] = GRPOConfig) -> Contract:
    """The contract of a trainer with the options that its configuration declares."""
    options, _ = options_of(config, config_class)
    return BY_ID[runs_of(config, config_class).contract_id](**options)


def options_of(
    config: Config = None, config_class: type[TrainingArguments] = GRPOConfig
) -> tuple[Options, list[str]]:
    """The options that a configuration declares, and the names of its other settings, which the
    check does not judge.

    What the configuration leaves out has the default of the installed TRL. Settings that change
    the gradient and have no option raise UsageError.
    """
    return runs.options_of(runs_of(config, config_class), config, config_class)


def runs_of(config: Config, config_class: type[TrainingArguments]) -> type[Runs]:
    """How trainers with configurations of this class are run."""
    kind = type(config) if isinstance(config, TrainingArguments) else config_class
    for each in ALL.values():
        if issubclass(kind, each.base_config):
            return each
    raise UsageError(f"{kind.__name__} is not the configuration of {' or '.join(ALL)}")


def runs_with(trainer: object, name: str) -> type[Runs]:
    """How trainers of this class are run."""
    for each in ALL.values():
        if isinstance(trainer, type) and issubclass(trainer, each.trainer_class):
            return each
    raise UsageError(f"`{name}` is not a subclass of {' or '.join(ALL)}")
