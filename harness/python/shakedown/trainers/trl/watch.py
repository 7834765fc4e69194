"""A live run of TRL: batches of its stages are checked beside it.

with trl.watch(trainer, every=50):
    trainer.train()
"""

from __future__ import annotations

import typing

from transformers import Trainer

from ..._errors import UsageError
from .dpo import DPO
from .grpo import GRPO
from .sft import SFT
from .stages import DpoStages, SftStages
from .stages_grpo import GrpoStages
from .taps import Watch

STAGES: dict[type[Trainer], typing.Callable[[Watch], object]] = {
    GRPO.trainer_class: GrpoStages,
    SFT.trainer_class: SftStages,
    DPO.trainer_class: DpoStages,
}
"""What is tapped of each trainer."""


def watch(
    trainer: Trainer,
    every: int = 50,
    *,
    stop: bool = False,
    skip: typing.Mapping[str, str] | None = None,
    folder: str = ".shakedown/watch",
) -> Watch:
    """Checks one batch in `every` of each stage against the trainer's configuration.

    What contradicts it is logged, and kept in `folder`; with `stop`, the training ends with
    Broken. `skip` leaves contracts out, each with a reason. Of several ranks the first is watched.
    """
    if every < 1:
        raise UsageError(f"every is {every}, expected at least 1")
    for trainer_class, stages in STAGES.items():
        if isinstance(trainer, trainer_class):
            watching = Watch(trainer, every, stop, skip or {}, folder)
            if trainer.is_world_process_zero():
                stages(watching)
            return watching
    supported = ", ".join(it.__name__ for it in STAGES)
    raise UsageError(f"a {type(trainer).__name__} cannot be watched; supported: {supported}")
