"""A live run of TRL: batches of its stages are checked beside it.

with trl.watch(trainer, every=50):
    trainer.train()
"""

from __future__ import annotations

import os
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
    if not isinstance(every, int) or isinstance(every, bool) or every < 1:
        raise UsageError(f"every is {every!r}, expected a number of batches, 1 or more")
    for contract, reason in (skip or {}).items():
        if not reason:
            raise UsageError(f"skip: `{contract}` needs a reason")
    for trainer_class, stages in STAGES.items():
        if isinstance(trainer, trainer_class):
            if any(isinstance(it, Watch) for it in trainer.callback_handler.callbacks):
                raise UsageError("this trainer is watched already: `remove()` that watch first")
            _make(folder)
            watching = Watch(trainer, every, stop, skip or {}, folder)
            if trainer.is_world_process_zero():
                stages(watching)
            return watching
    supported = ", ".join(it.__name__ for it in STAGES)
    raise UsageError(f"a {type(trainer).__name__} cannot be watched; supported: {supported}")


def _make(folder: str) -> None:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UsageError(f"folder: {folder}: {error.strerror}") from None
