"""TRL's KTO trainer as a component of `kto-step`."""

from __future__ import annotations

import typing

from datasets import Dataset  # type: ignore[import-untyped]
from torch import Tensor

from ..._errors import UsageError
from ..puppets import KtoPuppet
from .runs import Options, Runs, Settings, defaults, of_trl, passes_of

KINDS = {"kto": "kto", "apo_zero_unpaired": "apo-zero-unpaired"}
"""TRL's losses, by the names of the contract."""


class KTO(Runs):
    """A KTO trainer under one configuration: see `Runs`."""

    contract_id = "kto-step"
    puppet_class = KtoPuppet
    trainer_class = of_trl("KTOTrainer", "trl", "trl.experimental.kto")
    base_config = of_trl("KTOConfig", "trl", "trl.experimental.kto")
    judged = {
        "beta", "desirable_weight", "gradient_accumulation_steps", "loss_type", "num_train_epochs",
        "pad_to_multiple_of", "undesirable_weight",
    }  # fmt: skip
    refused = {
        "neftune_noise_alpha", "precompute_ref_log_probs", "router_aux_loss_coef",
        "sync_ref_model", "use_liger_kernel",
    }  # fmt: skip
    harmless = (
        {"dataset_num_proc": 1},
        {"label_smoothing_factor": 0.1},  # of another loss
        {"precompute_ref_batch_size": 2},  # of `precompute_ref_log_probs`
        {"ref_model_mixup_alpha": 0.1, "ref_model_sync_steps": 1},  # of `sync_ref_model`
    )
    telling = (
        [{"beta": 0.5}, {"beta": 0.04}],
        [{"desirable_weight": 1.5}, {"desirable_weight": 0.5}],
        [{"gradient_accumulation_steps": 2}, {"gradient_accumulation_steps": 1}],
        [{"loss_type": "apo_zero_unpaired"}, {"loss_type": "kto"}],
        [{"num_train_epochs": 1}, {"num_train_epochs": 2}],
        [{"undesirable_weight": 1.5}, {"undesirable_weight": 0.5}],
    )

    def __call__(
        self,
        tokens: Tensor,
        labels: Tensor,
        logits: Tensor,
        ref_logits: Tensor,
        kl_logits: Tensor | None = None,
        ref_kl_logits: Tensor | None = None,
        *,
        eos: int,
        pad: int,
        beta: float,
        desirable_weight: float,
        undesirable_weight: float,
        epochs: int,
        mini_batches: int,
        accumulation: int,
    ) -> dict[str, Tensor]:
        """Trains on a case of `kto-step` under these options: the outputs of the contract."""
        return self.train(
            *(tokens, labels, logits, ref_logits, kl_logits, ref_kl_logits),
            eos=eos,
            pad=pad,
            beta=beta,
            desirable_weight=desirable_weight,
            undesirable_weight=undesirable_weight,
            epochs=epochs,
            mini_batches=mini_batches,
            accumulation=accumulation,
        )

    @classmethod
    def must_be_judged(cls, settings: Settings) -> None:
        super().must_be_judged(settings)
        loss = settings.get("loss_type", "kto")
        if loss not in KINDS:
            supported = ", ".join(KINDS)
            raise UsageError(f"loss_type {loss!r} is not judged yet; supported: {supported}")

    @classmethod
    def options(cls, settings: Settings) -> Options:
        given = {**defaults(cls.base_config), **settings}
        return {
            **passes_of(settings),
            "kind": KINDS[given["loss_type"]],
            "beta": given["beta"],
            "desirable_weight": given["desirable_weight"],
            "undesirable_weight": given["undesirable_weight"],
        }

    @classmethod
    def settings_under(cls, options: Options) -> dict[str, typing.Any]:
        return {
            "beta": options["beta"],
            "desirable_weight": options["desirable_weight"],
            "undesirable_weight": options["undesirable_weight"],
            "num_train_epochs": options["epochs"],
            "gradient_accumulation_steps": options["accumulation"],
        }

    def _arguments(self, puppet: KtoPuppet, options: Options) -> dict[str, typing.Any]:
        names = ("prompt", "completion", "label")
        rows = [{name: it[name] for name in names} for it in puppet.examples]
        return {"train_dataset": Dataset.from_list(rows)}
