"""TRL's trainer of supervised fine-tuning as a component of `sft-step`."""

from __future__ import annotations

import itertools
import typing

from datasets import Dataset  # type: ignore[import-untyped]
from torch import Tensor
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from ..puppets import UNTRAINED, Example, SftPuppet
from .runs import Options, Runs, Settings, defaults, not_judged, passes_of

TEMPLATE = """\
{% for message in messages %}\
{% if message['role'] == 'assistant' %}\
{% generation %}{{ message['content'] }}{% endgeneration %}\
{% else %}{{ message['content'] }}{% endif %}\
{{ ' ' }}\
{% endfor %}"""
"""The contents only: what the assistant says is what is trained."""


class SFT(Runs):
    """A trainer of supervised fine-tuning under one configuration: see `Runs`."""

    contract_id = "sft-step"
    puppet_class = SftPuppet
    trainer_class = SFTTrainer
    base_config = SFTConfig
    judged = {
        "assistant_only_loss", "completion_only_loss", "gradient_accumulation_steps", "loss_type",
        "num_train_epochs", "pad_to_multiple_of", "padding_free",
    }  # fmt: skip
    refused = {
        "label_smoothing_factor", "neftune_noise_alpha", "packing", "router_aux_loss_coef",
        "use_liger_kernel",
    }  # fmt: skip
    harmless = (
        {"dataset_num_proc": 1},
        {"loss_type": "chunked_nll"},
        {"packing_strategy": "wrapped"},  # of `packing`
        {"padding_free": True},
        {"shuffle_dataset": True},
        {"train_sampling_strategy": "group_by_length"},
    )
    telling = (
        [{"assistant_only_loss": True}, {"assistant_only_loss": False}],
        [{"completion_only_loss": False}, {"completion_only_loss": True}],
        [{"gradient_accumulation_steps": 2}, {"gradient_accumulation_steps": 1}],
        [{"loss_type": "dft"}, {"loss_type": "nll"}],
        [{"num_train_epochs": 1}, {"num_train_epochs": 2}],
    )

    def __call__(
        self,
        tokens: Tensor,
        mask: Tensor,
        logits: Tensor,
        *,
        eos: int,
        pad: int,
        epochs: int,
        mini_batches: int,
        accumulation: int,
    ) -> dict[str, Tensor]:
        """Trains on a case of `sft-step` under these options: the outputs of the contract."""
        return self.train(
            *(tokens, mask, logits),
            eos=eos,
            pad=pad,
            epochs=epochs,
            mini_batches=mini_batches,
            accumulation=accumulation,
        )

    @classmethod
    def must_be_judged(cls, settings: Settings) -> None:
        super().must_be_judged(settings)
        loss = settings.get("loss_type", "nll")
        if loss not in ("nll", "chunked_nll", "dft"):
            raise not_judged(f"loss_type {loss!r}")

    @classmethod
    def options(cls, settings: Settings) -> Options:
        given = {**defaults(SFTConfig), **settings}
        if given["assistant_only_loss"]:
            trained = "turns"
        else:
            trained = "text" if given["completion_only_loss"] is False else "completion"
        return {
            **passes_of(settings),
            "trained": trained,
            "loss": "dft" if given["loss_type"] == "dft" else "nll",
            "over": "update",
        }

    @classmethod
    def settings_under(cls, options: Options) -> dict[str, typing.Any]:
        return {
            "num_train_epochs": options["epochs"],
            "gradient_accumulation_steps": options["accumulation"],
        }

    def _arguments(self, puppet: SftPuppet, options: Options) -> dict[str, typing.Any]:
        if options["trained"] == "turns":
            puppet.tokenizer.chat_template = TEMPLATE
            rows = [_turns(puppet, it) for it in puppet.examples]
        elif options["trained"] == "text":
            rows = [{"text": it["prompt"] + it["completion"]} for it in puppet.examples]
        else:
            rows = [{name: it[name] for name in ("prompt", "completion")} for it in puppet.examples]
        return {"train_dataset": Dataset.from_list(rows)}


def _turns(puppet: SftPuppet, example: Example) -> Example:
    """A conversation in which the assistant says what is trained."""
    tokens = zip(example["input_ids"], example["labels"])
    turns = itertools.groupby(tokens, key=lambda token: token[1] != UNTRAINED)
    return {
        "messages": [
            {
                "role": "assistant" if is_trained else "user",
                "content": puppet.words(i for i, _ in turn),
            }
            for is_trained, turn in turns
        ]
    }
