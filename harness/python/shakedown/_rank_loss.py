"""The losses of ranks, with gradients whose collectives are called in the rank."""

from __future__ import annotations

import typing

import torch
from torch.autograd.function import once_differentiable

from ._errors import CollectiveMismatch, UsageError

Given = typing.Any
Nodes = dict[typing.Any, list[typing.Any]]  # of a graph, with those before each

OF_TORCH = ("AccumulateGrad", "CopySlices")  # names of nodes; its others end in a digit


def of(function: typing.Callable[..., Given], args: Given, kwargs: Given) -> torch.Tensor:
    """Calls a function on a rank. What backward does later has no collective in it."""
    loss = one_number(function(*args, **kwargs))
    given = [it for it in [*args, *kwargs.values()] if isinstance(it, torch.Tensor)]
    shards = {it.grad_fn: it for it in given if it.grad_fn is not None}
    nodes = graph(loss, shards)
    names = (node.name() for node in nodes)
    if all(name[-1].isdigit() or name.endswith(OF_TORCH) for name in names):
        return loss
    ends = [node for node, before in nodes.items() if not before]
    sources = [*shards.values(), *(end.variable for end in ends if hasattr(end, "variable"))]
    # Ranks may share a part of the graph, behind what the function closes over.
    gradients = torch.autograd.grad(loss, sources, retain_graph=True, allow_unused=True)
    apply: typing.Any = Known.apply
    return typing.cast(torch.Tensor, apply(loss.detach(), gradients, *sources))


def one_number(loss: Given) -> torch.Tensor:
    if isinstance(loss, (int, float)):
        return torch.tensor(float(loss))
    if isinstance(loss, torch.Tensor) and loss.numel() == 1:
        return loss.sum()
    found = f"a tensor {list(loss.shape)}" if isinstance(loss, torch.Tensor) else repr(loss)
    raise UsageError(f"mean: expected one number from each rank, found {found}")


def graph(loss: torch.Tensor, ends: typing.Container[typing.Any]) -> Nodes:
    """The nodes of what computed a loss, back to where it ends."""
    nodes: Nodes = {}
    ahead = [loss.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is not None and node not in nodes and node not in ends:
            nodes[node] = [before for before, _ in node.next_functions]
            ahead += nodes[node]
    return nodes


def mean(losses: list[torch.Tensor]) -> torch.Tensor:
    """The mean of the losses of all ranks."""
    constant = [str(rank) for rank, loss in enumerate(losses) if not loss.requires_grad]
    if 0 < len(constant) < len(losses):
        which = f"rank{'s' * (len(constant) > 1)} {', '.join(constant)}"
        why = "is a constant, so backward fails there, and the other ranks wait"
        raise CollectiveMismatch(f"the loss of {which} {why}")
    return sum(losses[1:], losses[0]) / len(losses)


class Known(torch.autograd.Function):
    """A value whose gradients are known."""

    @staticmethod
    def forward(
        ctx: typing.Any, value: torch.Tensor, gradients: typing.Sequence[typing.Any], *_: Given
    ) -> torch.Tensor:
        ctx.gradients = gradients
        return value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: typing.Any, gradient: torch.Tensor) -> typing.Any:
        own = (it if it is None else it * gradient for it in ctx.gradients)
        return (None, None, *own)
