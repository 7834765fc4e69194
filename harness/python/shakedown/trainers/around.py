"""A model that stays: a hook replaces the output of its backbone, and its head is an identity."""

from __future__ import annotations

import typing

from torch import Tensor, nn

from .._errors import UsageError

Read = typing.Callable[[bool, bool, Tensor, "Tensor | None", "Tensor | None"], Tensor]
"""Whether the policy is asked, or a copy in training mode; ids, mask and positions: the logits."""


def hook(model: typing.Any, head: nn.Linear, read: Read, generate: typing.Any) -> None:
    """Makes `read` the backbone of a causal language model of transformers, `head` its head and
    `generate` its sampling. A copy of the model, and the model without its adapters, are no policy.
    """
    core = model.get_base_model() if hasattr(model, "get_base_model") else model
    backbone = _backbone(core, head.out_features)

    def replaced(
        module: nn.Module,
        args: tuple[typing.Any, ...],
        given: dict[str, typing.Any],
        output: object,
    ) -> object:
        names = ("input_ids", "attention_mask", "position_ids")
        ids, mask, positions = (given.get(n, a) for n, a in zip(names, [*args, None, None, None]))
        if ids is None:
            raise UsageError("`puppet.around`: the model was called without `input_ids`")
        is_policy = module is backbone and not _is_without_adapters(module)
        is_trained_copy = module is not backbone and module.training
        hidden = read(is_policy, is_trained_copy, ids, mask, positions)
        if isinstance(output, tuple):
            return (hidden, *output[1:])
        output["last_hidden_state"] = hidden  # type: ignore[index]
        if getattr(output, "hidden_states", None):
            output["hidden_states"] = (*output.hidden_states[:-1], hidden)  # type: ignore[index,attr-defined]
        return output

    backbone.register_forward_hook(replaced, with_kwargs=True)
    core.config.tie_word_embeddings = False
    core.config.vocab_size = core.vocab_size = head.out_features
    core.set_output_embeddings(head)
    core.generate = generate


def _backbone(core: typing.Any, vocabulary: int) -> nn.Module:
    """What has the hidden states of a model."""
    backbone = getattr(core, getattr(core, "base_model_prefix", ""), None)
    head = core.get_output_embeddings() if hasattr(core, "get_output_embeddings") else None
    if not isinstance(backbone, nn.Module) or head is None:
        raise UsageError(
            f"`puppet.around`: {type(core).__name__} has no backbone with a head behind it, "
            "expected a causal language model of transformers: others ask `puppet.logits`"
        )
    ids = core.get_input_embeddings().num_embeddings
    if ids < vocabulary:
        raise UsageError(f"`puppet.around`: the model has {ids} ids, expected {vocabulary} or more")
    return backbone


def _is_without_adapters(backbone: nn.Module) -> bool:
    """Whether adapters of peft are turned off, which is how a trainer asks the reference."""
    return any(getattr(module, "disable_adapters", False) is True for module in backbone.modules())
