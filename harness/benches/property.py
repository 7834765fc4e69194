"""The property that cycles.rs times, written with Hypothesis: GRPO advantages equal an oracle."""

import math
import sys
import time

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def grpo(rewards, groups, epsilon=1e-4):
    """The component on tensors, checked by both."""
    advantages = torch.zeros_like(rewards)
    for group in groups.unique():
        rows = groups == group
        own = rewards[rows]
        if own.numel() > 1:
            advantages[rows] = (own - own.mean()) / (own.std() + epsilon)
    return advantages


def plain(rewards, groups, epsilon=1e-4):
    """The same on lists, without a library."""
    return oracle(rewards, groups, epsilon)


def oracle(rewards, groups, epsilon=1e-4):
    advantages = []
    for reward, group in zip(rewards, groups):
        own = [r for r, g in zip(rewards, groups) if g == group]
        if len(own) == 1:
            advantages.append(0.0)
            continue
        mean = math.fsum(own) / len(own)
        deviation = math.sqrt(math.fsum((r - mean) ** 2 for r in own) / (len(own) - 1))
        advantages.append((reward - mean) / (deviation + epsilon))
    return advantages


@st.composite
def cases(draw):
    sizes = draw(st.lists(st.integers(1, 8), min_size=1, max_size=4))
    count = sum(sizes)
    reward = st.floats(-10, 10, width=32)
    rewards = draw(st.lists(reward, min_size=count, max_size=count))
    groups = [group for group, size in enumerate(sizes) for _ in range(size)]
    return rewards, groups


def main(function, examples):
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def holds(case):
        rewards, groups = case
        if function == "plain":
            found = plain(rewards, groups)
        else:
            found = grpo(torch.tensor(rewards), torch.tensor(groups)).tolist()
        expected = oracle(rewards, groups)
        assert all(abs(f - e) <= 1e-2 * (1 + abs(e)) for f, e in zip(found, expected))

    torch.set_num_threads(1)
    started = time.perf_counter()
    holds()
    print(time.perf_counter() - started)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
