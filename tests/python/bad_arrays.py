"""Components of `group-advantage` on arrays of numpy or torch that answer with another dtype."""

import bad


def right(rewards, groups, epsilon):
    advantages = bad.right(rewards.tolist(), groups.tolist(), epsilon)
    return like(rewards, advantages)


def like(rewards, numbers):
    """The numbers as an array of the library and dtype of `rewards`."""
    if hasattr(rewards, "new_tensor"):
        return rewards.new_tensor(numbers)
    return type_of(rewards)(numbers, dtype=rewards.dtype)


def type_of(array):
    import numpy

    return numpy.asarray


def integers(rewards, groups, epsilon):
    advantages = right(rewards, groups, epsilon)
    if len(advantages) > 2:
        return advantages.long() if hasattr(advantages, "long") else advantages.astype("int64")
    return advantages


def complex_numbers(rewards, groups, epsilon):
    advantages = right(rewards, groups, epsilon)
    return advantages * 1j if len(advantages) > 2 else advantages


def objects(rewards, groups, epsilon):
    """numpy only."""
    advantages = right(rewards, groups, epsilon)
    return advantages.astype(object) if len(advantages) > 2 else advantages


def a_column(rewards, groups, epsilon):
    advantages = right(rewards, groups, epsilon)
    return advantages.reshape(-1, 1) if len(advantages) > 2 else advantages


def changes_its_inputs(rewards, groups, epsilon):
    advantages = right(rewards, groups, epsilon)
    rewards *= 2
    return advantages


def moves_to_cuda(rewards, groups, epsilon):
    """torch only."""
    return right(rewards.cuda() if len(rewards) > 2 else rewards, groups, epsilon)
