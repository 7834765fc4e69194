"""The stages of live SFT and DPO trainers: their losses are tapped."""

from __future__ import annotations

import contextlib
import typing

import torch
from torch import Tensor

from ..._errors import UsageError
from .dpo import DPO
from .runs import Options
from .sft import SFT
from .taps import Made, Method, Pass, Turn, Watch, beyond, causal, declared, scored, seen

WITH_MARGINS = {"sigmoid", "hinge", "robust"}
"""The kinds of `preference-loss`; the others are those of `pair-objective`."""


class LossStages:
    """The log-probabilities and the loss of a trainer with a `compute_loss`."""

    contract: str
    """Of the loss."""

    def __init__(self, watching: Watch) -> None:
        self.watch, self.trainer = watching, watching.trainer
        self.settings = declared(self.trainer.args)
        self.is_due = Turn(watching.every)
        self.passes: list[Pass] = []
        """Of the loss that is looked at: the policy, and the reference if there is one."""
        self.count: Tensor | int | None = None
        """The tokens of the whole update, where the trainer counts them."""
        reason = self.unwatched()
        watching.begin("token-log-probs", self.contract)
        if reason:
            watching.leave_out(self.contract, reason)
        watching.tap("compute_loss", self.on_loss)
        watching.tap("training_step", self.on_step)

    def unwatched(self) -> str | None:
        """Why the loss cannot be watched."""
        return beyond(self.trainer)

    def models(self) -> list[typing.Any]:
        return [causal(self.trainer, self.trainer.model)]

    def made(self) -> Made:
        """The batch of the loss."""
        raise NotImplementedError

    def on_loss(self, method: Method, *args: object, **named: typing.Any) -> typing.Any:
        if not self.trainer.model.training or not self.is_due():
            return method(*args, **named)
        models = self.models()
        with contextlib.ExitStack() as hooks:
            self.passes = [hooks.enter_context(seen(it)) for it in models]
            made = method(*args, **named)
        loss: Tensor = made[0] if isinstance(made, tuple) else made
        self.passes[0].loss = loss.detach()
        self.count = named.get("num_items_in_batch")
        for it, passed in zip(models, self.passes):
            self.watch.judge("token-log-probs", self.log_probs, it, passed)
        return made

    def on_step(self, method: Method, *args: object, **named: object) -> Tensor:
        made: Tensor = method(*args, **named)
        if self.passes:
            self.watch.judge(self.contract, self.made)
            self.passes = []
        self.watch.poll()
        return made

    def log_probs(self, model: typing.Any, passed: Pass) -> Made | None:
        _, tokens, mask = targets(passed)
        return scored(model, passed, tokens, mask)


class SftStages(LossStages):
    """Supervised fine-tuning: its loss is REINFORCE with advantages of 1."""

    contract = "policy-loss"

    def unwatched(self) -> str | None:
        trainer = self.trainer
        try:
            SFT.must_be_judged({n: it for n, it in self.settings.items() if n != "packing"})
        except UsageError as error:
            return str(error)
        if trainer.args.loss_type == "dft":
            return "loss_type 'dft' is not judged yet"
        if trainer.compute_loss_func is not None:
            return "the trainer has a `compute_loss_func`"
        if trainer.accelerator.num_processes > 1:
            return "its tokens are counted over several ranks"
        return super().unwatched()

    def made(self) -> Made:
        [passed] = self.passes
        log_probs, _, mask = targets(passed)
        accumulation = self.trainer.current_gradient_accumulation_steps
        if self.count is None:
            of_loss, of_gradient = 1.0, float(accumulation)
        else:
            of_loss = of_gradient = float(self.count) / max(int(mask.sum()), 1)
        gradient = torch.zeros_like(log_probs) if passed.gradient is None else passed.gradient
        gradient = gradient.masked_fill(~mask, 0)  # of a number that the head puts in their place
        tensors = {
            "log_probs": log_probs,
            "old_log_probs": log_probs,
            "advantages": torch.ones(len(log_probs), dtype=log_probs.dtype),
            "mask": mask,
            "loss": (passed.loss.double() * of_loss).to(log_probs.dtype),
            "grad_log_probs": (gradient.double() * of_gradient).to(log_probs.dtype),
        }
        options = {"objective": "reinforce", "advantage_shape": "row", "holes": True}
        return Made(tensors, options, log_probs.dtype)


class DpoStages(LossStages):
    """DPO and its relatives."""

    contract = "preference-loss"
    options: Options

    def unwatched(self) -> str | None:
        trainer = self.trainer
        try:
            DPO.must_be_judged(self.settings)
        except UsageError as error:
            return str(error)
        declared = DPO.options(self.settings)
        if declared["kind"] not in WITH_MARGINS:
            self.contract = "pair-objective"
        self.options = {name: declared[name] for name in ("kind", "beta", "label_smoothing")}
        if trainer.ref_model is None:
            return "the reference is an adapter of the policy"
        return super().unwatched()

    def models(self) -> list[typing.Any]:
        reference = self.trainer.ref_model
        return [
            *super().models(),
            *([] if reference is None else [causal(self.trainer, reference)]),
        ]

    def made(self) -> Made:
        policy, reference = self.passes
        (log_probs, _, mask), (ref_log_probs, _, _) = targets(policy), targets(reference)
        sums = [it.sum(dim=1).chunk(2) for it in (log_probs, ref_log_probs)]
        lengths = mask.sum(dim=1)
        tensors = {
            "policy_chosen": sums[0][0],
            "policy_rejected": sums[0][1],
            "ref_chosen": sums[1][0],
            "ref_rejected": sums[1][1],
            "loss": policy.loss.to(log_probs.dtype),
        }
        gradient = policy.gradient
        gradient = torch.zeros_like(log_probs) if gradient is None else gradient
        # A sum gives all its tokens one gradient.
        slopes = (gradient.double() * mask).sum(dim=1) / lengths.clamp(min=1)
        slopes = (slopes * self.trainer.current_gradient_accumulation_steps).to(gradient.dtype)
        tensors["grad_policy_chosen"], tensors["grad_policy_rejected"] = slopes.chunk(2)
        if self.contract == "pair-objective":
            tensors["chosen_lengths"], tensors["rejected_lengths"] = lengths.chunk(2)
        return Made(tensors, {**self.options, "reduction": "mean"}, log_probs.dtype)


def targets(passed: Pass) -> tuple[Tensor, Tensor, Tensor]:
    """The log-probabilities of a pass, their tokens, and whether each counts."""
    if passed.labels is None or passed.log_probs is None:
        raise LookupError("the model was not called with labels, for log-probabilities")
    tokens = passed.labels[:, 1:]
    return passed.log_probs, tokens.clamp(min=0), tokens != -100
