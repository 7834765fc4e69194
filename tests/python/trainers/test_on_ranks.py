"""A trainer on several ranks of one process: each has a replica of the puppet's model."""

import pytest
import torch
import torch.nn.functional as F
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

import shakedown

IGNORED = -100


def train(puppet, wrap=DistributedDataParallel, counted="update"):
    """Supervised fine-tuning on the rank that runs: one micro-batch of each update."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model, optimizer = wrap(puppet.model), puppet.optimizer
    for first in range(0, len(puppet.examples), puppet.micro_batch * ranks):
        first += rank * puppet.micro_batch
        rows = puppet.examples[first : first + puppet.micro_batch]
        width = max(len(row["input_ids"]) for row in rows)

        def padded(name, pad, rows=rows, width=width):
            return torch.tensor([row[name] + [pad] * (width - len(row[name])) for row in rows])

        labels = padded("labels", IGNORED)[:, 1:]
        mask = padded("input_ids", IGNORED) != IGNORED
        logits = model(input_ids=padded("input_ids", 0), attention_mask=mask.long()).logits
        losses = F.cross_entropy(logits[:, :-1].transpose(1, 2), labels, reduction="none")
        count = (labels != IGNORED).sum()
        if counted == "update":
            dist.all_reduce(count)
            losses = losses * ranks  # which DistributedDataParallel divides by
        (losses.sum() / count.clamp(min=1)).backward()
        optimizer.step()
        optimizer.zero_grad()


def report(ranks, **how):
    def on_ranks(puppet):
        shakedown.ranks(ranks).run(lambda rank: train(puppet, **how))

    contract = shakedown.SftStep(mini_batches=2, accumulation=ranks)
    return contract.settings(cases=8).report(on_ranks)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_right_trainer_passes_on_any_number_of_ranks(ranks):
    found = report(ranks)
    assert found, found.text


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"counted": "rank"}, "`mean-of-micro-batch-means`"),
        ({"wrap": lambda model: model}, "ranks 0 and 1 apply different gradients: average them"),
    ],
)
def test_a_wrong_one_is_found(how, words):
    text = report(2, **how).text
    assert words in text, text


def test_a_rank_that_makes_an_update_less_is_found():
    def leads(rank, puppet):
        optimizer = puppet.optimizer
        if rank == 0:
            optimizer.step()

    def on_ranks(puppet):
        shakedown.ranks(2).run(lambda rank: leads(rank, puppet))

    text = shakedown.SftStep(accumulation=2).settings(cases=4).report(on_ranks).text
    assert "the trainer made 0 updates on rank 1, 1 are declared" in text, text
