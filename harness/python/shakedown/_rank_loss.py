"""The loss of a rank with its gradients, and the mean of those of all ranks."""

from __future__ import annotations

import typing

import torch
from torch.autograd.function import once_differentiable

from ._errors import CollectiveMismatch, UsageError

Given = typing.Any


class Loss(typing.NamedTuple):
    """A loss, the tensors on which it depends, and its gradient for each of them."""

    value: torch.Tensor
    sources: list[torch.Tensor]
    gradients: typing.Sequence[torch.Tensor]


def of(function: typing.Callable[..., Given], args: Given, kwargs: Given) -> Loss:
    """Calls a function on a rank, and does the backward pass there: it may have collectives."""
    shards: dict[torch.Tensor, torch.Tensor] = {}

    def leaf(given: Given) -> Given:
        if not (isinstance(given, torch.Tensor) and given.requires_grad):
            return given
        own = given.detach().requires_grad_()
        shards[own] = given
        return own

    loss = function(*map(leaf, args), **{name: leaf(given) for name, given in kwargs.items()})
    loss = one_number(loss)
    if not loss.requires_grad:
        return Loss(loss, [], [])
    leaves = leaves_of(loss)
    gradients = torch.autograd.grad(loss, leaves, retain_graph=True)  # ranks may share a part
    return Loss(loss.detach(), [shards.get(leaf, leaf) for leaf in leaves], gradients)


def one_number(loss: Given) -> torch.Tensor:
    if isinstance(loss, (int, float)):
        return torch.tensor(float(loss))
    if isinstance(loss, torch.Tensor) and loss.numel() == 1:
        return loss.sum()
    found = f"a tensor {list(loss.shape)}" if isinstance(loss, torch.Tensor) else repr(loss)
    raise UsageError(f"mean: expected one number from each rank, found {found}")


def leaves_of(loss: torch.Tensor) -> list[torch.Tensor]:
    """The tensors that get a gradient from a loss: shards, and what its function closes over."""
    found, seen, ahead = [], set(), [loss.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        ahead += [before for before, _ in node.next_functions]
        if not node.next_functions and hasattr(node, "variable"):
            found.append(node.variable)
    return found


def mean(losses: list[Loss]) -> torch.Tensor:
    """The mean of the losses of all ranks, with its gradient."""
    constant = [str(rank) for rank, loss in enumerate(losses) if not loss.sources]
    value = sum((loss.value for loss in losses[1:]), losses[0].value) / len(losses)
    if len(constant) == len(losses):
        return value
    if constant:
        which = f"rank{'s' * (len(constant) > 1)} {', '.join(constant)}"
        raise CollectiveMismatch(
            f"the loss of {which} is a constant, so backward fails there, and the other ranks wait"
        )
    sources = [source for loss in losses for source in loss.sources]
    gradients = [gradient / len(losses) for loss in losses for gradient in loss.gradients]
    return typing.cast(torch.Tensor, Known.apply(value, gradients, *sources))  # type: ignore


class Known(torch.autograd.Function):
    """A value whose gradients are known."""

    @staticmethod
    def forward(
        ctx: typing.Any, value: torch.Tensor, gradients: list[torch.Tensor], *_: torch.Tensor
    ) -> torch.Tensor:
        ctx.gradients = gradients
        return value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: typing.Any, gradient: torch.Tensor) -> typing.Any:
        return None, None, *(own * gradient for own in ctx.gradients)
