"""A trainer that does not sample, such as the actors of verl and OpenRLHF."""

import by_hand_actor
import pytest
import torch
from planting import BY_HAND, planted

import shakedown
from shakedown.trainers.puppets import GrpoPuppet

ACTOR = shakedown.GrpoStep(
    baseline="none", scale="none", aggregate="token-mean", over="update", generations=2,
    iterations=2, mini_batches=2, accumulation=2,
).settings(cases=4, time=60)  # fmt: skip
ACTOR_BY_HAND = BY_HAND.with_name("by_hand_actor.py")
INTO_ACTOR = {
    "mean-of-micro-batch-means": (
        "trained[rows].sum()", "trained[part].sum().clamp(min=1) * self.accumulation",
    ),
    "clipping-ignored": ("ratio.clamp(1 - self.clip, 1 + self.clip)", "ratio"),
    "old-log-probs-are-current": ("log_probs - old[part]", "log_probs - log_probs.detach()"),
    "`gradient` were negated": ("-gain.where", "gain.where"),
}  # fmt: skip
"""Known bug: the line, and the wrong one."""


def train(module, puppet):
    for rollouts in puppet.rollouts:
        module.Actor(puppet).update(rollouts)


@ACTOR
def test_an_actor_by_hand_passes(puppet):
    train(by_hand_actor, puppet)


@pytest.mark.parametrize("bug", INTO_ACTOR)
def test_a_planted_bug_is_found_by_name(bug):
    module = planted(ACTOR_BY_HAND, *INTO_ACTOR[bug])

    def actor(puppet):
        train(module, puppet)

    report = ACTOR.report(actor)
    assert report.status == "fail"
    assert bug in str(report), f"{report}"


def test_rollouts_are_the_completions_of_each_generation():
    tokens = torch.tensor([[[3, 1], [2, 0]], [[4, 3], [2, 0]]])
    rewards = torch.tensor([[[1.0, 0.5], [0.0, 0.0]], [[2.0, 0.0], [0.0, 1.0]]])
    logits = torch.zeros(2, 2, 2, 2, 6)
    puppet = GrpoPuppet(tokens, rewards, logits, eos=[1, 2], pad=0, generations=2)
    (first, _), (last, _) = puppet.rollouts
    assert first == {
        "prompt_ids": list(puppet.prompts[0]), "completion_ids": [3, 1], "rewards": [1.0, 0.5],
    }  # fmt: skip
    assert (last["completion_ids"], last["rewards"]) == ([4, 3], [2.0, 0.0])
