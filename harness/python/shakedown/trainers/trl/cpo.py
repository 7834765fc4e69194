"""TRL's trainers of pairs without a reference, CPO and ORPO, as components of `preference-step`."""

from __future__ import annotations

import typing

from datasets import Dataset  # type: ignore[import-untyped]
from torch import Tensor

from ..._errors import UsageError
from ..puppets import PreferencePuppet
from .runs import Options, Runs, Settings, defaults, of_trl, passes_of

KINDS = {
    "sigmoid": "sigmoid",
    "hinge": "hinge",
    "ipo": "ipo-norm",  # of averages over the tokens
    "simpo": "simpo",
    "alphapo": "simpo",  # without the likelihood
}
"""TRL's losses of CPO, by the names of the contract."""
SMOOTHED = {"sigmoid", "simpo", "alphapo"}
"""The losses in which TRL uses `label_smoothing`."""


class WithoutReference(Runs):
    """What both have in common."""

    contract_id = "preference-step"
    puppet_class = PreferencePuppet
    refused = {"neftune_noise_alpha", "use_liger_kernel"}
    harmless = (
        {"dataset_num_proc": 1},
        {"label_smoothing_factor": 0.1},  # of another loss
        {"max_completion_length": 8},  # of encoders with a decoder
    )

    def __call__(
        self,
        tokens: Tensor,
        logits: Tensor,
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
            *(tokens, logits),
            eos=eos,
            pad=pad,
            beta=beta,
            epochs=epochs,
            mini_batches=mini_batches,
            accumulation=accumulation,
        )

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


class CPO(WithoutReference):
    """A CPO trainer under one configuration: see `Runs`."""

    trainer_class = of_trl("CPOTrainer", "trl.experimental.cpo", "trl")
    base_config = of_trl("CPOConfig", "trl.experimental.cpo", "trl")
    judged = {
        "alpha", "beta", "cpo_alpha", "gradient_accumulation_steps", "label_smoothing", "loss_type",
        "num_train_epochs", "simpo_gamma",
    }  # fmt: skip
    telling = (
        [{"alpha": 0.25}, {"alpha": 0.5}],
        [{"beta": 0.5}, {"beta": 0.04}],
        [{"cpo_alpha": 0.5}, {"cpo_alpha": 2.0}, {"cpo_alpha": 0.5, "loss_type": "simpo"}],
        [{"gradient_accumulation_steps": 2}, {"gradient_accumulation_steps": 1}],
        [
            *({"label_smoothing": 0.1}, {"label_smoothing": 0.2}),
            {"label_smoothing": 0.2, "loss_type": "sigmoid"},
        ],
        [{"loss_type": "hinge"}, {"loss_type": "sigmoid"}],
        [{"num_train_epochs": 1}, {"num_train_epochs": 2}],
        [{"simpo_gamma": 1.0, "loss_type": "simpo"}, {"simpo_gamma": 1.5, "loss_type": "simpo"}],
    )

    @classmethod
    def must_be_judged(cls, settings: Settings) -> None:
        super().must_be_judged(settings)
        loss = settings.get("loss_type", "sigmoid")
        if loss not in KINDS:
            supported = ", ".join(KINDS)
            raise UsageError(f"loss_type {loss!r} is not judged yet; supported: {supported}")
        smoothing = settings.get("label_smoothing", 0.0)
        if smoothing and loss not in SMOOTHED:
            what = f"label_smoothing {smoothing} has no effect in TRL's loss {loss!r}"
            raise UsageError(f"{what}: take it out of the configuration")

    @classmethod
    def options(cls, settings: Settings) -> Options:
        given = {**defaults(cls.base_config), **settings}
        kind = KINDS[given["loss_type"]]
        return {
            **passes_of(settings),
            "kind": kind,
            "beta": given["beta"],
            "label_smoothing": given["label_smoothing"],
            "gamma": given["simpo_gamma"] if kind == "simpo" else 0.0,
            "has_reference": False,
            "alpha": given["alpha"],
            "nll_weight": 0.0 if given["loss_type"] == "alphapo" else given["cpo_alpha"],
            "nll": "token-mean",
            "nll_over": "completion",
        }


class ORPO(WithoutReference):
    """An ORPO trainer under one configuration: see `Runs`."""

    trainer_class = of_trl("ORPOTrainer", "trl.experimental.orpo", "trl")
    base_config = of_trl("ORPOConfig", "trl.experimental.orpo", "trl")
    judged = {"beta", "gradient_accumulation_steps", "num_train_epochs"}
    telling = (
        [{"beta": 0.5}, {"beta": 0.04}],
        [{"gradient_accumulation_steps": 2}, {"gradient_accumulation_steps": 1}],
        [{"num_train_epochs": 1}, {"num_train_epochs": 2}],
    )

    @classmethod
    def options(cls, settings: Settings) -> Options:
        return {
            **passes_of(settings),
            "kind": "orpo",
            "beta": settings.get("beta", defaults(cls.base_config)["beta"]),
            "nll_weight": 1.0,
            "nll": "token-mean",
            "nll_over": "text",
        }
