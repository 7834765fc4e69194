"""Taps of a live trainer: its methods are wrapped, and what passes through them is checked."""

from __future__ import annotations

import contextlib
import typing

import torch
from torch import Tensor
from transformers import Trainer, TrainerCallback

from ..side import Batch, Checks, Contradiction, log

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


class Pass:
    """What one loss was made of."""

    hidden: Tensor | None = None
    """What went into the head, `[N, L, H]`."""
    dtype = torch.float32
    """What the head computes in."""
    labels: Tensor | None = None
    tokens: Tensor | None = None
    log_probs: Tensor | None = None
    gradient: Tensor | None = None
    """Of the loss by the log-probabilities, when it has been computed."""
    loss: Tensor

    def follow(self, log_probs: Tensor) -> None:
        """These are the log-probabilities of the loss."""
        self.log_probs = log_probs.detach()
        if log_probs.requires_grad:
            log_probs.register_hook(self._of_backward)

    def _of_backward(self, gradient: Tensor) -> None:
        self.gradient = gradient.detach()


@contextlib.contextmanager
def seen(model: torch.nn.Module) -> typing.Iterator[Pass]:
    """The first pass of a causal language model that is trained on."""
    passed = Pass()

    def of_backbone(_: object, given: object, output: typing.Any) -> None:
        hidden = getattr(output, "last_hidden_state", None)
        if passed.hidden is None and hidden is not None and torch.is_grad_enabled():
            passed.hidden = hidden.detach()
            device = hidden.device.type
            is_mixed = torch.is_autocast_enabled(device)
            passed.dtype = torch.get_autocast_dtype(device) if is_mixed else hidden.dtype

    backbone = getattr(model, "base_model", None)
    if not isinstance(backbone, torch.nn.Module):
        yield passed
        return
    hook = backbone.register_forward_hook(of_backbone)
    try:
        yield passed
    finally:
        hook.remove()


def logits_of(model: typing.Any, hidden: Tensor, dtype: torch.dtype) -> Tensor:
    """The logits of hidden states, `[N, T, V]`, computed in this format."""
    config = model.config.get_text_config()
    for name in SCALED_LOGITS:
        if getattr(config, name, None) not in (None, 1.0):
            raise NotImplementedError(f"the model scales its logits: {name}")
    head = model.get_output_embeddings()
    with torch.no_grad(), torch.autocast(hidden.device.type, enabled=False):
        parts = [
            hidden.detach().to(dtype) @ part.to(dtype).t()
            for part in head.weight.split(VOCABULARY_CHUNK)
        ]
        logits = torch.cat(parts, dim=-1)
        return logits if head.bias is None else logits + head.bias.to(dtype)


def places_of(mask: Tensor, vocabulary: int) -> tuple[Tensor, Tensor]:
    """A few tokens of a few rows: the rows `[n, 1]`, and as many columns of each, `[n, t]`."""
    rows = mask.any(dim=1).nonzero()[:LOGIT_ROWS]
    if not len(rows):
        raise LookupError("no token counts")
    few = max(1, LOGITS // (len(rows) * vocabulary))
    width = min(LOGIT_TOKENS, few, *(int(mask[row].sum()) for row in rows))
    return rows, torch.stack([mask[row].nonzero()[:width, 1] for row in rows])


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
        self._is_on = True
        trainer.add_callback(self)
        for contract, reason in skip.items():
            self.leave_out(contract, reason)

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

    def tap(self, name: str, tap: Method) -> None:
        """Wraps a method of the trainer."""
        self._taps.enter_context(tapped(self.trainer, name, tap))

    def judge(self, contract: str, make: Method, *args: object) -> None:
        """Checks the batch that `make` makes of these. What it raises stops no training."""
        if contract in self.not_watched:
            return
        try:
            made = make(*args)
            if made is None:
                return
            tensors, options, dtype = made
            place = f"cpu/{DTYPES[dtype]}"
            batch = Batch(contract, self.trainer.state.global_step + 1, tensors, options, place)
            self._checks.add(batch)
        except Exception as error:
            self.leave_out(contract, f"{type(error).__name__}: {error}")

    def poll(self) -> None:
        """Logs what has been found so far."""
        self._checks.poll()

    def _conclude(self) -> None:
        for contract, count in self.checked.items():
            wrong = self._checks.wrong[contract]
            log.info("watched: %s, %d batches, %d are wrong", contract, count, wrong)
        if not self.checked:
            log.warning("the watch checked no batch")
        if self._checks.dropped:
            log.warning(
                "not checked: %d batches, as checks take longer than steps: a larger `every` helps",
                self._checks.dropped,
            )
