"""TRL's trainer of reward models as a component of `reward-model-step`."""

from __future__ import annotations

import typing

from datasets import Dataset  # type: ignore[import-untyped]
from torch import Tensor
from trl.trainer.reward_config import RewardConfig
from trl.trainer.reward_trainer import RewardTrainer

from ..puppets import RewardModelPuppet
from .runs import Options, Runs, Settings, passes_of


class RewardModel(Runs):
    """A trainer of reward models under one configuration: see `Runs`."""

    contract_id = "reward-model-step"
    puppet_class = RewardModelPuppet
    trainer_class = RewardTrainer
    base_config = RewardConfig
    judged = {
        "center_rewards_coefficient", "gradient_accumulation_steps", "num_train_epochs",
        "pad_to_multiple_of",
    }  # fmt: skip
    refused = {"neftune_noise_alpha", "use_liger_kernel"}
    harmless = (
        {"dataset_num_proc": 1},
        {"label_smoothing_factor": 0.1},  # of another loss
    )
    telling = (
        [{"center_rewards_coefficient": 0.5}, {"center_rewards_coefficient": 0.01}],
        [{"gradient_accumulation_steps": 2}, {"gradient_accumulation_steps": 1}],
        [{"num_train_epochs": 1}, {"num_train_epochs": 2}],
    )

    def __call__(
        self,
        tokens: Tensor,
        scores: Tensor,
        margins: Tensor | None = None,
        *,
        eos: int,
        pad: int,
        center: float,
        epochs: int,
        mini_batches: int,
        accumulation: int,
    ) -> dict[str, Tensor]:
        """Trains on a case of `reward-model-step` under these options: the outputs of the
        contract."""
        return self.train(
            *(tokens, scores, margins),
            eos=eos,
            pad=pad,
            center=center,
            epochs=epochs,
            mini_batches=mini_batches,
            accumulation=accumulation,
        )

    @classmethod
    def options(cls, settings: Settings) -> Options:
        return {
            **passes_of(settings),
            "pooled": "last-non-pad",
            "center": settings.get("center_rewards_coefficient") or 0.0,
        }

    @classmethod
    def settings_under(cls, options: Options) -> dict[str, typing.Any]:
        return {
            "center_rewards_coefficient": options["center"] or None,
            "num_train_epochs": options["epochs"],
            "gradient_accumulation_steps": options["accumulation"],
        }

    def _arguments(self, puppet: RewardModelPuppet, options: Options) -> dict[str, typing.Any]:
        names = ("prompt", "chosen", "rejected", "margin")
        rows = [{name: it[name] for name in names if name in it} for it in puppet.examples]
        return {"train_dataset": Dataset.from_list(rows)}
