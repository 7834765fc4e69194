"""Taps of a live trainer: its methods are wrapped, and what passes through them is checked."""

from __future__ import annotations

import contextlib
import logging
import typing

import torch
from torch import Tensor
from transformers import Trainer, TrainerCallback, TrainingArguments

from ..._errors import UsageError
from ..side import Batch, Checks, Contradiction, log
from .runs import Settings, defaults

Method = typing.Callable[..., typing.Any]

DTYPES = {torch.float64: "f64", torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}
LOGITS = 1 << 21
"""Numbers in the logits of one batch at the most."""
LOGIT_ROWS, LOGIT_TOKENS = 4, 8
"""Rows, and tokens of each, whose logits are looked at."""
VOCABULARY_CHUNK = 1 << 15
SCALED_LOGITS = (
    "final_logit_softcapping", "lm_head_multiplier", "logit_scale", "logits_scaling",
    "output_multiplier",
)  # fmt: skip
"""What models do to their logits behind the head."""
GOLDEN = (5**0.5 - 1) / 2


class Turn:
    """Which calls are taken: one of each `every`, at changing places.

    A fixed place would always be the same pass of a trainer that repeats its batches.
    """

    def __init__(self, every: int) -> None:
        self._every, self._calls = every, 0

    def __call__(self) -> bool:
        window, place = divmod(self._calls, self._every)
        self._calls += 1
        return place == int(self._every * (window * GOLDEN % 1))


@contextlib.contextmanager
def tapped(owner: object, name: str, tap: Method) -> typing.Iterator[None]:
    """While it lasts, a method of this object is `tap`, which gets the method and its arguments."""
    original, own = getattr(owner, name), vars(owner).get(name)

    def through(*args: typing.Any, **kwargs: typing.Any) -> typing.Any:
        return tap(original, *args, **kwargs)

    setattr(owner, name, through)
    try:
        yield
    finally:
        if vars(owner).get(name) is through:  # else another has been put in its place
            if own is None:
                delattr(owner, name)
            else:
                setattr(owner, name, own)


class Made(typing.NamedTuple):
    """A batch of a stage."""

    tensors: dict[str, Tensor]
    options: dict[str, typing.Any]
    dtype: torch.dtype
    """Decides the tolerance."""
    note: str = ""


class Pass:
    """A forward pass of a causal language model."""

    hidden: Tensor | None = None
    """What went into the head, `[N, L, H]`."""
    dtype = torch.float32
    """What the head computes in."""
    labels: Tensor | None = None
    log_probs: Tensor | None = None
    gradient: Tensor | None = None
    """Of the loss by the log-probabilities, once it has been computed."""
    loss: Tensor

    def follow(self, log_probs: Tensor) -> None:
        """These are the log-probabilities that the loss is made of."""
        self.log_probs = followed = log_probs.detach()

        def of_backward(gradient: Tensor) -> None:
            if self.log_probs is followed:
                self.gradient = gradient.detach()

        if log_probs.requires_grad:
            log_probs.register_hook(of_backward)  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def seen(model: torch.nn.Module) -> typing.Iterator[Pass]:
    """The next pass of a model; nothing is seen of one that is not made as transformers' are."""
    passed = Pass()

    def of_backbone(_: object, given: object, output: typing.Any) -> None:
        hidden = getattr(output, "last_hidden_state", None)
        if passed.hidden is None and hidden is not None:
            passed.hidden = hidden.detach()
            device = hidden.device.type
            is_mixed = torch.is_autocast_enabled(device)
            passed.dtype = torch.get_autocast_dtype(device) if is_mixed else hidden.dtype

    def of_model(_: object, given: object, named: typing.Any, output: typing.Any) -> None:
        log_probs = getattr(output, "log_probs", None)
        if passed.log_probs is None and log_probs is not None:
            passed.labels = named.get("labels")
            passed.follow(log_probs)

    backbone = getattr(model, "base_model", None)
    with contextlib.ExitStack() as hooks:
        if isinstance(backbone, torch.nn.Module):
            hooks.callback(backbone.register_forward_hook(of_backbone).remove)
            hooks.callback(model.register_forward_hook(of_model, with_kwargs=True).remove)
        yield passed


def declared(args: TrainingArguments) -> Settings:
    """What a configuration sets. Another one beside it would reset the state that this one uses."""
    plain = defaults(type(args))
    return {name: getattr(args, name) for name in plain if getattr(args, name) != plain[name]}


def beyond(trainer: typing.Any) -> str | None:
    """Why the loss of a trainer cannot be watched, whatever it is."""
    if trainer.aux_loss_enabled:
        return "router_aux_loss_coef is not judged yet"
    is_scaled = trainer.args.fp16 or trainer.is_deepspeed_enabled
    return "the loss is scaled for its gradient" if is_scaled else None


def causal(trainer: typing.Any, model: typing.Any) -> typing.Any:
    """The causal language model inside all wrappers."""
    inner = trainer.accelerator.unwrap_model(model)
    return inner.get_base_model() if hasattr(inner, "get_base_model") else inner


