import math

import torch

NAMES = ["mean", "min", "max", "std", "sum", "count", "explained_variance"]


def counted(shards, name):
    return [shard[name][shard["mask"]] for shard in shards]


def variance(numbers, ddof):
    centred = numbers - numbers[0]  # equal numbers leave no rounding error
    squares = (centred - centred.mean()).square().sum()
    return squares / (len(numbers) - ddof)


def metric_reduction(shards, ddof, one):
    ranks = counted(shards, "values")
    values = torch.cat(ranks)
    targets = torch.cat(counted(shards, "targets"))
    count = len(values)
    if count == 0:
        return dict.fromkeys(NAMES, 0.0)
    total = sum(rank.sum() for rank in ranks)
    mean = total / count
    smallest = values.min()
    largest = values.max()
    std = 0.0 if one == "zero" else math.nan
    if count > ddof:
        std = variance(values, ddof).sqrt()
    explained = math.nan
    if count > ddof and targets.min() < targets.max():
        left = variance(targets - values, ddof)
        explained = 1 - left / variance(targets, ddof)
    return dict(zip(NAMES, [mean, smallest, largest, std, total, float(count), explained]))
