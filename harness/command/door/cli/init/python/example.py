import math


def example(rewards, groups, epsilon):
    """The advantages of GRPO on plain lists: an example, to be replaced by a call of yours.

    `rewards` and `groups` are inputs of the contract `group-advantage`, `epsilon` is one of its
    options, and the one output is returned as it is.
    """
    advantages = [0.0] * len(rewards)
    for group in set(groups):
        rows = [row for row, other in enumerate(groups) if other == group]
        if len(rows) == 1:
            continue  # `singleton: zero`
        mean = math.fsum(rewards[row] for row in rows) / len(rows)
        squares = math.fsum((rewards[row] - mean) ** 2 for row in rows)
        deviation = math.sqrt(squares / (len(rows) - 1))
        for row in rows:
            advantages[row] = (rewards[row] - mean) / (deviation + epsilon)
    return advantages
