"""TRL's DPO trainer as a component of `preference-step`."""

from __future__ import annotations

import typing

from datasets import Dataset  # type: ignore[import-untyped]
from torch import Tensor
from trl.trainer.dpo_config import DPOConfig
from trl.trainer.dpo_trainer import DPOTrainer

from ..._errors import UsageError
from ..puppets import PreferencePuppet
from .runs import Options, Runs, Settings, defaults, not_judged, passes_of

KINDS = {
    "sigmoid": "sigmoid",
    "hinge": "hinge",
    "ipo": "ipo-norm",  # of averages over the tokens
    "exo_pair": "exo",
    "nca_pair": "nca",
    "robust": "robust",
    "bco_pair": "bco-pair",
    "sppo_hard": "sppo-hard",
    "aot": "aot",
    "aot_unpaired": "aot-unpaired",
    "apo_zero": "apo-zero",
    "apo_down": "apo-down",
    "sigmoid_norm": "sigmoid-norm",
}
"""TRL's losses, by the names of the contract."""
SMOOTHED = {"exo_pair", "robust", "aot", "aot_unpaired"}
"""The losses in which TRL uses `label_smoothing`."""


class DPO(Runs):
    """A DPO trainer under one configuration: see `Runs`."""

    contract_id = "preference-step"
    puppet_class = PreferencePuppet
    trainer_class = DPOTrainer
    base_config = DPOConfig
    judged = {
        "beta", "gradient_accumulation_steps", "label_smoothing", "loss_type", "loss_weights",
        "num_train_epochs", "pad_to_multiple_of",
    }  # fmt: skip
    refused = {
        "f_divergence_type", "ld_alpha", "neftune_noise_alpha", "precompute_ref_log_probs",
        "router_aux_loss_coef", "sync_ref_model", "use_liger_kernel", "use_weighting",
    }  # fmt: skip
    not_swept = {"train_sampling_strategy: group_by_length": "TRL raises: no column `input_ids`"}
    harmless = (
        {"dataset_num_proc": 1},
        {"discopop_tau": 0.5},  # of the loss discopop
        {"f_alpha_divergence_coef": 0.2},  # of `f_divergence_type`
        {"label_smoothing_factor": 0.1},  # of another loss
        {"padding_free": True},
        {"precompute_ref_batch_size": 2},  # of `precompute_ref_log_probs`
        {"ref_model_mixup_alpha": 0.1, "ref_model_sync_steps": 1},  # of `sync_ref_model`
    )
    telling = (
        [{"beta": 0.5}, {"beta": 0.04}],
        [{"gradient_accumulation_steps": 2}, {"gradient_accumulation_steps": 1}],
        [
            *({"label_smoothing": 0.1}, {"label_smoothing": 0.2}),
            {"label_smoothing": 0.2, "loss_type": ["robust"]},
        ],
        [{"loss_type": ["hinge"]}, {"loss_type": ["sigmoid"]}],
        [{"loss_weights": [0.5]}],
        [{"num_train_epochs": 1}, {"num_train_epochs": 2}],
    )

    def __call__(
        self,
        tokens: Tensor,
        logits: Tensor,
        ref_logits: Tensor,
        *,
        eos: int,
        pad: int,
        beta: float,
        epochs: int,
        mini_batches: int,
        accumulation: int,
    ) -> dict[str, Tensor]:
        """Trains on a case of `preference-step` under these options: the outputs of the
        contract."""
        return self.train(
            *(tokens, logits, ref_logits),
            eos=eos,
            pad=pad,
            beta=beta,
            epochs=epochs,
            mini_batches=mini_batches,
            accumulation=accumulation,
        )

    @classmethod
    def must_be_judged(cls, settings: Settings) -> None:
        super().must_be_judged(settings)
        losses = _losses(settings)
        if len(losses) != 1:
            raise not_judged(f"loss_type {losses!r}, a sum of several,")
        if settings.get("loss_weights") not in (None, [1.0]):
            raise not_judged(f"loss_weights {settings['loss_weights']!r}")
        if losses[0] not in KINDS:
            supported = ", ".join(KINDS)
            raise UsageError(f"loss_type {losses[0]!r} is not judged yet; supported: {supported}")
        smoothing = settings.get("label_smoothing", 0.0)
        if smoothing and losses[0] not in SMOOTHED:
            what = f"label_smoothing {smoothing} has no effect in TRL's loss {losses[0]!r}"
            raise UsageError(f"{what}: take it out of the configuration")

    @classmethod
    def options(cls, settings: Settings) -> Options:
        given = {**defaults(DPOConfig), **settings}
        return {
            **passes_of(settings),
            "kind": KINDS[_losses(settings)[0]],
            "beta": given["beta"],
            "label_smoothing": given["label_smoothing"],
        }

    @classmethod
    def settings_under(cls, options: Options) -> dict[str, typing.Any]:
        return {
            "beta": options["beta"],
            "num_train_epochs": options["epochs"],
            "gradient_accumulation_steps": options["accumulation"],
        }

    def _arguments(self, puppet: PreferencePuppet, options: Options) -> dict[str, typing.Any]:
        names = ("prompt", "chosen", "rejected")
        rows = [{name: it[name] for name in names} for it in puppet.examples]
        return {"train_dataset": Dataset.from_list(rows)}


def _losses(settings: Settings) -> list[str]:
    losses = settings.get("loss_type", ["sigmoid"])
    return [losses] if isinstance(losses, str) else [*losses]
