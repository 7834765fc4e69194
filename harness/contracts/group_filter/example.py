import torch


def group_filter(rewards, metric, groups, ids, criterion, tolerance, range, singleton, limit):
    keep = torch.zeros_like(metric)
    kept = 0
    for group in dict.fromkeys(groups.tolist()):  # in order of appearance
        rows = groups == group
        own = metric[rows]
        if criterion == "range":
            low, high = range
            stays = low < own.mean() < high
        elif len(own) == 1:
            stays = singleton == "keep"
        else:
            stays = own.max() - own.min() > tolerance
        if stays and (limit is None or kept < limit):
            keep[rows] = 1
            kept += 1
    chosen = keep == 1
    return {"keep": keep, "kept_ids": ids[chosen], "kept_rewards": rewards[chosen]}