def scored(
    model: typing.Any, passed: Pass, tokens: Tensor, mask: Tensor, temperature: float = 1.0
) -> Made | None:
    """The logits, tokens and log-probabilities of a few places, where a token counts.

    The last of each are those of the last column of the tokens, `[N, T]`.
    """
    if passed.hidden is None or passed.log_probs is None:
        raise LookupError("the model was not called as transformers' models are")
    width = tokens.shape[1]
    count = len(passed.hidden)  # a first part of the rows
    hidden, mask = passed.hidden[:, -width - 1 : -1], mask[:count]
    rows = mask.any(dim=1).nonzero()[:LOGIT_ROWS]
    if not len(rows):
        return None
    vocabulary = model.config.get_text_config().vocab_size
    few = max(1, LOGITS // (len(rows) * vocabulary))
    few = min(LOGIT_TOKENS, few, *(int(mask[row].sum()) for row in rows))
    columns = torch.stack([mask[row].nonzero()[:few, 1] for row in rows])
    tensors = {
        "logits": _logits(model, hidden[rows, columns], passed.dtype).float(),
        "tokens": tokens[rows, columns],
        "log_probs": passed.log_probs[:, -width:][rows, columns],
    }
    return Made(tensors, {"temperature": temperature, "gradient": False}, passed.dtype)


def _logits(model: typing.Any, hidden: Tensor, dtype: torch.dtype) -> Tensor:
    """The logits of hidden states, computed in this format."""
    config = model.config.get_text_config()
    for name in SCALED_LOGITS:
        if getattr(config, name, None) not in (None, 1.0):
            raise NotImplementedError(f"the model scales its logits: {name}")
    head = model.get_output_embeddings()
    with torch.no_grad(), torch.autocast(hidden.device.type, enabled=False):
        hidden = hidden.to(dtype)
        parts = [hidden @ part.to(dtype).t() for part in head.weight.split(VOCABULARY_CHUNK)]
        logits = torch.cat(parts, dim=-1)
        return logits if head.bias is None else logits + head.bias.to(dtype)


class Watch(TrainerCallback):
    """The watch over a trainer: until its training ends, or until `remove`."""

    def __init__(
        self,
        trainer: Trainer,
        every: int,
        stop: bool,
        skip: typing.Mapping[str, str],
        folder: str,
    ) -> None:
        self.trainer: typing.Any = trainer
        self.every = every
        self.not_watched: dict[str, str] = {}
        """Why a stage is not watched, by its contract."""
        self._checks = Checks(folder, stop)
        self._taps = contextlib.ExitStack()
        self._stages: list[str] = []
        self._is_on = False
        self._skip = skip

    @property
    def checked(self) -> typing.Counter[str]:
        """How many batches were checked, by contract."""
        return self._checks.checked

    @property
    def contradictions(self) -> list[Contradiction]:
        """One for each bug: the first."""
        return self._checks.contradictions

    def remove(self) -> None:
        """Takes the taps out, waits for the checks that still run, and logs what was checked."""
        if not self._is_on:
            return
        self._is_on = False
        self.trainer.remove_callback(self)
        self._taps.close()
        try:
            self._checks.finish()
        finally:
            self._conclude()

    def on_train_end(self, *args: object, **kwargs: object) -> None:
        self.remove()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def leave_out(self, contract: str, reason: str) -> None:
        """Says once that a stage is not watched."""
        if contract not in self.not_watched:
            self.not_watched[contract] = reason
            log.warning("not watched: %s, because %s", contract, reason)

    def begin(self, *contracts: str) -> None:
        """These stages are watched. At the end, those without a batch are named."""
        for name, reason in self._skip.items():
            if name not in contracts:
                stages = ", ".join(contracts)
                raise UsageError(f"skip: this trainer has no stage `{name}`; it has: {stages}")
            self.leave_out(name, reason)
        self._stages += contracts
        self._is_on = True
        self.trainer.add_callback(self)

    def tap(self, name: str, tap: Method) -> None:
        """Wraps a method of the trainer."""
        self._taps.enter_context(tapped(self.trainer, name, tap))

    def judge(self, contract: str, make: Method, *args: object) -> None:
        """Checks the batch that `make` makes of these, if any. What it raises stops no training."""
        if contract in self.not_watched:
            return
        step = self.trainer.state.global_step + 1
        try:
            made = make(*args)
            if made is not None:
                tensors, options, dtype, note = made
                place = f"cpu/{DTYPES[dtype]}"
                self._checks.add(Batch(contract, step, place, tensors, options, note))
        except Exception as error:
            self.leave_out(contract, f"{type(error).__name__}: {error}")

    def poll(self) -> None:
        """Logs what has been found so far."""
        self._checks.poll()

    def _conclude(self) -> None:
        for contract, count in self.checked.items():
            wrong = self._checks.wrong[contract]
            level = logging.WARNING if wrong else logging.INFO
            log.log(level, "watched: %s, %d of %d batches are wrong", contract, wrong, count)
        for contract, count in self._checks.refused.items():
            log.warning("not checked: %s, %d batches", contract, count)
        for contract in self._stages:
            if not self.checked[contract]:
                self.leave_out(contract, "no batch of it was checked")
        if self._checks.dropped:
            log.warning(
                "not checked: %d batches, as checks take longer than steps: a larger `every` helps",
                self._checks.dropped,
            )
